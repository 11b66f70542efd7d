#include "stipple/picture/render/eye_dome.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stipple/picture/render/sample.h"

namespace stipple::picture {

float eye_dome_light(const Array<float, 2>& depths, int64_t x, int64_t y, float depth, float pixel, int reach) {
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    // Found by looking at car and airborne scans of 330 to 1600 pixels: depth per distance across that is a plane's at
    // most (where nothing tells), and that is as dark as it gets; how dark that is.
    constexpr float kTilt = 4, kSlack = 1, kFull = 6, kStrength = 2;
    constexpr int kRings = 4;
    static constexpr int kAxes[4][2] = {{4, 0}, {3, 3}, {0, 4}, {-3, 3}};
    const int64_t width = depths.size(1), height = depths.size(0);
    const auto in_front = [&](int64_t px, int64_t py) {
        if (px < 0 || py < 0 || px >= width || py >= height) return -kInfinite;
        return depth - depths.data()[py * width + px];
    };
    float sum = 0;
    for (const auto& axis : kAxes) {
        float most[2] = {0, 0};
        for (int ring = 1; ring <= kRings; ++ring) {
            const int64_t dx = axis[0] * ring * reach / (4 * kRings), dy = axis[1] * ring * reach / (4 * kRings);
            const float drop[2] = {in_front(x + dx, y + dy), in_front(x - dx, y - dy)};
            const float unit = static_cast<float>(ring * reach) / kRings * pixel;
            for (int side = 0; side < 2; ++side) {
                const float other = drop[1 - side];
                const float plane = other == -kInfinite ? kTilt * unit : std::max(0.f, -other) + kSlack * unit;
                const float outline = std::min(1.f, (drop[side] - plane) / (kFull * unit));
                most[side] = std::max(most[side], outline * (1 - 0.25f * static_cast<float>(ring - 1)));
            }
        }
        sum += std::abs(most[0] - most[1]);
    }
    return std::exp(-kStrength * sum / 8);
}

bool is_scene(const PointCloud& cloud, UpAxis up) {
    constexpr double kHighest = 0.33;
    if (find(cloud.attributes, "normal")) return false;
    if (cloud.facts.las) return true;
    std::vector<float> values[3];
    for_sample(cloud.size(), 20000, [&](int64_t i) {
        const float* p = cloud.positions.data() + 3 * i;
        if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) return;
        for (int k = 0; k < 3; ++k) values[k].push_back(p[k]);
    });
    if (values[0].size() < 3) return false;
    double extent[3];
    for (int k = 0; k < 3; ++k) {
        double ends[2];
        for (int end = 0; end < 2; ++end) {
            const double rank = (end ? 0.98 : 0.02) * static_cast<double>(values[k].size() - 1);
            const auto at = values[k].begin() + static_cast<std::ptrdiff_t>(rank);
            std::nth_element(values[k].begin(), at, values[k].end());
            ends[end] = static_cast<double>(*at);
        }
        extent[k] = ends[1] - ends[0];
    }
    const int axis = axis_of(up);
    return extent[axis] < kHighest * std::max(extent[(axis + 1) % 3], extent[(axis + 2) % 3]);
}

}  // namespace stipple::picture
