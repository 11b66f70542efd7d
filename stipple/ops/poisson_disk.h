#pragma once

#include "stipple/ops/clouds.h"

namespace stipple::ops {

struct PoissonDiskOptions {
    float radius = 0;          // r_max of the paper; 0 takes poisson_disk_radius of each cloud
    bool progressive = false;  // false: ascending indices. true: any prefix of the result is well spread too
};

/// Weighted sample elimination [Yuksel 2015]: of each cloud the m points that are left when again and again the point
/// with the largest sum of weights (1 - d / (2 r_max))^8 over the points nearer than 2 r_max is taken away.
///
/// points   [n, 3], any batch, CPU or CUDA
/// samples  how many of each cloud (m), e.g. Batch::dense(clouds, m): exactly so many, duplicates or not
/// indices  [samples.rows()] int32, positions in the cloud
///
/// Weights are whole multiples of 2^-30 and sums are exact: the result does not depend on order, threads or device.
/// Among equal sums the lowest index goes first. Non-finite points are never chosen. Throws Error{bad_argument} when a
/// cloud has fewer than m finite points.
///
/// Progressive order halves the set by further eliminations, each with its own radius. The set is the same.
///
/// O(n p) time and O(n) memory, p = points within 2 r_max, about 3.6 n / m: thin out by random_sample first when n is
/// more than about ten times m. Points that coincide cost their square. On CUDA it waits for the stream, uses a few
/// kernels for each cloud, and goes to the CPU where points lie so dense that they would be removed one by one.
void poisson_disk(const Clouds& points, const Batch& samples, View<int32_t, 1> indices,
                  const PoissonDiskOptions& options = {}, Stream stream = {});

/// What a point of a part of a cloud is to its elimination.
enum class SampleRole : uint8_t {
    candidate,  // may stay
    border,     // belongs to a neighbouring part: goes as candidates do, but does not count
    fixed,      // has been chosen before: stays
};

/// Elimination in one part of a larger cloud, so that parts that are done one after the other fit together: all points
/// weigh on each other, and points go until m candidates are left.
///
/// points   [n, 3] on the CPU
/// roles    [n] SampleRole as numbers
/// factors  [n] 1 to 255, or empty: a point's sum of weights counts so many times. A doubtful point goes before a sure
///          one beside it; one that stands alone stays whatever its factor
/// radius   r_max, above 0
/// indices  [m], the candidates that stay, ascending
///
/// Sums are exact and ties go to the lowest index, as above. Throws Error{bad_argument} when fewer than m candidates
/// are finite. O(n p) time.
void poisson_disk_of_part(View<const float, 2> points, View<const uint8_t, 1> roles, View<const uint8_t, 1> factors,
                          float radius, View<int32_t, 1> indices);

/// The radius r_max for m samples of one cloud [n, 3]: that at which a ball of radius 2 r_max holds 2 pi / sqrt(3) =
/// 3.6 of m evenly spread samples, as a disc does where they are packed densest on a plane.
///
/// How many points c_i lie within a radius of point i says how many samples to expect there, so the radius solves
/// sum of 1 / c_i = m / 3.6 over the cloud (estimated from 2048 points). On surfaces this is sqrt(A / (2 sqrt(3) m)) of
/// the paper with A estimated by local density; it also fits curves and solids, takes no notice of duplicates, and a
/// stray point counts for no more than its own disc. 0 when all finite points coincide.
float poisson_disk_radius(View<const float, 2> points, int64_t m, Stream stream = {});

/// The paper's radius for m samples of a surface of known area.
float poisson_disk_radius_of_area(double area, int64_t m);

}  // namespace stipple::ops
