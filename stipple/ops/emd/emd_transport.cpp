#include "stipple/ops/emd_transport.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/emd/min_cost_flow.h"
#include "stipple/ops/gather.h"

namespace stipple::ops {
namespace {

constexpr int64_t kMostCopies = int64_t{1} << 20;  // of the points of a cloud: emd's own limit

/// The rows of a cloud, one after another, each as often as makes `copies` of them.
Array<int32_t, 1> copy_indices(const Batch& points, const Batch& copies) {
    Array<int32_t, 1> indices({copies.rows()});
    for (int64_t cloud = 0; cloud < copies.clouds(); ++cloud) {
        if (copies.size(cloud) == 0) continue;
        const int64_t times = copies.size(cloud) / points.size(cloud);
        int32_t* to = indices.data() + copies.begin(cloud);
        for (int64_t k = 0; k < copies.size(cloud); ++k) to[k] = static_cast<int32_t>(k / times);
    }
    return indices;
}

Array<float, 2> copies_of(const Clouds& points, const Batch& copies, Stream stream) {
    const Array<int32_t, 1> indices = copy_indices(points.batch, copies).to(points.device());
    Array<float, 2> rows({copies.rows(), 3}, points.device());
    gather(points, Neighbours(indices.view(), copies), rows.view(), stream);
    return rows;
}

/// Rows on the CPU: the points themselves, or a copy that `memory` keeps.
Clouds on_host(const char* op, const Clouds& points, Array<float, 2>& memory) {
    if (points.device().type == DeviceType::cpu) return points;
    STIPPLE_REQUIRE(points.rows.is_contiguous(), "{}: points on {} must be contiguous", op, points.device());
    memory = Array<float, 2>({points.batch.rows(), 3});
    copy_bytes(memory.data(), Device{}, points.rows.data(), points.device(),
               memory.elements() * static_cast<int64_t>(sizeof(float)));
    return Clouds(memory.view(), points.batch);
}

template <class View>
bool wants(const View& view) {
    return view.data() != nullptr || view.elements() != 0;
}

}  // namespace

EmdPlan emd_transport(const Clouds& a, const Clouds& b, DistanceNorm norm, View<double, 1> dual_a,
                      View<double, 1> dual_b) {
    const char* op = "emd_transport";
    require_pair(op, a, b);
    STIPPLE_REQUIRE(a.device().type == DeviceType::cpu, "{}: points on {}; it runs on the CPU", op, a.device());
    const int64_t largest = std::max(a.batch.largest(), b.batch.largest());
    STIPPLE_REQUIRE(largest <= kEmdExactMost, "{}: a cloud of {} points; the most is {}", op, largest, kEmdExactMost);
    if (wants(dual_a)) require_output(op, "dual_a", dual_a, {a.batch.rows()}, a.device());
    if (wants(dual_b)) require_output(op, "dual_b", dual_b, {b.batch.rows()}, a.device());

    const int64_t clouds = a.batch.clouds();
    std::vector<flow::Solution> solutions(clouds);
    parallel_for(clouds, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
            const int64_t n = a.batch.size(i), m = b.batch.size(i);
            if (n > 0 && m > 0 && flow::all_finite(a.cloud(i)) && flow::all_finite(b.cloud(i))) {
                const int64_t divisor = std::gcd(n, m);
                solutions[i] =
                    flow::solve({a.cloud(i), b.cloud(i), m / divisor, n / divisor, norm == DistanceNorm::squared});
            } else {
                solutions[i].cost = kNan;
                solutions[i].dual_a.assign(n, kNan);
                solutions[i].dual_b.assign(m, kNan);
            }
        }
    });

    EmdPlan plan;
    plan.offsets.push_back(0);
    for (int64_t i = 0; i < clouds; ++i) {
        const flow::Solution& solution = solutions[i];
        const int64_t n = a.batch.size(i), m = b.batch.size(i);
        const double units = n > 0 && m > 0 ? static_cast<double>(std::lcm(n, m)) : 1.0;
        for (const flow::Arc& arc : solution.arcs)
            plan.flows.push_back({arc.from, arc.to, static_cast<double>(arc.units) / units});
        plan.offsets.push_back(static_cast<int64_t>(plan.flows.size()));
        plan.cost.push_back(solution.cost);
        plan.lower_bound.push_back(solution.cost);
        if (wants(dual_a)) std::copy(solution.dual_a.begin(), solution.dual_a.end(), dual_a.data() + a.batch.begin(i));
        if (wants(dual_b)) std::copy(solution.dual_b.begin(), solution.dual_b.end(), dual_b.data() + b.batch.begin(i));
    }
    return plan;
}

