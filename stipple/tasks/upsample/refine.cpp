#include "stipple/tasks/upsample/refine.h"

#include <algorithm>

#include "stipple/tasks/upsample/frame.h"
#include "stipple/tasks/upsample/relax.h"

namespace stipple::tasks {
namespace {

/// Points of other tiles that lie near tile t, and input points that stay, [n, 3].
std::vector<float> fixed_near(const ChosenTiles& of, size_t t, std::span<const int32_t> inputs, float margin,
                              const Candidates& chosen) {
    std::vector<float> fixed;
    const auto add = [&](const float* point) {
        if (distance_sq_to(of.tiles[t], point) <= margin * margin) fixed.insert(fixed.end(), point, point + 3);
    };
    for (size_t other = 0; other < of.tiles.size(); ++other) {
        // New points may lie outside of the boxes, a patch away at most.
        if (other == t || !are_near(of.tiles[t], of.tiles[other], 2 * margin)) continue;
        for (int64_t i = of.chosen[other].first; i < of.chosen[other].second; ++i) add(chosen.points.data() + 3 * i);
    }
    for (const int32_t i : inputs)
        if (of.stays[static_cast<size_t>(i)]) add(of.cloud.cloud().data() + 3 * int64_t{i});
    return fixed;
}

/// relax() on a device, of points [n, 3] on the CPU.
void relax_on(Device device, std::vector<float>& points, int64_t movable) {
    const View<float, 2> here(points.data(), {static_cast<int64_t>(points.size() / 3), 3});
    if (device.type == DeviceType::cpu) return relax(here, movable);
    const auto bytes = [](int64_t rows) { return 3 * rows * static_cast<int64_t>(sizeof(float)); };
    Array<float, 2> there({here.size(0), 3}, device);
    copy_bytes(there.data(), device, here.data(), {}, bytes(here.size(0)));
    relax(there.view(), movable);
    copy_bytes(here.data(), {}, there.data(), device, bytes(movable));
}

}  // namespace

void refine_tile(PointMover& mover, const ChosenTiles& of, size_t t, bool is_rough, Candidates& chosen) {
    const View<const float, 2> cloud = of.cloud.cloud();
    const float margin = patch_radius(of.cloud.index(), cloud, of.tiles[t].points);
    const std::vector<int32_t> inputs = points_near(cloud, of.tiles, t, margin);
    const auto [first, last] = of.chosen[t];
    const int64_t n = last - first;
    if (n == 0) return;
    Queries queries;
    queries.points.assign(chosen.points.begin() + 3 * first, chosen.points.begin() + 3 * last);
    queries.parents.assign(chosen.parents.begin() + first, chosen.parents.begin() + last);
    const std::vector<float> fixed = fixed_near(of, t, inputs, margin, chosen);
    queries.points.insert(queries.points.end(), fixed.begin(), fixed.end());
    relax_on(of.cloud.device(), queries.points, n);
    queries.points.resize(static_cast<size_t>(3 * n));

    Candidates moved;
    moved.width = chosen.width;
    mover.move({cloud, inputs, of.support.fills_holes()}, queries, is_rough, moved);
    if (moved.size() != n) return;
    of.planes.keep({moved.points.data(), {n, 3}});
    const std::vector<SupportGrade> grades = of.support.of({moved.points.data(), {n, 3}});
    for (int64_t i = 0; i < n; ++i) {
        if (grades[static_cast<size_t>(i)] != SupportGrade::between) continue;
        const int64_t to = first + i;
        std::copy_n(moved.points.begin() + 3 * i, 3, chosen.points.begin() + 3 * to);
        std::copy_n(moved.sources.begin() + moved.width * i, moved.width, chosen.sources.begin() + moved.width * to);
        std::copy_n(moved.weights.begin() + moved.width * i, moved.width, chosen.weights.begin() + moved.width * to);
    }
}

}  // namespace stipple::tasks
