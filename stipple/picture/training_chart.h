#pragma once
// The curves of a training run: losses on the left axis, scores on the right, over epochs.

#include <string>
#include <vector>

#include "stipple/picture/chart.h"

namespace stipple::picture {

struct TrainingCurve {
    std::string name = {};  // in the legend
    std::vector<double> epochs = {}, values = {};
};

struct TrainingCurves {
    std::string title = {};
    std::vector<TrainingCurve> losses = {};
    std::vector<TrainingCurve> scores = {};  // from 0 to 1: accuracy, mIoU; drawn in per cent
    std::string score_label = "accuracy";
};

/// The left axis is logarithmic when all losses that are finite are positive (a negative log-likelihood is not). What
/// is not finite leaves a gap; a curve of one epoch is a disc. Throws what draw_chart throws: Error{bad_argument} for
/// no curves, epochs and values of different lengths, a bad size of the image.
Chart training_chart(const TrainingCurves& curves, const ChartStyle& style);

}  // namespace stipple::picture
