#include "stipple/geometry/watertight/shell_voxels.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "stipple/core/parallel.h"
#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/mesh/triangle_voxels.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kFaceGrain = 1024;
constexpr uint64_t kFirstX = 0x0101010101010101, kLastX = 0x8080808080808080;
constexpr uint64_t kFirstY = 0xff, kLastY = uint64_t{0xff} << 56;

using Words = std::array<uint64_t, 8>;

/// The corners of face f in units of `step` from `low`.
TrianglePlaces places_of(const MeshView& mesh, int64_t f, const Vec3d& low, double step) {
    TrianglePlaces places;
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k)
            places[i][k] = (mesh.vertices.data()[3 * int64_t{mesh.triangles.data()[3 * f + i]} + k] - low[k]) / step;
    return places;
}

template <class T>
void set_bits(T& word, T bits) {
    if ((std::atomic_ref<T>(word).load(std::memory_order_relaxed) & bits) != bits)
        std::atomic_ref<T>(word).fetch_or(bits, std::memory_order_relaxed);
}

/// One step in all six directions inside the block.
uint64_t spread(const Words& w, int z) {
    const uint64_t here = w[z];
    uint64_t next = here | ((here & ~kLastX) << 1) | ((here & ~kFirstX) >> 1) | (here << 8) | (here >> 8);
    if (z > 0) next |= w[z - 1];
    if (z < 7) next |= w[z + 1];
    return next;
}

/// `reached` grows through the bits of `free` until it cannot.
void fill(Words& reached, const Words& free) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int pass = 0; pass < 16; ++pass) {  // upwards and downwards
            const int z = pass < 8 ? pass : 15 - pass;
            const uint64_t next = spread(reached, z) & free[z];
            changed |= next != reached[z];
            reached[z] = next;
        }
    }
}

/// What `from` puts onto the near side of the next block in a direction (0 .. 5: -x, +x, -y, +y, -z, +z).
Words carried(const Words& from, int direction) {
    Words into{};
    for (int z = 0; z < 8; ++z) {
        switch (direction) {
            case 0: into[z] = (from[z] & kFirstX) << 7; break;
            case 1: into[z] = (from[z] & kLastX) >> 7; break;
            case 2: into[z] = (from[z] & kFirstY) << 56; break;
            case 3: into[z] = (from[z] & kLastY) >> 56; break;
            default: break;
        }
    }
    if (direction == 4) into[7] = from[0];
    if (direction == 5) into[0] = from[7];
    return into;
}

Words complement(const Words& words) {
    Words free;
    for (int z = 0; z < 8; ++z) free[z] = ~words[z];
    return free;
}

/// The slot index next to `at` in a direction, -1 beyond the border.
int64_t next_to(const ShellVoxels& voxels, int64_t at, int direction) {
    const int axis = direction / 2, sign = direction % 2 * 2 - 1;
    const int64_t stride = axis == 0 ? 1 : axis == 1 ? voxels.size[0] : int64_t{voxels.size[0]} * voxels.size[1];
    const int64_t place = at / stride % voxels.size[axis] + sign;
    return place < 0 || place >= voxels.size[axis] ? -1 : at + sign * stride;
}

}  // namespace

