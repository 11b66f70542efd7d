#include "stipple/geometry/query/box_tree.h"

#include <algorithm>
#include <cmath>

#include "stipple/ops/common/spatial_order.h"

namespace stipple::geometry::cpu {
namespace {

constexpr int64_t kFanout = 8;
constexpr int kMaxLevels = 11;  // 8^11 > 2^31 faces
constexpr int kStack = kMaxLevels * (kFanout - 1) + 1;

double box_dist_sq(const Box<float>& box, const float* p) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const double away = std::max(0.0, std::max(double{box.low[axis]} - p[axis], double{p[axis]} - box.high[axis]));
        sum += away * away;
    }
    return sum;
}

/// A ray against boxes. Boxes are taken a little larger than they are, by more than any rounding here and in
/// meet_triangle, so that no triangle is lost whose test would say yes.
struct BoxRay {
    double origin[3], inverse[3], pad;
    bool moves[3];

    BoxRay(const Ray& ray, const Triangles& triangles) {
        double largest = triangles.largest();
        for (int axis = 0; axis < 3; ++axis) {
            origin[axis] = ray.origin[axis];
            moves[axis] = ray.direction[axis] != 0;
            inverse[axis] = moves[axis] ? 1 / double{ray.direction[axis]} : 0;
            largest = std::max(largest, std::abs(origin[axis]));
        }
        pad = 0x1p-40 * largest;
    }

    /// Where the ray enters; kFarAway where it does not within [t_near, t_far].
    double enter(const Box<float>& box, double t_near, double t_far) const {
        for (int axis = 0; axis < 3; ++axis) {
            const double low = box.low[axis] - pad - origin[axis], high = box.high[axis] + pad - origin[axis];
            if (!moves[axis]) {
                if (low > 0 || high < 0) return kFarAway;
                continue;
            }
            const double a = low * inverse[axis], b = high * inverse[axis];
            t_near = std::max(t_near, std::min(a, b));
            t_far = std::min(t_far, std::max(a, b));
        }
        return t_near <= t_far ? t_near : kFarAway;
    }
};

struct Visit {
    double key;  // of the box: squared distance, or where the ray enters
    int level;
    int64_t node;
};

/// Calls face(index) for the faces of every box whose key(box) is at most bound(), nearer boxes first.
template <class Key, class Bound, class Face>
void traverse(const BoxTree& tree, const Key& key, const Bound& bound, const Face& face) {
    if (tree.faces.empty()) return;
    Visit stack[kStack];
    int size = 0;
    const int top = static_cast<int>(tree.levels.size()) - 1;
    stack[size++] = {key(tree.levels[top][0]), top, 0};
    while (size > 0) {
        const Visit visit = stack[--size];
        if (!(visit.key <= bound())) continue;
        const int64_t first = visit.node * kFanout;
        if (visit.level == 0) {
            const int64_t end = std::min(first + kFanout, static_cast<int64_t>(tree.faces.size()));
            for (int64_t i = first; i < end; ++i) {
                if (!face(tree.faces[i])) return;
            }
            continue;
        }
        const std::vector<Box<float>>& boxes = tree.levels[visit.level - 1];
        const int64_t end = std::min(first + kFanout, static_cast<int64_t>(boxes.size()));
        const int before = size;
        for (int64_t i = first; i < end; ++i) {
            const Visit child = {key(boxes[i]), visit.level - 1, i};
            if (!(child.key <= bound())) continue;
            int at = size++;  // farthest first, so that the nearest is taken next
            for (; at > before && stack[at - 1].key < child.key; --at) stack[at] = stack[at - 1];
            stack[at] = child;
        }
    }
}

