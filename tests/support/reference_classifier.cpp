#include "tests/support/reference_classifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "stipple/core/rng.h"
#include "tests/support/reference_network.h"

namespace stipple::test {
namespace {

using Point = std::array<double, 3>;

/// A point of a shape from three numbers in [0, 1).
Point point_of(int shape, double u, double v, double w) {
    const double turn = 2 * std::numbers::pi * u, height = 2 * v - 1, ring = std::sqrt(1 - height * height);
    const auto on_box = [&](double x, double y, double z) -> Point {
        const double side = w < 0.5 ? -1 : 1, a = 2 * u - 1, b = 2 * v - 1;
        const int axis = static_cast<int>(6 * w) % 3;
        if (axis == 0) return {side * x, a * y, b * z};
        if (axis == 1) return {a * x, side * y, b * z};
        return {a * x, b * y, side * z};
    };
    switch (shape) {
        case 0: return {ring * std::cos(turn), height, ring * std::sin(turn)};  // sphere
        case 1: return on_box(1, 1, 1);                                         // cube
        case 2: return {std::cos(turn), 2 * height, std::sin(turn)};            // pipe
        case 3: return {v * std::cos(turn), 1 - 2 * v, v * std::sin(turn)};     // cone
        case 4: {                                                               // torus
            const double tube = 2 * std::numbers::pi * v, r = 1 + 0.35 * std::cos(tube);
            return {r * std::cos(turn), 0.35 * std::sin(tube), r * std::sin(turn)};
        }
        case 5: return on_box(1, 0.08, 1);                                                                       // slab
        case 6: return {0.08 * std::cos(turn), height, 0.08 * std::sin(turn)};                                   // rod
        case 7: return {ring * std::cos(turn) / 2, height / 2 + (w < 0.5 ? 1 : -1), ring * std::sin(turn) / 2};  // two
        case 8: return {std::cos(3 * turn), 2 * u - 1, std::sin(3 * turn)};                   // helix
        default: return w < 0.5 ? Point{height, 0, 2 * u - 1} : Point{0, height, 2 * u - 1};  // cross
    }
}

/// x such that a x = b for a symmetric positive a [n, n]; b [n, m] becomes x.
void solve(std::vector<double>& a, std::vector<double>& b, size_t n, size_t m) {
    for (size_t k = 0; k < n; ++k)
        for (size_t i = k + 1; i < n; ++i) {
            const double factor = a[i * n + k] / a[k * n + k];
            for (size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
            for (size_t j = 0; j < m; ++j) b[i * m + j] -= factor * b[k * m + j];
        }
    for (size_t k = n; k-- > 0;)
        for (size_t j = 0; j < m; ++j) {
            for (size_t i = k + 1; i < n; ++i) b[k * m + j] -= a[k * n + i] * b[i * m + j];
            b[k * m + j] /= a[k * n + k];
        }
}

}  // namespace

ShapeClouds shape_clouds(int64_t count, int64_t n, uint64_t seed) {
    ShapeClouds clouds{Array<float, 2>({count * n, 3}), ops::Batch::dense(count, n), {}};
    for (int64_t cloud = 0; cloud < count; ++cloud) {
        const int label = static_cast<int>(cloud % kShapes);
        clouds.labels.push_back(label);
        const Rng rng(seed, static_cast<uint64_t>(cloud));
        const double stretch[3] = {0.8 + 0.4 * rng.uniform(0), 0.8 + 0.4 * rng.uniform(1), 0.8 + 0.4 * rng.uniform(2)};
        const double turn = 2 * std::numbers::pi * rng.uniform(3);
        float* points = clouds.points.data() + 3 * cloud * n;
        double radius = 0;
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t at = 8 * static_cast<uint64_t>(i + 1);
            Point p = point_of(label, rng.uniform(at), rng.uniform(at + 1), rng.uniform(at + 2));
            for (size_t c = 0; c < 3; ++c) p[c] = p[c] * stretch[c] + 0.01 * rng.normal(at + 3 + c);
            const double x = std::cos(turn) * p[0] - std::sin(turn) * p[2],
                         z = std::sin(turn) * p[0] + std::cos(turn) * p[2];
            points[3 * i] = static_cast<float>(x);
            points[3 * i + 1] = static_cast<float>(p[1]);
            points[3 * i + 2] = static_cast<float>(z);
            radius = std::max(radius, std::hypot(x, p[1], z));
        }
        for (int64_t i = 0; i < 3 * n; ++i) points[i] /= static_cast<float>(radius);
    }
    return clouds;
}

void fit_head(const network::Network& network, network::Weights& weights, const ShapeClouds& clouds) {
    const auto run = run_reference(network, weights, clouds.batch, {{"points", clouds.points.view()}}, Keep::all);
    const ReferenceTensor& features = run.layer("head.fc2");
    const size_t channels = static_cast<size_t>(features.type.channels), n = channels + 1, m = kShapes;
    std::vector<double> gram(n * n), fitted(n * m);
    for (int64_t r = 0; r < features.rows; ++r) {
        std::vector<double> x(features.row(r), features.row(r) + channels);
        x.push_back(1);
        for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < n; ++j) gram[i * n + j] += x[i] * x[j];
            fitted[i * m + static_cast<size_t>(clouds.labels[r])] += 5 * x[i];
        }
    }
    double trace = 0;
    for (size_t i = 0; i < n; ++i) trace += gram[i * n + i];
    for (size_t i = 0; i < n; ++i) gram[i * n + i] += 5e-3 * trace / static_cast<double>(n);
    solve(gram, fitted, n, m);
    std::vector<float>&weight = weights.tensors.at("head.fc3.weight").values,
    &bias = weights.tensors.at("head.fc3.bias").values;
    for (size_t k = 0; k < m; ++k) {
        for (size_t i = 0; i < channels; ++i) weight[k * channels + i] = static_cast<float>(fitted[i * m + k]);
        bias[k] = static_cast<float>(fitted[channels * m + k]);
    }
}

}  // namespace stipple::test