EmdPlan emd_transport_auction(const Clouds& a, const Clouds& b, const EmdOptions& options, Stream stream) {
    const char* op = "emd_transport_auction";
    require_pair(op, a, b);
    const int64_t clouds = a.batch.clouds();
    std::vector<int64_t> offsets = {0};
    for (int64_t i = 0; i < clouds; ++i) {
        const int64_t n = a.batch.size(i), m = b.batch.size(i);
        // The sizes are below 2^31, so the multiple does not overflow.
        const int64_t copies = n > 0 && m > 0 ? n / std::gcd(n, m) * m : 0;
        STIPPLE_REQUIRE(copies <= kMostCopies, "{}: {} and {} points have {} in common; the most is {}", op, n, m,
                        copies, kMostCopies);
        offsets.push_back(offsets.back() + copies);
    }
    const Batch copies = Batch::ragged(std::move(offsets));
    const Array<float, 2> from = copies_of(a, copies, stream), to = copies_of(b, copies, stream);
    Array<float, 1> cost({clouds}, a.device()), bound({clouds}, a.device());
    Array<int32_t, 1> matching({copies.rows()}, a.device());
    emd(Clouds(from.view(), copies), Clouds(to.view(), copies), {cost.view(), bound.view(), matching.view()}, options,
        stream);

    const Array<float, 1> cost_there = cost.to(Device{}), bound_there = bound.to(Device{});
    const Array<int32_t, 1> matched = matching.to(Device{});
    EmdPlan plan;
    plan.offsets.push_back(0);
    std::vector<int32_t> partners;
    for (int64_t i = 0; i < clouds; ++i) {
        plan.cost.push_back(cost_there.data()[i]);
        plan.lower_bound.push_back(bound_there.data()[i]);
        const int64_t n = a.batch.size(i), m = b.batch.size(i), all = copies.size(i);
        const int32_t* partner = matched.data() + copies.begin(i);
        for (int64_t point = 0; all > 0 && partner[0] >= 0 && point < n; ++point) {
            partners.assign(partner + point * (all / n), partner + (point + 1) * (all / n));
            for (int32_t& j : partners) j = static_cast<int32_t>(j / (all / m));
            std::sort(partners.begin(), partners.end());
            for (size_t k = 0; k < partners.size(); ++k) {
                if (k == 0 || partners[k] != partners[k - 1])
                    plan.flows.push_back({static_cast<int32_t>(point), partners[k], 0.0});
                plan.flows.back().mass += 1.0;
            }
        }
        for (size_t k = static_cast<size_t>(plan.offsets.back()); k < plan.flows.size(); ++k)
            plan.flows[k].mass /= static_cast<double>(all);
        plan.offsets.push_back(static_cast<int64_t>(plan.flows.size()));
    }
    return plan;
}

void emd_transport_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, const EmdPlan& plan,
                            View<const float, 1> dL_dcost, View<float, 2> dL_da, View<float, 2> dL_db) {
    const char* op = "emd_transport_backward";
    require_pair(op, a, b);
    const int64_t clouds = a.batch.clouds();
    require_output(op, "dL_dcost", dL_dcost, {clouds}, a.device());
    if (wants(dL_da)) require_output(op, "dL_da", dL_da, {a.batch.rows(), 3}, a.device());
    if (wants(dL_db)) require_output(op, "dL_db", dL_db, {b.batch.rows(), 3}, a.device());
    STIPPLE_REQUIRE(static_cast<int64_t>(plan.offsets.size()) == clouds + 1 &&
                        plan.offsets.back() == static_cast<int64_t>(plan.flows.size()),
                    "{}: a plan of {} clouds for {}", op, static_cast<int64_t>(plan.offsets.size()) - 1, clouds);
    for (int64_t i = 0; i < clouds; ++i)
        for (int64_t k = plan.offsets[i]; k < plan.offsets[i + 1]; ++k)
            STIPPLE_REQUIRE(plan.flows[k].from >= 0 && plan.flows[k].from < a.batch.size(i) && plan.flows[k].to >= 0 &&
                                plan.flows[k].to < b.batch.size(i),
                            "{}: flow {} from {} to {} in cloud {}", op, k, plan.flows[k].from, plan.flows[k].to, i);

    Array<float, 2> memory_a, memory_b;
    const Clouds here_a = on_host(op, a, memory_a), here_b = on_host(op, b, memory_b);
    Array<float, 1> weights({clouds});
    copy_bytes(weights.data(), Device{}, dL_dcost.data(), a.device(), clouds * static_cast<int64_t>(sizeof(float)));
    Array<float, 2> gradient_a({wants(dL_da) ? a.batch.rows() : 0, 3}),
        gradient_b({wants(dL_db) ? b.batch.rows() : 0, 3});
    parallel_for(clouds, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const View<const float, 2> from = here_a.cloud(i), to = here_b.cloud(i);
            std::vector<double> sum_a(3 * from.size(0), 0.0), sum_b(3 * to.size(0), 0.0);
            for (int64_t k = plan.offsets[i]; k < plan.offsets[i + 1]; ++k) {
                const EmdFlow& flow = plan.flows[k];
                double difference[3], sq = 0.0;
                for (int axis = 0; axis < 3; ++axis) {
                    difference[axis] = static_cast<double>(from(flow.from, axis)) - to(flow.to, axis);
                    sq += difference[axis] * difference[axis];
                }
                const double weight = flow.mass * weights.data()[i];
                const double factor =
                    norm == DistanceNorm::squared ? 2.0 * weight : (sq > 0.0 ? weight / std::sqrt(sq) : 0.0);
                for (int axis = 0; axis < 3; ++axis) {
                    sum_a[3 * flow.from + axis] += factor * difference[axis];
                    sum_b[3 * flow.to + axis] -= factor * difference[axis];
                }
            }
            const auto store = [](const std::vector<double>& sum, Array<float, 2>& gradient, int64_t first) {
                if (gradient.elements() == 0) return;
                for (size_t k = 0; k < sum.size(); ++k) gradient.data()[3 * first + k] = static_cast<float>(sum[k]);
            };
            store(sum_a, gradient_a, a.batch.begin(i));
            store(sum_b, gradient_b, b.batch.begin(i));
        }
    });
    const auto send = [&](const Array<float, 2>& gradient, View<float, 2> out) {
        copy_bytes(out.data(), a.device(), gradient.data(), Device{},
                   gradient.elements() * static_cast<int64_t>(sizeof(float)));
    };
    send(gradient_a, dL_da);
    send(gradient_b, dL_db);
}

}  // namespace stipple::ops
