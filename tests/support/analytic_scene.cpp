#include "tests/support/analytic_scene.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"

namespace stipple::test {
namespace {

constexpr double kOpening = 0.69;
constexpr double kFloor = -0.62;  // the top of the disc

double clamped(double value, double low, double high) {
    return std::min(std::max(value, low), high);
}

double disc_distance(Vec3d p) {
    const double radial = std::hypot(p.x, p.y) - 1.1, vertical = std::abs(p.z - (kFloor - 0.04)) - 0.04;
    return std::max(radial, vertical);
}
double ball_distance(Vec3d p) {
    return length(p - Vec3d{-0.42, -0.3, kFloor + 0.42}) - 0.42;
}
double torus_distance(Vec3d p) {
    const Vec3d q = p - Vec3d{0.42, -0.34, kFloor + 0.45};  // it stands on its edge, its axis along y
    return std::hypot(std::hypot(q.x, q.z) - 0.32, q.y) - 0.13;
}
double box_distance(Vec3d p) {
    const Vec3d q = p - Vec3d{0.05, 0.5, kFloor + 0.5};
    return std::max({std::abs(q.x) - 0.3, std::abs(q.y) - 0.22, std::abs(q.z) - 0.5});
}

Vec3d normal_at(Vec3d p) {
    constexpr double kStep = 1e-5;
    return unit(Vec3d{
        analytic_distance(p + Vec3d{kStep, 0, 0}) - analytic_distance(p - Vec3d{kStep, 0, 0}),
        analytic_distance(p + Vec3d{0, kStep, 0}) - analytic_distance(p - Vec3d{0, kStep, 0}),
        analytic_distance(p + Vec3d{0, 0, kStep}) - analytic_distance(p - Vec3d{0, 0, kStep}),
    });
}

bool chequer(double a, double b, double side) {
    return ((static_cast<int64_t>(std::floor(a / side)) + static_cast<int64_t>(std::floor(b / side))) & 1) != 0;
}

/// Albedo, then a lamp and a sky; the ball's highlight alone depends on where one looks from.
Vec3d colour_at(Vec3d p, Vec3d view) {
    const double disc = disc_distance(p), ball = ball_distance(p), torus = torus_distance(p), box = box_distance(p);
    const double least = std::min({disc, ball, torus, box});
    Vec3d albedo;
    double gloss = 0;
    if (least == disc) {
        albedo = chequer(p.x, p.y, 0.22) ? Vec3d{0.85, 0.85, 0.8} : Vec3d{0.25, 0.3, 0.35};
    } else if (least == ball) {
        albedo = std::sin(18 * p.z) > 0 ? Vec3d{0.9, 0.2, 0.15} : Vec3d{0.95, 0.8, 0.3};
        gloss = 0.35;
    } else if (least == torus) {
        albedo = {0.2, 0.6, 0.3};
    } else {
        albedo = chequer(p.x + p.y, p.z, 0.125) ? Vec3d{0.2, 0.35, 0.8} : Vec3d{0.75, 0.8, 0.95};
    }
    const Vec3d n = normal_at(p), lamp = unit(Vec3d{0.4, -0.5, 0.8});
    const double light = 0.45 + 0.1 * n.z + 0.45 * std::max(0.0, dot(n, lamp));
    const double highlight = gloss * std::pow(std::max(0.0, dot(n, unit(lamp - view))), 30);
    return albedo * light + Vec3d{highlight, highlight, highlight};
}

struct WorldRay {
    Vec3d origin, direction;  // of unit length
    double depth_of_unit;     // along the camera's axis
};

WorldRay world_ray(const radiance::Camera& camera, double u, double v) {
    const auto& m = camera.to_world;
    const Vec3d d = {(u - camera.cx) / camera.fx, -(v - camera.cy) / camera.fy, -1};
    const Vec3d world = {m[0] * d.x + m[1] * d.y + m[2] * d.z, m[4] * d.x + m[5] * d.y + m[6] * d.z,
                         m[8] * d.x + m[9] * d.y + m[10] * d.z};
    return {{m[3], m[7], m[11]}, unit(world), 1 / length(world)};
}

/// Distance along the ray to the surface.
std::optional<double> trace(const WorldRay& ray) {
    constexpr double kBound = 1.4;  // no surface outside of this ball
    const double along = -dot(ray.origin, ray.direction);
    const double off_sq = dot(ray.origin, ray.origin) - along * along;
    if (off_sq > kBound * kBound) return {};
    const double half = std::sqrt(kBound * kBound - off_sq);
    double t = std::max(0.0, along - half);
    for (int step = 0; step < 400 && t < along + half; ++step) {
        const double distance = analytic_distance(ray.origin + ray.direction * t);
        if (distance < 1e-6) return t;
        t += distance;
    }
    return {};
}

uint8_t to_byte(double value) {
    return static_cast<uint8_t>(std::lround(255 * clamped(value, 0, 1)));
}

void shade_pixel(const radiance::Camera& camera, int x, int y, uint8_t* rgba) {
    Vec3d sum;
    int hits = 0;
    for (int sample = 0; sample < 4; ++sample) {
        const WorldRay ray = world_ray(camera, x + 0.25 + 0.5 * (sample & 1), y + 0.25 + 0.5 * (sample >> 1));
        if (const auto t = trace(ray)) {
            sum = sum + colour_at(ray.origin + ray.direction * *t, ray.direction);
            ++hits;
        }
    }
    for (int c = 0; c < 3; ++c) rgba[c] = hits > 0 ? to_byte(sum[c] / hits) : uint8_t{0};
    rgba[3] = to_byte(hits / 4.0);
}

/// Point `index` of a spiral that covers the sphere between z = -0.55 and 0.95 evenly.
Vec3d on_sphere(double index, int count, double turn) {
    const double z = 0.95 - 1.5 * (index + 0.5) / count, radius = std::sqrt(1 - z * z);
    const double angle = turn + index * std::numbers::pi * (3 - std::sqrt(5.0));
    return Vec3d{radius * std::cos(angle), radius * std::sin(angle), z} * double{kAnalyticDistance};
}

}  // namespace

double analytic_distance(Vec3d p) {
    return std::min({disc_distance(p), ball_distance(p), torus_distance(p), box_distance(p)});
}

radiance::Camera analytic_camera(int side, Vec3d position) {
    radiance::Camera camera;
    camera.width = camera.height = side;
    camera.fx = camera.fy = static_cast<float>(0.5 * side / std::tan(0.5 * kOpening));
    camera.cx = camera.cy = 0.5f * static_cast<float>(side);
    const Vec3d back = unit(position), right = unit(cross(Vec3d{0, 0, 1}, back)), up = cross(back, right);
    for (int row = 0; row < 3; ++row) {
        const Vec3d values = {right[row], up[row], back[row]};
        for (int column = 0; column < 3; ++column)
            camera.to_world[static_cast<size_t>(4 * row + column)] = static_cast<float>(values[column]);
        camera.to_world[static_cast<size_t>(4 * row + 3)] = static_cast<float>(position[row]);
    }
    return camera;
}

Image analytic_picture(const radiance::Camera& camera) {
    Image image(camera.width, camera.height, 4);
    parallel_for(camera.height, 4, [&](int64_t begin, int64_t end) {
        for (int64_t y = begin; y < end; ++y)
            for (int x = 0; x < camera.width; ++x) shade_pixel(camera, x, static_cast<int>(y), image.at(x, y));
    });
    return image;
}

double analytic_depth(const radiance::Camera& camera, int x, int y) {
    const WorldRay ray = world_ray(camera, x + 0.5, y + 0.5);
    const auto t = trace(ray);
    return t ? *t * ray.depth_of_unit : std::numeric_limits<double>::infinity();
}

radiance::Scene analytic_scene(int side, int train_views, int test_views, uint64_t seed) {
    radiance::Scene scene;
    const double turn = 2 * std::numbers::pi * Rng(seed).uniform(0);
    const auto add = [&](std::vector<radiance::Photograph>& to, const char* name, double index, int count) {
        radiance::Photograph photograph;
        photograph.file = fmt::format("{}/r_{}.png", name, to.size());
        photograph.camera = analytic_camera(side, on_sphere(index, count, turn));
        photograph.pixels = analytic_picture(photograph.camera);
        to.push_back(std::move(photograph));
    };
    for (int i = 0; i < train_views; ++i) add(scene.train, "train", i, train_views);
    for (int i = 0; i < test_views; ++i) add(scene.test, "test", i + 0.37, test_views);
    scene.has_alpha = true;
    scene.near = kAnalyticNear;
    scene.far = kAnalyticFar;
    scene.listed_images = train_views + test_views;
    scene.source = "blender";
    return scene;
}

}  // namespace stipple::test
