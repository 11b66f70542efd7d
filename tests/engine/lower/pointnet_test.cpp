// PointNet as a program: the list of steps, literally, and the numbers of the network.

#include "stipple/models/pointnet.h"

#include <gtest/gtest.h>

#include "tests/engine/lowering.h"

namespace stipple::engine {
namespace {

using models::PointNetOptions;
using models::PointNetVariant;
using network::Network;
using ops::Batch;

// Weights are rounded to float once, after all folding: this is what is left of it.
constexpr double kRounded = 1e-6;

Program lowered(const Network& network) {
    return lower(network, network::initial_weights(network, 1));
}

TEST(EngineLowerPointNet, TorchClassifier) {
    const Network network = models::pointnet_classifier({});
    const Program program = lowered(network);
    EXPECT_EQ(test::outline(program),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 9\n"
              "fold_matrix conv1/input_transform.fc3\n"
              "chain 3 -> *64 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 4096\n"
              "fold_matrix conv2/feature_transform.fc3\n"
              "chain 3 -> *64 -> *128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 40\n");
    // The identity is in the bias, and the regulariser's output is the matrix that is folded.
    EXPECT_EQ(program.steps[5].inputs[0].value, program.outputs[1].value);
    const std::vector<float>& bias = program.steps[1].layers.back().bias;
    const network::Weights weights = network::initial_weights(network, 1);
    const std::vector<float>& learned = weights.tensors.at("input_transform.fc3.bias").values;
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(bias[i], learned[i] + (i % 4 == 0 ? 1.0f : 0.0f));
    EXPECT_LT(test::difference(network, test::random_weights(network, 7), Batch::ragged({0, 3, 10})), kRounded);
}

TEST(EngineLowerPointNet, MultiplyAdds) {
    // 439.637 as published less x T3 and x T64, plus folding them (64 x 3 x 3 and 128 x 64 x 64), plus conv1 once more.
    const int64_t n = 1024, branch = 3 * 64 + 64 * 128 + 128 * 1024, head = 1024 * 512 + 512 * 256;
    const int64_t expected = n * (3 * branch + 64 * 64) + 3 * head + 256 * (9 + 4096 + 40) + 64 * 3 * 3 + 128 * 64 * 64;
    EXPECT_EQ(multiply_adds(lowered(models::pointnet_classifier({})), n), expected);
    EXPECT_NEAR(static_cast<double>(expected - n * 192) * 1e-6, 435.959, 5e-4);
}

TEST(EngineLowerPointNet, TfClassifier) {
    const Network network = models::pointnet_classifier({.variant = PointNetVariant::tf});
    EXPECT_EQ(test::outline(lowered(network)),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 9\n"
              "fold_matrix conv1/input_transform.fc3\n"
              "chain 3 -> *64 -> 64 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 4096\n"
              "fold_matrix conv3/feature_transform.fc3\n"
              "chain 3 -> *64 -> 64 -> *64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 40\n");
    EXPECT_LT(test::difference(network, test::random_weights(network, 8), Batch::dense(2, 5)), kRounded);
}

TEST(EngineLowerPointNet, ClassifiersWithoutTransforms) {
    const Network none = models::pointnet_classifier({.input_transform = false, .feature_transform = false});
    EXPECT_EQ(test::outline(lowered(none)),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 40\n");
    EXPECT_LT(test::difference(none, test::random_weights(none, 9), Batch::dense(2, 4)), kRounded);

    const Network first = models::pointnet_classifier({.feature_transform = false});
    EXPECT_EQ(test::outline(lowered(first)),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 9\n"
              "fold_matrix conv1/input_transform.fc3\n"
              "chain 3 -> *64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 40\n");
    EXPECT_LT(test::difference(first, test::random_weights(first, 10), Batch::dense(2, 4)), kRounded);

    const Network tf = models::pointnet_classifier(
        {.variant = PointNetVariant::tf, .input_transform = false, .feature_transform = false});
    EXPECT_EQ(test::outline(lowered(tf)),
              "chain 3 -> 64 -> 64 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 40\n");
}

// The global part of the first layer is multiplied once a cloud; the point features, which start it, are stored, and
// computed again where they are followed by more.
TEST(EngineLowerPointNet, Segmenters) {
    const Network torch = models::pointnet_segmenter({.classes = 4});
    EXPECT_EQ(test::outline(lowered(torch)),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 9\n"
              "fold_matrix conv1/input_transform.fc3\n"
              "chain 3 -> *64\n"
              "chain 3 -> *64 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 4096\n"
              "fold_matrix conv2/feature_transform.fc3\n"
              "chain 3 -> *64 -> *128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512\n"
              "fold_matrix head.conv1/feature_transform.fc3\n"
              "chain 64[cloud] -> *512 -> 256 -> 128 -> 4\n");
    EXPECT_LT(test::difference(torch, test::random_weights(torch, 11), Batch::ragged({0, 3, 8})), kRounded);

    const Network plain =
        models::pointnet_segmenter({.classes = 4, .input_transform = false, .feature_transform = false});
    EXPECT_EQ(test::outline(lowered(plain)),
              "chain 3 -> 64\n"
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512\n"
              "chain 64[cloud] -> 512 -> 256 -> 128 -> 4\n");

    const Network tf = models::pointnet_segmenter({.variant = PointNetVariant::tf, .classes = 4});
    EXPECT_EQ(test::outline(lowered(tf)),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 9\n"
              "fold_matrix conv1/input_transform.fc3\n"
              "chain 3 -> *64 -> 64\n"
              "chain 3 -> *64 -> 64 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 4096\n"
              "fold_matrix conv3/feature_transform.fc3\n"
              "chain 3 -> *64 -> 64 -> *64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512\n"
              "fold_matrix head.conv1/feature_transform.fc3\n"
              "chain 64[cloud] -> *512 -> 256 -> 128 -> 128 -> 4\n");
    EXPECT_LT(test::difference(tf, test::random_weights(tf, 12), Batch::dense(2, 3)), kRounded);
}

// conv5 of the torch variant has no activation: what the head takes of it is taken from conv4, and the 2048 channels of
// a point are never stored.
TEST(EngineLowerPointNet, PartSegmenters) {
    const Network torch = models::pointnet_part_segmenter({.classes = 50});
    EXPECT_EQ(test::outline(lowered(torch)),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 9\n"
              "fold_matrix conv1/input_transform.fc3\n"
              "chain 3 -> *64\n"
              "chain 3 -> *64 -> 128\n"
              "chain 128 -> 128\n"
              "chain 128 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 16384\n"
              "fold_matrix conv4/feature_transform.fc3\n"
              "chain 128 -> *512\n"
              "chain 512 -> 2048 max_points\n"
              "cloud chain 2048+16 -> 256\n"
              "chain 64+128+128+512[cloud] -> 256 -> 256 -> 128 -> 50\n");
    EXPECT_LT(test::difference(torch, test::random_weights(torch, 13), Batch::ragged({0, 3, 5})), kRounded);

    const Network tf = models::pointnet_part_segmenter({.variant = PointNetVariant::tf, .classes = 50});
    EXPECT_EQ(test::outline(lowered(tf)),
              "chain 3 -> 64 -> 128 -> 1024 max_points\n"
              "cloud chain 1024 -> 128 -> 128 -> 9\n"
              "fold_matrix conv1/input_transform.fc3\n"
              "chain 3 -> *64\n"
              "chain 3 -> *64 -> 128\n"
              "chain 128 -> 128\n"
              "chain 128 -> 256 -> 1024 max_points\n"
              "cloud chain 1024 -> 512 -> 256 -> 16384\n"
              "fold_matrix conv4/feature_transform.fc3\n"
              "chain 128 -> *512\n"
              "chain 512 -> 2048\n"
              "max_points\n"
              "cloud chain 2048+16 -> 256\n"
              "chain 64+128+128+512+2048[cloud] -> 256 -> 256 -> 128 -> 50\n");
    EXPECT_LT(test::difference(tf, test::random_weights(tf, 14), Batch::ragged({0, 3, 5})), kRounded);
}

// Products of [x_i, x_j, x_j - x_i] are taken point by point and added edge by edge.
TEST(EngineLowerPointNet, PartSegmenterOfNeighbours) {
    const Network network = models::pointnet_part_segmenter({.classes = 94,
                                                             .input_transform = false,
                                                             .feature_transform = false,
                                                             .categories = 19,
                                                             .width = 1024,
                                                             .neighbours = 4});
    EXPECT_EQ(test::outline(lowered(network)),
              "knn\n"
              "chain 3 -> 64\n"
              "chain 3 -> 64\n"
              "chain [point][neighbour] -> 64 -> 64 max_rows\n"
              "chain 64 -> 64\n"
              "chain 64 -> 64\n"
              "chain [point][neighbour] -> 64 max_rows\n"
              "chain 3+64+64 -> 64\n"
              "chain 64 -> 128\n"
              "chain 128 -> 128\n"
              "chain 128 -> 512\n"
              "chain 512 -> 1024 max_points\n"
              "cloud chain 1024+19 -> 256\n"
              "chain 64+128+128+512[cloud] -> 256 -> 256 -> 128 -> 94\n");
    EXPECT_LT(test::difference(network, test::random_weights(network, 15), Batch::ragged({0, 5, 9})), kRounded);
}

}  // namespace
}  // namespace stipple::engine
