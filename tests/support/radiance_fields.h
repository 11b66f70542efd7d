#pragma once
// Radiance fields made by hand: random ones and a ball. Who includes this links stipple::radiance.

#include <cmath>
#include <functional>

#include "stipple/core/half.h"
#include "stipple/core/rng.h"
#include "stipple/radiance/field/dense_field.h"
#include "stipple/radiance/march/opacity.h"

namespace stipple::test {

/// A grid of that many nodes over the box, with the voxel that its volume gives; densities 0, nothing occupied.
inline radiance::DenseField empty_field(std::array<int32_t, 3> size, Box<float> box) {
    radiance::DenseField dense;
    dense.grid.size = size;
    dense.grid.box = box;
    dense.grid.voxel = static_cast<float>(std::cbrt(static_cast<double>(box.extent(0)) * box.extent(1) * box.extent(2) /
                                                    static_cast<double>(dense.grid.nodes())));
    dense.density_shift = radiance::shift_of(0.01f);
    const auto nodes = static_cast<size_t>(dense.grid.nodes());
    dense.density.assign(nodes, radiance::kEmptyDensity);
    dense.features.assign(nodes * radiance::kFeatures, 0);
    dense.occupied.assign((nodes + 31) / 32, 0);
    return dense;
}

inline void fill_normal(std::vector<float>& values, size_t count, float scale, uint64_t seed) {
    const Rng rng(seed, 77);
    values.resize(count);
    for (size_t i = 0; i < count; ++i) values[i] = scale * rng.normal(i);
}

inline void random_network(radiance::ColourNetwork& network, uint64_t seed) {
    using namespace radiance;
    fill_normal(network.weight1, size_t{kHidden} * (kFeatures + kViewInputs), 0.3f, seed);
    fill_normal(network.bias1, kHidden, 0.1f, seed + 1);
    fill_normal(network.weight2, size_t{kHidden} * kHidden, 0.1f, seed + 2);
    fill_normal(network.bias2, kHidden, 0.1f, seed + 3);
    fill_normal(network.weight3, size_t{3} * kHidden, 0.2f, seed + 4);
    fill_normal(network.bias3, 3, 0.1f, seed + 5);
}

/// Random densities, features (exact in half precision) and network; a node is occupied with probability `share`.
inline radiance::DenseField random_field(std::array<int32_t, 3> size, Box<float> box, float share, uint64_t seed) {
    radiance::DenseField dense = empty_field(size, box);
    fill_normal(dense.density, dense.density.size(), 3, seed);
    fill_normal(dense.features, dense.features.size(), 1, seed + 1);
    for (float& f : dense.features) f = half_to_float(float_to_half(f));
    const Rng rng(seed, 1);
    for (int64_t i = 0; i < dense.grid.nodes(); ++i)
        if (rng.uniform(static_cast<uint64_t>(i)) < share)
            dense.occupied[static_cast<size_t>(i >> 5)] |= 1u << (i & 31);
    random_network(dense.network, seed + 2);
    return dense;
}

/// Densities of a function of the place, all nodes occupied where they are above -20.
inline void set_density(radiance::DenseField& dense, const std::function<float(Vec3f)>& density_at) {
    const radiance::GridShape& grid = dense.grid;
    for (int x = 0; x < grid.size[0]; ++x)
        for (int y = 0; y < grid.size[1]; ++y)
            for (int z = 0; z < grid.size[2]; ++z) {
                const Vec3f at = {grid.box.low[0] + static_cast<float>(x) * grid.spacing(0),
                                  grid.box.low[1] + static_cast<float>(y) * grid.spacing(1),
                                  grid.box.low[2] + static_cast<float>(z) * grid.spacing(2)};
                const int64_t i = grid.index(x, y, z);
                dense.density[static_cast<size_t>(i)] = density_at(at);
                if (dense.density[static_cast<size_t>(i)] > -20)
                    dense.occupied[static_cast<size_t>(i >> 5)] |= 1u << (i & 31);
            }
}

/// A camera at `eye` that looks at `target`, z up (x where it looks along z); `focal` in pixels.
inline radiance::Camera camera_at(Vec3d eye, Vec3d target, int width, int height, float focal) {
    const Vec3d back = unit(eye - target);
    const Vec3d up = std::abs(back.z) < 0.99 ? Vec3d{0, 0, 1} : Vec3d{1, 0, 0};
    const Vec3d right = unit(cross(up, back)), above = cross(back, right);
    radiance::Camera camera;
    camera.width = width, camera.height = height;
    camera.fx = camera.fy = focal;
    camera.cx = 0.5f * static_cast<float>(width), camera.cy = 0.5f * static_cast<float>(height);
    for (int row = 0; row < 3; ++row) {
        const Vec3d columns[] = {right, above, back, eye};
        for (int column = 0; column < 4; ++column)
            camera.to_world[static_cast<size_t>(4 * row + column)] = static_cast<float>(columns[column][row]);
    }
    return camera;
}

/// Cameras about the middle at a distance, on a spiral from below to above; all see the middle.
inline std::vector<radiance::Camera> cameras_about(Vec3d middle, double distance, int count, int side) {
    std::vector<radiance::Camera> cameras;
    for (int i = 0; i < count; ++i) {
        const double z = -0.8 + 1.6 * (i + 0.5) / count, r = std::sqrt(1 - z * z), angle = 2.399963 * i;
        const Vec3d eye = middle + distance * Vec3d{r * std::cos(angle), r * std::sin(angle), z};
        cameras.push_back(camera_at(eye, middle, side, side, static_cast<float>(side)));
    }
    return cameras;
}

/// A ball of that radius about the middle of a box of 2 x 2 x 2, opaque inside, its surface a voxel thick; upper half
/// red, lower half blue (features without a network); seen by `views` cameras at a distance of 4.
inline radiance::DenseField ball_field(int nodes, float radius, int views, int side) {
    radiance::DenseField dense = empty_field({nodes, nodes, nodes}, {{-1, -1, -1}, {1, 1, 1}});
    const float voxel = dense.grid.voxel;
    set_density(dense, [&](Vec3f p) {
        const float inside = radius - std::sqrt(p.x * p.x + p.y * p.y + p.z * p.z);
        return inside < -3 * voxel ? radiance::kEmptyDensity : std::fmin(30.0f, 8 + 20 * inside / voxel);
    });
    for (int64_t i = 0; i < dense.grid.nodes(); ++i) {
        const bool is_upper = i % nodes >= nodes / 2;
        dense.features[static_cast<size_t>(i * radiance::kFeatures)] = is_upper ? 4.0f : -4.0f;
        dense.features[static_cast<size_t>(i * radiance::kFeatures + 1)] = -4.0f;
        dense.features[static_cast<size_t>(i * radiance::kFeatures + 2)] = is_upper ? -4.0f : 4.0f;
    }
    dense.cameras = cameras_about({0, 0, 0}, 4, views, side);
    dense.near = 1;
    return dense;
}

}  // namespace stipple::test
