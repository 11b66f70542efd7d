#include "stipple/ops/search/point_tree.h"

#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/common/simd.h"

namespace stipple::ops::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kSerial = 2048;  // points that one thread arranges alone

// What is sorted: in three dimensions the point itself, in others its coordinate along the axis of the split.
struct Point3 {
    using Whole = Float4;  // moved at once
    float x[3];
    int32_t index;

    float along(int axis, View<const float, 2>) const { return x[axis]; }
    void aim(int, View<const float, 2>) {}
    float key(int axis) const { return x[axis]; }
};

struct PointKey {
    using Whole = uint64_t;
    float value;
    int32_t index;

    float along(int axis, View<const float, 2> rows) const { return rows.data()[index * rows.stride(0) + axis]; }
    void aim(int axis, View<const float, 2> rows) { value = along(axis, rows); }
    float key(int) const { return value; }
};

// Those for which goes_left come first. Every point is written to both sides and counted on one, so that there is no
// branch to mispredict, and nothing is read that was written shortly before. `spare` has room for all.
template <class Point, class Test>
Point* partition(Point* first, Point* last, Point* spare, Test goes_left) {
    Point *left = first, *right = spare;
    for (const Point* from = first; from != last; ++from) {
        const bool goes = goes_left(*from);
        const auto whole = load<typename Point::Whole>(from);
        store(left, whole);
        store(right, whole);
        left += goes;
        right += !goes;
    }
    std::copy(spare, right, left);
    return left;
}

// A key whose rank is a little beyond that of nth, seen from the nearer end: what is cut off is most of the range, and
// nth ends up near the end of the rest [Floyd and Rivest 1975].
template <class Point>
float pivot_beyond(const Point* first, int64_t n, int64_t nth, int axis) {
    constexpr int kMost = 255, kFew = 7;
    float keys[kMost];
    const int samples = n > 65536 ? kMost : n > 1024 ? 63 : kFew;
    for (int i = 0; i < samples; ++i) keys[i] = first[(2 * i + 1) * n / (2 * samples)].key(axis);
    for (int i = 1; i < samples && samples <= kFew; ++i) {  // std::sort takes longer to begin
        const float key = keys[i];
        int at = i;
        for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
        keys[at] = key;
    }
    if (samples > kFew) std::sort(keys, keys + samples);
    const auto rank = static_cast<int>(samples * nth / n);
    const int margin = samples == kMost ? 12 : samples == 63 ? 6 : 0;
    return keys[std::clamp(nth < n / 2 ? rank + margin : rank - margin, 0, samples - 1)];
}

// nth_element along an axis, without the branches that random points mispredict.
template <class Point>
void select(Point* first, Point* last, Point* nth, Point* spare, int axis) {
    constexpr int kTries = 24;  // after so many pivots, bad ones among them, the standard's bound on the time holds
    for (int tries = 0; tries < kTries && last - first > kLeaf; ++tries) {
        const float pivot = pivot_beyond(first, last - first, nth - first, axis);
        Point* middle = partition(first, last, spare, [=](const Point& p) { return p.key(axis) < pivot; });
        if (nth < middle) {
            last = middle;
        } else if (middle > first) {
            first = middle;
        } else {
            first = partition(first, last, spare, [=](const Point& p) { return p.key(axis) <= pivot; });
            if (nth < first) return;
        }
    }
    if (nth < last)
        std::nth_element(first, nth, last, [=](const Point& a, const Point& b) { return a.key(axis) < b.key(axis); });
}

template <class Point>
class Arranger {
public:
    explicit Arranger(View<const float, 2> rows) : rows_(rows) {
        leaves_.dimension = static_cast<int>(rows.size(1));
        take_finite();
    }

    Leaves run() {
        std::vector<Range> ranges = {{0, leaves_.count()}}, next;
        // The upper levels one after another, until there is enough for all threads; then whole subtrees.
        while (!ranges.empty() && ranges[0].leaves() * kLeaf > kSerial) {
            next.assign(2 * ranges.size(), {});
            parallel_for(static_cast<int64_t>(ranges.size()), 1, [&](int64_t i, int64_t) {
                const int64_t middle = split(ranges[i]);
                next[2 * i] = {ranges[i].begin, middle};
                next[2 * i + 1] = {middle, ranges[i].end};
            });
            ranges.swap(next);
        }
        parallel_for(static_cast<int64_t>(ranges.size()), 1, [&](int64_t i, int64_t) {
            arrange(ranges[i]);
            for (int64_t leaf = ranges[i].begin; leaf < ranges[i].end; ++leaf) store(leaf);
        });
        return std::move(leaves_);
    }

private:
    struct Range {
        int64_t begin = 0, end = 0;  // leaves
        int64_t leaves() const { return end - begin; }
    };

