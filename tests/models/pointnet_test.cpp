#include "stipple/models/pointnet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "tests/support/devices.h"
#include "tests/support/reference_network.h"

namespace stipple::models {
namespace {

using network::Kind;
using network::Network;
using test::ReferenceTensor;

constexpr PointNetVariant kVariants[] = {PointNetVariant::torch, PointNetVariant::tf};

PointNetOptions with_transforms(PointNetVariant variant, bool input, bool feature) {
    return {.variant = variant, .input_transform = input, .feature_transform = feature};
}

double trained_parameters(const Network& network) {
    int64_t sum = 0;
    for (const network::Parameter& parameter : parameters_of(network)) {
        if (!parameter.is_trained) continue;
        int64_t elements = 1;
        for (const int64_t extent : parameter.shape) elements *= extent;
        sum += elements;
    }
    return static_cast<double>(sum);
}

double million(int64_t count) {
    return static_cast<double>(count) * 1e-6;
}

const network::Layer* find(const Network& network, std::string_view name) {
    for (const network::Layer& layer : network.layers)
        if (layer.name == name) return &layer;
    return nullptr;
}

Array<float, 2> random_points(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < points.elements(); ++i)
        points.data()[i] = 2 * Rng(seed).uniform(static_cast<uint64_t>(i)) - 1;
    return points;
}

/// Weights whose T-nets and batch norms do something.
network::Weights lively_weights(const Network& network) {
    network::Weights weights = initial_weights(network, 3);
    for (const network::Parameter& parameter : parameters_of(network)) {
        std::vector<float>& values = weights.tensors.at(parameter.name).values;
        const Rng rng(4, std::hash<std::string>{}(parameter.name));
        for (size_t i = 0; i < values.size(); ++i) {
            if (parameter.initialiser == network::Initialiser::zeros) values[i] = 0.05f * rng.normal(i);
            if (parameter.initialiser == network::Initialiser::ones) values[i] = 0.5f + rng.uniform(i);
        }
    }
    return weights;
}

TEST(PointNet, CostsWhatIsPublished) {
    const auto cost = [](PointNetVariant variant, bool input, bool feature) {
        return million(multiply_adds(pointnet_classifier(with_transforms(variant, input, feature)), 1024));
    };
    EXPECT_NEAR(cost(PointNetVariant::torch, false, false), 143.469, 5e-4);
    EXPECT_NEAR(cost(PointNetVariant::torch, true, false), 286.938, 5e-4);
    EXPECT_NEAR(cost(PointNetVariant::torch, true, true), 439.637, 5e-4);
    EXPECT_NEAR(cost(PointNetVariant::tf, false, false), 151.857, 5e-4);
    EXPECT_NEAR(cost(PointNetVariant::tf, true, true), 448.026, 5e-4);

    PointNetOptions one_category = with_transforms(PointNetVariant::torch, true, false);
    one_category.classes = 4;
    EXPECT_NEAR(2e-3 * million(multiply_adds(pointnet_segmenter(one_category), 2500)), 5.003, 5e-4);
    EXPECT_NEAR(2e-3 * million(multiply_adds(pointnet_part_segmenter({.classes = 50}), 2048)), 11.53, 5e-3);
}

TEST(PointNet, HasThePublishedNumberOfParameters) {
    const auto parameters = [](bool input, bool feature) {
        return trained_parameters(pointnet_classifier(with_transforms(PointNetVariant::torch, input, feature)));
    };
    EXPECT_EQ(parameters(false, false), 811048);
    EXPECT_NEAR(parameters(true, false) * 1e-6, 1.614, 5e-4);
    EXPECT_NEAR(parameters(true, true) * 1e-6, 3.471, 5e-4);
}

TEST(PointNet, OutputsHaveTheTypesOfTheContract) {
    for (const PointNetVariant variant : kVariants)
        for (const bool feature : {false, true}) {
            PointNetOptions options = with_transforms(variant, true, feature);
            options.classes = 7;
            const auto expect_outputs = [&](const Network& network, network::TensorType logits, int64_t k) {
                ASSERT_EQ(network.outputs.size(), feature ? 2u : 1u) << network.name;
                EXPECT_EQ(network.outputs[0].name, "logits");
                EXPECT_EQ(network[network.outputs[0].tensor].type, logits) << network.name;
                if (!feature) return;
                EXPECT_EQ(network.outputs[1].name, "feature_transform");
                EXPECT_EQ(network[network.outputs[1].tensor].type, network::clouds_of(k * k)) << network.name;
            };
            expect_outputs(pointnet_classifier(options), network::clouds_of(7), 64);
            expect_outputs(pointnet_segmenter(options), network::points_of(7), 64);
            expect_outputs(pointnet_part_segmenter(options), network::points_of(7), 128);
        }
}

TEST(PointNet, VariantsDifferWhereThePublishedOnesDo) {
    const Network torch = pointnet_classifier({}), tf = pointnet_classifier({.variant = PointNetVariant::tf});
    EXPECT_EQ(find(torch, "conv3")->options.activation.kind, network::ActivationKind::none);
    EXPECT_TRUE(find(torch, "conv3")->options.norm);
    EXPECT_EQ(find(tf, "conv5")->options.activation.kind, network::ActivationKind::relu);
    EXPECT_FLOAT_EQ(find(torch, "conv1")->options.norm_eps, 1e-5f);
    EXPECT_FLOAT_EQ(find(tf, "conv1")->options.norm_eps, 1e-3f);
    EXPECT_EQ(find(torch, "head.dropout1"), nullptr);
    ASSERT_NE(find(torch, "head.dropout2"), nullptr);
    ASSERT_NE(find(tf, "head.dropout1"), nullptr);
    const Network plain = pointnet_classifier(with_transforms(PointNetVariant::tf, false, false));
    EXPECT_EQ(find(plain, "head.dropout1"), nullptr);  // pointnet_cls_basic has one
    EXPECT_NE(find(plain, "head.dropout2"), nullptr);

    EXPECT_EQ(find(pointnet_segmenter({}), "head.input")->type.channels, 1088);
    const Network parts = pointnet_part_segmenter({}),
                  tf_parts = pointnet_part_segmenter({.variant = PointNetVariant::tf});
    EXPECT_EQ(find(parts, "head.input")->type.channels, 4944);
    EXPECT_EQ(find(tf_parts, "head.input")->type.channels, 4944);
    EXPECT_EQ(find(tf_parts, "input_transform.fc1")->type.channels, 128);
    EXPECT_EQ(find(tf_parts, "feature_transform.conv1")->type.channels, 256);
}

TEST(PointNet, DropoutAfterTheFirstLayerOfTheHeadIsAnOption) {
    for (const PointNetVariant variant : kVariants)
        for (const bool transforms : {false, true}) {
            PointNetOptions options = with_transforms(variant, transforms, transforms);
            options.dropout = 0.5f;
            options.dropout1 = 0.125f;
            const Network network = pointnet_classifier(options);
            ASSERT_NE(find(network, "head.dropout1"), nullptr);
            EXPECT_EQ(find(network, "head.dropout1")->options.rate, 0.125f);
            EXPECT_EQ(find(network, "head.dropout2")->options.rate, 0.5f);
        }
}

TEST(PointNet, PartSegmenterOfNeighbours) {
    const PointNetOptions options = {.classes = 94,
                                     .input_transform = false,
                                     .feature_transform = false,
                                     .categories = 19,
                                     .width = 1024,
                                     .neighbours = 16};
    const Network network = pointnet_part_segmenter(options);
    EXPECT_EQ(trained_parameters(network), 1500382);  // 3.0 MB at half precision
    EXPECT_EQ(find(network, "neighbours")->type.width, 16);
    EXPECT_EQ(find(network, "local1.conv1")->type.width, 16);
    EXPECT_EQ(find(network, "conv1.input")->type, network::points_of(3 + 64 + 64));
    EXPECT_EQ(find(network, "head.input")->type.channels, 1024 + 19 + 64 + 128 + 128 + 512 + 1024);
    EXPECT_EQ(find(pointnet_part_segmenter({}), "neighbours"), nullptr);

    // Edges are of the points as they come: a transform does not choose the neighbours.
    PointNetOptions transformed = options;
    transformed.input_transform = true;
    const Network with_transform = pointnet_part_segmenter(transformed);
    EXPECT_EQ(with_transform[find(with_transform, "neighbours")->inputs[0]].name, "points");
    EXPECT_EQ(with_transform[find(with_transform, "conv1.input")->inputs[0]].name, "input_transform.apply");
}

// What a point is told about its surroundings: moving a near point changes it, moving a far one does not.
TEST(PointNet, LocalFeaturesAreOfTheNeighbours) {
    const int64_t n = 12, k = 3;
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < 3 * n; ++i) points.data()[i] = i % 3 == 0 ? static_cast<float>(i / 3) : 0;  // on a line
    Array<float, 2> category({1, 2});
    category.data()[0] = 1;
    category.data()[1] = 0;
    const Network network = pointnet_part_segmenter({.classes = 4, .categories = 2, .width = 32, .neighbours = k});
    const network::Weights weights = lively_weights(network);
    const auto local = [&](const char* layer) {
        const ReferenceTensor features =
            test::run_reference(network, weights, ops::Batch::single(n),
                                {{"points", points.view()}, {"category", category.view()}}, test::Keep::all)
                .layer(layer);
        return std::vector<double>(features.row(0), features.row(1));
    };
    const auto before1 = local("local1.pool"), before2 = local("local2.pool");
    points.data()[3 * (n - 1) + 1] = 5;
    EXPECT_EQ(local("local1.pool"), before1);
    EXPECT_EQ(local("local2.pool"), before2);
    points.data()[3 * 3 + 1] = 0.5f;  // neighbour of point 2, which is one of point 0
    EXPECT_EQ(local("local1.pool"), before1);
    EXPECT_NE(local("local2.pool"), before2);
    points.data()[3 * 1 + 1] = 0.5f;
    EXPECT_NE(local("local1.pool"), before1);
}

