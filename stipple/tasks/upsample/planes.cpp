#include "stipple/tasks/upsample/planes.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/normals.h"
#include "stipple/ops/knn.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kPlaneNeighbours = 96;  // so many reach over two lines of a scanner or more
constexpr float kFlat = 1e-2f;            // share of the variance
constexpr int64_t kInLine = 8;            // nearest neighbours that tell whether points lie in lines
constexpr double kOnLine = 0.75;          // of them: squares of variances over the square of their sum
constexpr double kShare = 0.5;            // of the neighbours' mean distance from the plane, that points may have
constexpr int64_t kPlaneGrain = 512;

struct Plane {
    double centre[3] = {}, normal[3] = {};
    double deviation = -1;  // mean distance of the neighbours; below 0: no plane
};

double along(const Plane& plane, const float* point) {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += (point[c] - plane.centre[c]) * plane.normal[c];
    return sum;
}

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

Plane plane_of(View<const float, 2> inputs, const int32_t* near, int64_t k, const float* normal) {
    Plane plane;
    int64_t found = 0;
    for (int64_t j = 0; j < k && near[j] >= 0; ++j, ++found)
        for (int c = 0; c < 3; ++c) plane.centre[c] += inputs(near[j], c);
    for (int c = 0; c < 3; ++c) plane.centre[c] /= static_cast<double>(found), plane.normal[c] = normal[c];
    plane.deviation = 0;
    for (int64_t j = 0; j < found; ++j)
        plane.deviation += std::abs(along(plane, &inputs(near[j], 0))) / static_cast<double>(found);
    return plane;
}

}  // namespace

void keep_to_planes(View<const float, 2> inputs, View<float, 2> points) {
    const int64_t n = inputs.size(0), m = points.size(0), k = std::min(kPlaneNeighbours, n);
    if (n < 3 || m == 0) return;
    const ops::PointIndex index(inputs);
    Array<int32_t, 2> near({n, k}), own({m, 1});
    ops::knn(index, inputs, near.view(), {});
    std::vector<uint8_t> on_line(static_cast<size_t>(n));
    parallel_for(n, kPlaneGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            on_line[static_cast<size_t>(i)] = is_on_line(inputs, near.data() + i * k, k);
    });
    // Some neighbourhoods of any cloud look like lines: most of them do in a sweep alone.
    std::vector<uint8_t> is_swept(static_cast<size_t>(n));
    parallel_for(n, kPlaneGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int32_t* row = near.data() + i * k;
            int64_t lines = 0;
            for (int64_t j = 0; j < k && row[j] >= 0; ++j) lines += on_line[static_cast<size_t>(row[j])];
            is_swept[static_cast<size_t>(i)] = 2 * lines > k;
        }
    });
    if (std::find(is_swept.begin(), is_swept.end(), uint8_t{1}) == is_swept.end()) return;

    Array<float, 2> normals({n, 3});
    Array<float, 1> shares({n});
    geometry::estimate_normals(inputs, normals.view(), shares.view(), static_cast<int>(k));
    ops::knn(index, View<const float, 2>(points.data(), {m, 3}), own.view(), {});
    std::vector<Plane> planes(static_cast<size_t>(n));
    parallel_for(n, kPlaneGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            if (is_swept[static_cast<size_t>(i)] && shares.data()[i] < kFlat)  // not where it is NaN
                planes[static_cast<size_t>(i)] = plane_of(inputs, near.data() + i * k, k, normals.data() + 3 * i);
    });
    parallel_for(m, kPlaneGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int32_t nearest = own.data()[i];
            if (nearest < 0) continue;
            const Plane& plane = planes[static_cast<size_t>(nearest)];
            if (plane.deviation < 0) continue;
            const double height = along(plane, points.data() + 3 * i);
            const double less = height - std::clamp(height, -kShare * plane.deviation, kShare * plane.deviation);
            for (int c = 0; c < 3; ++c)
                points.data()[3 * i + c] = static_cast<float>(points.data()[3 * i + c] - less * plane.normal[c]);
        }
    });
}

}  // namespace stipple::tasks
