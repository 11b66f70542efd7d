#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/box.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/winding/moments.h"
#include "stipple/geometry/winding/tree.h"
#include "stipple/ops/search/point_tree.h"

namespace stipple::geometry::cpu {
namespace {

constexpr int64_t kGrain = 256;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The power of two that brings an extent to [1/2, 1).
float unit_scale(const Box<float>& box) {
    double extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent = std::max(extent, double{box.high[axis]} - double{box.low[axis]});
    if (!(extent > 0)) return 1;
    int exponent = 0;
    std::frexp(extent, &exponent);
    return std::ldexp(1.0f, std::clamp(-exponent, -126, 126));
}

/// The bounds of the rows that `counts`; a plain loop, a small part of the build.
template <class Counts>
float scale_of(const float* rows, int64_t n, Counts counts) {
    auto box = Box<float>::none();
    for (int64_t i = 0; i < n; ++i)
        if (counts(i)) box.add(rows + 3 * i);
    return unit_scale(box);
}

struct Triangles {
    static constexpr int kFields = kTriangleFields, kCorners = 3;
    const MeshView& mesh;
    float scale = 1;

    int64_t size() const { return mesh.faces(); }
    const float* corner(int64_t face, int i) const {
        return mesh.vertices.data() + 3 * int64_t{mesh.triangles.data()[3 * face + i]};
    }
    void center(int64_t face, float* to) const {
        for (int axis = 0; axis < 3; ++axis)
            to[axis] =
                (corner(face, 0)[axis] * scale + corner(face, 1)[axis] * scale + corner(face, 2)[axis] * scale) / 3;
    }
    void fill(int64_t face, float* lane) const {
        for (int i = 0; i < 9; ++i) lane[i * kWindingLeaf] = corner(face, i / 3)[i % 3] * scale;
        const Vector3 n = double_area(lane);
        for (int i = 0; i < 3; ++i) lane[(kDoubleArea + i) * kWindingLeaf] = static_cast<float>(n[i]);
        constexpr double kRounding = 3e-7;  // of the product of the area with an offset, in their lengths
        lane[kFlat * kWindingLeaf] = static_cast<float>(kRounding * std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]));
    }
    static void blank(float* lane) {
        for (int i = 0; i < 3; ++i) lane[(kDoubleArea + i) * kWindingLeaf] = 0;
    }
    static double at(const float* lane, int i) { return lane[i * kWindingLeaf]; }
    static Vector3 double_area(const float* lane) {
        double u[3], v[3];
        for (int i = 0; i < 3; ++i) u[i] = at(lane, 3 + i) - at(lane, i), v[i] = at(lane, 6 + i) - at(lane, i);
        return {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
    }
    static Vector3 middle(const float* lane) {
        Vector3 m;
        for (int i = 0; i < 3; ++i) m[i] = (at(lane, i) + at(lane, 3 + i) + at(lane, 6 + i)) / 3;
        return m;
    }
    static double weight(const float* lane) {
        const Vector3 n = double_area(lane);
        return std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) / 2;
    }
    static void add_to(Moments& moments, const float* lane) {
        Vector3 n = double_area(lane);
        for (double& x : n) x /= 2;
        const Vector3 m = middle(lane);
        Symmetric2 spread{};  // of a triangle: a twelfth of the sum over its corners
        for (int corner = 0; corner < 9; corner += 3) {
            const Vector3 d = {at(lane, corner) - m[0], at(lane, corner + 1) - m[1], at(lane, corner + 2) - m[2]};
            const Symmetric2 square = symmetric_product(d, d);
            for (int i = 0; i < 6; ++i) spread[i] += square[i] / 12;
        }
        moments.add(n, minus(m, moments.center), spread);
    }
    static float soft(const float*) { return 0; }
};

struct Points {
    static constexpr int kFields = kPointFields, kCorners = 1;
    View<const float, 2> points, normals;
    View<const float, 1> areas;
    float softening = 1;
    float scale = 1;

    int64_t size() const { return points.size(0); }
    bool counts(int64_t i) const {
        float sum = areas.data()[i];
        for (int axis = 0; axis < 3; ++axis) sum += points.data()[3 * i + axis] * 0.0f + normals.data()[3 * i + axis];
        return std::isfinite(sum);
    }
    void center(int64_t i, float* to) const {
        for (int axis = 0; axis < 3; ++axis) to[axis] = counts(i) ? points.data()[3 * i + axis] * scale : kNan;
    }
    void fill(int64_t i, float* lane) const {
        const double area = double{areas.data()[i]} * scale * scale;
        for (int axis = 0; axis < 3; ++axis) {
            lane[(kPlace + axis) * kWindingLeaf] = points.data()[3 * i + axis] * scale;
            lane[(kMoment + axis) * kWindingLeaf] =
                static_cast<float>(area * normals.data()[3 * i + axis] * (0.25 / M_PI));
        }
        constexpr double kLeast = 1e-9;  // of the extent: what keeps the kernel finite where it is not softened
        const double soft = std::max(softening * std::sqrt(std::abs(area) / M_PI), kLeast);
        lane[kInverseSoft * kWindingLeaf] = static_cast<float>(1 / soft);
    }
    static void blank(float* lane) {
        for (int i = 0; i < 3; ++i) lane[(kMoment + i) * kWindingLeaf] = 0;
    }
    static double at(const float* lane, int i) { return lane[i * kWindingLeaf]; }
    static Vector3 middle(const float* lane) { return {at(lane, 0), at(lane, 1), at(lane, 2)}; }
    static Vector3 moment(const float* lane) {
        constexpr double kUnit = 4 * M_PI;
        return {at(lane, 3) * kUnit, at(lane, 4) * kUnit, at(lane, 5) * kUnit};
    }
    static double weight(const float* lane) {
        const Vector3 n = moment(lane);
        return std::sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    }
    static void add_to(Moments& moments, const float* lane) {
        moments.add(moment(lane), minus(middle(lane), moments.center), Symmetric2{});
    }
    static float soft(const float* lane) { return 1 / lane[kInverseSoft * kWindingLeaf]; }
};

