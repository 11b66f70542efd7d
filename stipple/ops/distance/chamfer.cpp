#include "stipple/ops/chamfer.h"

#include <atomic>
#include <cmath>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/fixed_sum.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/distance/chamfer_term.h"
#include "stipple/ops/nearest_pairs.h"

namespace stipple::ops {
namespace cpu {
namespace {

constexpr int64_t kGrain = 16384;

/// A run of rows of one cloud: chunks that do not depend on the number of threads.
struct Run {
    int64_t cloud, begin, end;
};

std::vector<Run> runs_of(const Batch& batch) {
    std::vector<Run> runs;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        for (int64_t begin = batch.begin(cloud), end = batch.end(cloud); begin < end; begin += kGrain)
            runs.push_back({cloud, begin, std::min(begin + kGrain, end)});
    }
    return runs;
}

/// Calls body(run) in parallel, some thousand rows at a time however small the clouds are.
template <class Body>
void for_each_run(const std::vector<Run>& runs, int64_t rows, const Body& body) {
    const int64_t count = static_cast<int64_t>(runs.size());
    const int64_t grain = std::max<int64_t>(1, count * (kGrain / 4) / std::max<int64_t>(rows, 1));
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(runs[i], i);
    });
}

struct Partial {
    double sum = 0;
    int64_t used = 0;
};

/// Eight sums side by side: a fixed order that the compiler can vectorise.
template <class Value>
Partial partial_of(const int32_t* nearest, const float* distances_sq, int64_t n, const Value& value) {
    constexpr int kLanes = 8;
    double sums[kLanes] = {};
    int64_t used = 0;
    const auto add = [&](int64_t i, int lane) {
        const bool found = nearest[i] >= 0;
        sums[lane] += found ? static_cast<double>(value(distances_sq[i])) : 0.0;
        used += found;
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
    }
    for (int lane = 0; i < n; ++i, ++lane) add(i, lane);
    double sum = 0;
    for (double lane : sums) sum += lane;
    return {sum, used};
}

void chamfer_mean(const Batch& batch, DistanceNorm norm, const ChamferSide& side) {
    const std::vector<Run> runs = runs_of(batch);
    std::vector<Partial> partials(runs.size());
    for_each_run(runs, batch.rows(), [&](const Run& run, int64_t i) {
        const int32_t* nearest = side.nearest.data() + run.begin;
        const float* distances_sq = side.distances_sq.data() + run.begin;
        const int64_t n = run.end - run.begin;
        partials[i] = norm == DistanceNorm::squared
                          ? partial_of(nearest, distances_sq, n, [](float sq) { return sq; })
                          : partial_of(nearest, distances_sq, n, [](float sq) { return std::sqrt(sq); });
    });
    size_t next = 0;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        Partial all;
        for (; next < runs.size() && runs[next].cloud == cloud; ++next) {
            all.sum += partials[next].sum;
            all.used += partials[next].used;
        }
        side.mean.data()[cloud] = static_cast<float>(all.sum / static_cast<double>(all.used));  // 0 / 0 is NaN
        side.used.data()[cloud] = static_cast<int32_t>(all.used);
    }
}

/// Relaxed atomics where there are threads; their additions and maxima commute.
class Shared {
public:
    explicit Shared(bool threaded) : threaded_(threaded) {}
    void add(int64_t& to, int64_t value) const {
        if (threaded_)
            std::atomic_ref(to).fetch_add(value, std::memory_order_relaxed);
        else
            to += value;
    }
    void raise(uint32_t& to, uint32_t value) const {
        if (!threaded_) {
            to = std::max(to, value);
            return;
        }
        std::atomic_ref<uint32_t> shared(to);
        uint32_t seen = shared.load(std::memory_order_relaxed);
        while (seen < value && !shared.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
        }
    }

private:
    bool threaded_;
};

