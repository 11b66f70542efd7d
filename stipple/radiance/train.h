#pragma once
// Training of voxel radiance fields: coarse geometry first, then a fine grid that grows [Sun et al. 2022].

#include <functional>
#include <string>

#include "stipple/radiance/field.h"

namespace stipple::radiance {

/// A stage of training, with the keys of the published configuration. Weights and rates are for sums over the rays of a
/// step divided by their number.
struct StageOptions {
    int N_iters = 0;
    int N_rand = 8192;            // rays of a step
    int64_t num_voxels = 0;       // of the finished grid
    int64_t num_voxels_base = 0;  // opacities are counted in voxels of a grid of so many
    float alpha_init = 0;  // opacity of a voxel at the start; coarse: at least 1e-4 where the background is learned
    float lrate_density = 0.1f, lrate_features = 0.1f, lrate_network = 1e-3f;
    float lrate_environment = 0.1f;  // where the background is learned
    int lrate_decay = 20;            // in thousands of steps to a tenth
    float weight_entropy_last = 0, weight_rgbper = 0;
    float weight_tv_density = 0, weight_tv_features = 0;
    float fast_color_thres = 0;  // opacities and weights up to it are skipped
    std::vector<int> pg_scale;   // steps at which the number of voxels doubles
    float stepsize = 0.5f;       // of a voxel
    int refresh = 1000;          // steps between looks at which nodes are opaque, the first after half of it
};

struct TrainOptions {
    StageOptions coarse, fine;
    float bbox_thres = 1e-3f;  // opacity of a voxel that counts as occupied after the coarse stage
    float world_bound_scale = 1.05f;
    Background background = Background::white;
    int environment_side = 128;  // texels of an edge of the map where the background is learned; at most 16 at first
    uint64_t seed = 0;
    bool deterministic = false;  // the same bits in every run, for some time more
    bool half_network = true;    // CUDA: the colour network on tensor cores; else in single precision
    int profile_steps = 0;       // CUDA: so many more steps at the end, timed part by part
    bool jitter = false;         // rays begin within their first step
    /// Nodes of the fine grid that were freed become occupied again where one of the 27 about them is opaque. Only
    /// nodes that were occupied when their grid began, or when it last grew, can come back: these have a density, also
    /// while they are free, and so have all about them. It changes while they are free by rays that pass at occupied
    /// nodes beside them. Else nodes are freed for good, as published.
    bool occupancy_returns = false;
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

/// A part of a training step.
struct StepPart {
    std::string name;
    double milliseconds = 0;
};

struct TrainResult {
    Field field;
    TrainTimes times;
    std::vector<StepPart> profile;  // of the last steps, where it was asked for
};

/// Bytes of device memory that train will use at most: as much as if every brick of the last grid were stored, which
/// is several times what most scenes need.
int64_t estimate_bytes(const Scene& scene, const TrainOptions& options);

/// `report` may be empty. Throws Error{bad_argument} for a scene without views and for a background that is to be
/// learned from pictures whose transparency shows it, Error{out_of_memory} with the estimate.
TrainResult train(const Scene& scene, const TrainOptions& options, Device device,
                  const std::function<void(const TrainStep&)>& report = {});

}  // namespace stipple::radiance
