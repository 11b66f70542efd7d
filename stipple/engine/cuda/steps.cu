#include "stipple/core/error.h"
#include "stipple/engine/cuda/steps.h"

namespace stipple::engine::cuda {

void run_step(const StepCall& call) {
    for (const std::span<const StepLauncher> file :
         {row_steps(), group_steps(), reduce_steps(), knn_steps(), fold_steps(), flow_steps(), attend_steps()})
        for (const StepLauncher& launcher : file)
            if (launcher.kind == call.step->kind) return launcher.run(call);
    STIPPLE_ASSERT(!"a kind of step without a kernel");
}

}  // namespace stipple::engine::cuda
