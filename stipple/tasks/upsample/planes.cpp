#include "stipple/tasks/upsample/planes.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/parallel.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kPlaneNeighbours = 96;  // so many reach over two lines of a scanner or more
constexpr float kFlat = 1e-2f;            // share of the variance
constexpr int64_t kInLine = 8;            // nearest neighbours that tell whether points lie in lines
constexpr double kOnLine = 0.75;          // of them: squares of variances over the square of their sum
constexpr double kShare = 0.5;            // of the neighbours' mean distance from the plane, that points may have
constexpr int64_t kPlaneGrain = 512;

/// Whether the first neighbours of a point lie along a line, as those of a scanner's sweep do.
bool is_on_line(View<const float, 2> inputs, const int32_t* near, int64_t k) {
    const int64_t count = std::min(kInLine, k);
    double mean[3] = {}, product[3][3] = {}, trace = 0, square = 0;
    for (int64_t j = 0; j < count; ++j) {
        if (near[j] < 0) return false;
        for (int c = 0; c < 3; ++c) mean[c] += inputs(near[j], c) / static_cast<double>(count);
    }
    for (int64_t j = 0; j < count; ++j)
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b)
                product[a][b] += (inputs(near[j], a) - mean[a]) * (inputs(near[j], b) - mean[b]);
    for (int a = 0; a < 3; ++a) {
        trace += product[a][a];
        for (int b = 0; b < 3; ++b) square += product[a][b] * product[a][b];
    }
    return square > kOnLine * trace * trace;
}

}  // namespace

double SweptPlanes::Plane::height_of(const float* point) const {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += (point[c] - centre[c]) * normal[c];
    return sum;
}

SweptPlanes::Plane SweptPlanes::plane_of(View<const float, 2> inputs, const int32_t* near, int64_t k,
                                         const float* normal) {
    Plane plane;
    int64_t found = 0;
    for (int64_t j = 0; j < k && near[j] >= 0; ++j, ++found)
        for (int c = 0; c < 3; ++c) plane.centre[c] += inputs(near[j], c);
    for (int c = 0; c < 3; ++c) plane.centre[c] /= static_cast<double>(found), plane.normal[c] = normal[c];
    for (int64_t j = 0; j < found; ++j)
        plane.deviation += std::abs(plane.height_of(&inputs(near[j], 0))) / static_cast<double>(found);
    return plane;
}

SweptPlanes::SweptPlanes(const CloudSearch& inputs) : inputs_(inputs) {
    const View<const float, 2> cloud = inputs.cloud();
    const int64_t n = cloud.size(0), k = std::min(kPlaneNeighbours, n);
    if (n < 3) return;
    std::vector<uint8_t> on_line(static_cast<size_t>(n)), is_swept(on_line.size());
    inputs.for_neighbours(std::min(kInLine, n), [&](int64_t i, const int32_t* near, const float*) {
        on_line[static_cast<size_t>(i)] = is_on_line(cloud, near, std::min(kInLine, n));
    });
    // Some neighbourhoods of any cloud look like lines: most of them do in a sweep alone.
    if (2 * std::count(on_line.begin(), on_line.end(), uint8_t{1}) <= k) return;
    inputs.for_neighbours(k, [&](int64_t i, const int32_t* near, const float*) {
        int64_t lines = 0;
        for (int64_t j = 0; j < k && near[j] >= 0; ++j) lines += on_line[static_cast<size_t>(near[j])];
        is_swept[static_cast<size_t>(i)] = 2 * lines > k;
    });
    if (std::find(is_swept.begin(), is_swept.end(), uint8_t{1}) == is_swept.end()) return;

    Array<float, 2> normals({n, 3});
    Array<float, 1> shares({n});
    inputs.estimate_normals(normals.view(), shares.view(), static_cast<int>(k));
    plane_at_.assign(static_cast<size_t>(n), -1);
    for (int64_t i = 0; i < n; ++i)
        if (is_swept[static_cast<size_t>(i)] && shares.data()[i] < kFlat) {  // not where it is NaN
            plane_at_[static_cast<size_t>(i)] = static_cast<int32_t>(planes_.size());
            planes_.emplace_back();
        }
    inputs.for_neighbours(k, [&](int64_t i, const int32_t* near, const float*) {
        const int32_t plane = plane_at_[static_cast<size_t>(i)];
        if (plane >= 0) planes_[static_cast<size_t>(plane)] = plane_of(cloud, near, k, normals.data() + 3 * i);
    });
}

void SweptPlanes::keep(View<float, 2> points) const {
    const int64_t m = points.size(0);
    if (planes_.empty() || m == 0) return;
    Array<int32_t, 2> nearest({m, 1});
    inputs_.knn(points, nearest.view(), {});
    parallel_for(m, kPlaneGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int32_t input = nearest.data()[i];
            const int32_t at = input < 0 ? -1 : plane_at_[static_cast<size_t>(input)];
            if (at < 0) continue;
            const Plane& plane = planes_[static_cast<size_t>(at)];
            const double height = plane.height_of(points.data() + 3 * i);
            const double less = height - std::clamp(height, -kShare * plane.deviation, kShare * plane.deviation);
            for (int c = 0; c < 3; ++c)
                points.data()[3 * i + c] = static_cast<float>(points.data()[3 * i + c] - less * plane.normal[c]);
        }
    });
}

}  // namespace stipple::tasks
