#include "stipple/ops/emd_exact.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/emd/min_cost_flow.h"

namespace stipple::ops {

void emd_exact(const Clouds& a, const Clouds& b, const EmdExactOutput& out, DistanceNorm norm) {
    const char* op = "emd_exact";
    require_pair(op, a, b);
    STIPPLE_REQUIRE(a.device().type == DeviceType::cpu, "{}: points on {}; it runs on the CPU", op, a.device());
    STIPPLE_REQUIRE(a.batch.largest() <= kEmdExactMost, "{}: a cloud of {} points; the most is {}", op,
                    a.batch.largest(), kEmdExactMost);
    STIPPLE_REQUIRE(a.batch.rows() == b.batch.rows(), "{}: {} points against {}; emd_transport takes both", op,
                    a.batch.rows(), b.batch.rows());
    for (int64_t i = 0; i < a.batch.clouds(); ++i)
        STIPPLE_REQUIRE(a.batch.size(i) == b.batch.size(i),
                        "{}: {} points against {} in cloud {}; emd_transport takes both", op, a.batch.size(i),
                        b.batch.size(i), i);
    const auto wanted = [&](const char* name, const auto& view, int64_t size) {
        if (view.elements() != 0 || view.data() != nullptr) require_output(op, name, view, {size}, a.device());
    };
    wanted("cost", out.cost, a.batch.clouds());
    wanted("matching", out.matching, a.batch.rows());
    wanted("dual_a", out.dual_a, a.batch.rows());
    wanted("dual_b", out.dual_b, b.batch.rows());

    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    parallel_for(a.batch.clouds(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t cloud = begin; cloud < end; ++cloud) {
            const int64_t first = a.batch.begin(cloud), n = a.batch.size(cloud);
            flow::Solution solution;
            if (n > 0 && flow::all_finite(a.cloud(cloud)) && flow::all_finite(b.cloud(cloud))) {
                solution = flow::solve({a.cloud(cloud), b.cloud(cloud), 1, 1, norm == DistanceNorm::squared});
            } else {
                solution.cost = kNan;
                solution.dual_a.assign(n, kNan);
                solution.dual_b.assign(n, kNan);
                for (int64_t i = 0; i < n; ++i) solution.arcs.push_back({static_cast<int32_t>(i), -1, 1});
            }
            if (out.cost.data() != nullptr) out.cost(cloud) = solution.cost;
            if (out.matching.data() != nullptr)
                for (const flow::Arc& arc : solution.arcs) out.matching(first + arc.from) = arc.to;
            if (out.dual_a.data() != nullptr)
                std::copy(solution.dual_a.begin(), solution.dual_a.end(), out.dual_a.data() + first);
            if (out.dual_b.data() != nullptr)
                std::copy(solution.dual_b.begin(), solution.dual_b.end(), out.dual_b.data() + first);
        }
    });
}

}  // namespace stipple::ops
