#include "stipple/models/puflow/interpolation.h"

#include "stipple/models/puflow/features.h"

namespace stipple::models::puflow_parts {

using network::Builder;
using network::LinearOptions;
using network::Tensor;

namespace {

LinearOptions mlp_layer() {
    return {.norm = true, .activation = network::leaky_relu(0.01f)};
}

}  // namespace

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

}  // namespace stipple::models::puflow_parts
