#include "stipple/radiance/train/grids.h"

#include <algorithm>
#include <cmath>

#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance {
namespace {

float voxel_of(const Box<float>& box, int64_t voxels) {
    const double volume = double{box.extent(0)} * box.extent(1) * box.extent(2);
    return static_cast<float>(std::cbrt(volume / static_cast<double>(voxels)));
}

// A map of the background comes near to most colours at once. The first haze of what is there then gains little, and
// from the published opacity of 1e-6 on, entropy of the published weight keeps it from growing for hundreds of steps or
// for good.
constexpr float kLearnedEntropy = 0.1f, kLearnedStart = 1e-4f;
constexpr int kCoarseEnvironment = 16;

}  // namespace

float coarse_start(const TrainOptions& options) {
    return options.background == Background::learned ? std::max(options.coarse.alpha_init, kLearnedStart)
                                                     : options.coarse.alpha_init;
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

Box<float> box_of_cameras(const Scene& scene) {
    // The corners of pixels' rays bend little, so every few pixels do.
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
    c.rate_environment = stage.lrate_environment;
    const bool is_coarse = &stage == &options.coarse;
    if (options.background == Background::learned) {
        // A map of many texels can show every photograph as it is, without anything before it, where few look in the
        // same direction. Few texels leave something for the grid to explain.
        c.environment_side =
            is_coarse ? std::min(kCoarseEnvironment, options.environment_side) : options.environment_side;
        if (is_coarse) c.weight_entropy *= kLearnedEntropy;
    }
    // Coarse nodes are free where too few cameras look, not because nothing is there.
    c.occupancy_returns = options.occupancy_returns && !is_coarse;
    c.decay = std::pow(0.1, 1.0 / (stage.lrate_decay * 1000.0));
    return c;
}

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

}  // namespace stipple::radiance
