#include "stipple/ops/emd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/emd/auction.h"
#include "stipple/ops/emd/min_cost_flow.h"

namespace stipple::ops {
namespace {

constexpr int64_t kMostPoints = 1 << 20;  // a search is quadratic: more would take days

void require_matchable(const char* op, const Clouds& a, const Clouds& b) {
    require_pair(op, a, b);
    STIPPLE_REQUIRE(a.batch.largest() <= kMostPoints, "{}: a cloud of {} points; the most is {}", op, a.batch.largest(),
                    kMostPoints);
    if (a.batch.is_dense() && b.batch.is_dense()) {
        STIPPLE_REQUIRE(a.batch.largest() == b.batch.largest(), "{}: {} points against {}; emd_transport takes both",
                        op, a.batch.largest(), b.batch.largest());
        return;
    }
    for (int64_t i = 0; i < a.batch.clouds(); ++i)
        STIPPLE_REQUIRE(a.batch.size(i) == b.batch.size(i),
                        "{}: {} points against {} in cloud {}; emd_transport takes both", op, a.batch.size(i),
                        b.batch.size(i), i);
}

}  // namespace

namespace cpu {
namespace {

void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    parallel_for(a.batch.clouds(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t cloud = begin; cloud < end; ++cloud) {
            const View<const float, 2> from = a.cloud(cloud), to = b.cloud(cloud);
            int32_t* matching = out.matching.data() + a.batch.begin(cloud);
            if (from.size(0) == 0 || !flow::all_finite(from) || !flow::all_finite(to)) {
                std::fill_n(matching, from.size(0), -1);
                out.cost(cloud) = out.lower_bound(cloud) = kNan;
                continue;
            }
            const assignment::Problem problem = {from.data(),      to.data(),
                                                 from.stride(0),   to.stride(0),
                                                 from.size(0),     options.norm == DistanceNorm::squared,
                                                 options.relative, options.absolute};
            const assignment::Solution solution = assignment::solve(problem, matching, nullptr);
            out.cost(cloud) = static_cast<float>(solution.cost);
            out.lower_bound(cloud) = static_cast<float>(solution.bound);
        }
    });
}

void emd_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, View<const int32_t, 1> matching,
                  View<const float, 1> dL_dcost, View<float, 2> dL_da, View<float, 2> dL_db) {
    const bool wants_a = dL_da.data() != nullptr, wants_b = dL_db.data() != nullptr;
    parallel_for(a.batch.clouds(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t cloud = begin; cloud < end; ++cloud) {
            const int64_t first = a.batch.begin(cloud), n = a.batch.size(cloud);
            if (wants_a) std::fill_n(dL_da.data() + 3 * first, 3 * n, 0.0f);
            if (wants_b) std::fill_n(dL_db.data() + 3 * first, 3 * n, 0.0f);
            for (int64_t i = 0; i < n; ++i) {
                const int32_t j = matching(first + i);
                if (j < 0 || j >= n) continue;
                float grad[3];
                const int64_t stride_a = a.rows.stride(0), stride_b = b.rows.stride(0);
                assignment::pair_gradient(a.rows.data() + (first + i) * stride_a,
                                          b.rows.data() + (first + j) * stride_b,
                                          dL_dcost(cloud) / static_cast<float>(n), norm == DistanceNorm::squared, grad);
                for (int axis = 0; axis < 3; ++axis) {
                    if (wants_a) dL_da(first + i, axis) = grad[axis];
                    if (wants_b) dL_db(first + j, axis) = -grad[axis];
                }
            }
        }
    });
}

}  // namespace
}  // namespace cpu

void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options,
         [[maybe_unused]] Stream stream) {
    require_matchable("emd", a, b);
    require_output("emd", "cost", out.cost, {a.batch.clouds()}, a.device());
    require_output("emd", "lower_bound", out.lower_bound, {a.batch.clouds()}, a.device());
    require_output("emd", "matching", out.matching, {a.batch.rows()}, a.device());
    STIPPLE_REQUIRE(std::isfinite(options.relative) && options.relative >= 0.0f && std::isfinite(options.absolute) &&
                        options.absolute >= 0.0f,
                    "emd: gaps of {} (relative) and {} (absolute) are not both finite and at least 0", options.relative,
                    options.absolute);
    if (a.batch.clouds() == 0) return;
    switch (a.device().type) {
        case DeviceType::cpu: return cpu::emd(a, b, out, options);
        case DeviceType::cuda: return STIPPLE_CUDA_CALL(cuda::emd, a, b, out, options, stream);
    }
}

void emd_backward(const Clouds& a, const Clouds& b, DistanceNorm norm, View<const int32_t, 1> matching,
                  View<const float, 1> dL_dcost, View<float, 2> dL_da, View<float, 2> dL_db,
                  [[maybe_unused]] Stream stream) {
    require_matchable("emd_backward", a, b);
    require_output("emd_backward", "matching", matching, {a.batch.rows()}, a.device());
    require_output("emd_backward", "dL_dcost", dL_dcost, {a.batch.clouds()}, a.device());
    if (dL_da.elements() != 0) require_output("emd_backward", "dL_da", dL_da, {a.batch.rows(), 3}, a.device());
    if (dL_db.elements() != 0) require_output("emd_backward", "dL_db", dL_db, {a.batch.rows(), 3}, a.device());
    if (a.batch.rows() == 0) return;
    switch (a.device().type) {
        case DeviceType::cpu: return cpu::emd_backward(a, b, norm, matching, dL_dcost, dL_da, dL_db);
        case DeviceType::cuda:
            return STIPPLE_CUDA_CALL(cuda::emd_backward, a, b, norm, matching, dL_dcost, dL_da, dL_db, stream);
    }
}

}  // namespace stipple::ops
