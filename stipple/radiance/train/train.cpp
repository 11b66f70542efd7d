#include "stipple/radiance/train.h"

#include <chrono>
#include <cmath>

#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/train/backend.h"

namespace stipple::radiance {
namespace {

class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now();
};

float voxel_of(const Box<float>& box, int64_t voxels) {
    const double volume = double{box.extent(0)} * box.extent(1) * box.extent(2);
    return static_cast<float>(std::cbrt(volume / static_cast<double>(voxels)));
}

GridShape grid_of(const Box<float>& box, int64_t voxels) {
    GridShape grid;
    grid.box = box;
    grid.voxel = voxel_of(box, voxels);
    for (int axis = 0; axis < 3; ++axis) {
        grid.size[static_cast<size_t>(axis)] = std::max(2, static_cast<int32_t>(box.extent(axis) / grid.voxel));
    }
    return grid;
}

/// Where the cameras look, between near and far: the corners of pixels' rays bend little, so every few pixels do.
Box<float> box_of_cameras(const Scene& scene) {
    Box<float> box = Box<float>::none();
    for (const Photograph& photo : scene.train) {
        const CameraView camera = view_of(photo.camera);
        const int step_x = std::max(1, camera.width / 32), step_y = std::max(1, camera.height / 32);
        for (int y = 0;; y = std::min(y + step_y, camera.height - 1)) {
            for (int x = 0;; x = std::min(x + step_x, camera.width - 1)) {
                const Ray ray = camera_ray(camera, x, y);
                const Vec3f unit_direction = unit(ray.direction);
                for (const float t : {scene.near, scene.far}) box.add(ray.origin + unit_direction * t);
                if (x == camera.width - 1) break;
            }
            if (y == camera.height - 1) break;
        }
    }
    return box;
}

StepConstants constants_of(const StageOptions& stage, const TrainOptions& options, const Scene& scene,
                           const GridShape& grid, float shift, uint64_t stream) {
    StepConstants c;
    c.draw = {options.seed * 2 + stream, options.background, options.jitter};
    c.rays = stage.N_rand;
    c.near = scene.near;
    c.step = stage.stepsize * grid.voxel;
    c.voxel_ratio = grid.voxel / voxel_of(grid.box, stage.num_voxels_base);
    c.opacity_length = stage.stepsize * c.voxel_ratio;
    c.shift = shift;
    c.threshold = stage.fast_color_thres;
    c.weight_entropy = stage.weight_entropy_last;
    c.weight_rgbper = stage.weight_rgbper;
    const float longest = static_cast<float>(std::max({grid.size[0], grid.size[1], grid.size[2]}));
    c.weight_tv_density = stage.weight_tv_density / static_cast<float>(stage.N_rand) * longest / 128;
    c.weight_tv_features = stage.weight_tv_features / static_cast<float>(stage.N_rand) * longest / 128;
    c.rate_density = stage.lrate_density;
    c.rate_features = stage.lrate_features;
    c.rate_network = stage.lrate_network;
    c.decay = std::pow(0.1, 1.0 / (stage.lrate_decay * 1000.0));
    return c;
}

/// The largest of the 27 values about each node.
std::vector<float> pooled(const GridShape& grid, std::vector<float> values) {
    const int64_t strides[3] = {int64_t{grid.size[1]} * grid.size[2], grid.size[2], 1};
    for (int axis = 0; axis < 3; ++axis) {
        std::vector<float> result(values.size());
        const int32_t size = grid.size[static_cast<size_t>(axis)];
        const int64_t stride = strides[axis];
        for (int64_t i = 0; i < grid.nodes(); ++i) {
            const int64_t at = i / stride % size;
            float most = values[static_cast<size_t>(i)];
            if (at > 0) most = std::max(most, values[static_cast<size_t>(i - stride)]);
            if (at + 1 < size) most = std::max(most, values[static_cast<size_t>(i + stride)]);
            result[static_cast<size_t>(i)] = most;
        }
        values.swap(result);
    }
    return values;
}

std::vector<float> opacities(const std::vector<float>& density, const StepConstants& c) {
    std::vector<float> result(density.size());
    for (size_t i = 0; i < density.size(); ++i) result[i] = opacity(density[i] + c.shift, c.voxel_ratio);
    return result;
}

/// Of the nodes that are opaque and seen, scaled about its centre; the whole box where none is.
Box<float> box_of_content(const GridShape& grid, const std::vector<float>& opacity, const std::vector<uint8_t>& seen,
                          float least, float scale) {
    Box<float> box = Box<float>::none();
    for (int x = 0; x < grid.size[0]; ++x) {
        for (int y = 0; y < grid.size[1]; ++y) {
            for (int z = 0; z < grid.size[2]; ++z) {
                const auto i = static_cast<size_t>(grid.index(x, y, z));
                if (!seen[i] || !(opacity[i] > least)) continue;
                const int at[3] = {x, y, z};
                for (int axis = 0; axis < 3; ++axis) {
                    box.add(axis, grid.box.low[axis] + static_cast<float>(at[axis]) * grid.spacing(axis));
                }
            }
        }
    }
    if (box.is_none()) return grid.box;
    for (int axis = 0; axis < 3; ++axis) {
        const float middle = 0.5f * (box.low[axis] + box.high[axis]);
        const float half = std::max(0.5f * box.extent(axis), grid.spacing(axis)) * scale;
        box.low[axis] = middle - half;
        box.high[axis] = middle + half;
    }
    return box;
}

/// Nodes whose nearest coarse node is opaque.
std::vector<uint8_t> occupied_nodes(const GridShape& fine, const GridShape& coarse, const std::vector<float>& opacity,
                                    float least) {
    std::vector<uint8_t> occupied(static_cast<size_t>(fine.nodes()));
    const GridView view = view_of(coarse);
    for (int x = 0; x < fine.size[0]; ++x) {
        for (int y = 0; y < fine.size[1]; ++y) {
            for (int z = 0; z < fine.size[2]; ++z) {
                const Vec3f p = {fine.box.low[0] + static_cast<float>(x) * fine.spacing(0),
                                 fine.box.low[1] + static_cast<float>(y) * fine.spacing(1),
                                 fine.box.low[2] + static_cast<float>(z) * fine.spacing(2)};
                // The fine box may reach beyond the coarse one: nothing is known there, and nothing is.
                if (!is_inside(view, p)) continue;
                const auto nearest = static_cast<size_t>(nearest_node(view, to_nodes(view, p)));
                occupied[static_cast<size_t>(fine.index(x, y, z))] = opacity[nearest] >= least;
            }
        }
    }
    return occupied;
}

/// Uniform within 1 / sqrt(inputs), the last bias 0.
std::vector<float> initial_network(uint64_t seed) {
    std::vector<float> numbers(kNetworkNumbers);
    const Rng rng(seed, 5);
    for (int i = 0; i < kNetworkNumbers; ++i) {
        const int inputs = i < kWeight2 ? kFeatures + kViewInputs : kHidden;
        const float bound = 1 / std::sqrt(static_cast<float>(inputs));
        numbers[static_cast<size_t>(i)] = i < kBias3 ? bound * (2 * rng.uniform(static_cast<uint64_t>(i)) - 1) : 0.0f;
    }
    return numbers;
}

double psnr_of(const StepState& state) {
    const double mean = state.squared_error / (3 * static_cast<double>(std::max<int64_t>(state.rays, 1)));
    return mean > 0 ? -10 * std::log10(mean) : 100;
}

constexpr int64_t kReportEvery = 250;  // steps

class Schedule {
public:
    Schedule(const Scene& scene, const TrainOptions& options, Backend& backend,
             const std::function<void(const TrainStep&)>& report)
        : scene_(scene), options_(options), backend_(backend), report_(report) {}