/// The lanes of an arranged leaf of 16 as two of 8: cut across the longest side.
static_assert(ops::cpu::kLeaf == 2 * kWindingLeaf);
void halve(const float* places, int lanes, int32_t* order) {
    constexpr int kLanes = ops::cpu::kLeaf;
    for (int i = 0; i < lanes; ++i) order[i] = i;
    if (lanes <= kWindingLeaf) return;
    int longest = 0;
    float extent = -1;
    for (int axis = 0; axis < 3; ++axis) {
        const auto [low, high] = std::minmax_element(places + axis * kLanes, places + axis * kLanes + lanes);
        if (*high - *low > extent) extent = *high - *low, longest = axis;
    }
    const float* along = places + longest * kLanes;
    std::nth_element(order, order + kWindingLeaf, order + lanes,
                     [along](int32_t a, int32_t b) { return along[a] != along[b] ? along[a] < along[b] : a < b; });
}

template <class Primitives>
class Builder {
public:
    explicit Builder(const Primitives& primitives) : primitives_(primitives) {}

    std::shared_ptr<const WindingTree> run() {
        fill_leaves();
        auto tree = std::make_shared<WindingTree>();
        WindingView& view = tree->view;
        view.of_points = Primitives::kFields == kPointFields;
        view.scale = primitives_.scale;
        const int64_t count = leaf_count();
        int64_t nodes = 0;
        for (int64_t children = count; count > 0 && (view.levels == 0 || children > 1);) {
            children = (children + kWindingFan - 1) / kWindingFan;
            view.level_begin[view.levels++] = static_cast<int32_t>(nodes);
            nodes += children;
        }
        tree->nodes = Array<float, 1>({nodes * kChildFields * kWindingFan});
        int64_t leaves_of_child = 1;
        for (int level = 0; level < view.levels; ++level, leaves_of_child *= kWindingFan)
            fill_level(tree->nodes.data() + int64_t{view.level_begin[level]} * kChildFields * kWindingFan,
                       leaves_of_child);
        tree->leaves = std::move(leaves_);
        view.nodes = tree->nodes.data();
        view.leaves = tree->leaves.data();
        return tree;
    }

private:
    static constexpr int64_t kLeafFloats = int64_t{kWindingLeaf} * Primitives::kFields;

    int64_t leaf_count() const { return static_cast<int64_t>(moments_.size()); }
    int lanes(int64_t leaf) const {
        return static_cast<int>(std::min<int64_t>(kWindingLeaf, finite_ - leaf * kWindingLeaf));
    }