/// Calls take(where, face) for the hits of a ray; take gives the t beyond which nothing is wanted any more.
template <class Take>
void cast(const BoxTree& tree, const Triangles& triangles, const Ray& ray, const Take& take) {
    const BoxRay box_ray(ray, triangles);
    const Vec3d origin = origin_of(ray), direction = direction_of(ray);
    const ShearedRay sheared = shear_ray(origin, direction);
    const float slack = ray_slack(ray.origin, ray.direction, triangles.largest());
    // A t that rounds to t_near or t_far is within.
    const double low = ray.t_near - 0x1p-22 * ray.t_near;
    double high = ray.t_far + 0x1p-22 * ray.t_far;
    traverse(
        tree, [&](const Box<float>& box) { return box_ray.enter(box, low, high); },
        [&] { return std::min(high, std::numeric_limits<double>::max()); },
        [&](int32_t face) {
            if (!may_hit(ray.origin, ray.direction, slack, triangles.corner(face, 0), triangles.corner(face, 1),
                         triangles.corner(face, 2)))
                return true;
            const Triangle triangle = triangles(face);
            if (!passes_through(sheared, triangle)) return true;
            const OnRay met = meet_plane(origin, direction, triangle);
            if (!(met.t >= ray.t_near && met.t <= ray.t_far)) return true;
            const float wanted = take(met, face);
            high = std::min(high, wanted + 0x1p-22 * std::abs(wanted));
            return wanted >= ray.t_near;
        });
}

}  // namespace

BoxTree build_boxes(const Triangles& triangles) {
    BoxTree tree;
    const int64_t m = triangles.size();
    if (m == 0) return tree;
    Array<float, 2> centers({m, 3});
    tree.faces.resize(static_cast<size_t>(m));
    for (int64_t i = 0; i < m; ++i) {
        const auto face = static_cast<int32_t>(i);
        tree.faces[i] = face;
        for (int axis = 0; axis < 3; ++axis) {
            centers.data()[3 * i + axis] = triangles.corner(face, 0)[axis] / 3 + triangles.corner(face, 1)[axis] / 3 +
                                           triangles.corner(face, 2)[axis] / 3;
        }
    }
    ops::cpu::spatial_order(std::as_const(centers).view(), tree.faces, kFanout);

    std::vector<Box<float>>* level =
        &tree.levels.emplace_back(static_cast<size_t>((m + kFanout - 1) / kFanout), Box<float>::none());
    for (int64_t i = 0; i < m; ++i) {
        for (int corner = 0; corner < 3; ++corner) {
            const float* p = triangles.corner(tree.faces[i], corner);
            (*level)[i / kFanout].add(p);
        }
    }
    while (tree.levels.back().size() > 1) {
        const auto n = static_cast<int64_t>(tree.levels.back().size());
        std::vector<Box<float>> parents(static_cast<size_t>((n + kFanout - 1) / kFanout), Box<float>::none());
        for (int64_t i = 0; i < n; ++i) parents[i / kFanout].add(tree.levels.back()[i]);
        tree.levels.push_back(std::move(parents));
    }
    return tree;
}

NearestFace nearest_face(const BoxTree& tree, const Triangles& triangles, const float* query, int32_t guess) {
    const Vec3d point = {query[0], query[1], query[2]};
    NearestFace best;
    if (guess >= 0) best.offer(closest_on_triangle(point, triangles(guess)), guess);
    // A face at an equal distance, once rounded, may have a lower index.
    traverse(
        tree, [&](const Box<float>& box) { return box_dist_sq(box, query); },
        [&] { return best.place.dist_sq * (1 + 0x1p-20); },
        [&](int32_t face) {
            best.offer(closest_on_triangle(point, triangles(face)), face);
            return true;
        });
    return best;
}

void first_hits(const BoxTree& tree, const Triangles& triangles, const Ray* rays, int count, bool, FirstHit* hits) {
    for (int i = 0; i < count; ++i) {
        FirstHit best;
        cast(tree, triangles, rays[i], [&](const OnRay& met, int32_t face) {
            best.offer(met, face);
            return best.t;
        });
        hits[i] = best;
    }
}

void any_hits(const BoxTree& tree, const Triangles& triangles, const Ray* rays, int count, bool, bool* hits) {
    for (int i = 0; i < count; ++i) {
        hits[i] = false;
        cast(tree, triangles, rays[i], [&](const OnRay&, int32_t) {
            hits[i] = true;
            return -1.0f;
        });
    }
}

void all_hits(const BoxTree& tree, const Triangles& triangles, const Ray& ray, std::vector<RayHit>& hits) {
    cast(tree, triangles, ray, [&](const OnRay& met, int32_t face) {
        hits.push_back({met, face});
        return ray.t_far;
    });
}

}  // namespace stipple::geometry::cpu
