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
    models::check_options("puflow", puflow_fields(), &options);
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
    const PuFlowOptions usual;
    return config_text(puflow_fields(), &options, &usual,
                       {"family", "steps", "augmented_channels", "neighbourhood", "context", "attention_normalise",
                        "interpolation", "interpolated", "noise"});
}

}  // namespace

const Fields& puflow_fields() {
    using Options = PuFlowOptions;
    static const Fields fields = {
        field<&Options::ratio>("ratio", "Children of a point").between(1, kMostChildren),
        field<&Options::neighbours>("neighbours", "Neighbours in the feature network").between(1, 128),
        field<&Options::interpolation_neighbours>("interpolation_neighbours", "Neighbours that children are made of")
            .between(1, 128),
        field<&Options::family>("family", "What a block of the flow is made of").words(kFlowFamilyWords),
        field<&Options::steps>("steps", "Steps of the continuous family").between(1, 1000),
        field<&Options::augmented_channels>("augmented_channels", "Further channels of the augmented family")
            .between(1, 61),
        field<&Options::neighbourhood>("neighbourhood", "Whose neighbours children are made of")
            .words(kNeighbourhoodWords),
        field<&Options::context>("context", "What features learn of the whole patch").words(kContextWords),
        field<&Options::attention_normalise>("attention_normalise",
                                             "What the weights of self-attention add up to 1 over")
            .words(kAttentionNormaliseWords),
        field<&Options::interpolation>("interpolation", "How much of each neighbour a child is made of")
            .words(kInterpolationWords),
        field<&Options::interpolated>("interpolated", "What is interpolated").words(kInterpolatedWords),
        field<&Options::noise>("noise", "An input of noise, which is added to the latents of children"),
        field<&Options::stages>("stages", "Outputs of what is computed on the way")};
    return fields;
}

PuFlowOptions puflow_options(const Config& config) {
    PuFlowOptions options;
    read_config("puflow", puflow_fields(), &options, config);
    return options;
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
