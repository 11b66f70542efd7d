#include "stipple/models/common/pointnet_blocks.h"
#include "stipple/models/pointnet.h"

namespace stipple::models {

using network::LinearOptions;
using network::Network;

namespace {

/// Features of the edges to the k nearest points of each, at two depths: see pointnet.h.
std::vector<Tensor> local_features(Builder& build, Tensor points, int64_t k, const LinearOptions& layer) {
    const Tensor neighbours = build.knn("neighbours", points, k);
    Tensor x = build.edge("local1.edge", points, neighbours);
    x = build.linear("local1.conv1", x, 64, layer);
    x = build.linear("local1.conv2", x, 64, layer);
    const Tensor near = build.max_rows("local1.pool", x);
    x = build.edge("local2.edge", near, neighbours);
    x = build.linear("local2.conv1", x, 64, layer);
    return {near, build.max_rows("local2.pool", x)};
}

}  // namespace

Network pointnet_part_segmenter(const PointNetOptions& options) {
    check_options(options, PointNetModel::part_segmenter);
    const bool is_tf = options.variant == PointNetVariant::tf;
    LinearOptions layer = pointnet_layer(options.variant), last = pointnet_last_layer(options.variant);
    // Both published part segmenters start this way.
    layer.weights = last.weights = network::Initialiser::xavier_normal;

    Builder build("pointnet-part-segmenter");
    const Tensor points = build.input("points", network::points_of(3));
    Tensor x = points;
    const Tensor category = build.input("category", network::clouds_of(options.categories));
    if (options.input_transform) {
        const Tensor matrix = is_tf ? transform_net(build, "input_transform", x, {64, 128, 1024}, {128, 128}, layer)
                                    : transform_net(build, "input_transform", x, {64, 128, 1024}, {512, 256}, layer);
        x = build.transform("input_transform.apply", x, matrix);
    }
    if (options.neighbours > 0) {
        std::vector<Tensor> parts = local_features(build, points, options.neighbours, layer);
        parts.insert(parts.begin(), x);
        x = build.concat("conv1.input", parts);
    }
    const Tensor out1 = build.linear("conv1", x, 64, layer);
    const Tensor out2 = build.linear("conv2", out1, 128, layer);
    const Tensor out3 = build.linear("conv3", out2, 128, layer);
    Tensor matrix = -1;
    x = out3;
    if (options.feature_transform) {
        matrix = is_tf ? transform_net(build, "feature_transform", x, {256, 1024}, {512, 256}, layer)
                       : transform_net(build, "feature_transform", x, {64, 128, 1024}, {512, 256}, layer);
        x = build.transform("feature_transform.apply", x, matrix);
    }
    const Tensor out4 = build.linear("conv4", x, 512, layer);
    const Tensor out5 = build.linear("conv5", out4, options.width, last);

    const Tensor cloud = build.concat("cloud", {build.max_points("pool", out5), category});
    x = build.concat("head.input", {build.repeat("global", cloud), out1, out2, out3, out4, out5});
    x = build.linear("head.conv1", x, 256, layer);
    if (is_tf) x = build.dropout("head.dropout1", x, options.dropout);
    x = build.linear("head.conv2", x, 256, layer);
    if (is_tf) x = build.dropout("head.dropout2", x, options.dropout);
    x = build.linear("head.conv3", x, 128, layer);
    build.output("logits", build.linear("head.conv4", x, options.classes, {.weights = layer.weights}));
    if (options.feature_transform) build.output("feature_transform", matrix);
    return build.finish(config_of(options, PointNetModel::part_segmenter));
}

}  // namespace stipple::models
