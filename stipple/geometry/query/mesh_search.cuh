#pragma once
// The walk of one thread through the boxes of a mesh, nearer boxes first.
//
// Keys of boxes are floats that are not negative, as bits; the two lowest bits hold the child, so that four keys are
// sorted by five minima and maxima of integers. Clearing them makes a key smaller, never larger: nothing is lost.

#include "stipple/geometry/query/mesh_hierarchy.h"
#include "stipple/geometry/query/triangle.h"

namespace stipple::geometry::cuda {

constexpr uint32_t kMissed = 0xffffffffu;
constexpr int kStack = kMaxLevels * (kFanout - 1);

/// A node or a leaf in 32 bits. 2^31 faces have 2^29 leaves, which have 2^27 nodes and 14 levels above.
constexpr uint32_t kLeafBit = 0x80000000u;
constexpr int kLevelShift = 27;
__device__ inline uint32_t item(int level, int32_t index) {
    return level == 0 ? kLeafBit | static_cast<uint32_t>(index)
                      : static_cast<uint32_t>(level) << kLevelShift | static_cast<uint32_t>(index);
}
__device__ inline int level_of(uint32_t item) {
    return item & kLeafBit ? 0 : static_cast<int>(item >> kLevelShift);
}
__device__ inline int32_t index_of(uint32_t item) {
    return static_cast<int32_t>(item & (item & kLeafBit ? ~kLeafBit : (1u << kLevelShift) - 1));
}

__device__ inline uint32_t child_key(float key, int child) {
    return (__float_as_uint(key) & ~3u) | static_cast<uint32_t>(child);
}
__device__ inline float key_value(uint32_t key) {
    return __uint_as_float(key & ~3u);
}
__device__ inline void sort_two(uint32_t& a, uint32_t& b) {
    const uint32_t low = min(a, b);
    b = max(a, b);
    a = low;
}

__device__ inline Triangle to_triangle(float4 a, float4 b, float4 c) {
    return {{a.x, a.y, a.z}, {b.x, b.y, b.z}, {c.x, c.y, c.z}};
}
__device__ inline int32_t face_of(float4 a) {
    return static_cast<int32_t>(__float_as_uint(a.w));
}

/// Search has `void keys(const BoxNode*, uint32_t (&keys)[4])`, giving child_key or kMissed; `float bound()`, above
/// which no key is wanted any more; and `bool face(a, b, c, place)`, false to end the search,
/// where place * 3 is the first of the face's corners and a.w holds the bits of its index.
template <class Search>
__device__ void walk(const MeshHierarchyView& mesh, Search& search) {
    uint32_t stack_keys[kStack], stack_items[kStack];
    int size = 0;
    int level = mesh.levels;
    int32_t at = 0;
    for (;;) {
        if (level == 0) {
            const float4* corners = mesh.corners + int64_t{at} * (3 * kFanout);
#pragma unroll 1
            for (int i = 0; i < kFanout; ++i) {
                const float4 a = __ldg(corners + 3 * i), b = __ldg(corners + 3 * i + 1), c = __ldg(corners + 3 * i + 2);
                if (__float_as_uint(a.w) == kNoFace) break;
                if (!search.face(a, b, c, int64_t{at} * kFanout + i)) return;
            }
        } else {
            uint32_t keys[kFanout];
            search.keys(mesh.nodes + mesh.level_begin[level] + at, keys);
            sort_two(keys[0], keys[1]);
            sort_two(keys[2], keys[3]);
            sort_two(keys[0], keys[2]);
            sort_two(keys[1], keys[3]);
            sort_two(keys[1], keys[2]);
#pragma unroll
            for (int i = kFanout - 1; i > 0; --i) {
                if (keys[i] == kMissed) continue;
                stack_keys[size] = keys[i];
                stack_items[size++] = item(level - 1, at * kFanout + static_cast<int32_t>(keys[i] & 3u));
            }
            if (keys[0] != kMissed) {
                --level;
                at = at * kFanout + static_cast<int32_t>(keys[0] & 3u);
                continue;
            }
        }
        do {
            if (size == 0) return;
            --size;
        } while (!(key_value(stack_keys[size]) <= search.bound()));
        level = level_of(stack_items[size]);
        at = index_of(stack_items[size]);
    }
}

}  // namespace stipple::geometry::cuda
