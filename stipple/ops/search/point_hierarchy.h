#pragma once
// The index on the device: points along a space-filling curve, 32 to a leaf, and boxes over 32 children each.
// Included by .cu files only.
//
// Every cloud is padded to whole leaves. A leaf's box and lowest index are a node of level 0; a node of level l + 1
// covers 32 nodes of level l. The highest level has at most 32 nodes for any cloud; there is no root.
// In another dimension than 3 there are leaves in the order of the input, and no boxes.

#include <memory>

#include "stipple/ops/common/cuda_launch.h"
#include "stipple/ops/point_index.h"

namespace stipple::ops::cuda {

constexpr int kLeafPoints = 32;  // one for each lane of a warp
constexpr int kFanout = 32;
constexpr int kMaxLevels = 6;  // 32^7 points > 2^31

/// As kernels see it.
struct HierarchyView {
    DeviceBatch batch;
    float4* points = nullptr;        // x, y, z, bits of the index in the cloud; padding and non-finite points: x = NaN
    float* tiles = nullptr;          // instead of points, c numbers a point: [leaves, c, 32]
    float4* lows = nullptr;          // of a node: lowest x, y, z, bits of the lowest index
    float4* highs = nullptr;         // of a node: highest x, y, z. An empty node: +inf, -inf, index 2^32 - 1
    const int32_t* first = nullptr;  // ragged: [levels, clouds + 1], the first node of a cloud in its level
    int32_t clouds = 0, levels = 0, leaves = 0, dimension = 0;
    int32_t level_begin[kMaxLevels + 1] = {};  // and the end of the last
    int32_t per_cloud[kMaxLevels] = {};        // dense: nodes of a cloud

    __device__ int32_t first_node(int level, int32_t cloud) const {
        return level_begin[level] + (first ? first[level * (clouds + 1) + cloud] : cloud * per_cloud[level]);
    }
    __device__ int32_t nodes(int level, int32_t cloud) const {
        if (!first) return per_cloud[level];
        const int32_t* at = first + level * (clouds + 1) + cloud;
        return at[1] - at[0];
    }
    __device__ int32_t cloud_of(int level, int32_t node) const {  // node counts from the level's first
        if (!first) return node / per_cloud[level];
        const int32_t* table = first + level * (clouds + 1);
        int32_t low = 0, high = clouds;
        while (high - low > 1) {
            const int32_t middle = (low + high) / 2;
            (table[middle] <= node ? low : high) = middle;
        }
        return low;
    }
};

/// The caller's points.
struct RowsView {
    const float* data = nullptr;
    int64_t stride = 0;

    __device__ float3 point(int64_t row) const {
        const float* p = data + row * stride;
        return make_float3(p[0], p[1], p[2]);
    }
    /// A point as leaves hold it.
    __device__ float4 leaf_point(int64_t row, uint32_t index) const {
        const float3 p = point(row);
        const bool finite = isfinite(p.x) && isfinite(p.y) && isfinite(p.z);
        return make_float4(finite ? p.x : __uint_as_float(0x7fc00000u), p.y, p.z, __uint_as_float(index));
    }
};

/// The parts of a hierarchy in one block of memory. Host only; lives until its build is launched.
class HierarchyPlan {
public:
    /// with_boxes = false: the order alone, for queries.
    HierarchyPlan(const Clouds& points, bool with_boxes);

    int64_t bytes() const { return bytes_; }
    void place(std::byte* memory, cudaStream_t stream);  // memory of bytes() bytes; fills a ragged batch's tables
    const HierarchyView& view() const { return view_; }
    const RowsView& rows() const { return rows_; }
    int64_t largest() const { return largest_; }

private:
    HierarchyView view_;
    RowsView rows_;
    int64_t largest_ = 0;
    std::vector<int64_t> tables_;  // of a ragged batch: offsets, first nodes
    int64_t at_points_ = 0, at_lows_ = 0, at_highs_ = 0, bytes_ = 0;
};

/// Launches the builds of one or two placed plans; one launch for both when every cloud fits a block's shared memory.
void build_hierarchies(const HierarchyPlan* first, const HierarchyPlan* second, cudaStream_t stream);

/// What PointIndex keeps. The memory goes back in the order of the stream that built it: searches on other streams must
/// have ended by then.
struct PointHierarchy {
    PointHierarchy(const Clouds& points, cudaStream_t stream);
    ~PointHierarchy();
    PointHierarchy(const PointHierarchy&) = delete;
    PointHierarchy& operator=(const PointHierarchy&) = delete;

    Device device;
    Scratch<std::byte> memory;
    HierarchyView view;
    RowsView rows;  // what it was built of, to be recognised: the memory may hold something else by now
    Batch batch;
};

/// Points in an order in which neighbours are near: what searches take as queries. The rows the index was built of are
/// not sorted again: they take the index's order, which is right whatever they hold now and good while they hold the
/// same. `rows` is set then, and coordinates are to be read there.
struct OrderedQueries {
    OrderedQueries(const PointHierarchy& index, const Clouds& queries, cudaStream_t stream);

    Scratch<std::byte> memory;
    HierarchyView view;
    RowsView rows;
};

}  // namespace stipple::ops::cuda