TEST(PointNet, TransformsBeginAsTheIdentity) {
    const Array<float, 2> points = random_points(20, 1);
    for (const PointNetVariant variant : kVariants) {
        const Network network = pointnet_classifier({.variant = variant});
        const auto run = test::run_reference(network, initial_weights(network, 5), ops::Batch::dense(2, 10),
                                             {{"points", points.view()}}, test::Keep::all);
        const ReferenceTensor& matrix = run.output("feature_transform");
        for (int64_t cloud = 0; cloud < 2; ++cloud)
            for (int64_t i = 0; i < 4096; ++i) ASSERT_EQ(matrix.row(cloud)[i], i / 64 == i % 64 ? 1 : 0);
        const ReferenceTensor& moved = run.layer("input_transform.apply");
        for (int64_t i = 0; i < 60; ++i) ASSERT_EQ(moved.values[i], points.data()[i]);
    }
}

TEST(PointNet, TheOrderOfPointsDoesNotMatter) {
    const int64_t n = 24;
    const Array<float, 2> points = random_points(n, 2);
    Array<float, 2> turned({n, 3});
    for (int64_t i = 0; i < n; ++i) std::copy_n(points.data() + 3 * i, 3, turned.data() + 3 * (n - 1 - i));
    Array<float, 2> category({1, 16});
    std::fill_n(category.data(), 16, 0.f);
    category.data()[3] = 1;
    for (const PointNetVariant variant : kVariants)
        for (const auto builder : {pointnet_classifier, pointnet_segmenter, pointnet_part_segmenter}) {
            const Network network = builder({.variant = variant, .classes = 5});
            const network::Weights weights = lively_weights(network);
            const auto logits = [&](const Array<float, 2>& cloud) {
                return test::run_reference(network, weights, ops::Batch::single(n),
                                           {{"points", cloud.view()}, {"category", category.view()}})
                    .output("logits");
            };
            const ReferenceTensor straight = logits(points), backwards = logits(turned);
            const double spread = *std::max_element(straight.values.begin(), straight.values.end()) -
                                  *std::min_element(straight.values.begin(), straight.values.end());
            EXPECT_GT(spread, 1e-3) << network.name;
            for (int64_t r = 0; r < straight.rows; ++r)
                for (int64_t c = 0; c < 5; ++c)
                    EXPECT_NEAR(straight.row(r)[c], backwards.row(straight.rows - 1 - r)[c], 1e-9) << network.name;
        }
}

