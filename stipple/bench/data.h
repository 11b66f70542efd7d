#pragma once
// The clouds that benchmarks run on. Seeded; the same on every machine.

#include <algorithm>

#include "stipple/core/array.h"
#include "stipple/core/point_cloud.h"

namespace stipple::bench {

/// Points spread evenly by area over a closed wavy torus, a mesh of 224 x 224 x 2 triangles about 2.8 wide, in random
/// order: what a scan of a smooth object looks like, without the order of a scanner that would help the cache. [n, 3]
Array<float, 2> wavy_torus(int64_t n, uint64_t seed);

/// The mesh of wavy_torus: 50,176 vertices, 100,352 faces, closed, normals outwards.
Mesh wavy_torus_mesh();

/// Points of wavy_torus moved by N(0, 0.02): queries near a surface. [n, 3]
Array<float, 2> noisy_torus(int64_t n);

/// From a sphere of radius 3 to points in the torus's box, in random order.
struct RayArrays {
    Array<float, 2> origins, directions;  // [n, 3]
};
RayArrays random_rays(int64_t n);

/// Points spread evenly over the unit cube. [n, 3]
Array<float, 2> unit_cube(int64_t n, uint64_t seed);

/// Clouds of wavy_torus, each of its own seed. [clouds, n, 3]
Array<float, 3> wavy_tori(int64_t clouds, int64_t n, uint64_t seed);

/// Numbers in [0, 1). [n, c]
Array<float, 2> uniform_rows(int64_t n, int64_t c, uint64_t seed);

template <int Rank>
Array<float, Rank> uniform_array(std::array<int64_t, Rank> shape, uint64_t seed) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    Array<float, Rank> array(shape);
    const Array<float, 2> numbers = uniform_rows(count, 1, seed);
    std::copy(numbers.span().begin(), numbers.span().end(), array.data());
    return array;
}

/// Indices into clouds of n rows, k for each of m. [clouds m, k]
Array<int32_t, 2> uniform_neighbours(int64_t clouds, int64_t n, int64_t m, int64_t k, uint64_t seed);

}  // namespace stipple::bench
