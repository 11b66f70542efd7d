#pragma once
// PointNet [Qi et al. 2017]: a classifier, a segmenter of one category, a part segmenter of many. Two architectures go
// by this name and are not weight-compatible; both are here (specification: docs/models.md).

#include "stipple/network/network.h"

namespace stipple::models {

enum class PointNetVariant {
    torch,  // fxia22, yanx27: one layer before the feature transform, no ReLU before the max, batch norm eps 1e-5
    tf,     // charlesq34: two layers before it, three after it, ReLU before the max, eps 1e-3
};

struct PointNetOptions {
    PointNetVariant variant = PointNetVariant::torch;
    int64_t classes = 40;           // or parts, for the segmenters
    bool input_transform = true;    // the 3 x 3 T-net
    bool feature_transform = true;  // the 64 x 64 T-net (128 x 128 in the part segmenter)
    float dropout = 0.3f;
    int64_t categories = 16;  // of the part segmenter: width of its one-hot input
};

/// points [B, N, 3] -> logits [B, classes]; with a feature transform also feature_transform [B, 4096], which a trainer
/// regularises.
network::Network pointnet_classifier(const PointNetOptions& options);

/// points [B, N, 3] -> logits [B, N, classes].
network::Network pointnet_segmenter(const PointNetOptions& options);

/// points [B, N, 3], category [B, categories] (one-hot) -> logits [B, N, classes].
network::Network pointnet_part_segmenter(const PointNetOptions& options);

}  // namespace stipple::models
