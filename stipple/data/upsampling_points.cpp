#include "stipple/data/upsampling_points.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/ops/knn.h"

namespace stipple::data {
namespace {

constexpr int64_t kMeasuredPoints = 4096;
constexpr int64_t kMeasuredNeighbours = 8;
constexpr uint64_t kQueryStream = uint64_t{0x51554552} << 32;
constexpr int64_t kPointGrain = 4096;

void require_points(const char* who, View<const float, 2> points) {
    STIPPLE_REQUIRE(points.size(1) == 3 && points.stride(1) == 1 && points.device().type == DeviceType::cpu,
                    "{}: points must be [n, 3] on the CPU, got {}", who, shape_text(points.shape().data(), 2));
}

}  // namespace

float mean_spacing(View<const float, 2> points) {
    require_points("mean_spacing", points);
    const int64_t n = points.size(0), measured = std::min(n, kMeasuredPoints);
    if (n < 2) return 0;
    Array<float, 2> queries({measured, 3});
    for (int64_t i = 0; i < measured; ++i) std::copy_n(&points(i * n / measured, 0), 3, queries.data() + 3 * i);
    const int64_t k = std::min(n, kMeasuredNeighbours + 1);  // with the point itself, at distance 0
    Array<int32_t, 2> nearest({measured, k});
    Array<float, 2> distances_sq({measured, k});
    ops::knn(ops::PointIndex(points), queries.view(), nearest.view(), distances_sq.view());
    std::vector<float> spacings;
    for (int64_t i = 0; i < measured; ++i) {
        int64_t others = k - 1;
        while (others > 0 && nearest.view()(i, others) < 0) --others;
        const double distance_sq = distances_sq.view()(i, others);
        if (others > 0 && distance_sq > 0)
            spacings.push_back(
                static_cast<float>(std::sqrt(std::numbers::pi * distance_sq / static_cast<double>(others))));
    }
    if (spacings.empty()) return 0;
    const auto middle = spacings.begin() + static_cast<int64_t>(spacings.size() / 2);
    std::nth_element(spacings.begin(), middle, spacings.end());
    return *middle;
}

void neighbour_queries(View<const float, 2> points, View<const int32_t, 2> neighbours, std::span<const int32_t> which,
                       int64_t per_point, uint64_t seed, float* out) {
    require_points("neighbour_queries", points);
    const int64_t n = points.size(0), columns = neighbours.size(1) - 1;
    STIPPLE_REQUIRE(neighbours.size(0) == n && columns >= 0, "neighbour_queries: neighbours {} of {} points",
                    shape_text(neighbours.shape().data(), 2), n);
    STIPPLE_REQUIRE(per_point >= 0 && per_point <= INT32_MAX, "neighbour_queries: {} a point", per_point);
    for (const int32_t point : which)
        STIPPLE_REQUIRE(point >= 0 && point < n, "neighbour_queries: point {} of {}", point, n);
    const auto corner = [&](int64_t point, int64_t column) {
        const int64_t other = column <= columns ? neighbours(point, column) : -1;
        STIPPLE_REQUIRE(other < n, "neighbour_queries: neighbour {} of {} points", other, n);
        const float* row = &points(other < 0 ? point : other, 0);
        return Vec3f{row[0], row[1], row[2]};
    };
    parallel_for(static_cast<int64_t>(which.size()), kPointGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t point = which[static_cast<size_t>(i)];
            const Rng rng(seed, kQueryStream | static_cast<uint64_t>(point));
            const Vec3f own = corner(point, columns + 1);
            for (int64_t j = 0; j < per_point; ++j) {
                // As Rng::uniform and Rng::below, of the four words of one block.
                const RandomBlock random = rng.block(static_cast<uint64_t>(j));
                const auto below = [&](int word, int64_t bound) {
                    return static_cast<int64_t>((uint64_t{random.word[word]} * static_cast<uint64_t>(bound)) >> 32);
                };
                const int64_t first = below(0, std::max<int64_t>(columns, 1));
                int64_t second = below(1, std::max<int64_t>(columns - 1, 1));
                if (second >= first) ++second;
                float u = static_cast<float>(random.word[2] >> 8) * 0x1p-24f;
                float v = static_cast<float>(random.word[3] >> 8) * 0x1p-24f;
                if (u + v > 1) u = 1 - u, v = 1 - v;  // the other half of the parallelogram, folded back
                const float side = random.word[2] & 1 ? -1.0f : 1.0f;  // a bit that u does not use
                const Vec3f query =
                    own + side * (u * (corner(point, 1 + first) - own) + v * (corner(point, 1 + second) - own));
                float* to = out + 3 * (i * per_point + j);
                to[0] = query.x, to[1] = query.y, to[2] = query.z;
            }
        }
    });
}

}  // namespace stipple::data
