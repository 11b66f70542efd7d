#include "stipple/radiance/cuda/environment.cuh"

namespace stipple::radiance::cuda {

void launch_fine_step(const FineStep& step, bool fixed, bool half_network, int multiprocessors, cudaStream_t stream,
                      const Mark& mark) {
    const auto done = [&](const char* part) {
        if (mark) mark(part);
    };
    launch_march(step, stream);
    done("march");
    launch_place(step.samples, step.constants.rays, stream);
    done("place");
    launch_gather(step, stream);
    done("gather features");
    if (half_network) {
        launch_colour_forward(step, multiprocessors, stream);
    } else {
        launch_colour_single(step, false, multiprocessors, stream);
    }
    done("colour");
    launch_composite(step, fixed, stream);
    done("composite, densities back");
    if (half_network) {
        launch_colour_backward(step, multiprocessors, stream);
    } else {
        launch_colour_single(step, true, multiprocessors, stream);
    }
    done("colour back");
    launch_scatter(step, fixed, stream);
    done("scatter features");
    launch_optimise_grids(step, fixed, stream);
    done("Adam of grids");
    launch_optimise_network(step, stream);
    done("Adam of network");
    if (step.environment.side > 0) {
        launch_optimise_environment(step.environment, step.state, step.constants.rate_environment, fixed, stream);
        done("Adam of environment");
    }
    launch_advance(step.state, step.samples.error_of, step.constants.rays, step.constants.decay, stream);
    done("advance");
}

}  // namespace stipple::radiance::cuda