    void fill_leaves() {
        Array<float, 2> centers({primitives_.size(), 3});
        parallel_for(primitives_.size(), 4096, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) primitives_.center(i, centers.data() + 3 * i);
        });
        const std::vector<ops::cpu::Leaves> arranged = ops::cpu::arrange(ops::Clouds(centers.view()));
        const ops::cpu::Leaves& order = arranged[0];
        finite_ = order.size;
        moments_.resize(static_cast<size_t>((finite_ + kWindingLeaf - 1) / kWindingLeaf));
        leaves_ = Array<float, 1>({leaf_count() * kLeafFloats});
        parallel_for(order.count(), kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t pair = begin; pair < end; ++pair) {
                int32_t lane_of[ops::cpu::kLeaf];
                halve(order.at(pair), order.lanes(pair), lane_of);
                for (int64_t leaf = 2 * pair; leaf < std::min(2 * pair + 2, leaf_count()); ++leaf)
                    fill_leaf(leaf, order.indices_at(pair), lane_of + (leaf - 2 * pair) * kWindingLeaf);
            }
        });
    }

    void fill_leaf(int64_t leaf, const int32_t* indices, const int32_t* lane_of) {
        float* block = leaves_.data() + leaf * kLeafFloats;
        Moments& moments = moments_[leaf];
        Vector3 plain{};
        const int n = lanes(leaf);
        for (int i = 0; i < n; ++i) {
            primitives_.fill(indices[lane_of[i]], block + i);
            const double weight = Primitives::weight(block + i);
            const Vector3 middle = Primitives::middle(block + i);
            moments.weight += weight;
            for (int axis = 0; axis < 3; ++axis)
                moments.center[axis] += weight * middle[axis], plain[axis] += middle[axis] / n;
        }
        for (int axis = 0; axis < 3; ++axis)
            moments.center[axis] = moments.weight > 0 ? moments.center[axis] / moments.weight : plain[axis];
        for (int i = 0; i < n; ++i) Primitives::add_to(moments, block + i);
        for (int i = n; i < kWindingLeaf; ++i) {
            for (int field = 0; field < Primitives::kFields; ++field)
                block[field * kWindingLeaf + i] = block[field * kWindingLeaf];
            Primitives::blank(block + i);
        }
    }

    /// Writes the children of a level's nodes, whose moments are in moments_, and replaces those by the nodes' own.
    void fill_level(float* nodes, int64_t leaves_of_child) {
        const auto children = static_cast<int64_t>(moments_.size());
        std::vector<Moments> parents(static_cast<size_t>((children + kWindingFan - 1) / kWindingFan));
        parallel_for(static_cast<int64_t>(parents.size()), kGrain / kWindingFan, [&](int64_t begin, int64_t end) {
            for (int64_t node = begin; node < end; ++node) {
                float* block = nodes + node * kChildFields * kWindingFan;
                const int64_t first = node * kWindingFan, last = std::min(first + kWindingFan, children);
                for (int64_t child = first; child < last; ++child)
                    fill_child(block + (child - first), moments_[child], child * leaves_of_child, leaves_of_child);
                for (int64_t child = last; child < first + kWindingFan; ++child) {
                    float* lane = block + (child - first);
                    for (int field = 0; field < kChildFields; ++field)
                        lane[field * kWindingFan] = field < kRadiusSq ? block[field * kWindingFan] : 0;
                    lane[kRadiusSq * kWindingFan] = lane[kReachSq * kWindingFan] = -1;
                }
                parents[node] = merge(first, last);
            }
        });
        moments_ = std::move(parents);
    }

    Moments merge(int64_t first, int64_t last) const {
        Moments sum;
        for (int64_t child = first; child < last; ++child) sum.weight += moments_[child].weight;
        for (int64_t child = first; child < last; ++child) {
            const double share = sum.weight > 0 ? moments_[child].weight / sum.weight : 1.0 / double(last - first);
            for (int axis = 0; axis < 3; ++axis) sum.center[axis] += share * moments_[child].center[axis];
        }
        for (int64_t child = first; child < last; ++child) sum.add(moments_[child]);
        return sum;
    }

    void fill_child(float* lane, const Moments& moments, int64_t first_leaf, int64_t leaves) const {
        float center[3];
        for (int axis = 0; axis < 3; ++axis)
            lane[axis * kWindingFan] = center[axis] = static_cast<float>(moments.center[axis]);
        float furthest[kWindingLeaf] = {}, soft = 0;
        for (int64_t leaf = first_leaf;
             leaf < std::min(first_leaf + leaves, (finite_ + kWindingLeaf - 1) / kWindingLeaf); ++leaf) {
            const float* block = leaves_.data() + leaf * kLeafFloats;
            for (int corner = 0; corner < Primitives::kCorners; ++corner) {
                const float* at = block + 3 * corner * kWindingLeaf;
                for (int i = 0; i < kWindingLeaf; ++i) {
                    const float d = distance_sq(at[i] - center[0], at[kWindingLeaf + i] - center[1],
                                                at[2 * kWindingLeaf + i] - center[2]);
                    furthest[i] = d > furthest[i] ? d : furthest[i];
                }
            }
            for (int i = 0; i < kWindingLeaf; ++i) soft = std::max(soft, Primitives::soft(block + i));
        }
        const float radius_sq = *std::max_element(furthest, furthest + kWindingLeaf);
        const float reach = std::sqrt(radius_sq) + soft;
        lane[kRadiusSq * kWindingFan] = radius_sq;
        lane[kReachSq * kWindingFan] = reach * reach;
        moments.coefficients(lane + kDipole * kWindingFan, kWindingFan);
    }

    const Primitives& primitives_;
    int64_t finite_ = 0;
    Array<float, 1> leaves_;
    std::vector<Moments> moments_;  // of the leaves, then of the nodes of the level below
};

}  // namespace

std::shared_ptr<const WindingTree> build_winding(const MeshView& mesh) {
    std::vector<uint8_t> used(static_cast<size_t>(mesh.vertices.size(0)), 0);
    for (int64_t i = 0; i < 3 * mesh.faces(); ++i) used[mesh.triangles.data()[i]] = 1;
    const float scale = scale_of(mesh.vertices.data(), mesh.vertices.size(0), [&](int64_t i) { return used[i] != 0; });
    return Builder<Triangles>(Triangles{mesh, scale}).run();
}

std::shared_ptr<const WindingTree> build_winding(View<const float, 2> points, View<const float, 2> normals,
                                                 View<const float, 1> areas, float softening) {
    Points source{points, normals, areas, softening};
    source.scale = scale_of(points.data(), points.size(0), [&](int64_t i) { return source.counts(i); });
    return Builder<Points>(source).run();
}

}  // namespace stipple::geometry::cpu
