#include "stipple/tasks/upsample/descend.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/array.h"

namespace stipple::tasks {
namespace {

// Times that a point is moved or its step halved.
constexpr int kDescents = 5;
// Half of the edge of the cube whose corners in turn are the tetrahedron: half of the distance, so that all are on one
// side of the surface, and in spacings at most this, which tells parts of it from each other, and at least this, which
// is far above the rounding of a network.
constexpr float kMostReach = 0.05f, kLeastReach = 0.002f;
constexpr float kCorners[4][3] = {{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};

/// What is known of n places.
struct Slopes {
    explicit Slopes(int64_t n) : places({n, 3}), distances({n}), gradients({n, 3}) {}

    Array<float, 2> places;
    Array<float, 1> distances;
    Array<float, 2> gradients;  // of any lengths: their directions count
};

void look(const DistanceFunction& distance, Slopes& at) {
    const int64_t n = at.distances.size(0);
    distance(at.places.view(), at.distances.view());
    std::fill_n(at.gradients.data(), 3 * n, 0.0f);
    Array<float, 2> corners({n, 3});
    Array<float, 1> found({n});
    for (const float* corner : kCorners) {
        for (int64_t i = 0; i < n; ++i) {
            const float reach = std::clamp(at.distances.data()[i] / 2, kLeastReach, kMostReach);
            for (int64_t c = 0; c < 3; ++c) corners.data()[3 * i + c] = at.places.data()[3 * i + c] + reach * corner[c];
        }
        distance(corners.view(), found.view());
        for (int64_t i = 0; i < 3 * n; ++i) at.gradients.data()[i] += corner[i % 3] * found.data()[i / 3];
    }
}

/// The place that point i tries next.
void try_place(const Slopes& at, int64_t i, float step, float* place) {
    const float *from = at.places.data() + 3 * i, *slope = at.gradients.data() + 3 * i;
    const float length = std::hypot(slope[0], slope[1], slope[2]), way = step * at.distances.data()[i] / length;
    for (int c = 0; c < 3; ++c) place[c] = from[c] - (std::isfinite(way) ? way * slope[c] : 0);
}

}  // namespace

std::vector<float> descend(View<float, 2> points, const DistanceFunction& distance) {
    const int64_t n = points.size(0);
    Slopes at(n), tried(n);
    std::copy_n(points.data(), 3 * n, at.places.data());
    look(distance, at);
    std::vector<float> steps(static_cast<size_t>(n), 1);
    for (int time = 0; time < kDescents; ++time) {
        for (int64_t i = 0; i < n; ++i) try_place(at, i, steps[static_cast<size_t>(i)], tried.places.data() + 3 * i);
        look(distance, tried);
        for (int64_t i = 0; i < n; ++i) {
            if (!(tried.distances.data()[i] < at.distances.data()[i])) {
                steps[static_cast<size_t>(i)] /= 2;
                continue;
            }
            at.distances.data()[i] = tried.distances.data()[i];
            std::copy_n(tried.places.data() + 3 * i, 3, at.places.data() + 3 * i);
            std::copy_n(tried.gradients.data() + 3 * i, 3, at.gradients.data() + 3 * i);
        }
    }
    std::copy_n(at.places.data(), 3 * n, points.data());
    return {at.distances.data(), at.distances.data() + n};
}

}  // namespace stipple::tasks
