#include "stipple/tasks/upsample/support.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/core/vec3.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/frame.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kSupportGrain = 512;
constexpr int64_t kDensityNeighbours = 17;  // with the point itself
constexpr int kAveraged = 2;                // times that spacings are averaged over neighbours
constexpr int64_t kAround = 32;             // of evenly spread inputs 13 lie within two spacings
constexpr float kHole = 2;                  // spacings: the width of a hole that is kept
constexpr float kSurround = 2;              // spacings: inputs within it surround a place, or do not
constexpr float kFarthestKept = 4;          // mean spacings
constexpr float kFarthestFilled = 5;        // spacings, where holes of any width are filled
constexpr float kWidestAngle = 190 * std::numbers::pi_v<float> / 180;
constexpr float kAtPoint = 0.01f;  // spacings: so near to an input a place is supported by it alone

/// Calls `use` for every point with its k nearest neighbours and their squared distances. They are searched for by
/// parts: those of all points together would take ten times the memory of the points.
template <class Use>
void for_neighbours(View<const float, 2> cloud, const ops::PointIndex& index, int64_t k, const Use& use) {
    constexpr int64_t kPart = 65536;
    for (int64_t begin = 0; begin < cloud.size(0); begin += kPart) {
        check_interrupted();
        const int64_t count = std::min(kPart, cloud.size(0) - begin);
        Array<int32_t, 2> near({count, k});
        Array<float, 2> distances_sq({count, k});
        ops::knn(index, cloud.slice(begin, begin + count), near.view(), distances_sq.view());
        parallel_for(count, kSupportGrain, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) use(begin + i, near.data() + i * k, distances_sq.data() + i * k);
        });
    }
}

/// The widest angle between neighbouring directions; of one direction alone a whole turn.
float widest_angle(std::vector<float>& directions) {
    std::sort(directions.begin(), directions.end());
    float widest = directions.front() + 2 * std::numbers::pi_v<float> - directions.back();
    for (size_t j = 1; j < directions.size(); ++j) widest = std::max(widest, directions[j] - directions[j - 1]);
    return widest;
}

}  // namespace

std::vector<float> local_spacings(View<const float, 2> cloud, const ops::PointIndex& index) {
    const int64_t n = cloud.size(0), k = std::min(kDensityNeighbours, n);
    std::vector<float> spacings(static_cast<size_t>(n)), mean(spacings.size());
    for_neighbours(cloud, index, k, [&](int64_t i, const int32_t*, const float* squares) {
        spacings[static_cast<size_t>(i)] =
            std::sqrt(std::numbers::pi_v<float> * squares[k - 1] / static_cast<float>(std::max<int64_t>(1, k - 1)));
    });
    for (int round = 0; round < kAveraged; ++round) {
        for_neighbours(cloud, index, k, [&](int64_t i, const int32_t* near, const float*) {
            float sum = 0;
            for (int64_t j = 0; j < k; ++j) sum += spacings[static_cast<size_t>(near[j])];
            mean[static_cast<size_t>(i)] = sum / static_cast<float>(k);
        });
        std::swap(spacings, mean);
    }
    return spacings;
}

Support::Support(View<const float, 2> cloud, const ops::PointIndex& index, const UpsampleOptions& options)
    : cloud_(cloud),
      index_(index),
      is_any_hole_filled_(options.holes == Holes::fill && options.hole_size == 0),
      hole_size_(static_cast<float>(options.hole_size)),
      farthest_(kFarthestKept * data::mean_spacing(cloud)),
      spacings_(local_spacings(cloud, index)) {
    if (is_any_hole_filled_) return;
    normals_ = Array<float, 2>({cloud.size(0), 3});
    geometry::estimate_normals(cloud, normals_.view(), {});
}

std::vector<SupportGrade> Support::of(View<const float, 2> places) const {
    const int64_t m = places.size(0), k = std::min(kAround, cloud_.size(0));
    std::vector<SupportGrade> grades(static_cast<size_t>(m), SupportGrade::far);
    if (is_any_hole_filled_) {
        Array<int32_t, 2> nearest({m, 1});
        Array<float, 2> squares({m, 1});
        ops::knn(index_, places, nearest.view(), squares.view());
        for (int64_t i = 0; i < m; ++i) {
            if (nearest.data()[i] < 0) continue;
            const float most = kFarthestFilled * spacings_[static_cast<size_t>(nearest.data()[i])];
            if (squares.data()[i] <= most * most) grades[static_cast<size_t>(i)] = SupportGrade::between;
        }
        return grades;
    }
    Array<int32_t, 2> near({m, k});
    Array<float, 2> distances_sq({m, k});
    ops::knn(index_, places, near.view(), distances_sq.view());
    parallel_for(m, kSupportGrain, [&](int64_t begin, int64_t end) {
        std::vector<float> directions;
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
            directions.clear();
            bool is_at_point = false;
            for (int64_t j = 0; j < k && inputs[j] >= 0 && square[j] <= reach * reach && !is_at_point; ++j) {
                const Vec3f to = row(cloud_, inputs[j]) - at;
                const float a = dot(to, u), b = dot(to, v);
                is_at_point = a * a + b * b <= kAtPoint * kAtPoint * spacing * spacing;
                directions.push_back(std::atan2(b, a));
            }
            if (is_at_point || (!directions.empty() && widest_angle(directions) <= kWidestAngle))
                grades[static_cast<size_t>(i)] = SupportGrade::between;
        }
    });
    return grades;
}

}  // namespace stipple::tasks
