#pragma once
// Samples for a frozen segmenter: a network that gives logits for every point.

#include "stipple/learn/sampling/frozen_task.h"

namespace stipple::learn {

/// The label of a sampled point is that of the nearest point of its cloud, the lowest of equally near ones. The loss is
/// the mean cross entropy over all sampled points; the score of a cloud is the share of its points whose label is
/// found. A network with an input `category` is told the class of each cloud, and with loss.own_parts a point competes
/// among the parts of its category alone, as while training segmenters. A network without it has all parts of the set,
/// or those of the one category that the data have, counted from 0.
///
/// Throws Error{bad_config} for a network without logits of points, one with inputs that data do not have, and one with
/// other numbers of parts or categories than the data.
std::unique_ptr<FrozenTask> make_segmentation_task(models::Model model, const std::string& path, const Recipe& recipe,
                                                   const LabelData& data);

}  // namespace stipple::learn
