#pragma once
// A sweep of a spinning LiDAR in a room, without noise.

#include <algorithm>
#include <cmath>

#include "stipple/core/point_cloud.h"

namespace stipple::test {

struct SweepRoom {
    int rings = 32, steps = 720;
    double highest = 12, lowest = -25;                           // degrees
    double floor = -1.7, ceiling = 2.5, half_x = 8, half_y = 6;  // metres, from the sensor
    double pillar = 0;                                           // a pillar's half width at x = 3; 0: none
};

/// The way from the sensor to what is seen in a direction of unit length.
inline double range_in_room(const SweepRoom& room, double x, double y, double z) {
    double range = 1e9;
    if (x != 0) range = std::min(range, room.half_x / std::abs(x));
    if (y != 0) range = std::min(range, room.half_y / std::abs(y));
    if (z < 0) range = std::min(range, room.floor / z);
    if (z > 0) range = std::min(range, room.ceiling / z);
    if (x > 0 && std::abs(y / x * 3) < room.pillar) range = std::min(range, 3 / x);
    return range;
}

/// Ring by ring from the highest one, as KITTI has them; `intensity` is 100 + 10 x.
inline PointCloud sweep_of_room(const SweepRoom& room) {
    PointCloud cloud(int64_t{room.rings} * room.steps);
    Attribute intensity("intensity", DType::f32, cloud.size(), 1);
    for (int ring = 0; ring < room.rings; ++ring)
        for (int step = 0; step < room.steps; ++step) {
            const double elevation =
                (room.highest + (room.lowest - room.highest) * ring / (room.rings - 1)) * M_PI / 180;
            const double azimuth = 2 * M_PI * (step + 0.5) / room.steps;
            const double x = std::cos(elevation) * std::cos(azimuth), y = std::cos(elevation) * std::sin(azimuth),
                         z = std::sin(elevation), range = range_in_room(room, x, y, z);
            const int64_t i = int64_t{ring} * room.steps + step;
            float* at = cloud.positions.data() + 3 * i;
            at[0] = static_cast<float>(range * x), at[1] = static_cast<float>(range * y);
            at[2] = static_cast<float>(range * z);
            intensity.as<float>()(i, 0) = 100 + 10 * at[0];
        }
    cloud.attributes.push_back(std::move(intensity));
    return cloud;
}

}  // namespace stipple::test
