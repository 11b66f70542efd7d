#include "stipple/models/pointnet.h"

#include "stipple/models/common/pointnet_blocks.h"

namespace stipple::models {

using network::LinearOptions;
using network::Network;
using network::points_of;

namespace {

struct Trunk {
    Tensor point_features;          // [B, N, 64]
    Tensor global_feature;          // [B, 1024]
    Tensor feature_transform = -1;  // [B, 4096]
};

/// Points up to the max over them: what classifier and segmenter share.
Trunk trunk(Builder& build, const PointNetOptions& options) {
    const bool is_tf = options.variant == PointNetVariant::tf;
    const LinearOptions layer = pointnet_layer(options.variant), last = pointnet_last_layer(options.variant);
    Trunk result;
    Tensor x = build.input("points", points_of(3));
    if (options.input_transform) {
        const Tensor matrix = transform_net(build, "input_transform", x, {64, 128, 1024}, {512, 256}, layer);
        x = build.transform("input_transform.apply", x, matrix);
    }
    x = build.linear("conv1", x, 64, layer);
    if (is_tf) x = build.linear("conv2", x, 64, layer);
    if (options.feature_transform) {
        result.feature_transform = transform_net(build, "feature_transform", x, {64, 128, 1024}, {512, 256}, layer);
        x = build.transform("feature_transform.apply", x, result.feature_transform);
    }
    result.point_features = x;
    if (is_tf) x = build.linear("conv3", x, 64, layer);
    x = build.linear(is_tf ? "conv4" : "conv2", x, 128, layer);
    x = build.linear(is_tf ? "conv5" : "conv3", x, 1024, last);
    result.global_feature = build.max_points("pool", x);
    return result;
}

Network finish(Builder& build, const PointNetOptions& options, PointNetModel model, Tensor logits, const Trunk& trunk) {
    build.output("logits", logits);
    if (options.feature_transform) build.output("feature_transform", trunk.feature_transform);
    return build.finish(config_of(options, model));
}

}  // namespace

Network pointnet_classifier(const PointNetOptions& options) {
    check_options(options, PointNetModel::classifier);
    const bool is_tf = options.variant == PointNetVariant::tf;
    const bool has_transforms = options.input_transform || options.feature_transform;
    const LinearOptions layer = pointnet_layer(options.variant);
    Builder build("pointnet-classifier");
    const Trunk features = trunk(build, options);
    Tensor x = build.linear("head.fc1", features.global_feature, 512, layer);
    std::optional<float> dropout1 = options.dropout1;
    if (!dropout1 && is_tf && has_transforms) dropout1 = options.dropout;
    if (dropout1) x = build.dropout("head.dropout1", x, *dropout1);
    x = build.linear("head.fc2", x, 256, layer);
    x = build.dropout("head.dropout2", x, options.dropout);
    x = build.linear("head.fc3", x, options.classes, {.weights = layer.weights});
    return finish(build, options, PointNetModel::classifier, x, features);
}

Network pointnet_segmenter(const PointNetOptions& options) {
    check_options(options, PointNetModel::segmenter);
    const bool is_tf = options.variant == PointNetVariant::tf;
    const LinearOptions layer = pointnet_layer(options.variant);
    Builder build("pointnet-segmenter");
    const Trunk features = trunk(build, options);
    const Tensor global = build.repeat("global", features.global_feature);
    Tensor x = is_tf ? build.concat("head.input", {features.point_features, global})
                     : build.concat("head.input", {global, features.point_features});
    x = build.linear("head.conv1", x, 512, layer);
    x = build.linear("head.conv2", x, 256, layer);
    x = build.linear("head.conv3", x, 128, layer);
    if (is_tf) x = build.linear("head.conv4", x, 128, layer);
    x = build.linear(is_tf ? "head.conv5" : "head.conv4", x, options.classes, {.weights = layer.weights});
    return finish(build, options, PointNetModel::segmenter, x, features);
}

}  // namespace stipple::models