/// Calls visit(row, row of its nearest point, cloud) for every pair of a direction, in parallel.
template <class Visit>
void for_each_pair(const Batch& from, const Batch& to, const std::vector<Run>& runs, View<const int32_t, 1> nearest,
                   const Visit& visit) {
    for_each_run(runs, from.rows(), [&](const Run& run, int64_t) {
        const int64_t to_begin = to.begin(run.cloud), to_size = to.size(run.cloud);
        for (int64_t row = run.begin; row < run.end; ++row) {
            const int32_t j = nearest.data()[row];
            if (j >= 0 && j < to_size) visit(row, to_begin + j, run.cloud);
        }
    });
}

/// Writes every point's own term, and adds up what each point of the other cloud receives, where that is wanted.
void own_terms(const Clouds& from, const Clouds& to, const std::vector<Run>& runs, DistanceNorm norm,
               const ChamferSideGradient& side, float* terms, FixedSums* received) {
    const Shared shared(threads() > 1);
    for_each_run(runs, from.batch.rows(),
                 [&](const Run& run, int64_t) { std::fill(terms + 3 * run.begin, terms + 3 * run.end, 0.0f); });
    if (side.nearest.size(0) == 0) return;
    for_each_pair(from.batch, to.batch, runs, side.nearest, [&](int64_t row, int64_t to_row, int64_t cloud) {
        const float coefficient = chamfer_coefficient(side.dL_dmean.data()[cloud], side.used.data()[cloud], norm);
        chamfer_term(&from.rows(row, 0), &to.rows(to_row, 0), coefficient, norm, terms + 3 * row);
        if (received) shared.raise(received[to_row].largest, largest_of(terms + 3 * row));
    });
    if (!received) return;
    for_each_pair(from.batch, to.batch, runs, side.nearest, [&](int64_t row, int64_t to_row, int64_t cloud) {
        const FixedGrid grid(received[to_row].largest, from.batch.size(cloud));
        for (int axis = 0; axis < 3; ++axis) shared.add(received[to_row].sums[axis], grid.steps(terms[3 * row + axis]));
    });
}

/// Takes what the points of `own` received, in at most as many terms as the other cloud has points, off their terms.
void subtract_received(const std::vector<Run>& runs, const Batch& own, const Batch& other, const FixedSums* received,
                       float* gradient) {
    for_each_run(runs, own.rows(), [&](const Run& run, int64_t) {
        const int64_t terms = other.size(run.cloud);
        for (int64_t row = run.begin; row < run.end; ++row) {
            const FixedGrid grid(received[row].largest, terms);
            for (int axis = 0; axis < 3; ++axis) {
                float& value = gradient[3 * row + axis];
                value = static_cast<float>(value - grid.value(received[row].sums[axis]));
            }
        }
    });
}

void chamfer_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, const ChamferSideGradient& a_to_b,
                      const ChamferSideGradient& b_to_a, View<float, 2> dL_da, View<float, 2> dL_db) {
    const std::vector<Run> runs_a = runs_of(a.batch), runs_b = runs_of(b.batch);
    const bool a_is_wanted = dL_da.elements() > 0, b_is_wanted = dL_db.elements() > 0;
    std::vector<FixedSums> to_a(a_is_wanted && b_to_a.nearest.size(0) > 0 ? a.batch.rows() : 0);
    std::vector<FixedSums> to_b(b_is_wanted && a_to_b.nearest.size(0) > 0 ? b.batch.rows() : 0);
    // A gradient that is not wanted has terms all the same when the other cloud receives them.
    std::vector<float> unwanted_a(!a_is_wanted && !to_b.empty() ? 3 * a.batch.rows() : 0);
    std::vector<float> unwanted_b(!b_is_wanted && !to_a.empty() ? 3 * b.batch.rows() : 0);
    float* terms_a = a_is_wanted ? dL_da.data() : unwanted_a.data();
    float* terms_b = b_is_wanted ? dL_db.data() : unwanted_b.data();
    if (terms_a) own_terms(a, b, runs_a, norm, a_to_b, terms_a, to_b.empty() ? nullptr : to_b.data());
    if (terms_b) own_terms(b, a, runs_b, norm, b_to_a, terms_b, to_a.empty() ? nullptr : to_a.data());
    if (!to_a.empty()) subtract_received(runs_a, a.batch, b.batch, to_a.data(), terms_a);
    if (!to_b.empty()) subtract_received(runs_b, b.batch, a.batch, to_b.data(), terms_b);
}

}  // namespace
}  // namespace cpu

