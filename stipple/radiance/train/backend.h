#pragma once
// What the schedule of training (train.cpp) asks of a device. CPU and CUDA answer alike.

#include <memory>

#include "stipple/radiance/train.h"
#include "stipple/radiance/train/state.h"

namespace stipple::radiance {

inline constexpr int64_t kSeenRays = 250000;

class Backend {
public:
    virtual ~Backend() = default;

    /// A coarse grid of zeros. Nodes that at most two cameras see are free, the rates of others are in proportion to
    /// how many see them, and nodes nearer to a camera than `near` are transparent for good. The environment, where
    /// there is one, begins grey.
    virtual void begin_coarse(const GridShape& grid, const StepConstants& constants) = 0;
    /// [nodes] of the coarse grid.
    virtual std::vector<float> coarse_density() = 0;
    /// [nodes] not 0 for those beside a sample that has a weight above `least` in a pixel of a photograph, by kSeenRays
    /// rays spread over all of them. What lies hidden behind surfaces stays as the first steps left it.
    virtual std::vector<uint8_t> coarse_seen(float least) = 0;

    /// A fine grid where `occupied` [nodes] is not 0, with densities [nodes] (empty: zeros) and features of zeros;
    /// pixels are drawn from those whose rays meet it, or from all that are known where an environment is learned,
    /// which goes on from where it is, on texels of its own.
    virtual void begin_fine(const GridShape& grid, const StepConstants& constants, const std::vector<uint8_t>& occupied,
                            const std::vector<float>& network) = 0;
    /// The fine grid on other nodes, moments and rates as at the start. Nodes are occupied where the nearest old one is
    /// and one of the 27 about them is opaque by the constants of before.
    virtual void grow(const GridShape& grid, const StepConstants& constants) = 0;

    /// Nodes about which all 27 are transparent become free. With occupancy_returns (constants), other nodes that were
    /// occupied in begin_fine or the last grow become occupied again.
    virtual void refresh_occupancy() = 0;
    /// Returns how many were made: fewer where the process was asked to stop, but one at least, since what happens
    /// before a step must not happen twice.
    virtual int64_t steps(int64_t count) = 0;

    /// The state now; the sum of errors begins again.
    virtual StepState take_state() = 0;
    virtual SampleCounts last_samples() = 0;
    /// Times of the parts of steps; runs `count` steps for it. Empty where parts are not timed.
    virtual std::vector<StepPart> profile(int count) = 0;

    /// Bricks, densities, features and network of the fine grid, and the environment.
    virtual void pack(Field& field) = 0;

    /// All that the steps after it depend on, but for photographs and constants. Changes nothing.
    virtual TrainState save() = 0;
    /// As it was when `state` was saved; `state` is without a fault.
    virtual void restore(TrainState state, const StepConstants& constants) = 0;
    virtual int64_t peak_bytes() const = 0;
};

/// The whole of training, by a backend's answers.
TrainResult train_on(Backend& backend, const Scene& scene, const TrainOptions& options, Device device,
                     const std::function<void(const TrainStep&)>& report = {}, const TrainRun& run = {});

std::unique_ptr<Backend> make_cpu_backend(const Scene& scene);
namespace cuda {
void make_backend(const Scene& scene, const TrainOptions& options, Device device, std::unique_ptr<Backend>& to);
/// For paths other than `final`: the fine stage step by step (cuda/reference).
void make_reference_backend(const Scene& scene, const TrainOptions& options, Device device,
                            std::unique_ptr<Backend>& to);
}  // namespace cuda

}  // namespace stipple::radiance
