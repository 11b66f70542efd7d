#pragma once
// The step flow_step on the CPU: rows sixteen at a time, a vector lane each, so that the weights are read once for all
// of them and the numbers of a row do not depend on its neighbours.

#include "stipple/engine/cpu/steps.h"

namespace stipple::engine::cpu {

struct FlowStepNet {
    const float* weight = nullptr;  // 0.weight [h, c], 1.weight [h, h], 2.weight [c, h], of an ODE time [2 (2 h + c)]
    int64_t channels = 0, hidden = 0;
    int64_t steps = 0;  // of RK4; 0: a residual step
    Activation activation;
    bool inverse = false, log_det = false;
};

/// Rows [begin, end): x [c], condition [2 (2 h + c)] -> [c], or [c + 1] with log_det.
void flow_step(const FlowStepNet& net, const RowSource& x, const RowSource& condition, Rows out, int64_t begin,
               int64_t end);

}  // namespace stipple::engine::cpu
