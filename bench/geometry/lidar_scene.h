#pragma once
// Two LiDAR scans of a made-up place, of exactly known pose: what options of registration are chosen on, so that real
// scans remain a test.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/rng.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::bench {

/// Boxes, upright cylinders and balls of a seed on a floor, within four walls, about a sensor near the middle.
class LidarScene {
public:
    explicit LidarScene(uint64_t seed) : rng_(seed, 5) {
        half_ = {7 + 18 * next(), 5 + 15 * next()};
        height_ = 3 + 5 * next();
        is_open_ = next() < 0.5;
        const int things = 12 + static_cast<int>(20 * next());
        for (int i = 0; i < things; ++i) {
            const double angle = 2 * M_PI * next(), away = 2.5 + (half_[0] - 2.5) * next();
            const geometry::Vector3 at = {away * std::cos(angle), away * std::sin(angle), 0};
            const double size = 0.2 + 1.3 * next();
            switch (i % 3) {
                case 0: boxes_.push_back({at, {size, 0.3 + next(), 0.4 + 2 * next()}, M_PI * next()}); break;
                case 1: cylinders_.push_back({at, 0.05 + 0.3 * next(), 1 + 3 * next()}); break;
                default: balls_.push_back({{at[0], at[1], 0.5 + 2 * next()}, 0.3 * size}); break;
            }
        }
    }

    /// A turning scanner's points in its own frame, `pose` being scanner to scene: 64 rings of 1024 between -25 and 15
    /// degrees, ranges to 60 m with noise of 2 cm.
    PointCloud scan(const geometry::RigidTransform& pose, uint64_t seed) const {
        constexpr int kRings = 64, kAround = 1024;
        constexpr double kNoise = 0.02, kFarthest = 60;
        const Rng noise(seed, 6);
        std::vector<float> places;
        for (int ring = 0; ring < kRings; ++ring)
            for (int step = 0; step < kAround; ++step) {
                const double up = (-25 + 40.0 * ring / (kRings - 1)) * M_PI / 180, turn = 2 * M_PI * step / kAround;
                const geometry::Vector3 way = {std::cos(up) * std::cos(turn), std::cos(up) * std::sin(turn),
                                               std::sin(up)};
                const double range = first_hit(pose.translation, pose.rotate(way));
                if (!(range < kFarthest)) continue;
                const double measured = range + kNoise * noise.normal(static_cast<uint64_t>(ring * kAround + step));
                for (const double number : way) places.push_back(static_cast<float>(measured * number));
            }
        PointCloud cloud(static_cast<int64_t>(places.size() / 3));
        std::copy(places.begin(), places.end(), cloud.positions.data());
        return cloud;
    }

private:
    using Vector3 = geometry::Vector3;
    struct Box {
        Vector3 at, half;
        double turn;
    };
    struct Cylinder {
        Vector3 at;
        double radius, height;
    };
    struct Ball {
        Vector3 at;
        double radius;
    };

    double next() { return rng_.uniform(drawn_++); }

    /// The distance at which a ray meets the first thing, infinity for none.
    double first_hit(const Vector3& from, const Vector3& way) const {
        double least = std::numeric_limits<double>::infinity();
        const auto take = [&](double t) { least = t > 0.3 && t < least ? t : least; };
        if (way[2] < 0) take(-from[2] / way[2]);
        if (way[2] > 0 && !is_open_) take((height_ - from[2]) / way[2]);
        for (int axis = 0; axis < 2; ++axis) {
            if (way[axis] == 0) continue;
            const double t = ((way[axis] > 0 ? half_[axis] : -half_[axis]) - from[axis]) / way[axis];
            if (from[2] + t * way[2] < height_) take(t);
        }
        for (const Box& box : boxes_) take(box_hit(box, from, way));
        for (const Cylinder& cylinder : cylinders_) {
            const double x = from[0] - cylinder.at[0], y = from[1] - cylinder.at[1];
            const double t = ball_hit({x, y, 0}, {way[0], way[1], 0}, cylinder.radius);
            if (from[2] + t * way[2] < cylinder.height) take(t);
        }
        for (const Ball& ball : balls_)
            take(ball_hit({from[0] - ball.at[0], from[1] - ball.at[1], from[2] - ball.at[2]}, way, ball.radius));
        return least;
    }

    static double ball_hit(const Vector3& from, const Vector3& way, double radius) {
        const double a = way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
        const double b = from[0] * way[0] + from[1] * way[1] + from[2] * way[2];
        const double c = from[0] * from[0] + from[1] * from[1] + from[2] * from[2] - radius * radius;
        const double root = b * b - a * c;
        return root < 0 || a == 0 ? std::numeric_limits<double>::infinity() : (-b - std::sqrt(root)) / a;
    }

    static double box_hit(const Box& box, const Vector3& from, const Vector3& way) {
        const double c = std::cos(box.turn), s = std::sin(box.turn);
        const Vector3 d = {from[0] - box.at[0], from[1] - box.at[1], from[2] - box.at[2]};
        const Vector3 at = {c * d[0] + s * d[1], c * d[1] - s * d[0], d[2]};
        const Vector3 to = {c * way[0] + s * way[1], c * way[1] - s * way[0], way[2]};
        double enter = -std::numeric_limits<double>::infinity(), leave = -enter;
        for (int axis = 0; axis < 3; ++axis) {
            const double a = (-box.half[axis] - at[axis]) / to[axis], b = (box.half[axis] - at[axis]) / to[axis];
            enter = std::max(enter, std::min(a, b));
            leave = std::min(leave, std::max(a, b));
        }
        return enter < leave ? enter : std::numeric_limits<double>::infinity();
    }

    Rng rng_;
    uint64_t drawn_ = 0;
    std::array<double, 2> half_ = {};
    double height_ = 0;
    bool is_open_ = false;
    std::vector<Box> boxes_;
    std::vector<Cylinder> cylinders_;
    std::vector<Ball> balls_;
};

struct MadePair {
    PointCloud source, target;
    geometry::RigidTransform truth;  // source to target
};

/// Two scans 0.2 to 1 m and up to 5 degrees of yaw (1 of tilt) apart.
inline MadePair made_pair(uint64_t seed) {
    const LidarScene scene(seed);
    const Rng rng(seed, 7);
    geometry::RigidTransform first, second;
    first.translation = {0.5 * rng.normal(0), 0.5 * rng.normal(1), 1.6};
    const double angle = 2 * M_PI * rng.uniform(2), away = 0.2 + 0.8 * rng.uniform(3);
    second = geometry::rotation_about({0, 0, 1}, (2 * rng.uniform(4) - 1) * 5 * M_PI / 180) *
             geometry::rotation_about({rng.normal(5), rng.normal(6), 0}, rng.uniform(7) * M_PI / 180);
    second.translation = {first.translation[0] + away * std::cos(angle), first.translation[1] + away * std::sin(angle),
                          1.6 + 0.05 * rng.normal(8)};
    return {scene.scan(second, 2 * seed + 1), scene.scan(first, 2 * seed), geometry::inverse(first) * second};
}

}  // namespace stipple::bench
