#pragma once
// Training of voxel radiance fields: coarse geometry first, then a fine grid that grows [Sun et al. 2022].

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "stipple/core/fields.h"
#include "stipple/core/run_folder.h"
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
const Fields& stage_fields();

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
inline constexpr const char* kStepPathWords[] = {"reference", "fused_adam", "fused_rendering", "per_ray_weights",
                                                 "final"};
inline constexpr int kStepPaths = 5;

const char* name_of(StepPath path);  // "reference", "fused_adam" and so on
std::optional<StepPath> step_path_by_name(std::string_view name);
/// Throws Error{bad_argument} for other paths than `final` on a CPU.
void require_path(StepPath path, Device device);

struct TrainOptions {
    StageOptions coarse, fine;
    float bbox_thres = 1e-3f;  // opacity of a voxel that counts as occupied after the coarse stage
    float bbox_seen = 0.05f;   // and its weight in some pixel: what lies hidden stays as the first steps left it
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
    StepPath path = StepPath::final;
};
/// The keys of the published configuration, of stages below "coarse." and "fine.".
const Fields& train_fields();

TrainOptions parity_options(int64_t side);  // 160 or 256 as published: side^3 voxels
/// A good field in seconds on a GPU: half as many steps on a finer grid, and fewer samples.
TrainOptions fast_options();
/// More voxels and steps than were published.
TrainOptions quality_options();
/// For two CPU cores and small images.
TrainOptions small_options();

/// Between steps, on the calling thread: every so many steps and at the end of a stage.
struct TrainStep {
    const char* stage = "";           // "coarse", "fine"
    int64_t step = 0, steps = 0;      // over both stages
    double psnr = 0;                  // of the rays since the last report
    std::optional<double> test_psnr;  // mean of the test views that were rendered last
    double seconds = 0;               // of training by this process, without checkpoints and test views
    double steps_per_second = 0;      // of late; 0: not known yet
    double seconds_left = 0;          // at that rate
};

/// What training leaves in a run folder (docs/radiance.md), from which it can go on. The field does not depend on it.
struct TrainRun {
    RunFolder* folder = nullptr;        // none: nothing is kept, and the rest means nothing
    bool is_resumed = false;            // goes on from the folder's newest checkpoint that is whole
    int64_t checkpoint_every = 0;       // steps of both stages; 0: about every minute
    int64_t render_every = 0;           // steps after which test views are rendered; 0: never
    int render_views = 3;               // at most, spread over scene.test
    int64_t max_steps = 0;              // saves and ends after so many steps of the run; 0: at its end
    bool refuses_damaged = false;       // a damaged checkpoint is an error; else it is skipped with a warning
    bool survives_save_errors = false;  // goes on without a checkpoint that cannot be written
};

struct TrainTimes {
    double box = 0, coarse_setup = 0, coarse = 0, fine_setup = 0, fine = 0, pack = 0;  // seconds, of this process
    double checkpoints = 0, test_views = 0;  // seconds that are in none of those
    int64_t peak_bytes = 0;                  // of own allocations on the device
    double ms_per_fine_step = 0;
    double in_box = 0, in_mask = 0, opaque = 0, kept = 0;  // samples of a fine step, mean of the last ones

    double total() const { return box + coarse_setup + coarse + fine_setup + fine + pack; }  // of training itself
};
const Fields& train_times_fields();

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
    bool is_complete = true;        // false: max_steps has ended it before, and there is no field
    std::vector<std::string> warnings;
};

/// White where pictures have transparency, as the papers have it; photographs show all there is, also behind the box.
Background usual_background(const Scene& scene);

/// Bytes of device memory that train will use at most: as much as if every brick of the last grid were stored, which
/// is several times what most scenes need.
int64_t estimate_bytes(const Scene& scene, const TrainOptions& options);

/// `report` may be empty. Throws Error{bad_argument} for a scene without views, for a background that is to be learned
/// from pictures whose transparency shows it, for other paths than `final` on a CPU or with a run folder;
/// Error{out_of_memory} with the estimate.
///
/// With a run folder, a training that was killed and goes on ends in the same bits as one that was not: on the CPU, and
/// on a GPU with options.deterministic. SIGINT and SIGTERM save a checkpoint and become Error{interrupted} and
/// Error{terminated}. Throws Error{bad_config} for a checkpoint of other options, another scene or another kind of
/// device, Error{cannot_write} for one that cannot be saved, Error{not_finite} for one that holds NaN.
TrainResult train(const Scene& scene, const TrainOptions& options, Device device,
                  const std::function<void(const TrainStep&)>& report = {}, const TrainRun& run = {});

}  // namespace stipple::radiance
