#include "stipple/ops/emd_transport.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stipple/core/parallel.h"
#include "stipple/ops/emd_flow.h"
#include "stipple/ops/require.h"

namespace stipple::ops {
namespace {

void require_pair(const char* op, const Clouds& a, const Clouds& b) {
    require_clouds(op, "a", a);
    require_clouds(op, "b", b);
    require_same_batch(op, a.batch, b.batch);
    require_device(op, "b", a.device(), b.device());
    STIPPLE_REQUIRE(a.device().type == DeviceType::cpu, "{}: points on {}; it runs on the CPU", op, a.device());
    const int64_t largest = std::max(a.batch.largest(), b.batch.largest());
    STIPPLE_REQUIRE(largest <= kEmdExactMost, "{}: a cloud of {} points; the most is {}", op, largest, kEmdExactMost);
}

template <class View>
bool wants(const View& view) {
    return view.data() != nullptr || view.elements() != 0;
}

}  // namespace

EmdPlan emd_transport(const Clouds& a, const Clouds& b, bool squared, View<double, 1> dual_a, View<double, 1> dual_b) {
    const char* op = "emd_transport";
    require_pair(op, a, b);
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
                solutions[i] = flow::solve({a.cloud(i), b.cloud(i), m / divisor, n / divisor, squared});
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
        if (wants(dual_a)) std::copy(solution.dual_a.begin(), solution.dual_a.end(), dual_a.data() + a.batch.begin(i));
        if (wants(dual_b)) std::copy(solution.dual_b.begin(), solution.dual_b.end(), dual_b.data() + b.batch.begin(i));
    }
    return plan;
}

void emd_transport_gradient(const Clouds& a, const Clouds& b, const EmdPlan& plan, View<const float, 1> grad_cost,
                            View<float, 2> grad_a, View<float, 2> grad_b, bool squared) {
    const char* op = "emd_transport_gradient";
    require_pair(op, a, b);
    const int64_t clouds = a.batch.clouds();
    require_output(op, "grad_cost", grad_cost, {clouds}, a.device());
    if (wants(grad_a)) require_output(op, "grad_a", grad_a, {a.batch.rows(), 3}, a.device());
    if (wants(grad_b)) require_output(op, "grad_b", grad_b, {b.batch.rows(), 3}, a.device());
    STIPPLE_REQUIRE(static_cast<int64_t>(plan.offsets.size()) == clouds + 1 &&
                        plan.offsets.back() == static_cast<int64_t>(plan.flows.size()),
                    "{}: a plan of {} clouds for {}", op, static_cast<int64_t>(plan.offsets.size()) - 1, clouds);
    for (int64_t i = 0; i < clouds; ++i)
        for (int64_t k = plan.offsets[i]; k < plan.offsets[i + 1]; ++k)
            STIPPLE_REQUIRE(plan.flows[k].from >= 0 && plan.flows[k].from < a.batch.size(i) && plan.flows[k].to >= 0 &&
                                plan.flows[k].to < b.batch.size(i),
                            "{}: flow {} from {} to {} in cloud {}", op, k, plan.flows[k].from, plan.flows[k].to, i);

    parallel_for(clouds, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const View<const float, 2> from = a.cloud(i), to = b.cloud(i);
            std::vector<double> sum_a(3 * from.size(0), 0.0), sum_b(3 * to.size(0), 0.0);
            for (int64_t k = plan.offsets[i]; k < plan.offsets[i + 1]; ++k) {
                const EmdFlow& flow = plan.flows[k];
                double difference[3], sq = 0.0;
                for (int axis = 0; axis < 3; ++axis) {
                    difference[axis] = static_cast<double>(from(flow.from, axis)) - to(flow.to, axis);
                    sq += difference[axis] * difference[axis];
                }
                const double weight = flow.mass * grad_cost(i);
                const double factor = squared ? 2.0 * weight : (sq > 0.0 ? weight / std::sqrt(sq) : 0.0);
                for (int axis = 0; axis < 3; ++axis) {
                    sum_a[3 * flow.from + axis] += factor * difference[axis];
                    sum_b[3 * flow.to + axis] -= factor * difference[axis];
                }
            }
            const auto store = [](const std::vector<double>& sum, View<float, 2> grad, int64_t first) {
                if (!wants(grad)) return;
                for (size_t k = 0; k < sum.size(); ++k) grad.data()[3 * first + k] = static_cast<float>(sum[k]);
            };
            store(sum_a, grad_a, a.batch.begin(i));
            store(sum_b, grad_b, b.batch.begin(i));
        }
    });
}

}  // namespace stipple::ops
