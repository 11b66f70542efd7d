#include "stipple/tasks/upsample/candidates.h"

#include <algorithm>
#include <cmath>

#include "stipple/ops/knn.h"
#include "stipple/tasks/upsample/frame.h"

namespace stipple::tasks {

void add_candidate(Candidates& candidates, const float* point, int32_t parent) {
    if (!(std::isfinite(point[0]) && std::isfinite(point[1]) && std::isfinite(point[2]))) return;
    candidates.points.insert(candidates.points.end(), point, point + 3);
    candidates.parents.push_back(parent);
    candidates.sources.resize(candidates.sources.size() + static_cast<size_t>(candidates.width), -1);
    candidates.weights.resize(candidates.weights.size() + static_cast<size_t>(candidates.width), 0);
}

void append(const Candidates& from, int64_t i, Candidates& to) {
    const auto copy = [&](const auto& source, auto& target, int64_t width) {
        target.insert(target.end(), source.begin() + i * width, source.begin() + (i + 1) * width);
    };
    copy(from.points, to.points, 3);
    copy(from.parents, to.parents, 1);
    copy(from.sources, to.sources, from.width);
    copy(from.weights, to.weights, from.width);
    if (!from.uncertainties.empty()) copy(from.uncertainties, to.uncertainties, 1);
}

void truncate(Candidates& candidates, int64_t size) {
    candidates.points.resize(static_cast<size_t>(3 * size));
    candidates.parents.resize(static_cast<size_t>(size));
    candidates.sources.resize(static_cast<size_t>(size * candidates.width));
    candidates.weights.resize(static_cast<size_t>(size * candidates.width));
    if (!candidates.uncertainties.empty()) candidates.uncertainties.resize(static_cast<size_t>(size));
}

float patch_radius(const ops::PointIndex& index, View<const float, 2> cloud, std::span<const int32_t> points) {
    const int64_t asked = std::min<int64_t>(64, static_cast<int64_t>(points.size()));
    std::vector<int32_t> some;
    for (int64_t i = 0; i < asked; ++i)
        some.push_back(points[static_cast<size_t>(i * static_cast<int64_t>(points.size()) / asked)]);
    // Of a surface: twice as far for four times as many.
    const int64_t size = std::min(kPatchPoints / 4, cloud.size(0));
    Array<int32_t, 2> found({asked, size});
    Array<float, 2> distances_sq({asked, size});
    ops::knn(index, rows_of(cloud, some).view(), found.view(), distances_sq.view());
    std::vector<float> radii;
    for (int64_t i = 0; i < asked; ++i) radii.push_back(2 * std::sqrt(distances_sq.data()[i * size + size - 1]));
    std::sort(radii.begin(), radii.end());
    return radii[radii.size() * 9 / 10];
}

}  // namespace stipple::tasks
