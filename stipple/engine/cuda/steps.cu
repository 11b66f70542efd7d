#include "stipple/core/error.h"
#include "stipple/engine/cuda/steps.h"

namespace stipple::engine::cuda {

void run_step(const StepCall& call) {
    switch (call.step->kind) {
        case StepKind::chain: STIPPLE_ASSERT(!"chains have plans of their own"); break;
        case StepKind::fold_matrix: return run_fold_step(call);
        case StepKind::knn: return run_knn_step(call);
        case StepKind::edge_distance:
        case StepKind::max_rows:
        case StepKind::softmax_rows:
        case StepKind::interpolate:
        case StepKind::log_softmax: return run_group_step(call);
        case StepKind::max_points:
        case StepKind::sum_points:
        case StepKind::sum_channels:
        case StepKind::log_det:
        case StepKind::gaussian_log_density: return run_reduce_step(call);
        case StepKind::gather:
        case StepKind::copy:
        case StepKind::slice:
        case StepKind::reverse:
        case StepKind::activation:
        case StepKind::add:
        case StepKind::couple:
        case StepKind::inject: return run_row_step(call);
    }
}

}  // namespace stipple::engine::cuda
