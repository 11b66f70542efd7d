// Times of the renderer: 1M points and about 100k triangles at 1024 x 1024, best of 5. CPU is the sum over all threads,
// of the best run.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/io/image_file.h"
#include "stipple/picture/figure.h"

namespace {

using namespace stipple;

constexpr float kTurn = 6.2831853f;

// A wavy torus at angles u, v; `normal` may be null.
void torus(float u, float v, float* position, float* normal) {
    const float wave = 0.04f * std::sin(8 * u) * std::sin(6 * v), tube = 0.4f + wave, ring = 1 + tube * std::cos(v);
    position[0] = ring * std::cos(u);
    position[1] = ring * std::sin(u);
    position[2] = tube * std::sin(v);
    if (!normal) return;
    normal[0] = std::cos(v) * std::cos(u);
    normal[1] = std::cos(v) * std::sin(u);
    normal[2] = std::sin(v);
}

PointCloud make_cloud(int64_t n, bool with_normals) {
    PointCloud cloud(n);
    Attribute normal("normal", DType::f32, with_normals ? n : 0, 3);
    const Rng rng(7);
    for (int64_t i = 0; i < n; ++i)
        torus(kTurn * rng.uniform(2 * i), kTurn * rng.uniform(2 * i + 1), cloud.positions.data() + 3 * i,
              with_normals ? &normal.as<float>()(i, 0) : nullptr);
    if (with_normals) cloud.attributes.push_back(std::move(normal));
    return cloud;
}

Mesh make_mesh(int64_t around, int64_t across) {
    Mesh mesh;
    mesh.vertices = PointCloud(around * across);
    mesh.triangles = Array<int32_t, 2>({2 * around * across, 3});
    int32_t* t = mesh.triangles.data();
    for (int64_t i = 0; i < around; ++i)
        for (int64_t j = 0; j < across; ++j) {
            torus(kTurn * static_cast<float>(i) / static_cast<float>(around),
                  kTurn * static_cast<float>(j) / static_cast<float>(across),
                  mesh.vertices.positions.data() + 3 * (i * across + j), nullptr);
            const auto at = [&](int64_t a, int64_t b) {
                return static_cast<int32_t>(a % around * across + b % across);
            };
            for (int32_t corner : {at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j), at(i + 1, j + 1), at(i, j + 1)})
                *t++ = corner;
        }
    return mesh;
}

struct Times {
    double wall = 1e30, cpu = 1e30;
};

template <class Work>
Times best_of_5(const Work& work) {
    Times best;
    for (int run = 0; run < 5; ++run) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t cpu_start = std::clock();
        work();
        const double cpu = 1e3 * static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
        const double wall = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        best.wall = std::min(best.wall, wall);
        best.cpu = std::min(best.cpu, cpu);
    }
    return best;
}

void measure(const char* name, const picture::Panel& panel) {
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 1024;
    Image image;
    const Times render = best_of_5([&] { image = picture::draw_figure({&panel, 1}, style).image; });
    int64_t bytes = 0;
    const Times png = best_of_5([&] {
        MemorySink sink;
        io::write_png(image, sink);
        bytes = static_cast<int64_t>(sink.bytes().size());
    });
    std::printf("%-28s %8.1f %8.1f %8.1f %8.1f %9.2f\n", name, render.wall, render.cpu, png.wall,
                render.wall + png.wall, static_cast<double>(bytes) / 1e6);
}

}  // namespace

int main() {
    std::printf("1024 x 1024, %d threads, best of 5, ms\n", threads());
    std::printf("%-28s %8s %8s %8s %8s %9s\n", "", "render", "cpu", "png", "sum", "png MB");
    const PointCloud plain = make_cloud(1'000'000, false), lit = make_cloud(1'000'000, true);
    const Mesh mesh = make_mesh(320, 160);
    picture::Panel panel;
    panel.cloud = &plain;
    panel.color_by = "constant";
    measure("1M points", panel);
    panel.color_by = "z";
    measure("1M points by height", panel);
    panel.cloud = &lit;
    measure("1M points with normals", panel);
    panel = {};
    panel.mesh = &mesh;
    measure("102k triangles", panel);
}
