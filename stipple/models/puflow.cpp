#include "stipple/models/puflow.h"

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"
#include "stipple/models/puflow/context.h"
#include "stipple/models/puflow/flow.h"
#include "stipple/models/puflow/interpolation.h"
#include "stipple/network/builder.h"

namespace stipple::models {

using network::Builder;
using network::Network;
using network::Tensor;

namespace {

using namespace puflow_parts;

void check_options(const PuFlowOptions& options) {
    STIPPLE_REQUIRE(options.ratio >= 1 && options.ratio <= kMostChildren, "puflow: ratio must be 1 to {}, got {}",
                    kMostChildren, options.ratio);
    STIPPLE_REQUIRE(options.neighbours >= 1 && options.neighbours <= 128, "puflow: neighbours must be 1 to 128, got {}",
                    options.neighbours);
    STIPPLE_REQUIRE(options.interpolation_neighbours >= 1 && options.interpolation_neighbours <= 128,
                    "puflow: interpolation_neighbours must be 1 to 128, got {}", options.interpolation_neighbours);
    STIPPLE_REQUIRE(options.steps >= 1 && options.steps <= 1000, "puflow: steps must be 1 to 1000, got {}",
                    options.steps);
    STIPPLE_REQUIRE(options.augmented_channels >= 1 && options.augmented_channels <= 61,
                    "puflow: augmented_channels must be 1 to 61, got {}", options.augmented_channels);
    STIPPLE_REQUIRE(options.attention_normalise != network::Normalise::none,
                    "puflow: attention_normalise must be row or joint, got none");
    STIPPLE_REQUIRE(
        options.interpolation != Interpolation::midpoint || options.interpolation_neighbours > options.ratio,
        "puflow: midpoint needs more interpolation_neighbours than ratio, got {} and {}",
        options.interpolation_neighbours, options.ratio);
    STIPPLE_REQUIRE(options.interpolated == Interpolated::latents || (!options.noise && !options.stages),
                    "puflow: coordinates are interpolated without noise and stages");
}

/// What came with the families is there where it is not as published: programs from before read all other files.
Config config_of(const PuFlowOptions& options) {
    Config config = {{"ratio", config_text(options.ratio)},
                     {"neighbours", config_text(options.neighbours)},
                     {"interpolation_neighbours", config_text(options.interpolation_neighbours)},
                     {"stages", config_text(options.stages)}};
    const PuFlowOptions usual;
    if (options.family != usual.family) config["family"] = flow_family_names()[static_cast<size_t>(options.family)];
    if (options.steps != usual.steps) config["steps"] = config_text(options.steps);
    if (options.augmented_channels != usual.augmented_channels)
        config["augmented_channels"] = config_text(options.augmented_channels);
    if (options.neighbourhood != usual.neighbourhood)
        config["neighbourhood"] = neighbourhood_names()[static_cast<size_t>(options.neighbourhood)];
    if (options.context != usual.context) config["context"] = context_names()[static_cast<size_t>(options.context)];
    if (options.attention_normalise != usual.attention_normalise)
        config["attention_normalise"] = attention_normalise_names()[static_cast<size_t>(options.attention_normalise)];
    if (options.interpolation != usual.interpolation)
        config["interpolation"] = interpolation_names()[static_cast<size_t>(options.interpolation)];
    if (options.interpolated != usual.interpolated)
        config["interpolated"] = interpolated_names()[static_cast<size_t>(options.interpolated)];
    if (options.noise != usual.noise) config["noise"] = config_text(options.noise);
    return config;
}

}  // namespace

const std::vector<std::string>& flow_family_names() {
    static const std::vector<std::string> names = {"coupling", "residual", "continuous", "augmented", "mlp"};
    return names;
}

const std::vector<std::string>& neighbourhood_names() {
    static const std::vector<std::string> names = {"euclidean", "latent"};
    return names;
}

const std::vector<std::string>& context_names() {
    static const std::vector<std::string> names = {
        "none",          "global-max",    "self-attention", "shape-context",  "cosine-gate", "intra-attention",
        "group-shuffle", "channel-graph", "skip-attention", "level-attention"};
    return names;
}

const std::vector<std::string>& interpolation_names() {
    static const std::vector<std::string> names = {"learned",          "coded",     "midpoint",
                                                   "inverse-distance", "bilateral", "interp-conv"};
    return names;
}

const std::vector<std::string>& attention_normalise_names() {
    static const std::vector<std::string> names = {"row", "joint"};
    return names;
}

const std::vector<std::string>& interpolated_names() {
    static const std::vector<std::string> names = {"latents", "coordinates"};
    return names;
}

Network puflow(const PuFlowOptions& options) {
    check_options(options);
    Builder build("puflow");
    const auto stage = [&](const std::string& name, Tensor x) {
        if (options.stages) build.output(name, x);
    };
    const Tensor points = build.input("points", network::points_of(3));

    // Conditions from features of ever wider surroundings: the graph of neighbours is that of the points throughout.
    const Tensor neighbours = build.knn("knn", points, options.neighbours);
    PatchFlow flow(build, options);
    Tensor x = points;
    std::vector<Tensor> levels;
    for (int l = 0; l < kBlocks; ++l) {
        x = block_features(build, l, x, neighbours);
        if (l == kContextBlock) x = context_features(build, options.context, options.attention_normalise, x);
        levels.push_back(x);
        const bool takes_levels = options.context == Context::level_attention && l == kBlocks - 1;
        Tensor condition = block_condition(build, l, takes_levels ? level_attention(build, levels) : x);
        if (options.context == Context::skip_attention) condition = skip_attention(build, l, condition, x);
        stage(fmt::format("feat_{}", l + 1), x);
        stage(fmt::format("cond_{}", l + 1), condition);
        flow.add_condition(condition);
    }

    Tensor z = flow.start(points);
    const Tensor started = z;
    for (int l = 0; l < kBlocks; ++l) {
        z = flow.forward(l, z);
        stage(fmt::format("flow_{}", l + 1), z);
    }
    stage("z", z);
    const Tensor log_det = flow.log_determinant(started);
    const Tensor log_density = build.gaussian_log_density("log_density", z);

    const bool is_latent = options.neighbourhood == Neighbourhood::latent;
    const Tensor near = build.knn("interp.knn", is_latent ? z : points, options.interpolation_neighbours);
    const bool is_direct = options.interpolated == Interpolated::coordinates;
    const Children children = interpolate_latents(build, options, points, is_direct ? points : z, near);
    if (children.logits >= 0) stage("interp_logits", children.logits);
    stage("latent_interp", children.latents);
    Tensor latent = children.latents;
    if (options.noise) {
        const Tensor noise = build.input("noise", network::rows_of(options.ratio, flow.channels()));
        latent = build.add("interp.noisy", latent, noise);
    }

    const Tensor upsampled = is_direct ? latent : flow.decode("decode.", latent, options.ratio);
    build.output("upsampled", upsampled);
    build.output("weights", children.weights);
    build.output("neighbours", near);
    stage("decoded", upsampled);
    if (options.stages) build.output("inverse_of_z", flow.decode("inverse.", z, 1));
    build.output("log_det", log_det);
    build.output("nll", build.scale("nll", build.add("log_likelihood", log_density, log_det), -1));
    return build.finish(config_of(options));
}

}  // namespace stipple::models
