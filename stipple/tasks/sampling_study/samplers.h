#pragma once
// The methods of the study on many clouds of one size: which points each takes, and what SampleNet and S-NET hand to
// the task before their points are replaced by points of the cloud.

#include <memory>

#include "stipple/core/array.h"
#include "stipple/tasks/network_sample.h"
#include "stipple/tasks/sampling_study/names.h"

namespace stipple::tasks::study {

/// Clouds of n points each, one after the other, on the CPU.
struct EqualClouds {
    View<const float, 2> rows;  // [clouds * n, 3]
    int64_t n = 0;

    int64_t size() const { return n == 0 ? 0 : rows.size(0) / n; }
    /// The clouds [begin, end).
    View<const float, 2> part(int64_t begin, int64_t end) const { return rows.slice(begin * n, end * n); }
};

/// The points at positions [clouds, at least m], the first m of each row: [clouds * m, 3].
Array<float, 2> points_at(const EqualClouds& clouds, const Array<int32_t, 2>& chosen, int64_t m);

/// A method that takes points of a cloud.
class StudySampler {
public:
    /// `weights`: of methods that have some, by path; of `critical` a classifier. Throws Error{bad_file} for weights
    /// of another method or, unless `size` is 0, of another size; and as NetworkSampler.
    StudySampler(SamplingMethod method, const std::string& weights, int64_t size, const RunnerOptions& options);

    SamplingMethod method() const { return method_; }
    /// Positions [clouds, m], each once, on the CPU; where has_prefixes(method), beginnings of rows are the choices of
    /// fewer. The same for any number of threads and any batches. `seed`: of random. Throws
    /// Error{bad_argument} for m above n; of a cloud with fewer than m distinct points copies follow. Can be
    /// interrupted.
    Array<int32_t, 2> choose(const EqualClouds& clouds, int64_t m, uint64_t seed);

private:
    SamplingMethod method_;
    Device device_;
    int64_t batch_ = 32;
    std::unique_ptr<NetworkSampler> network_;
};

/// A point for each cell of the finest grid, of those whose edges are the box's longest side / 2^(i / 8), that has at
/// most m occupied cells: that nearest to the middle of its cell. In the order of the cells. cloud [n, 3] of finite
/// points on the CPU.
std::vector<int32_t> voxel_choice(View<const float, 2> cloud, int64_t m);

/// How a projection differs from the trained one.
struct SoftChange {
    int64_t neighbours = 0;  // 0: as trained
    double scale = 1;        // of the root of sigma; 0: the nearest point
};

/// What SampleNet's network hands to the task while it is trained: its proposals, softly projected; S-NET: the
/// proposals themselves.
class SoftSampler {
public:
    /// Throws Error{bad_file} for weights of another network.
    SoftSampler(const std::string& weights, const RunnerOptions& options);

    int64_t count() const { return count_; }
    int64_t neighbours() const { return neighbours_; }  // 0: S-NET
    double sigma() const { return sigma_; }             // max(t^2, floor)
    /// [clouds * m, 3] on the CPU; m below count() are the first of each. Can be interrupted. Throws
    /// Error{bad_argument} for m above count() and more neighbours than points.
    Array<float, 2> project(const EqualClouds& clouds, int64_t m, const SoftChange& change = {});

private:
    NetworkRunner runner_;
    int64_t count_ = 0, neighbours_ = 0;
    double sigma_ = 0;
};

}  // namespace stipple::tasks::study