namespace {

bool is_empty(const ChamferSide& side) {
    return side.nearest.data() == nullptr && side.nearest.size(0) == 0 && side.mean.size(0) == 0;
}

bool is_empty(const ChamferSideGradient& side) {
    return side.nearest.data() == nullptr && side.nearest.size(0) == 0 && side.dL_dmean.size(0) == 0;
}

void require_side(const char* name, const Clouds& from, const ChamferSide& side) {
    const int64_t n = from.batch.rows(), clouds = from.batch.clouds();
    require_output("chamfer", fmt::format("{}.nearest", name).c_str(), side.nearest, {n}, from.device());
    require_output("chamfer", fmt::format("{}.distances_sq", name).c_str(), side.distances_sq, {n}, from.device());
    require_output("chamfer", fmt::format("{}.mean", name).c_str(), side.mean, {clouds}, from.device());
    require_output("chamfer", fmt::format("{}.used", name).c_str(), side.used, {clouds}, from.device());
}

void require_side(const char* name, const Clouds& from, const ChamferSideGradient& side) {
    const char* op = "chamfer_backward";
    const int64_t n = from.batch.rows(), clouds = from.batch.clouds();
    require_output(op, fmt::format("{}.nearest", name).c_str(), side.nearest, {n}, from.device());
    require_output(op, fmt::format("{}.dL_dmean", name).c_str(), side.dL_dmean, {clouds}, from.device());
    require_output(op, fmt::format("{}.used", name).c_str(), side.used, {clouds}, from.device());
}

bool is_left_out(const View<float, 2>& gradient) {
    return gradient.data() == nullptr && gradient.elements() == 0;
}

}  // namespace

void chamfer(const Clouds& a, const Clouds& b, DistanceNorm norm, const ChamferSide& a_to_b, const ChamferSide& b_to_a,
             [[maybe_unused]] Stream stream) {
    require_pair("chamfer", a, b);
    if (!is_empty(a_to_b)) require_side("a_to_b", a, a_to_b);
    if (!is_empty(b_to_a)) require_side("b_to_a", b, b_to_a);
    nearest_pairs(a, b, a_to_b.nearest, a_to_b.distances_sq, b_to_a.nearest, b_to_a.distances_sq, stream);
    if (a.batch.clouds() == 0) return;
    switch (a.device().type) {
        case DeviceType::cpu:
            if (!is_empty(a_to_b)) cpu::chamfer_mean(a.batch, norm, a_to_b);
            if (!is_empty(b_to_a)) cpu::chamfer_mean(b.batch, norm, b_to_a);
            return;
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::chamfer_means, a.batch, b.batch, norm, a_to_b, b_to_a, a.device(), stream);
            return;
    }
}

void chamfer_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, const ChamferSideGradient& a_to_b,
                      const ChamferSideGradient& b_to_a, View<float, 2> dL_da, View<float, 2> dL_db,
                      [[maybe_unused]] Stream stream) {
    const char* op = "chamfer_backward";
    require_pair(op, a, b);
    if (!is_empty(a_to_b)) require_side("a_to_b", a, a_to_b);
    if (!is_empty(b_to_a)) require_side("b_to_a", b, b_to_a);
    if (!is_left_out(dL_da)) require_output(op, "dL_da", dL_da, {a.batch.rows(), 3}, a.device());
    if (!is_left_out(dL_db)) require_output(op, "dL_db", dL_db, {b.batch.rows(), 3}, a.device());
    switch (a.device().type) {
        case DeviceType::cpu: return cpu::chamfer_backward(a, b, norm, a_to_b, b_to_a, dL_da, dL_db);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::chamfer_backward, a, b, norm, a_to_b, b_to_a, dL_da, dL_db, stream);
            return;
    }
}

}  // namespace stipple::ops
