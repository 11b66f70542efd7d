#pragma once
// A simulated drive: a car with a spinning LiDAR on its roof in the streets of a made-up town, whose poses are exactly
// known at every moment.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/core/point_cloud.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::test {

struct DriveOptions {
    int sweeps = 300;
    int rings = 64, columns = 2000;      // of a sweep
    double highest = 2, lowest = -24.8;  // degrees: as KITTI's scanner
    double period = 0.1;                 // seconds of a sweep
    double speed = 11, noise = 0.02;     // metres a second, of ranges in metres
    double farthest = 100;               // metres
    double straight = 6, turn = 4;       // seconds between turns, and of a turn of 90 degrees
    bool is_bent = true;                 // the car moves while the scanner turns
    uint64_t seed = 1;
};

class LidarDrive {
public:
    explicit LidarDrive(const DriveOptions& options = {}) : options_(options), rng_(options.seed, 31) {
        drive();
        build();
    }

    /// The pose of the scanner in the town at a time in seconds.
    geometry::RigidTransform pose_at(double time) const {
        const double at = std::clamp(time / kStep, 0.0, static_cast<double>(way_.size() - 2));
        const auto k = static_cast<size_t>(at);
        const double share = at - static_cast<double>(k);
        const auto mixed = [&](int i) { return way_[k][i] + share * (way_[k + 1][i] - way_[k][i]); };
        // Springs: a little roll, pitch and bounce.
        const double roll = 0.006 * std::sin(3.1 * time), pitch = 0.005 * std::sin(4.3 * time + 1);
        geometry::RigidTransform pose = geometry::rotation_about({0, 0, 1}, mixed(2)) *
                                        geometry::rotation_about({0, 1, 0}, pitch) *
                                        geometry::rotation_about({1, 0, 0}, roll);
        pose.translation = {mixed(0), mixed(1), 1.73 + 0.02 * std::sin(5.7 * time)};
        return pose;
    }
    /// At the middle of a sweep, to that of the first: what odometry shall find.
    geometry::RigidTransform truth(int sweep) const {
        return geometry::inverse(pose_at(middle(0))) * pose_at(middle(sweep));
    }

    /// In coordinates of the scanner, which are those of each moment where it is bent; with the attribute `time`.
    PointCloud sweep(int number) const {
        const int columns = options_.columns;
        std::vector<std::vector<float>> places(static_cast<size_t>(columns));
        const Rng noise(options_.seed, 1000 + static_cast<uint64_t>(number));
        parallel_for(columns, 16, [&](int64_t begin, int64_t end) {
            for (int64_t column = begin; column < end; ++column) cast(number, column, noise, places[column]);
        });
        int64_t n = 0;
        for (const auto& some : places) n += static_cast<int64_t>(some.size()) / 3;
        PointCloud cloud(n);
        Attribute time("time", DType::f64, n, 1);
        float* at = cloud.positions.data();
        double* when = time.as<double>().data();
        for (int column = 0; column < columns; ++column) {
            at = std::copy(places[column].begin(), places[column].end(), at);
            when = std::fill_n(when, places[column].size() / 3, moment(number, column));
        }
        cloud.attributes.push_back(std::move(time));
        return cloud;
    }

private:
    using Vector3 = geometry::Vector3;
    static constexpr double kStep = 0.001;

    struct Box {
        Vector3 at, half;
        double turn;
    };
    struct Pole {
        Vector3 at;
        double radius, height;
    };
    struct Ball {
        Vector3 at;
        double radius;
    };
    /// Anything's circle on the ground.
    struct Thing {
        double x, y, radius;
        int kind;
        size_t index;
    };

    double next() { return rng_.uniform(drawn_++); }
    double middle(int sweep) const { return (sweep + 0.5) * options_.period; }
    double moment(int sweep, int64_t column) const {
        return (sweep + static_cast<double>(column) / options_.columns) * options_.period;
    }

