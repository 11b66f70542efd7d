#include "stipple/models/puflow.h"

#include <array>

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"
#include "stipple/network/builder.h"

namespace stipple::models {

using network::Builder;
using network::leaky_relu;
using network::LinearOptions;
using network::Network;
using network::Tensor;

namespace {

constexpr int kBlocks = 6;
constexpr int64_t kFeatures[kBlocks] = {32, 64, 128, 128, 128, 128};
constexpr int64_t kGrowth[kBlocks] = {8, 16, 32, 32, 32, 32};
constexpr int64_t kMostChildren = 32;

LinearOptions mlp_layer() {
    return {.norm = true, .activation = leaky_relu(0.01f)};
}

/// A densely connected edge convolution [B, N, c] -> [B, N, k, channels]: each layer sees the edge and all before it.
Tensor edge_unit(Builder& build, const std::string& name, Tensor x, Tensor neighbours, int64_t channels,
                 int64_t growth) {
    std::vector<Tensor> parts = {build.edge(name + ".edge", x, neighbours)};
    for (int64_t i = 0; i < channels / growth; ++i) {
        const Tensor input = i == 0 ? parts[0] : build.concat(fmt::format("{}.concat{}", name, i), parts);
        parts.push_back(build.linear(fmt::format("{}.convs.{}.0", name, i), input, growth,
                                     {.norm = true, .activation = leaky_relu(0.05f)}));
    }
    return build.linear(name + ".conv_out", build.concat(name + ".concat_out", parts), channels);
}

/// The three layers of a coupling or injector, with the parameters named `parameters`.
Tensor flow_net(Builder& build, const std::string& name, Tensor x, int64_t channels, const std::string& parameters) {
    const auto layer = [&](int i, Tensor input, int64_t outputs, const LinearOptions& options) {
        const std::string suffix = fmt::format(".layers.{}", i);
        return build.linear_sharing(name + suffix, input, outputs, options, parameters + suffix);
    };
    x = layer(0, x, 64, {.bias = false, .activation = leaky_relu(0.01f)});
    x = layer(2, x, 64, {.activation = leaky_relu(0.01f)});
    return layer(4, x, channels, {.weights = network::Initialiser::zeros});
}

std::string block_name(int block) {
    return fmt::format("flow_blocks.{}", block);
}

/// The coupling: even blocks keep one channel and move two, odd ones keep two and move one.
Tensor coupling(Builder& build, const std::string& prefix, int block, Tensor x, Tensor condition, bool inverse) {
    const int64_t kept = block % 2 == 0 ? 1 : 2;
    const std::string parameters = block_name(block) + ".coupling1", name = prefix + parameters;
    const Tensor input = build.concat(name + ".input", {build.slice(name + ".kept", x, 0, kept), condition});
    const Tensor t = flow_net(build, name + ".bias_net", input, 3 - kept, parameters + ".bias_net");
    return build.couple(name, x, t, kept, inverse);
}

/// What a block needs from its condition, once for both directions.
struct BlockCondition {
    Tensor features;     // [B, N, c]
    Tensor scale, bias;  // of the injector [B, N, 3]
};

Tensor flow_forward(Builder& build, int block, Tensor x, const BlockCondition& condition) {
    const std::string name = block_name(block);
    x = build.actnorm(name + ".actnorm", x);
    x = build.mix(name + ".permutate1.permutater", x);
    x = coupling(build, "", block, x, condition.features, false);
    x = build.reverse(name + ".permutate2", x);
    return build.inject(name + ".coupling2", x, condition.scale, condition.bias);
}

/// From the latent back to points, all blocks. `children`: rows of z for each point.
Tensor flow_inverse(Builder& build, const std::string& prefix, Tensor z,
                    const std::array<BlockCondition, kBlocks>& conditions, int64_t children) {
    for (int block = kBlocks - 1; block >= 0; --block) {
        const std::string parameters = block_name(block), name = prefix + parameters;
        const auto for_children = [&](const char* what, Tensor x) {
            return children == 1 ? x : build.repeat(name + what, x, children);
        };
        const BlockCondition& condition = conditions[static_cast<size_t>(block)];
        const Tensor scale = for_children(".scale", condition.scale);
        const Tensor bias = for_children(".bias", condition.bias);
        z = build.inject(name + ".coupling2", z, scale, bias, true);
        z = build.reverse(name + ".permutate2", z);
        z = coupling(build, prefix, block, z, for_children(".condition", condition.features), true);
        z = build.mix(name + ".permutate1.permutater", z, true, parameters + ".permutate1.permutater");
        z = build.actnorm(name + ".actnorm", z, true, parameters + ".actnorm");
    }
    return z;
}

/// log |det J| of the whole flow [B, 1]: the same for every point but what the injectors scale.
Tensor log_determinant(Builder& build, Tensor points, const std::array<BlockCondition, kBlocks>& conditions) {
    Tensor sum = -1;
    const auto add = [&](const std::string& name, Tensor term) {
        sum = sum < 0 ? term : build.add(name + ".sum", sum, term);
    };
    for (int block = 0; block < kBlocks; ++block) {
        const std::string name = block_name(block);
        for (const char* part : {".actnorm", ".permutate1.permutater"})
            add(name + part + ".log_det", build.flow_log_det(name + part + ".log_det", points, name + part));
        const Tensor scales =
            build.sum_points(name + ".coupling2.scales", conditions[static_cast<size_t>(block)].scale);
        sum = build.subtract(name + ".coupling2.log_det", sum, build.sum_channels(name + ".coupling2.scale", scales));
    }
    return sum;
}

/// Weights of each point's neighbours for each of its children, before the softmax [B, N, k, ratio].
Tensor interpolation_logits(Builder& build, Tensor points, Tensor neighbours, int64_t ratio) {
    Tensor distance = build.edge_distance("interp.distance", points, neighbours);
    const std::string encoder = "interp.knn_context.distance_encoder.mlp";
    distance = build.linear(encoder + ".0", distance, 64, mlp_layer());
    distance = build.linear(encoder + ".3", distance, 64, mlp_layer());
    distance = build.linear(encoder + ".6", distance, 128);
    const Tensor feature = edge_unit(build, "interp.knn_context.feat_conv", points, neighbours, 128, 16);
    Tensor x = build.concat("interp.context", {distance, feature});
    x = build.linear("interp.weight_unit.mlp.0", x, 128, mlp_layer());
    x = build.linear("interp.weight_unit.mlp.3", x, 64, mlp_layer());
    x = build.linear("interp.weight_unit.mlp.6", x, kMostChildren);
    return build.slice("interp.logits", x, 0, ratio);
}

void check_options(const PuFlowOptions& options) {
    STIPPLE_REQUIRE(options.ratio >= 1 && options.ratio <= kMostChildren, "puflow: ratio must be 1 to {}, got {}",
                    kMostChildren, options.ratio);
    STIPPLE_REQUIRE(options.neighbours >= 1 && options.neighbours <= 128, "puflow: neighbours must be 1 to 128, got {}",
                    options.neighbours);
    STIPPLE_REQUIRE(options.interpolation_neighbours >= 1 && options.interpolation_neighbours <= 128,
                    "puflow: interpolation_neighbours must be 1 to 128, got {}", options.interpolation_neighbours);
}

}  // namespace

Network puflow(const PuFlowOptions& options) {
    check_options(options);
    Builder build("puflow");
    const auto stage = [&](const std::string& name, Tensor x) {
        if (options.stages) build.output(name, x);
    };
    const Tensor points = build.input("points", network::points_of(3));

    // Conditions from features of ever wider surroundings: the graph of neighbours is that of the points throughout.
    const Tensor neighbours = build.knn("knn", points, options.neighbours);
    std::array<BlockCondition, kBlocks> conditions;
    Tensor x = points;
    for (int l = 0; l < kBlocks; ++l) {
        const std::string unit = fmt::format("feat_convs.{}", l), merge = fmt::format("merge_convs.{}", l);
        x = build.max_rows(unit, edge_unit(build, unit, x, neighbours, kFeatures[l], kGrowth[l]));
        stage(fmt::format("feat_{}", l + 1), x);
        const Tensor half = build.linear(merge + ".conv1", x, kFeatures[l] / 2, {.activation = network::relu()});
        const Tensor features = build.linear(merge + ".conv2", half, kFeatures[l], {.bias = false});
        stage(fmt::format("cond_{}", l + 1), features);
        const std::string injector = block_name(l) + ".coupling2";
        conditions[static_cast<size_t>(l)] = {
            features, flow_net(build, injector + ".scale_net", features, 3, injector + ".scale_net"),
            flow_net(build, injector + ".bias_net", features, 3, injector + ".bias_net")};
    }

    Tensor z = points;
    for (int l = 0; l < kBlocks; ++l) {
        z = flow_forward(build, l, z, conditions[static_cast<size_t>(l)]);
        stage(fmt::format("flow_{}", l + 1), z);
    }
    stage("z", z);
    const Tensor log_det = log_determinant(build, points, conditions);
    const Tensor log_density = build.gaussian_log_density("log_density", z);

    const Tensor near = build.knn("interp.knn", points, options.interpolation_neighbours);
    const Tensor logits = interpolation_logits(build, points, near, options.ratio);
    const Tensor weights = build.softmax_rows("interp.weights", logits);
    const Tensor latent = build.interpolate("interp", weights, build.gather("interp.neighbours", z, near));
    stage("interp_logits", logits);
    stage("latent_interp", latent);

    const Tensor upsampled = flow_inverse(build, "decode.", latent, conditions, options.ratio);
    build.output("upsampled", upsampled);
    build.output("weights", weights);
    build.output("neighbours", near);
    stage("decoded", upsampled);
    if (options.stages) build.output("inverse_of_z", flow_inverse(build, "inverse.", z, conditions, 1));
    build.output("log_det", log_det);
    build.output("nll", build.scale("nll", build.add("log_likelihood", log_density, log_det), -1));
    return build.finish({{"ratio", config_text(options.ratio)},
                         {"neighbours", config_text(options.neighbours)},
                         {"interpolation_neighbours", config_text(options.interpolation_neighbours)},
                         {"stages", config_text(options.stages)}});
}

}  // namespace stipple::models
