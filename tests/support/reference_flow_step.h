#pragma once
// One row of a flow_step as its contract reads, in double: matrices multiplied out, the inverse by fixed-point
// iteration alone.

#include <vector>

#include "stipple/network/network.h"

namespace stipple::test {

struct ReferenceFlowStep {
    const network::LayerOptions& options;
    int64_t channels = 0;
    std::vector<double> weights[3];  // [h, c], [h, h], [c, h]
    std::vector<double> time;        // of an ODE

    /// x [c], condition [2 (2 h + c)] -> out [c], or [c + 1] with log_det.
    void run(const double* x, const double* condition, double* out) const;
};

}  // namespace stipple::test