    /// x, y and heading in steps of a millisecond: straight on, a turn to the left, straight on, one to the right.
    void drive() {
        constexpr double kBeyond = 6;  // seconds: streets go on
        const auto steps = static_cast<int64_t>((options_.sweeps * options_.period + kBeyond) / kStep);
        double x = 0, y = 0, heading = 0.3;
        for (double away = 60; away > 0; away -= 0.01)
            street_.push_back({-away * std::cos(heading), -away * std::sin(heading), heading});
        for (int64_t k = 0; k < steps; ++k) {
            way_.push_back({x, y, heading});
            const double time = static_cast<double>(k) * kStep, block = options_.straight + options_.turn;
            const double within = std::fmod(time, block) - options_.straight;
            const double side = std::fmod(std::floor(time / block), 2) == 0 ? 1 : -1;
            double speed = options_.speed + 0.1 * options_.speed * std::sin(0.9 * time), rate = 0;
            if (within > 0) {
                const double wave = std::sin(M_PI * within / options_.turn);
                rate = side * M_PI / options_.turn * wave * wave;
                speed *= 1 - 0.4 * wave * wave;
            }
            heading += kStep * rate;
            x += kStep * speed * std::cos(heading);
            y += kStep * speed * std::sin(heading);
        }
        street_.insert(street_.end(), way_.begin(), way_.end());
    }

    double clearance(double x, double y) const {
        double least_sq = std::numeric_limits<double>::infinity();
        for (size_t k = 0; k < street_.size(); k += 100)
            least_sq = std::min(least_sq,
                                (street_[k][0] - x) * (street_[k][0] - x) + (street_[k][1] - y) * (street_[k][1] - y));
        return std::sqrt(least_sq);
    }

    /// Houses, parked cars, poles and trees along the way, none on it.
    void build() {
        double length = 0, house = 0, car = 3, pole = 5;
        const auto place = [&](size_t k, double side, double ahead = 0) {
            const double c = std::cos(street_[k][2]), s = std::sin(street_[k][2]);
            return Vector3{street_[k][0] - side * s + ahead * c, street_[k][1] + side * c + ahead * s, 0};
        };
        for (size_t k = 1; k < street_.size(); ++k) {
            length += std::hypot(street_[k][0] - street_[k - 1][0], street_[k][1] - street_[k - 1][1]);
            for (const double side : {1.0, -1.0}) {
                if (length >= house) {
                    const Vector3 half = {4 + 5 * next(), 3 + 3 * next(), 2 + 5 * next()};
                    const Vector3 at = place(k, side * (8.5 + half[1] + 3 * next()), 10 * next());
                    if (clearance(at[0], at[1]) > 1 + std::hypot(half[0], half[1]) - 2)
                        add_box({at, half, street_[k][2]});
                }
                if (length >= car && next() < 0.6) {
                    const Vector3 at = place(k, side * 4.2);
                    if (clearance(at[0], at[1]) > 3.9) add_box({at, {2.2, 0.9, 0.75}, street_[k][2]});
                }
                if (length >= pole) {
                    const Vector3 at = place(k, side * (6 + next()), 4 * next());
                    if (clearance(at[0], at[1]) > 4) add_tree(at, next() < 0.5);
                }
            }
            if (length >= house) house += 20;
            if (length >= car) car += 7;
            if (length >= pole) pole += 11;
        }
    }
    void add_box(const Box& box) {
        Box raised = box;
        raised.at[2] = box.half[2];
        things_.push_back({box.at[0], box.at[1], std::hypot(box.half[0], box.half[1]), 0, boxes_.size()});
        boxes_.push_back(raised);
    }
    void add_tree(const Vector3& at, bool is_tree) {
        const double radius = 0.08 + 0.15 * next(), height = is_tree ? 3 : 5 + 2 * next();
        things_.push_back({at[0], at[1], radius, 1, poles_.size()});
        poles_.push_back({at, radius, height});
        if (!is_tree) return;
        const double crown = 1 + next();
        things_.push_back({at[0], at[1], crown, 2, balls_.size()});
        balls_.push_back({{at[0], at[1], height + 0.7 * crown}, crown});
    }

