#include "stipple/ops/hausdorff.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/ops/common/require.h"
#include "stipple/ops/distance/chamfer_term.h"
#include "stipple/ops/distance/hausdorff_key.h"
#include "stipple/ops/nearest_pairs.h"

namespace stipple::ops {
namespace cpu {
namespace {

uint64_t farthest_of(const int32_t* nearest, const float* distances_sq, int64_t n, int side) {
    uint64_t best = kNoFarthest;
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t key = farthest_key(distances_sq[i], side, static_cast<int32_t>(i));
        best = nearest[i] >= 0 ? std::max(best, key) : best;
    }
    return best;
}

void hausdorff(const Clouds& a, const Clouds& b, Direction direction, View<float, 1> distance, View<int32_t, 2> pair) {
    const int64_t from_a = direction == Direction::b_to_a ? 0 : a.batch.rows();
    const int64_t from_b = direction == Direction::a_to_b ? 0 : b.batch.rows();
    Array<int32_t, 1> b_of_a({from_a}), a_of_b({from_b});
    Array<float, 1> sq_of_a({from_a}), sq_of_b({from_b});
    nearest_pairs(a, b, b_of_a.view(), sq_of_a.view(), a_of_b.view(), sq_of_b.view());
    for (int64_t cloud = 0; cloud < a.batch.clouds(); ++cloud) {
        const int64_t begin_a = a.batch.begin(cloud), begin_b = b.batch.begin(cloud);
        uint64_t best = kNoFarthest;
        if (from_a > 0) best = farthest_of(b_of_a.data() + begin_a, sq_of_a.data() + begin_a, a.batch.size(cloud), 0);
        if (from_b > 0)
            best =
                std::max(best, farthest_of(a_of_b.data() + begin_b, sq_of_b.data() + begin_b, b.batch.size(cloud), 1));
        distance(cloud) = std::numeric_limits<float>::quiet_NaN();
        pair(cloud, 0) = pair(cloud, 1) = -1;
        if (best == kNoFarthest) continue;
        const int32_t index = key_index(best);
        distance(cloud) = std::sqrt(key_distance_sq(best));
        pair(cloud, 0) = key_side(best) == 0 ? index : a_of_b.data()[begin_b + index];
        pair(cloud, 1) = key_side(best) == 0 ? b_of_a.data()[begin_a + index] : index;
    }
}

void hausdorff_backward(const Clouds& a, const Clouds& b, View<const int32_t, 2> pair,
                        View<const float, 1> dL_ddistance, View<float, 2> dL_da, View<float, 2> dL_db) {
    std::fill_n(dL_da.data(), dL_da.elements(), 0.0f);
    std::fill_n(dL_db.data(), dL_db.elements(), 0.0f);
    for (int64_t cloud = 0; cloud < a.batch.clouds(); ++cloud) {
        const int32_t i = pair(cloud, 0), j = pair(cloud, 1);
        if (i < 0 || j < 0 || i >= a.batch.size(cloud) || j >= b.batch.size(cloud)) continue;
        const int64_t row_a = a.batch.begin(cloud) + i, row_b = b.batch.begin(cloud) + j;
        float term[3];
        chamfer_term(&a.rows(row_a, 0), &b.rows(row_b, 0), dL_ddistance(cloud), DistanceNorm::euclidean, term);
        for (int axis = 0; axis < 3; ++axis) {
            if (dL_da.elements() > 0) dL_da(row_a, axis) = term[axis];
            if (dL_db.elements() > 0) dL_db(row_b, axis) = -term[axis];
        }
    }
}

}  // namespace
}  // namespace cpu

namespace {

bool is_left_out(const View<float, 2>& gradient) {
    return gradient.data() == nullptr && gradient.elements() == 0;
}

}  // namespace

void hausdorff(const Clouds& a, const Clouds& b, Direction direction, View<float, 1> distance, View<int32_t, 2> pair,
               [[maybe_unused]] Stream stream) {
    require_pair("hausdorff", a, b);
    require_output("hausdorff", "distance", distance, {a.batch.clouds()}, a.device());
    require_output("hausdorff", "pair", pair, {a.batch.clouds(), 2}, a.device());
    switch (a.device().type) {
        case DeviceType::cpu: return cpu::hausdorff(a, b, direction, distance, pair);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::hausdorff, a, b, direction, distance, pair, stream); return;
    }
}

void hausdorff_backward(const Clouds& a, const Clouds& b, View<const int32_t, 2> pair,
                        View<const float, 1> dL_ddistance, View<float, 2> dL_da, View<float, 2> dL_db,
                        [[maybe_unused]] Stream stream) {
    const char* op = "hausdorff_backward";
    require_pair(op, a, b);
    require_output(op, "pair", pair, {a.batch.clouds(), 2}, a.device());
    require_output(op, "dL_ddistance", dL_ddistance, {a.batch.clouds()}, a.device());
    if (!is_left_out(dL_da)) require_output(op, "dL_da", dL_da, {a.batch.rows(), 3}, a.device());
    if (!is_left_out(dL_db)) require_output(op, "dL_db", dL_db, {b.batch.rows(), 3}, a.device());
    switch (a.device().type) {
        case DeviceType::cpu: return cpu::hausdorff_backward(a, b, pair, dL_ddistance, dL_da, dL_db);
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::hausdorff_backward, a, b, pair, dL_ddistance, dL_da, dL_db, stream);
            return;
    }
}

}  // namespace stipple::ops