ShellVoxels voxelize_shell(const MeshView& mesh, double step, bool all_blocks) {
    const Box<float> box = box_of_faces(mesh);
    ShellVoxels voxels;
    voxels.step = step;
    for (int k = 0; k < 3; ++k) {
        // The lowest point in the middle of a voxel: flat sides of boxes then touch one layer of voxels, not two.
        constexpr double kPadding = 2.5;
        voxels.low[k] = box.low[k] - kPadding * voxels.step;
        voxels.size[k] = static_cast<int32_t>(
            std::ceil(((double{box.high[k]} - double{box.low[k]}) / voxels.step + 2 * kPadding) / 8));
    }
    const auto n_blocks = static_cast<size_t>(int64_t{voxels.size[0]} * voxels.size[1] * voxels.size[2]);
    std::vector<uint8_t> wanted(n_blocks, all_blocks);
    if (!all_blocks) {
        parallel_for(mesh.faces(), kFaceGrain, [&](int64_t begin, int64_t end) {
            for (int64_t f = begin; f < end; ++f) {
                visit_touched_voxels(places_of(mesh, f, voxels.low, 8 * voxels.step), kShellClearance,
                                     [&](int32_t x, int32_t y, int32_t z) {
                                         const int64_t at = (int64_t{z} * voxels.size[1] + y) * voxels.size[0] + x;
                                         set_bits<uint8_t>(wanted[static_cast<size_t>(at)], 1);
                                     });
            }
        });
    }
    voxels.slots.resize(n_blocks);
    int32_t used = 0;
    for (size_t i = 0; i < n_blocks; ++i) voxels.slots[i] = wanted[i] ? used++ : ShellVoxels::kEnclosed;
    voxels.blocks.resize(static_cast<size_t>(used));
    parallel_for(mesh.faces(), kFaceGrain, [&](int64_t begin, int64_t end) {
        for (int64_t f = begin; f < end; ++f) {
            visit_touched_voxels(places_of(mesh, f, voxels.low, voxels.step), kShellClearance,
                                 [&](int32_t x, int32_t y, int32_t z) {
                                     ShellBlock& block = voxels.blocks[voxels.slot(x >> 3, y >> 3, z >> 3)];
                                     set_bits(block.touched[z & 7], uint64_t{1} << (8 * (y & 7) + (x & 7)));
                                 });
        }
    });
    return voxels;
}

void reach_from_outside(ShellVoxels& voxels) {
    std::vector<int64_t> work;
    std::vector<uint8_t> waiting(voxels.slots.size());
    const auto reach = [&](int64_t at, const Words& bits) {
        int32_t& slot = voxels.slots[static_cast<size_t>(at)];
        bool news = false;
        if (slot >= 0) {
            ShellBlock& block = voxels.blocks[static_cast<size_t>(slot)];
            for (int z = 0; z < 8; ++z) {
                const uint64_t added = bits[z] & ~block.touched[z] & ~block.outside[z];
                block.outside[z] |= added;
                news |= added != 0;
            }
        } else if (slot == ShellVoxels::kEnclosed) {
            for (uint64_t word : bits) news |= word != 0;
            if (news) slot = ShellVoxels::kOutside;
        }
        if (!news || waiting[static_cast<size_t>(at)]) return;
        waiting[static_cast<size_t>(at)] = 1;
        work.push_back(at);
    };
    Words all;
    all.fill(~uint64_t{0});
    for (int64_t at = 0; at < static_cast<int64_t>(voxels.slots.size()); ++at)
        for (int direction = 0; direction < 6; ++direction)
            if (next_to(voxels, at, direction) < 0) reach(at, carried(all, direction ^ 1));
    while (!work.empty()) {
        const int64_t at = work.back();
        work.pop_back();
        waiting[static_cast<size_t>(at)] = 0;
        const int32_t slot = voxels.slots[static_cast<size_t>(at)];
        if (slot >= 0) {
            ShellBlock& block = voxels.blocks[static_cast<size_t>(slot)];
            fill(block.outside, complement(block.touched));
        }
        const Words& reached = slot >= 0 ? voxels.blocks[static_cast<size_t>(slot)].outside : all;
        for (int direction = 0; direction < 6; ++direction) {
            const int64_t next = next_to(voxels, at, direction);
            if (next >= 0) reach(next, carried(reached, direction));
        }
    }
}

void reach_everything(ShellVoxels& voxels) {
    for (int32_t& slot : voxels.slots)
        if (slot < 0) slot = ShellVoxels::kOutside;
    for (ShellBlock& block : voxels.blocks) block.outside = complement(block.touched);
}

}  // namespace stipple::geometry