    void cast(int number, int64_t column, const Rng& noise, std::vector<float>& places) const {
        const geometry::RigidTransform pose = pose_at(options_.is_bent ? moment(number, column) : middle(number));
        const double azimuth = M_PI - 2 * M_PI * static_cast<double>(column) / options_.columns;
        const Vector3 ahead = pose.rotate({std::cos(azimuth), std::sin(azimuth), 0});
        const double flat = std::hypot(ahead[0], ahead[1]);
        std::vector<const Thing*> near;
        for (const Thing& thing : things_) {
            const double x = thing.x - pose.translation[0], y = thing.y - pose.translation[1];
            const double along = (x * ahead[0] + y * ahead[1]) / flat, beside = (x * ahead[1] - y * ahead[0]) / flat;
            // The scanner leans a little: more than that is not needed.
            if (along > -thing.radius && along < options_.farthest + thing.radius &&
                std::abs(beside) < thing.radius + 0.05 + 0.006 * std::abs(along))
                near.push_back(&thing);
        }
        for (int ring = 0; ring < options_.rings; ++ring) {
            const double up =
                (options_.highest + (options_.lowest - options_.highest) * ring / (options_.rings - 1)) * M_PI / 180;
            const Vector3 way = {std::cos(up) * std::cos(azimuth), std::cos(up) * std::sin(azimuth), std::sin(up)};
            const double range = first_hit(pose.translation, pose.rotate(way), near);
            if (!(range < options_.farthest)) continue;
            const auto index = static_cast<uint64_t>(column * options_.rings + ring);
            const double measured = range + options_.noise * noise.normal(index);
            for (const double axis : way) places.push_back(static_cast<float>(measured * axis));
        }
    }

    double first_hit(const Vector3& from, const Vector3& way, const std::vector<const Thing*>& near) const {
        double least = way[2] < 0 ? -from[2] / way[2] : std::numeric_limits<double>::infinity();
        for (const Thing* thing : near) {
            const double hit = thing->kind == 0   ? box_hit(boxes_[thing->index], from, way)
                               : thing->kind == 1 ? pole_hit(poles_[thing->index], from, way)
                                                  : ball_hit(balls_[thing->index], from, way);
            if (hit > 0.5) least = std::min(least, hit);
        }
        return least;
    }
    static double ball_hit(const Ball& ball, const Vector3& from, const Vector3& way) {
        const Vector3 d = {from[0] - ball.at[0], from[1] - ball.at[1], from[2] - ball.at[2]};
        const double b = d[0] * way[0] + d[1] * way[1] + d[2] * way[2];
        const double root = b * b - (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] - ball.radius * ball.radius);
        return root < 0 ? std::numeric_limits<double>::infinity() : -b - std::sqrt(root);
    }
    static double pole_hit(const Pole& pole, const Vector3& from, const Vector3& way) {
        const double x = from[0] - pole.at[0], y = from[1] - pole.at[1];
        const double a = way[0] * way[0] + way[1] * way[1], b = x * way[0] + y * way[1];
        const double root = b * b - a * (x * x + y * y - pole.radius * pole.radius);
        if (root < 0 || a == 0) return std::numeric_limits<double>::infinity();
        const double hit = (-b - std::sqrt(root)) / a, z = from[2] + hit * way[2];
        return z >= 0 && z <= pole.height ? hit : std::numeric_limits<double>::infinity();
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

    DriveOptions options_;
    Rng rng_;
    uint64_t drawn_ = 0;
    std::vector<std::array<double, 3>> way_, street_;  // the street begins before and ends behind
    std::vector<Thing> things_;
    std::vector<Box> boxes_;
    std::vector<Pole> poles_;
    std::vector<Ball> balls_;
};

}  // namespace stipple::test
