#include "stipple/models/puflow/features.h"

#include <fmt/format.h>

namespace stipple::models::puflow_parts {

using network::Builder;
using network::leaky_relu;
using network::Tensor;

namespace {

constexpr int64_t kFeatures[kBlocks] = {32, 64, 128, 128, 128, 128};
constexpr int64_t kGrowth[kBlocks] = {8, 16, 32, 32, 32, 32};

}  // namespace

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

Tensor block_features(Builder& build, int block, Tensor x, Tensor neighbours) {
    const std::string unit = fmt::format("feat_convs.{}", block);
    return build.max_rows(unit, edge_unit(build, unit, x, neighbours, kFeatures[block], kGrowth[block]));
}

Tensor block_condition(Builder& build, int block, Tensor features) {
    const std::string merge = fmt::format("merge_convs.{}", block);
    const int64_t channels = kFeatures[block];
    const Tensor half = build.linear(merge + ".conv1", features, channels / 2, {.activation = network::relu()});
    return build.linear(merge + ".conv2", half, channels, {.bias = false});
}

}  // namespace stipple::models::puflow_parts
