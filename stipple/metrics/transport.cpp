#include "stipple/metrics/transport.h"

#include <algorithm>
#include <numeric>

#include "stipple/ops/emd_transport.h"

namespace stipple::metrics {
namespace {

Emd matched_exactly(const Points& a, const Points& b) {
    Array<double, 1> cost({1});
    ops::EmdExactOutput out;
    out.cost = cost.view();
    ops::emd_exact(a.rounded.view(), b.rounded.view(), out);
    return {cost.data()[0], cost.data()[0]};
}

Emd matched_by_auction(const Points& a, const Points& b, Device device) {
    const Array<float, 2> there_a = a.rounded.to(device), there_b = b.rounded.to(device);
    Array<float, 1> cost({1}, device), bound({1}, device);
    Array<int32_t, 1> matching({a.size()}, device);
    ops::emd(there_a.view(), there_b.view(), {cost.view(), bound.view(), matching.view()});
    return {cost.to(Device{}).data()[0], bound.to(Device{}).data()[0]};
}

/// An auction would match copies of the points, many times as many as there are, and take minutes where the exact plan
/// takes milliseconds.
bool exact_is_faster(int64_t n, int64_t m) {
    return std::lcm(n, m) > std::max(n, m) && std::max(n, m) <= ops::kEmdExactMost;
}

Emd of_plan(const ops::EmdPlan& plan) {
    return {plan.cost[0], plan.lower_bound[0]};
}

}  // namespace

Emd earth_mover(const Points& prediction, const Points& truth, EmdMethod method, Device device) {
    for (const Points* points : {&prediction, &truth}) {
        STIPPLE_REQUIRE(points->size() > 0, "earth_mover: a cloud has no points");
        STIPPLE_REQUIRE(points->finite == points->size(), "earth_mover: {} of {} points are not finite",
                        points->size() - points->finite, points->size());
    }
    const bool same_size = prediction.size() == truth.size();
    if (method == EmdMethod::exact || exact_is_faster(prediction.size(), truth.size()))
        return same_size ? matched_exactly(prediction, truth)
                         : of_plan(ops::emd_transport(prediction.rounded.view(), truth.rounded.view()));
    if (same_size) return matched_by_auction(prediction, truth, device);
    const Array<float, 2> a = prediction.rounded.to(device), b = truth.rounded.to(device);
    return of_plan(ops::emd_transport_auction(a.view(), b.view()));
}

}  // namespace stipple::metrics
