#include "stipple/models/common/pointnet_blocks.h"

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"

namespace stipple::models {

using network::Initialiser;
using network::LinearOptions;

LinearOptions pointnet_layer(PointNetVariant variant) {
    const bool is_tf = variant == PointNetVariant::tf;
    return {.norm = true,
            .norm_eps = is_tf ? 1e-3f : 1e-5f,
            .activation = network::relu(),
            .weights = is_tf ? Initialiser::xavier_normal : Initialiser::fan_in_uniform};
}

LinearOptions pointnet_last_layer(PointNetVariant variant) {
    LinearOptions layer = pointnet_layer(variant);
    if (variant == PointNetVariant::torch) layer.activation = {};
    return layer;
}

Tensor transform_net(Builder& build, const std::string& name, Tensor x, std::initializer_list<int64_t> point_channels,
                     std::initializer_list<int64_t> cloud_channels, const LinearOptions& layer) {
    const int64_t k = build.type(x).channels;
    int i = 0;
    for (const int64_t channels : point_channels)
        x = build.linear(fmt::format("{}.conv{}", name, ++i), x, channels, layer);
    x = build.max_points(name + ".pool", x);
    i = 0;
    for (const int64_t channels : cloud_channels)
        x = build.linear(fmt::format("{}.fc{}", name, ++i), x, channels, layer);
    x = build.linear(fmt::format("{}.fc{}", name, ++i), x, k * k, {.weights = Initialiser::zeros});
    return build.add_identity(name + ".matrix", x);
}

namespace {

void check_range(const char* what, int64_t value, int64_t least, int64_t most) {
    STIPPLE_REQUIRE(value >= least && value <= most, "pointnet: {} must be {} to {}, got {}", what, least, most, value);
}

void check_rate(const char* what, float rate) {
    STIPPLE_REQUIRE(rate >= 0 && rate < 1, "pointnet: {} must be at least 0 and below 1, got {}", what, rate);
}

}  // namespace

void check_options(const PointNetOptions& options) {
    check_range("classes", options.classes, 1, 65536);
    check_range("categories", options.categories, 1, 65536);
    check_range("width", options.width, 1, 65536);
    check_range("neighbours", options.neighbours, 0, 128);
    check_rate("dropout", options.dropout);
    if (options.dropout1) check_rate("dropout1", *options.dropout1);
}

Config config_of(const PointNetOptions& options, PointNetModel model) {
    Config config = {
        {"variant", options.variant == PointNetVariant::tf ? "tf" : "torch"},
        {"classes", config_text(options.classes)},
        {"input_transform", config_text(options.input_transform)},
        {"feature_transform", config_text(options.feature_transform)},
        {"dropout", config_text(options.dropout)},
    };
    if (model == PointNetModel::classifier && options.dropout1) config["dropout1"] = config_text(*options.dropout1);
    if (model == PointNetModel::part_segmenter) {
        config["categories"] = config_text(options.categories);
        config["width"] = config_text(options.width);
        config["neighbours"] = config_text(options.neighbours);
    }
    return config;
}

PointNetOptions pointnet_options(const std::string& name, const Config& config, PointNetModel model) {
    PointNetOptions options;
    ConfigReader reader(name, config);
    int64_t variant = 0;
    reader.read("variant", {"torch", "tf"}, variant);
    options.variant = variant == 1 ? PointNetVariant::tf : PointNetVariant::torch;
    reader.read("classes", options.classes);
    reader.read("input_transform", options.input_transform);
    reader.read("feature_transform", options.feature_transform);
    reader.read("dropout", options.dropout);
    if (model == PointNetModel::classifier) reader.read("dropout1", options.dropout1);
    if (model == PointNetModel::part_segmenter) {
        reader.read("categories", options.categories);
        reader.read("width", options.width);
        reader.read("neighbours", options.neighbours);
    }
    reader.finish();
    return options;
}

}  // namespace stipple::models