    void take_finite() {
        constexpr int64_t kChunk = 1 << 14;
        const int64_t n = rows_.size(0), chunks = (n + kChunk - 1) / kChunk;
        std::vector<int64_t> first(static_cast<size_t>(chunks) + 1, 0);
        parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
            int64_t finite = 0;
            for (int64_t i = begin; i < end; ++i) finite += is_finite(i);
            first[begin / kChunk + 1] = finite;
        });
        for (int64_t chunk = 0; chunk < chunks; ++chunk) first[chunk + 1] += first[chunk];
        leaves_.size = first[chunks];
        points_ = Buffer(checked_mul(leaves_.size, sizeof(Point)));
        leaves_.blocks = Buffer(checked_mul(leaves_.count(), leaves_.block_bytes()));
        parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
            Point* to = points() + first[begin / kChunk];
            for (int64_t i = begin; i < end; ++i) {
                if (!is_finite(i)) continue;
                Point& point = *to++;
                point.index = static_cast<int32_t>(i);
                if constexpr (std::is_same_v<Point, Point3>) std::copy_n(row(i), 3, point.x);
            }
        });
    }

    bool is_finite(int64_t i) const {
        bool finite = true;
        for (int axis = 0; axis < leaves_.dimension; ++axis) finite &= std::isfinite(row(i)[axis]);
        return finite;
    }

    // Halves a range at a power of two of leaves, so that nodes of kFan^level leaves come out whole. Across the longest
    // side of the box of a sample: near enough, and cheap.
    int64_t split(Range range) {
        if (range.leaves() < 2) return range.end;
        int64_t half = 1;
        while (2 * half < range.leaves()) half *= 2;
        Point* first = points() + range.begin * kLeaf;
        Point* last = points() + std::min(range.end * kLeaf, leaves_.size);
        const int axis = widest_axis(first, last);
        for (Point* p = first; p < last; ++p) p->aim(axis, rows_);
        select(first, last, first + half * kLeaf, spare(range.begin), axis);
        return range.begin + half;
    }

    int widest_axis(const Point* first, const Point* last) const {
        const int64_t step = (last - first) / 32 + 1;
        int widest = 0;
        if constexpr (std::is_same_v<Point, Point3>) {
            auto low = load<Float4>(first), high = low;  // and the index, as bits of no meaning
            for (const Point* p = first; p < last; p += step) {
                const auto x = load<Float4>(p);
                low = smaller(low, x);
                high = larger(high, x);
            }
            const Float4 width = high - low;
            for (int axis = 1; axis < 3; ++axis) widest = width[axis] > width[widest] ? axis : widest;
        } else {
            float most = -1;
            for (int axis = 0; axis < leaves_.dimension; ++axis) {
                float low = kInfinity, high = -kInfinity;
                for (const Point* p = first; p < last; p += step) {
                    const float x = p->along(axis, rows_);
                    low = x < low ? x : low;
                    high = x > high ? x : high;
                }
                if (high - low > most) most = high - low, widest = axis;
            }
        }
        return widest;
    }

    void arrange(Range range) {
        while (range.leaves() > 1) {
            const int64_t middle = split(range);
            arrange({middle, range.end});
            range.end = middle;
        }
    }

    void store(int64_t leaf) {
        const int lanes = leaves_.lanes(leaf);
        std::byte* block = leaves_.blocks.data() + leaf * leaves_.block_bytes();
        auto* to = reinterpret_cast<float*>(block);
        auto* index = reinterpret_cast<int32_t*>(block + leaves_.block_bytes()) - kLeaf;
        const Point* from = points() + leaf * kLeaf;
        int32_t unordered[kLeaf], lane_of[kLeaf];
        for (int i = 0; i < kLeaf; ++i)
            unordered[i] = i < lanes ? from[i].index
                                     : std::numeric_limits<int32_t>::max() - 1;  // the largest index, and behind it
        Ints16::from(unordered).ranks().to(lane_of);
        for (int i = 0; i < kLeaf; ++i) {
            for (int axis = 0; axis < leaves_.dimension; ++axis)
                to[axis * kLeaf + lane_of[i]] = i < lanes ? from[i].along(axis, rows_) : kInfinity;
            index[lane_of[i]] = unordered[i];
        }
    }

    const float* row(int64_t i) const { return rows_.data() + i * rows_.stride(0); }
    Point* points() { return reinterpret_cast<Point*>(points_.data()); }
    // Where the range that begins with a leaf will be stored once it is arranged; until then, room to arrange it in.
    Point* spare(int64_t leaf) {
        return reinterpret_cast<Point*>(leaves_.blocks.data() + leaf * leaves_.block_bytes());
    }

    View<const float, 2> rows_;
    Buffer points_;
    Leaves leaves_;
};