    TrainResult run() {
        Stopwatch part;
        const Box<float> box = scene_.box ? *scene_.box : box_of_cameras(scene_);
        result_.times.box = part.seconds();
        part = {};
        const GridShape grid = grid_of(box, options_.coarse.num_voxels);
        const StepConstants constants =
            constants_of(options_.coarse, options_, scene_, grid, shift_of(options_.coarse.alpha_init), 0);
        backend_.begin_coarse(grid, constants);
        result_.times.coarse_setup = part.seconds();
        part = {};
        loop("coarse", options_.coarse, grid, constants);
        result_.times.coarse = part.seconds();
        part = {};
        fine(grid, opacities(backend_.coarse_density(), constants), backend_.coarse_seen(), part);
        return std::move(result_);
    }

private:
    void fine(const GridShape& coarse, const std::vector<float>& opaque, const std::vector<uint8_t>& seen,
              Stopwatch part) {
        const StageOptions& stage = options_.fine;
        box_ = box_of_content(coarse, opaque, seen, options_.bbox_thres, options_.world_bound_scale);
        const GridShape grid = grid_of(box_, stage.num_voxels >> stage.pg_scale.size());
        const std::vector<uint8_t> occupied = occupied_nodes(grid, coarse, pooled(coarse, opaque), options_.bbox_thres);
        shift_ = shift_of(stage.alpha_init);
        const StepConstants constants = constants_of(stage, options_, scene_, grid, shift_, 1);
        backend_.begin_fine(grid, constants, occupied, initial_network(options_.seed));
        result_.times.fine_setup = part.seconds();
        part = {};
        const GridShape last = loop("fine", stage, grid, constants);
        result_.times.fine = part.seconds();
        result_.times.ms_per_fine_step = 1000 * result_.times.fine / std::max(stage.N_iters, 1);
        part = {};
        const SampleCounts counts = backend_.last_samples();
        result_.times.in_box = static_cast<double>(counts.in_box);
        result_.times.in_mask = static_cast<double>(counts.in_mask);
        result_.times.opaque = static_cast<double>(counts.opaque);
        result_.times.kept = static_cast<double>(counts.kept);
        Field& field = result_.field;
        const StepConstants finished = constants_of(stage, options_, scene_, last, shift_, 1);
        field.grid = last;
        field.density_shift = shift_;
        field.voxel_ratio = finished.voxel_ratio;
        field.step = stage.stepsize;
        field.least_weight = stage.fast_color_thres;
        field.near = scene_.near;
        field.background = options_.background;
        field.origin = scene_.origin;
        backend_.pack(field);
        result_.times.pack = part.seconds();
        if (options_.profile_steps > 0) result_.profile = backend_.profile(options_.profile_steps);
        result_.times.peak_bytes = backend_.peak_bytes();
    }

