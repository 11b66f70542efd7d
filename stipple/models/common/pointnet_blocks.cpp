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

void check_options(const PointNetOptions& options) {
    STIPPLE_REQUIRE(options.classes >= 1 && options.classes <= 65536, "pointnet: classes must be 1 to 65536, got {}",
                    options.classes);
    STIPPLE_REQUIRE(options.categories >= 1 && options.categories <= 65536,
                    "pointnet: categories must be 1 to 65536, got {}", options.categories);
    STIPPLE_REQUIRE(options.dropout >= 0 && options.dropout < 1,
                    "pointnet: dropout must be at least 0 and below 1, got {}", options.dropout);
}

std::map<std::string, std::string> config_of(const PointNetOptions& options, bool with_categories) {
    std::map<std::string, std::string> config = {
        {"variant", options.variant == PointNetVariant::tf ? "tf" : "torch"},
        {"classes", config_text(options.classes)},
        {"input_transform", config_text(options.input_transform)},
        {"feature_transform", config_text(options.feature_transform)},
        {"dropout", config_text(options.dropout)},
    };
    if (with_categories) config["categories"] = config_text(options.categories);
    return config;
}

}  // namespace stipple::models
