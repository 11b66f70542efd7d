#include "stipple/tasks/upsample/support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "stipple/core/parallel.h"
#include "stipple/core/vec3.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/tasks/upsample/frame.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kSupportGrain = 512;
constexpr int64_t kDensityNeighbours = 17;  // with the point itself
constexpr int kAveraged = 2;                // times that spacings are averaged over neighbours
constexpr int kNormalNeighbours = 16;
constexpr int64_t kAround = 32;             // of evenly spread inputs 13 lie within two spacings
constexpr float kHole = 2;                  // spacings: the width of a hole that is kept
constexpr float kSurround = 2;              // spacings: inputs within it surround a place, or do not
constexpr float kFarthestKept = 4;          // mean spacings
constexpr float kFarthestFilled = 5;        // spacings, where holes of any width are filled
constexpr float kTenDegrees = 0.17632698f;  // their tangent: what noise adds to half a turn
constexpr float kAtPoint = 0.01f;           // spacings: so near to an input a place is supported by it alone

/// The direction (x, y) of an input, seen from a place.
struct Direction {
    float x = 0, y = 0;
    float turn = 0;  // grows with its angle, from 0 to 4 for a whole turn, without trigonometry
};
Direction direction_of(float x, float y) {
    const float sum = std::abs(x) + std::abs(y), part = sum > 0 ? y / sum : 0;
    return {x, y, x < 0 ? 2 - part : part < 0 ? 4 + part : part};
}

/// Whether they leave no angle free that is wider than half a turn and ten degrees; those of one direction do.
bool surround(std::span<Direction> directions) {
    if (directions.empty()) return false;
    std::sort(directions.begin(), directions.end(),
              [](const Direction& a, const Direction& b) { return a.turn < b.turn; });
    const Direction *from = &directions.back(), *to = &directions.front();
    float widest = to->turn + 4 - from->turn;
    for (size_t j = 1; j < directions.size(); ++j)
        if (const float gap = directions[j].turn - directions[j - 1].turn; gap > widest)
            widest = gap, from = &directions[j - 1], to = &directions[j];
    if (widest <= 2) return true;
    const float across = from->x * to->y - from->y * to->x, along = from->x * to->x + from->y * to->y;
    return along < 0 && -across <= kTenDegrees * -along;
}

}  // namespace

std::vector<float> local_spacings(const CloudSearch& cloud) {
    const int64_t n = cloud.cloud().size(0), k = std::min(kDensityNeighbours, n);
    std::vector<float> spacings(static_cast<size_t>(n)), mean(spacings.size());
    cloud.for_neighbours(k, [&](int64_t i, const int32_t*, const float* squares) {
        spacings[static_cast<size_t>(i)] =
            std::sqrt(std::numbers::pi_v<float> * squares[k - 1] / static_cast<float>(std::max<int64_t>(1, k - 1)));
    });
    for (int round = 0; round < kAveraged; ++round) {
        cloud.for_neighbours(k, [&](int64_t i, const int32_t* near, const float*) {
            float sum = 0;
            for (int64_t j = 0; j < k; ++j) sum += spacings[static_cast<size_t>(near[j])];
            mean[static_cast<size_t>(i)] = sum / static_cast<float>(k);
        });
        std::swap(spacings, mean);
    }
    return spacings;
}

Support::Support(const CloudSearch& cloud, const UpsampleOptions& options)
    : cloud_(cloud),
      is_any_hole_filled_(options.holes == Holes::fill && options.hole_size == 0),
      hole_size_(static_cast<float>(options.hole_size)),
      farthest_(kFarthestKept * data::mean_spacing(cloud.cloud())),
      spacings_(local_spacings(cloud)) {
    if (is_any_hole_filled_) return;
    normals_ = Array<float, 2>({cloud.cloud().size(0), 3});
    cloud.estimate_normals(normals_.view(), {}, kNormalNeighbours);
}

std::vector<SupportGrade> Support::of(View<const float, 2> places) const {
    const int64_t m = places.size(0), k = std::min(kAround, cloud_.cloud().size(0));
    std::vector<SupportGrade> grades(static_cast<size_t>(m), SupportGrade::far);
    if (is_any_hole_filled_) {
        Array<int32_t, 2> nearest({m, 1});
        Array<float, 2> squares({m, 1});
        cloud_.knn(places, nearest.view(), squares.view());
        for (int64_t i = 0; i < m; ++i) {
            if (nearest.data()[i] < 0) continue;
            const float most = kFarthestFilled * spacings_[static_cast<size_t>(nearest.data()[i])];
            if (squares.data()[i] <= most * most) grades[static_cast<size_t>(i)] = SupportGrade::between;
        }
        return grades;
    }
    Array<int32_t, 2> near({m, k});
    Array<float, 2> distances_sq({m, k});
    cloud_.knn(places, near.view(), distances_sq.view());
    parallel_for(m, kSupportGrain, [&](int64_t begin, int64_t end) {
        std::array<Direction, kAround> directions;
        for (int64_t i = begin; i < end; ++i) {
            const int32_t* inputs = near.data() + i * k;
            const float* square = distances_sq.data() + i * k;
            if (inputs[0] < 0) continue;
            const float spacing = spacings_[static_cast<size_t>(inputs[0])];
            const float half = std::min(std::max(kHole * spacing, hole_size_) / 2, std::max(farthest_, hole_size_ / 2));
            if (square[0] > half * half) continue;
            grades[static_cast<size_t>(i)] = SupportGrade::beyond;
            const float reach = std::max(kSurround * spacing, hole_size_);
            const Vec3f at = row(places, i), normal = row(normals_.view(), inputs[0]);
            const Vec3f side = std::abs(normal.x) < 0.6f ? Vec3f{1, 0, 0} : Vec3f{0, 1, 0};
            const Vec3f across = cross(normal, side), u = (1 / std::max(length(across), 1e-12f)) * across,
                        v = cross(normal, u);
            size_t seen = 0;
            bool is_at_point = false;
            for (int64_t j = 0; j < k && inputs[j] >= 0 && square[j] <= reach * reach && !is_at_point; ++j) {
                const Vec3f to = row(cloud_.cloud(), inputs[j]) - at;
                const float a = dot(to, u), b = dot(to, v);
                is_at_point = a * a + b * b <= kAtPoint * kAtPoint * spacing * spacing;
                directions[seen++] = direction_of(a, b);
            }
            if (is_at_point || surround({directions.data(), seen}))
                grades[static_cast<size_t>(i)] = SupportGrade::between;
        }
    });
    return grades;
}

}  // namespace stipple::tasks
