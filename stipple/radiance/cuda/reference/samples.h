#pragma once
// The step-by-step reference of a training step: rays and their samples. Everything in this folder but the executor is
// plain code for one element, `body(i)`, which an executor runs for all elements side by side: a kernel on CUDA, a loop
// in tests. Grids are dense and planar, as in the published training [Sun et al. 2022].

#include "stipple/radiance/march/ray.h"
#include "stipple/radiance/train/draw.h"

namespace stipple::radiance::reference {

/// Nodes of a dense grid and which of them are occupied [nodes].
struct DenseGrid {
    GridView view;
    const uint8_t* occupied = nullptr;
};

STIPPLE_HD bool is_occupied(const DenseGrid& grid, Vec3f node) {
    return grid.occupied[nearest_node(grid.view, node)] != 0;
}

/// Of the rays of a step.
struct Rays {
    March* march = nullptr;
    int32_t* samples = nullptr;                      // of march, as a row to be summed
    Vec3f* direction = nullptr;                      // of unit length
    float *colour = nullptr, *background = nullptr;  // [rays, 3]
};

/// A list of samples, ray after ray, front to back.
struct SampleList {
    int32_t* ray = nullptr;
    Vec3f* position = nullptr;
};

struct DrawRays {
    Photos photos;
    PixelPool pool;
    DrawRules rules;
    GridView grid;
    float near, step;
    int64_t number;  // of the step
    int32_t count;
    Rays to;

    STIPPLE_HD void operator()(int64_t r) const {
        const DrawnRay drawn = draw_ray(photos, pool, rules, number, count, static_cast<int32_t>(r));
        const Vec3f d = drawn.ray.direction;
        to.march[r] = march_through(drawn.ray, grid.low, grid.high, near, step, drawn.offset);
        to.samples[r] = to.march[r].samples;
        to.direction[r] = d * (1 / sqrtf(dot(d, d)));
        for (int k = 0; k < 3; ++k) {
            to.colour[3 * r + k] = drawn.colour[k];
            to.background[3 * r + k] = drawn.background[k];
        }
    }
};

/// The ray of each sample, by the number of samples before each ray.
struct FindRay {
    const int32_t* first;  // [rays]
    int32_t rays;
    int32_t* ray;

    STIPPLE_HD void operator()(int64_t i) const {
        int32_t low = 0, high = rays - 1;  // the last ray that begins at or before i: those without samples begin later
        while (low < high) {
            const int32_t middle = (low + high + 1) / 2;
            if (first[middle] <= i) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        ray[i] = low;
    }
};

struct FindPosition {
    const March* march;
    const int32_t* first;
    SampleList samples;

    STIPPLE_HD void operator()(int64_t i) const {
        const int32_t r = samples.ray[i];
        samples.position[i] = march[r].at(static_cast<int32_t>(i - first[r]));
    }
};

struct IsInBox {
    GridView grid;
    const Vec3f* position;
    uint8_t* flag;

    STIPPLE_HD void operator()(int64_t i) const { flag[i] = is_inside(grid, position[i]); }
};

struct IsInMask {
    DenseGrid grid;
    const Vec3f* position;
    uint8_t* flag;

    STIPPLE_HD void operator()(int64_t i) const { flag[i] = is_occupied(grid, to_nodes(grid.view, position[i])); }
};

struct IsAbove {
    const float* value;
    float threshold;
    uint8_t* flag;

    STIPPLE_HD void operator()(int64_t i) const { flag[i] = value[i] > threshold; }
};

/// Samples `place` [n] of a list, one after the other.
struct TakeSamples {
    const int32_t* place;
    SampleList from, to;

    STIPPLE_HD void operator()(int64_t i) const {
        to.ray[i] = from.ray[place[i]];
        to.position[i] = from.position[place[i]];
    }
};

struct TakeNumbers {
    const int32_t* place;
    const float* from;
    float* to;

    STIPPLE_HD void operator()(int64_t i) const { to[i] = from[place[i]]; }
};

/// The way back of TakeNumbers; what no place names is cleared before.
struct PutNumbers {
    const int32_t* place;
    const float* from;
    float* to;

    STIPPLE_HD void operator()(int64_t i) const { to[place[i]] = from[i]; }
};

/// Where the samples of each ray begin and end in a list of n; cleared before, for rays that have none.
struct FindEnds {
    const int32_t* ray;
    int64_t n;
    int32_t *begin, *end;

    STIPPLE_HD void operator()(int64_t i) const {
        if (i == 0 || ray[i - 1] != ray[i]) begin[ray[i]] = static_cast<int32_t>(i);
        if (i + 1 == n || ray[i + 1] != ray[i]) end[ray[i]] = static_cast<int32_t>(i + 1);
    }
};

}  // namespace stipple::radiance::reference
