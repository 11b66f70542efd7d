#pragma once
// PointNet [Qi et al. 2017]: a classifier, a segmenter of one category, a part segmenter of many. Two architectures go
// by this name and are not weight-compatible; both are here (specification: docs/models.md).
//
// Names of layers, and so of parameters: input_transform.{conv1..3, fc1..3} and feature_transform.{...} for the T-nets,
// conv1 .. for the layers of the points, head.{fc1..3} or head.{conv1..} for what follows the max, local1.{conv1,
// conv2} and local2.conv1 for the edges to neighbours; each with .weight, .bias and, where batch norm follows,
// .norm.{weight, bias, running_mean, running_var}.
//
// Where a published program does something else than these graphs:
//   - torch, classifier: dropout stands between the product of head.fc2 and its batch norm there, after its ReLU here.
//     Inference is the same; while training, batch norm here does not see the zeros.
//   - the last layer of a T-net starts at zero in both variants, so that the transform is the identity at first; the
//     PyTorch programs start it at random.
//   - the part segmenter of tf has a second head that guesses the category, with weight 0 in its loss: left out.

#include <optional>

#include "stipple/core/fields.h"
#include "stipple/network/network.h"

namespace stipple::models {

enum class PointNetVariant {
    torch,  // fxia22, yanx27: one layer before the feature transform, no ReLU before the max, batch norm eps 1e-5
    tf,     // charlesq34: two layers before it, three after it, ReLU before the max, eps 1e-3
};
inline constexpr const char* kPointNetVariantWords[] = {"torch", "tf"};

/// Which options a model has beside those of all three.
enum class PointNetModel { classifier, segmenter, part_segmenter };

struct PointNetOptions {
    PointNetVariant variant = PointNetVariant::torch;
    int64_t classes = 40;           // or parts, for the segmenters
    bool input_transform = true;    // the 3 x 3 T-net
    bool feature_transform = true;  // the 64 x 64 T-net (128 x 128 in the part segmenter)
    float dropout = 0.3f;  // classifiers; part segmenter of tf (published: 0.2). The other segmenters have none
    std::optional<float> dropout1 =
        {};  // classifiers, after head.fc1. Published: `dropout` in tf with a T-net, else none
    // Of the part segmenter:
    int64_t categories = 16;  // width of its one-hot input
    int64_t width = 2048;     // channels of conv5, the global feature
    int64_t neighbours = 0;   // conv1 also reads features of the edges to this many neighbours; 0 as published
};
/// Those that the model has.
const Fields& pointnet_fields(PointNetModel model);

/// points [B, N, 3] -> logits [B, classes]; with a feature transform also feature_transform [B, 4096], which a trainer
/// regularises. All three throw Error{bad_argument} for options out of range.
network::Network pointnet_classifier(const PointNetOptions& options);

/// points [B, N, 3] -> logits [B, N, classes], feature_transform as above.
network::Network pointnet_segmenter(const PointNetOptions& options);

/// points [B, N, 3], category [B, categories] (one-hot) -> logits [B, N, classes], feature_transform [B, 16384].
///
/// With neighbours k, every cloud has at least k points, and two edge convolutions over the k nearest of each (itself
/// among them; one graph, of the points as they come) stand before conv1: local1 sees [x_i, x_j, x_j - x_i] of the
/// points through 64-64 and the max over j, local2 the same of local1's features through 64. conv1 reads the points
/// (transformed, with an input transform) and both.
network::Network pointnet_part_segmenter(const PointNetOptions& options);

}  // namespace stipple::models
