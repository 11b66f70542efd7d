#pragma once
// Rays of cameras and where they meet a grid, on CPU and CUDA. Positions decide indices, so nothing here is contracted.

#include <cmath>

#include "stipple/core/vec3.h"
#include "stipple/radiance/field.h"

namespace stipple::radiance {

/// A Camera in plain arrays.
struct CameraView {
    float fx = 1, fy = 1, cx = 0, cy = 0;
    float to_world[12] = {};
    int32_t width = 0, height = 0;
};

inline CameraView view_of(const Camera& camera) {
    CameraView view;
    view.fx = camera.fx, view.fy = camera.fy, view.cx = camera.cx, view.cy = camera.cy;
    for (size_t i = 0; i < 12; ++i) view.to_world[i] = camera.to_world[i];
    view.width = camera.width, view.height = camera.height;
    return view;
}

struct Ray {
    Vec3f origin, direction;  // not of unit length: depth 1 along the camera's axis
};

/// Of pixel (x, y), through its centre.
STIPPLE_HD Ray camera_ray(const CameraView& camera, int x, int y) {
    const float u = ((static_cast<float>(x) + 0.5f) - camera.cx) / camera.fx;
    const float v = -((static_cast<float>(y) + 0.5f) - camera.cy) / camera.fy;
    const float* m = camera.to_world;
    const auto row = [&](int r) {
        return add_rounded(add_rounded(multiply_rounded(m[4 * r], u), multiply_rounded(m[4 * r + 1], v)),
                           -m[4 * r + 2]);
    };
    return {{m[3], m[7], m[11]}, {row(0), row(1), row(2)}};
}

/// A GridShape in plain numbers, with what positions are multiplied by.
struct GridView {
    int32_t size[3] = {};
    Vec3f low, high, per_unit;  // per_unit: nodes along a unit of length
    int64_t nodes() const { return int64_t{size[0]} * size[1] * size[2]; }
};

inline GridView view_of(const GridShape& shape) {
    GridView view;
    for (int axis = 0; axis < 3; ++axis) {
        view.size[axis] = shape.size[static_cast<size_t>(axis)];
        view.low[axis] = shape.box.low[axis];
        view.high[axis] = shape.box.high[axis];
        view.per_unit[axis] = static_cast<float>(view.size[axis] - 1) / shape.box.extent(axis);
    }
    return view;
}

/// The samples of a ray in a box: sample i at first + i * advance, i in [0, samples). None: samples is 0.
struct March {
    Vec3f first, advance;
    int32_t samples = 0;
    float first_depth = 0, depth_step = 0;  // along the camera's axis

    STIPPLE_HD Vec3f at(int32_t i) const {
        const float s = static_cast<float>(i);
        return {add_rounded(first.x, multiply_rounded(s, advance.x)),
                add_rounded(first.y, multiply_rounded(s, advance.y)),
                add_rounded(first.z, multiply_rounded(s, advance.z))};
    }
};

/// `step` in units of length; the first sample is where the ray enters the box, or at depth `near` if that is later,
/// moved on by `offset` of a step.
STIPPLE_HD March march_through(const Ray& ray, Vec3f low, Vec3f high, float near, float step, float offset = 0) {
    float enter = near, leave = 1e9f;
    for (int axis = 0; axis < 3; ++axis) {
        const float d = ray.direction[axis] == 0 ? 1e-6f : ray.direction[axis];
        const float a = (low[axis] - ray.origin[axis]) / d, b = (high[axis] - ray.origin[axis]) / d;
        enter = fmaxf(enter, fminf(a, b));
        leave = fminf(leave, fmaxf(a, b));
    }
    March march;
    if (!(leave > enter)) return march;
    const Vec3f d = ray.direction;
    const float norm = sqrtf(
        add_rounded(add_rounded(multiply_rounded(d.x, d.x), multiply_rounded(d.y, d.y)), multiply_rounded(d.z, d.z)));
    const float per_step = step / norm;
    march.samples = static_cast<int32_t>(fminf(ceilf((leave - enter) / per_step), 65535.0f));
    if (march.samples < 1) march.samples = 1;
    march.first_depth = add_rounded(enter, multiply_rounded(offset, per_step));
    march.depth_step = per_step;
    for (int axis = 0; axis < 3; ++axis) {
        march.first[axis] = add_rounded(ray.origin[axis], multiply_rounded(march.first_depth, d[axis]));
        march.advance[axis] = multiply_rounded(per_step, d[axis]);
    }
    return march;
}

STIPPLE_HD bool is_inside(const GridView& grid, Vec3f p) {
    return p.x >= grid.low.x && p.y >= grid.low.y && p.z >= grid.low.z && p.x <= grid.high.x && p.y <= grid.high.y &&
           p.z <= grid.high.z;
}

/// Of a position inside the grid.
STIPPLE_HD Vec3f to_nodes(const GridView& grid, Vec3f p) {
    return {multiply_rounded(add_rounded(p.x, -grid.low.x), grid.per_unit.x),
            multiply_rounded(add_rounded(p.y, -grid.low.y), grid.per_unit.y),
            multiply_rounded(add_rounded(p.z, -grid.low.z), grid.per_unit.z)};
}

STIPPLE_HD int32_t clamp_node(int32_t i, int32_t last) {
    return i < 0 ? 0 : i > last ? last : i;
}

STIPPLE_HD int64_t nearest_node(const GridView& grid, Vec3f node) {
    const int32_t x = clamp_node(static_cast<int32_t>(node.x + 0.5f), grid.size[0] - 1);
    const int32_t y = clamp_node(static_cast<int32_t>(node.y + 0.5f), grid.size[1] - 1);
    const int32_t z = clamp_node(static_cast<int32_t>(node.z + 0.5f), grid.size[2] - 1);
    return (int64_t{x} * grid.size[1] + y) * grid.size[2] + z;
}

/// The eight nodes about a position and their weights: corner c is x + (c >> 2), y + (c >> 1 & 1), z + (c & 1).
struct Cell {
    int64_t base = 0;  // of corner 0
    int64_t stride_x = 0;
    int32_t stride_y = 0;
    float fx = 0, fy = 0, fz = 0;

    STIPPLE_HD int64_t node(int corner) const {
        return base + (corner >> 2) * stride_x + (corner >> 1 & 1) * stride_y + (corner & 1);
    }
    STIPPLE_HD float weight(int corner) const {
        return (corner >> 2 ? fx : 1 - fx) * (corner >> 1 & 1 ? fy : 1 - fy) * (corner & 1 ? fz : 1 - fz);
    }
};

STIPPLE_HD Cell cell_of(const GridView& grid, Vec3f node) {
    const int32_t x = clamp_node(static_cast<int32_t>(node.x), grid.size[0] - 2);
    const int32_t y = clamp_node(static_cast<int32_t>(node.y), grid.size[1] - 2);
    const int32_t z = clamp_node(static_cast<int32_t>(node.z), grid.size[2] - 2);
    Cell cell;
    cell.stride_y = grid.size[2];
    cell.stride_x = int64_t{grid.size[1]} * grid.size[2];
    cell.base = x * cell.stride_x + int64_t{y} * cell.stride_y + z;
    cell.fx = node.x - static_cast<float>(x);
    cell.fy = node.y - static_cast<float>(y);
    cell.fz = node.z - static_cast<float>(z);
    return cell;
}

STIPPLE_HD bool bit_of(const uint32_t* bits, int64_t index) {
    return bits[index >> 5] >> (index & 31) & 1;
}

}  // namespace stipple::radiance
