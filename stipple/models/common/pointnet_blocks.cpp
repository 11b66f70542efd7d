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

const Fields& common_fields() {
    static const Fields fields = {
        field<&PointNetOptions::variant>("variant", "Which of the two published architectures")
            .words(kPointNetVariantWords),
        field<&PointNetOptions::classes>("classes", "Classes, or parts for the segmenters").between(1, 65536),
        field<&PointNetOptions::input_transform>("input_transform", "With the 3 x 3 T-net"),
        field<&PointNetOptions::feature_transform>("feature_transform", "With the T-net of features"),
        field<&PointNetOptions::dropout>("dropout", "Share of numbers that dropout takes away while training")
            .from(0)
            .below(1)};
    return fields;
}

Fields with_common(const Fields& own) {
    Fields fields = common_fields();
    fields.insert(fields.end(), own.begin(), own.end());
    return fields;
}

}  // namespace

const char* name_of(PointNetModel model) {
    constexpr const char* kNames[] = {"pointnet-classifier", "pointnet-segmenter", "pointnet-part-segmenter"};
    return kNames[static_cast<int>(model)];
}

const Fields& pointnet_fields(PointNetModel model) {
    static const Fields classifier =
        with_common({field<&PointNetOptions::dropout1>("dropout1", "The same after head.fc1; without it as published")
                         .from(0)
                         .below(1)});
    static const Fields part_segmenter = with_common(
        {field<&PointNetOptions::categories>("categories", "Categories of objects").between(1, 65536),
         field<&PointNetOptions::width>("width", "Channels of the global feature").between(1, 65536),
         field<&PointNetOptions::neighbours>("neighbours", "Neighbours whose edges conv1 sees too").between(0, 128)});
    switch (model) {
        case PointNetModel::classifier: return classifier;
        case PointNetModel::segmenter: break;
        case PointNetModel::part_segmenter: return part_segmenter;
    }
    return common_fields();
}

void check_options(const PointNetOptions& options, PointNetModel model) {
    // Those of other models too: who sets them wrongly means something.
    for (const PointNetModel any : {PointNetModel::classifier, PointNetModel::part_segmenter})
        check_options(name_of(model), pointnet_fields(any), &options);
}

Config config_of(const PointNetOptions& options, PointNetModel model) {
    return config_text(pointnet_fields(model), &options);
}

PointNetOptions pointnet_options(const Config& config, PointNetModel model) {
    PointNetOptions options;
    read_config(name_of(model), pointnet_fields(model), &options, config);
    return options;
}

}  // namespace stipple::models