    /// Steps 1 to N_iters with what happens before some of them. Returns the grid at the end.
    GridShape loop(const char* name, const StageOptions& stage, GridShape grid, StepConstants constants) {
        const int64_t before = std::string_view(name) == "fine" ? options_.coarse.N_iters : 0;
        const int64_t all = int64_t{options_.coarse.N_iters} + options_.fine.N_iters;
        int64_t done = 0;
        while (done < stage.N_iters) {
            const int64_t next = done + 1;  // steps count from 1
            if ((next + stage.refresh / 2) % stage.refresh == 0) backend_.refresh_occupancy();
            for (size_t i = 0; i < stage.pg_scale.size(); ++i) {
                if (stage.pg_scale[i] != next) continue;
                grid = grid_of(box_, stage.num_voxels >> (stage.pg_scale.size() - 1 - i));
                shift_ -= 1;
                constants = constants_of(stage, options_, scene_, grid, shift_, 1);
                backend_.grow(grid, constants);
            }
            int64_t until = std::min<int64_t>(stage.N_iters, (done / kReportEvery + 1) * kReportEvery);
            for (const int at : stage.pg_scale) {
                if (at - 1 > done) until = std::min<int64_t>(until, at - 1);
            }
            // The next step before which nodes are looked at again.
            const int64_t half = stage.refresh / 2;
            until = std::min(until, ((next + half) / stage.refresh + 1) * stage.refresh - half - 1);
            backend_.steps(until - done);
            done = until;
            check_interrupted();
            if (report_ && (done % kReportEvery == 0 || done == stage.N_iters)) {
                report_({name, before + done, all, psnr_of(backend_.take_state()), watch_.seconds()});
            }
        }
        backend_.take_state();
        return grid;
    }

