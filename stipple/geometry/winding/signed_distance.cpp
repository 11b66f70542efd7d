#include "stipple/geometry/signed_distance.h"

#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/winding/launch.h"
#include "stipple/ops/common/require.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kGrain = 1 << 16;
constexpr float kAccuracy = 2;  // of the winding number: the side is decided at one half

/// Calls each(query, is inside) on the CPU.
template <class Each>
void for_each_side(const WindingIndex& winding, View<const float, 2> queries, Each each) {
    Array<float, 1> side({queries.size(0)});
    winding_number(winding, queries, side.view(), kAccuracy);
    parallel_for(queries.size(0), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) each(i, side.data()[i] > 0.5f);
    });
}

void require_queries(const char* who, View<const float, 2> queries, Device device) {
    STIPPLE_REQUIRE(queries.size(1) == 3 && queries.is_contiguous(), "{}: queries must be [n, 3] without gaps, got {}",
                    who, shape_text(queries.shape().data(), 2));
    ops::require_device(who, "queries", device, queries.device());
}

}  // namespace

void signed_distance(const MeshIndex& index, const WindingIndex& winding, View<const float, 2> queries,
                     const ClosestPoints& found, Stream stream) {
    constexpr const char* kWho = "signed_distance";
    require_queries(kWho, queries, index.device());
    STIPPLE_REQUIRE(winding.device() == index.device(), "{}: the mesh on {}, the winding number on {}", kWho,
                    index.device(), winding.device());
    ops::require_output<float, 1>(kWho, "distances", found.distances, {queries.size(0)}, index.device());
    if (queries.size(0) == 0) return;
    closest_point(index, queries, found, stream);
    switch (index.device().type) {
        case DeviceType::cpu:
            return for_each_side(winding, queries, [&](int64_t i, bool inside) {
                float& distance = found.distances.data()[i];
                if (inside && distance < INFINITY) distance = -distance;
            });
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::negate_inside, winding.on_cuda(), queries, found.distances, kAccuracy, stream);
    }
}

void is_inside(const WindingIndex& winding, View<const float, 2> queries, View<uint8_t, 1> inside,
               [[maybe_unused]] Stream stream) {
    constexpr const char* kWho = "is_inside";
    require_queries(kWho, queries, winding.device());
    ops::require_output<uint8_t, 1>(kWho, "inside", inside, {queries.size(0)}, winding.device());
    if (queries.size(0) == 0) return;
    switch (winding.device().type) {
        case DeviceType::cpu:
            return for_each_side(winding, queries, [&](int64_t i, bool is_in) { inside.data()[i] = is_in ? 1 : 0; });
        case DeviceType::cuda:
            STIPPLE_CUDA_CALL(cuda::is_inside, winding.on_cuda(), queries, inside, kAccuracy, stream);
    }
}

}  // namespace stipple::geometry
