#pragma once
// Training of voxel radiance fields: coarse geometry first, then a fine grid that grows [Sun et al. 2022].

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "stipple/radiance/field.h"

namespace stipple::radiance {

/// A stage of training, with the keys of the published configuration. Weights and rates are for sums over the rays of a
/// step divided by their number.
struct StageOptions {
    int N_iters = 0;
    int N_rand = 8192;            // rays of a step
    int64_t num_voxels = 0;       // of the finished grid
    int64_t num_voxels_base = 0;  // opacities are counted in voxels of a grid of so many
    float alpha_init = 0;         // opacity of a voxel at the start
    float lrate_density = 0.1f, lrate_features = 0.1f, lrate_network = 1e-3f;
    int lrate_decay = 20;  // in thousands of steps to a tenth
    float weight_entropy_last = 0, weight_rgbper = 0;
    float weight_tv_density = 0, weight_tv_features = 0;
    float fast_color_thres = 0;  // opacities and weights up to it are skipped
    std::vector<int> pg_scale;   // steps at which the number of voxels doubles
    float stepsize = 0.5f;       // of a voxel
    int refresh = 1000;          // steps between looks at which nodes are opaque, the first after half of it
};

/// How a fine step is computed on CUDA. All but `final` are there to be compared with it (`stipple study radiance`):
/// each is the one before with some operations joined, from one kernel and one array for every operation to what
/// stipple does. They follow the same rules and take the same draws.
enum class StepPath {
    reference,        // every operation by itself, dense grids, single precision
    fused_adam,       // Adam and its mask in one
    fused_rendering,  // positions, mask, densities, opacities, weights in one, there and back
    per_ray_weights,  // gradients of weights along each ray, without atomics
    final
};
inline constexpr int kStepPaths = 5;

const char* name_of(StepPath path);  // "reference", "fused_adam" and so on
std::optional<StepPath> step_path_by_name(std::string_view name);
/// Throws Error{bad_argument} for other paths than `final` on a CPU.
void require_path(StepPath path, Device device);

struct TrainOptions {
    StageOptions coarse, fine;
    float bbox_thres = 1e-3f;  // opacity of a voxel that counts as occupied after the coarse stage
    float world_bound_scale = 1.05f;
    Background background = Background::white;
    uint64_t seed = 0;
    bool deterministic = false;  // the same bits in every run, for some time more
    bool half_network = true;    // CUDA: the colour network on tensor cores; else in single precision
    int profile_steps = 0;       // CUDA: so many more steps at the end, timed part by part
    bool jitter = false;         // rays begin within their first step
    StepPath path = StepPath::final;
};

TrainOptions parity_options(int64_t side);  // 160 or 256 as published: side^3 voxels
/// A good field in seconds on a GPU: half as many steps on a finer grid, and fewer samples.
TrainOptions fast_options();
/// More voxels and steps than were published.
TrainOptions quality_options();
/// For two CPU cores and small images.
TrainOptions small_options();

/// Between steps, on the calling thread; every `N` steps as the loop's caller asks.
struct TrainStep {
    const char* stage = "";       // "coarse", "fine"
    int64_t step = 0, steps = 0;  // over both stages
    double psnr = 0;              // of the rays since the last report
    double seconds = 0;
};

struct TrainTimes {
    double box = 0, coarse_setup = 0, coarse = 0, fine_setup = 0, fine = 0, pack = 0;  // seconds
    int64_t peak_bytes = 0;  // of own allocations on the device
    double ms_per_fine_step = 0;
    double in_box = 0, in_mask = 0, opaque = 0, kept = 0;  // samples of a fine step, mean of the last ones
};

/// A part of a training step. Bytes and operations are counted by formula (cuda/step_bytes.h); 0: not counted.
struct StepPart {
    std::string name;
    double milliseconds = 0;
    double bytes = 0, operations = 0;
};

struct TrainResult {
    Field field;
    TrainTimes times;
    std::vector<StepPart> profile;  // of the last steps, where it was asked for
};

/// White where pictures have transparency, as the papers have it; black for photographs, which show all there is.
Background usual_background(const Scene& scene);

/// Bytes of device memory that train will use at most: as much as if every brick of the last grid were stored, which
/// is several times what most scenes need.
int64_t estimate_bytes(const Scene& scene, const TrainOptions& options);

/// `report` may be empty. Throws Error{bad_argument} for a scene without views, and for other paths than `final` on a
/// CPU; Error{out_of_memory} with the estimate.
TrainResult train(const Scene& scene, const TrainOptions& options, Device device,
                  const std::function<void(const TrainStep&)>& report = {});

}  // namespace stipple::radiance