    const Scene& scene_;
    const TrainOptions& options_;
    Backend& backend_;
    const std::function<void(const TrainStep&)>& report_;
    TrainResult result_;
    Box<float> box_ = Box<float>::none();
    float shift_ = 0;
    Stopwatch watch_;
};

void require_trainable(const Scene& scene, const TrainOptions& options) {
    STIPPLE_REQUIRE(!scene.train.empty(), "a scene without photographs to learn from");
    int64_t pixels = 0;
    for (const Photograph& photo : scene.train) pixels += photo.pixels.width() * photo.pixels.height();
    STIPPLE_REQUIRE(pixels < (int64_t{1} << 32), "{} pixels: at most 2^32 are supported; reduce the images", pixels);
    STIPPLE_REQUIRE(scene.box || scene.far > scene.near, "neither a box nor near and far depths are known");
    for (const StageOptions* stage : {&options.coarse, &options.fine}) {
        STIPPLE_REQUIRE(stage->N_iters >= 0 && stage->N_rand > 0, "N_iters {} and N_rand {}", stage->N_iters,
                        stage->N_rand);
        STIPPLE_REQUIRE(stage->num_voxels >> stage->pg_scale.size() >= 8 && stage->num_voxels < (int64_t{1} << 31),
                        "num_voxels {}", stage->num_voxels);
        STIPPLE_REQUIRE(stage->refresh > 1 && stage->stepsize > 0 && stage->alpha_init > 0 && stage->alpha_init < 1,
                        "stepsize {} and alpha_init {}", stage->stepsize, stage->alpha_init);
    }
}

}  // namespace

int64_t estimate_bytes(const Scene& scene, const TrainOptions& options) {
    int64_t pixels = 0;
    for (const Photograph& photo : scene.train) pixels += photo.pixels.width() * photo.pixels.height();
    const int64_t gradient = options.deterministic ? 8 : 4;
    const int64_t of_node = (1 + kFeatures) * (3 * int64_t{sizeof(float)} + gradient);
    // A side of the grid ends within a brick.
    const double side = std::cbrt(static_cast<double>(options.fine.num_voxels)) + kBrick;
    const int64_t nodes = static_cast<int64_t>(side * side * side);
    const int64_t samples = static_cast<int64_t>(std::sqrt(3.0) * side / options.fine.stepsize) + 2;
    const int64_t rays = options.fine.N_rand;
    if (options.path != StepPath::final) {
        // Dense grids with masks; of all samples of a step five lists, of those with a colour the network's layers.
        const int64_t of_dense = (1 + kFeatures) * (4 * int64_t{sizeof(float)} + 1 + (options.deterministic ? 8 : 0));
        return pixels * 9 + nodes * of_dense + rays * samples * 140 + rays * 128 * 3000;
    }
    return pixels * 8 + nodes * of_node + rays * samples * 10 + rays * 128 * 68;
}

TrainResult train(const Scene& scene, const TrainOptions& options, Device device,
                  const std::function<void(const TrainStep&)>& report) {
    require_trainable(scene, options);
    const bool is_final = options.path == StepPath::final;
    require_path(options.path, device);
    std::unique_ptr<Backend> backend;
    switch (device.type) {
        case DeviceType::cpu: backend = make_cpu_backend(scene); break;
        case DeviceType::cuda:
            if (is_final) {
                STIPPLE_CUDA_CALL(cuda::make_backend, scene, options, device, backend);
            } else {
                STIPPLE_CUDA_CALL(cuda::make_reference_backend, scene, options, device, backend);
            }
            break;
    }
    return train_on(*backend, scene, options, report);
}

TrainResult train_on(Backend& backend, const Scene& scene, const TrainOptions& options,
                     const std::function<void(const TrainStep&)>& report) {
    return Schedule(scene, options, backend, report).run();
}

}  // namespace stipple::radiance
