#pragma once
// A picture of a field in double precision, sample by sample, straight from the definition.

#include <cmath>
#include <limits>

#include "stipple/radiance/field/dense_field.h"
#include "stipple/radiance/march/ray.h"

namespace stipple::test {

struct OraclePixel {
    Vec3d colour, normal;
    double alpha = 0, depth = std::numeric_limits<double>::infinity();
};

inline Vec3d oracle_colour(const radiance::DenseField& field, const double* features, Vec3d direction) {
    using namespace radiance;
    const auto squash = [](double x) { return 1 / (1 + std::exp(-x)); };
    if (field.network.weight1.empty()) return {squash(features[0]), squash(features[1]), squash(features[2])};
    std::vector<double> input(features, features + kFeatures);
    for (int axis = 0; axis < 3; ++axis) input.push_back(direction[axis]);
    for (int axis = 0; axis < 3; ++axis)
        for (int f = 1; f <= 8; f *= 2) input.push_back(std::sin(direction[axis] * f));
    for (int axis = 0; axis < 3; ++axis)
        for (int f = 1; f <= 8; f *= 2) input.push_back(std::cos(direction[axis] * f));
    const auto layer = [](const std::vector<double>& x, const std::vector<float>& w, const std::vector<float>& b) {
        std::vector<double> y(b.begin(), b.end());
        for (size_t o = 0; o < y.size(); ++o)
            for (size_t i = 0; i < x.size(); ++i) y[o] += static_cast<double>(w[o * x.size() + i]) * x[i];
        return y;
    };
    std::vector<double> one = layer(input, field.network.weight1, field.network.bias1);
    for (double& v : one) v = std::max(v, 0.0);
    std::vector<double> two = layer(one, field.network.weight2, field.network.bias2);
    for (double& v : two) v = std::max(v, 0.0);
    const std::vector<double> out = layer(two, field.network.weight3, field.network.bias3);
    return {squash(out[0]), squash(out[1]), squash(out[2])};
}

/// The colour of an octahedral map: what lies beyond an edge of the square is found by turning it half a turn about
/// the middle of this edge.
inline Vec3d oracle_environment(const radiance::Environment& map, Vec3d direction) {
    const double sum = std::abs(direction.x) + std::abs(direction.y) + std::abs(direction.z);
    double u = direction.x / sum, v = direction.y / sum;
    if (direction.z < 0) {
        const double x = u, y = v;
        u = std::copysign(1 - std::abs(y), x), v = std::copysign(1 - std::abs(x), y);
    }
    const double side = map.side;
    const double s = std::floor((u + 1) / 2 * side - 0.5), t = std::floor((v + 1) / 2 * side - 0.5);
    const double fs = (u + 1) / 2 * side - 0.5 - s, ft = (v + 1) / 2 * side - 0.5 - t;
    double raw[3] = {};
    for (int corner = 0; corner < 4; ++corner) {
        double x = (2 * (s + (corner >> 1) + 0.5) / side) - 1, y = (2 * (t + (corner & 1) + 0.5) / side) - 1;
        if (std::abs(x) > 1) x = std::copysign(2, x) - x, y = -y;
        if (std::abs(y) > 1) y = std::copysign(2, y) - y, x = -x;
        const auto i = static_cast<size_t>((x + 1) / 2 * side), j = static_cast<size_t>((y + 1) / 2 * side);
        for (size_t c = 0; c < 3; ++c)
            raw[c] += (corner >> 1 ? fs : 1 - fs) * (corner & 1 ? ft : 1 - ft) *
                      static_cast<double>(map.texels[3 * (i * static_cast<size_t>(map.side) + j) + c]);
    }
    return {1 / (1 + std::exp(-raw[0])), 1 / (1 + std::exp(-raw[1])), 1 / (1 + std::exp(-raw[2]))};
}

/// A ray's first sample is on the face of the box where it enters: rounding decides whether it is inside. `with_first`
/// decides it here.
inline OraclePixel oracle_pixel(const radiance::DenseField& field, const radiance::Camera& camera, int px, int py,
                                bool with_first) {
    using namespace radiance;
    const GridShape& grid = field.grid;
    const double u = (px + 0.5 - camera.cx) / camera.fx, v = -(py + 0.5 - camera.cy) / camera.fy;
    const auto& m = camera.to_world;
    const Vec3d origin = {m[3], m[7], m[11]};
    const Vec3d ray = {m[0] * u + m[1] * v - m[2], m[4] * u + m[5] * v - m[6], m[8] * u + m[9] * v - m[10]};
    OraclePixel pixel;
    double enter = field.near, leave = 1e9, left = 1;
    for (int axis = 0; axis < 3; ++axis) {
        const double d = ray[axis] == 0 ? 1e-6 : ray[axis];
        const double a = (grid.box.low[axis] - origin[axis]) / d, b = (grid.box.high[axis] - origin[axis]) / d;
        enter = std::max(enter, std::min(a, b)), leave = std::min(leave, std::max(a, b));
    }
    const double step = static_cast<double>(field.step) * grid.voxel, per_step = step / length(ray);
    const int samples = leave > enter ? std::max(1, static_cast<int>(std::ceil((leave - enter) / per_step))) : 0;
    for (int i = with_first ? 0 : 1; i < samples && left >= 1e-3; ++i) {
        const Vec3d at = origin + (enter + i * per_step) * ray;
        double node[3];
        int nearest[3], cell[3];
        bool inside = true;
        for (int axis = 0; axis < 3; ++axis) {
            // The entry point.
            const double slack = 1e-6;
            inside = inside && at[axis] >= grid.box.low[axis] - slack && at[axis] <= grid.box.high[axis] + slack;
            const int size = grid.size[static_cast<size_t>(axis)];
            node[axis] = (at[axis] - grid.box.low[axis]) * (size - 1) /
                         (static_cast<double>(grid.box.high[axis]) - grid.box.low[axis]);
            nearest[axis] = std::clamp(static_cast<int>(std::floor(node[axis] + 0.5)), 0, size - 1);
            cell[axis] = std::clamp(static_cast<int>(std::floor(node[axis])), 0, size - 2);
        }
        if (!inside) continue;
        if (!bit_of(field.occupied.data(), grid.index(nearest[0], nearest[1], nearest[2]))) continue;
        const auto blend = [&](double fx, double fy, double fz, const auto& value_of) {
            double sum = 0;
            for (int c = 0; c < 8; ++c) {
                const int dx = c >> 2, dy = c >> 1 & 1, dz = c & 1;
                sum += (dx ? fx : 1 - fx) * (dy ? fy : 1 - fy) * (dz ? fz : 1 - fz) *
                       value_of(grid.index(cell[0] + dx, cell[1] + dy, cell[2] + dz));
            }
            return sum;
        };
        const double f[3] = {node[0] - cell[0], node[1] - cell[1], node[2] - cell[2]};
        const auto density = [&](int64_t n) { return static_cast<double>(field.density[static_cast<size_t>(n)]); };
        const double raw = blend(f[0], f[1], f[2], density) + field.density_shift;
        const double alpha = 1 - std::pow(1 + std::exp(raw), -static_cast<double>(field.step) * field.voxel_ratio);
        if (alpha <= field.least_weight) continue;
        const double weight = left * alpha, before = left;
        left *= 1 - alpha;
        if (before > 0.5 && left <= 0.5) pixel.depth = enter + per_step * (i - 0.5 + (before - 0.5) / (before - left));
        if (weight <= field.least_weight) continue;
        double features[kFeatures];
        for (int k = 0; k < kFeatures; ++k)
            features[k] = blend(f[0], f[1], f[2], [&](int64_t n) {
                return static_cast<double>(field.features[static_cast<size_t>(n * kFeatures + k)]);
            });
        pixel.colour = pixel.colour + weight * oracle_colour(field, features, unit(ray));
        Vec3d gradient;  // trilinear: the difference of the two faces is its derivative
        for (int axis = 0; axis < 3; ++axis) {
            double low[3] = {f[0], f[1], f[2]}, high[3] = {f[0], f[1], f[2]};
            low[axis] = 0, high[axis] = 1;
            gradient[axis] = (blend(high[0], high[1], high[2], density) - blend(low[0], low[1], low[2], density)) /
                             grid.spacing(axis);
        }
        pixel.normal = pixel.normal - weight * unit(gradient);
    }
    if (field.background == Background::white) pixel.colour = pixel.colour + Vec3d{left, left, left};
    if (field.background == Background::learned)
        pixel.colour = pixel.colour + left * oracle_environment(field.environment, ray);
    pixel.alpha = 1 - left;
    pixel.normal = unit(pixel.normal);
    return pixel;
}

}  // namespace stipple::test