Leaves arrange_cloud(View<const float, 2> rows) {
    return rows.size(1) == 3 ? Arranger<Point3>(rows).run() : Arranger<PointKey>(rows).run();
}

// Boxes of leaves, from their points; lanes that are filled up are left out.
void bound_leaf(const Leaves& leaves, int64_t leaf, float* box) {
    const int lanes = leaves.lanes(leaf);
    for (int axis = 0; axis < leaves.dimension; ++axis) {
        const float* x = leaves.at(leaf) + axis * kLeaf;
        float low = x[0], high = x[0];
        if (lanes == kLeaf) {
            auto lows = load<Float4>(x), highs = lows;
            for (int i = 4; i < kLeaf; i += 4) {
                lows = smaller(lows, load<Float4>(x + i));
                highs = larger(highs, load<Float4>(x + i));
            }
            low = std::min(std::min(lows[0], lows[1]), std::min(lows[2], lows[3]));
            high = std::max(std::max(highs[0], highs[1]), std::max(highs[2], highs[3]));
        }
        for (int lane = 1; lane < lanes && lanes < kLeaf; ++lane) {
            low = std::min(low, x[lane]);
            high = std::max(high, x[lane]);
        }
        box[(2 * axis + 0) * kFan] = low;
        box[(2 * axis + 1) * kFan] = high;
    }
}

// The box of a node is that of its children's boxes; those that are not there are empty.
void bound_node(const float* node, int dimension, float* box) {
    for (int axis = 0; axis < dimension; ++axis) {
        const float *lows = node + 2 * axis * kFan, *highs = lows + kFan;
        float low = kInfinity, high = -kInfinity;
        for (int child = 0; child < kFan; ++child) {
            low = lows[child] < low ? lows[child] : low;
            high = highs[child] > high ? highs[child] : high;
        }
        box[(2 * axis + 0) * kFan] = low;
        box[(2 * axis + 1) * kFan] = high;
    }
}

CloudTree build_cloud(View<const float, 2> rows) {
    CloudTree tree;
    tree.leaves = arrange_cloud(rows);
    const int dimension = tree.leaves.dimension;
    std::vector<int64_t> counts;  // nodes of each level
    for (int64_t below = tree.leaves.count(); below > 0 && (counts.empty() || below > 1);) {
        below = (below + kFan - 1) / kFan;
        counts.push_back(below);
    }
    int64_t nodes = 0;
    for (const int64_t count : counts) {
        tree.levels.push_back(nodes);
        nodes += count;
    }
    const int64_t node_floats = int64_t{2} * kFan * dimension;
    tree.boxes = Array<float, 1>({checked_mul(nodes, node_floats)});
    for (size_t level = 0; level < counts.size(); ++level) {
        const int64_t below = level == 0 ? tree.leaves.count() : counts[level - 1];
        parallel_for(counts[level], 512, [&](int64_t begin, int64_t end) {
            for (int64_t node = begin; node < end; ++node) {
                float* boxes = tree.boxes.data() + (tree.levels[level] + node) * node_floats;
                for (int child = 0; child < kFan; ++child) {
                    const int64_t which = node * kFan + child;
                    if (which >= below) {
                        for (int axis = 0; axis < dimension; ++axis) {
                            boxes[(2 * axis + 0) * kFan + child] = kInfinity;
                            boxes[(2 * axis + 1) * kFan + child] = -kInfinity;
                        }
                    } else if (level == 0) {
                        bound_leaf(tree.leaves, which, boxes + child);
                    } else {
                        bound_node(tree.box(static_cast<int>(level) - 1, which), dimension, boxes + child);
                    }
                }
            }
        });
    }
    return tree;
}

// Small clouds side by side, large ones one after another on all threads.
template <class Result, class Make>
std::vector<Result> for_each_cloud(const Clouds& points, Make make) {
    std::vector<Result> results(static_cast<size_t>(points.batch.clouds()));
    const bool many = points.batch.clouds() >= 4 * int64_t{threads()};
    if (many)
        parallel_for(points.batch.clouds(), 1, [&](int64_t i, int64_t) { results[i] = make(points.cloud(i)); });
    else
        for (int64_t i = 0; i < points.batch.clouds(); ++i) results[i] = make(points.cloud(i));
    return results;
}

}  // namespace

std::shared_ptr<const PointTree> build(const Clouds& points) {
    auto tree = std::make_shared<PointTree>();
    tree->clouds = for_each_cloud<CloudTree>(points, build_cloud);
    return tree;
}

std::vector<Leaves> arrange(const Clouds& points) {
    return for_each_cloud<Leaves>(points, arrange_cloud);
}

}  // namespace stipple::ops::cpu