TEST(PointNet, TheCategoryMatters) {
    const Array<float, 2> points = random_points(8, 2);
    const Network network = pointnet_part_segmenter({.classes = 5});
    const network::Weights weights = lively_weights(network);
    std::vector<double> first;
    for (const int64_t chosen : {0, 1}) {
        Array<float, 2> category({1, 16});
        std::fill_n(category.data(), 16, 0.f);
        category.data()[chosen] = 1;
        const auto run = test::run_reference(network, weights, ops::Batch::single(8),
                                             {{"points", points.view()}, {"category", category.view()}});
        if (chosen == 0)
            first = run.output("logits").values;
        else
            EXPECT_NE(run.output("logits").values, first);
    }
}

TEST(PointNet, RefusesOptionsOutOfRange) {
    for (const auto builder : {pointnet_classifier, pointnet_segmenter, pointnet_part_segmenter}) {
        EXPECT_NE(test::bad_argument_of([&] { builder({.classes = 0}); }).find("classes"), std::string::npos);
        EXPECT_NE(test::bad_argument_of([&] { builder({.dropout = 1}); }).find("dropout"), std::string::npos);
        EXPECT_NE(test::bad_argument_of([&] { builder({.dropout = NAN}); }).find("dropout"), std::string::npos);
        EXPECT_NE(test::bad_argument_of([&] { builder({.dropout1 = -1}); }).find("dropout1"), std::string::npos);
        EXPECT_NE(test::bad_argument_of([&] { builder({.categories = -1}); }).find("categories"), std::string::npos);
        EXPECT_NE(test::bad_argument_of([&] { builder({.width = 0}); }).find("width"), std::string::npos);
        EXPECT_NE(test::bad_argument_of([&] { builder({.neighbours = 129}); }).find("neighbours"), std::string::npos);
    }
}

}  // namespace
}  // namespace stipple::models
