// Chambers behind narrow gaps, for watertight() with cap_holes.
//
// The clearance of a free voxel is its distance to what the input touches. A flood from the border goes on wherever the
// clearance is greatest, so its level, the least clearance so far, is that of the widest way to each voxel: the gap
// that must be passed. Where the clearance rises above the level again, there is a chamber behind a gap. The order of
// the flood does not depend on the width that is asked for, which only decides whose chambers stay closed: a greater
// width closes all that a smaller one closes.

#include <algorithm>

#include "stipple/geometry/watertight/shell_voxels.h"

namespace stipple::geometry {
namespace {

enum State : uint16_t { kUnseen, kOutside, kBehind, kChamber };  // kBehind: beyond the gap, if a chamber follows

/// Clearances (in thirds of a voxel) and states of all voxels, with one more all around that counts as touched.
class GapFlood {
public:
    explicit GapFlood(const ShellVoxels& voxels) : voxels_(voxels) {
        int64_t cells = 1;
        for (int axis = 0; axis < 3; ++axis) {
            stride_[axis] = cells;
            cells *= 8 * int64_t{voxels.size[axis]} + 2;
        }
        cells_.assign(static_cast<size_t>(cells), 0);
        for_each_voxel([&](int64_t cell, const ShellBlock& block, int i) {
            cells_[cell] = block.touched[i / 64] >> (i % 64) & 1 ? 0 : kFarthest;
        });
        measure();
    }

    void run(double width) {
        // A slit of k free voxels has a clearance of (k + 1) / 2 in the middle. Distances may be 9 % too long and holes
        // are not round: what is narrower than the width is closed for certain, and nothing 1.5 times as wide.
        const auto limit = static_cast<int>(3 * (1.4 * width + 1) / 2);
        std::vector<std::vector<int64_t>> waiting(kFarthest + 1);
        for_each_border([&](int64_t cell) {
            set_state(cell, kOutside);
            waiting[kFarthest].push_back(cell);
        });
        int level = kFarthest;
        for (int top = kFarthest; top > 0;) {
            if (waiting[top].empty()) {
                --top;
                continue;
            }
            const int64_t from = waiting[top].back();
            waiting[top].pop_back();
            level = std::min(level, top);
            for (int direction = 0; direction < 6; ++direction) {
                const int64_t cell = next_to(from, direction);
                const int clearance = clearance_of(cell);
                if (clearance == 0 || state_of(cell) != kUnseen) continue;
                set_state(cell, next_state(state_of(from), clearance, level, limit));
                waiting[clearance].push_back(cell);
                top = std::max(top, clearance);
            }
        }
        close_gaps();
    }

    void write(ShellVoxels& voxels) const {
        for (ShellBlock& block : voxels.blocks) block.outside = {};
        for_each_voxel([&](int64_t cell, const ShellBlock& block, int i) {
            const bool outside = state_of(cell) == kOutside || state_of(cell) == kBehind;
            const auto slot = static_cast<size_t>(&block - voxels_.blocks.data());
            if (outside) voxels.blocks[slot].outside[i / 64] |= uint64_t{1} << (i % 64);
        });
    }

private:
    static constexpr int kFarthest = 0x3fff;  // fourteen bits of clearance below two of state

    int clearance_of(int64_t cell) const { return cells_[cell] & kFarthest; }
    State state_of(int64_t cell) const { return static_cast<State>(cells_[cell] >> 14); }
    void set_state(int64_t cell, State state) {
        cells_[cell] = static_cast<uint16_t>(clearance_of(cell) | state << 14);
    }
    int64_t next_to(int64_t cell, int direction) const {
        return cell + (direction % 2 * 2 - 1) * stride_[direction / 2];
    }

    /// A chamber must be wider than its gap by more than the rounding of clearances.
    static State next_state(State from, int clearance, int level, int limit) {
        if (from == kChamber) return kChamber;
        if (from == kOutside && (clearance <= level || level >= limit)) return kOutside;
        return clearance >= level + 4 + level / 8 ? kChamber : kBehind;
    }

    /// The way from a gap into its chamber belongs to the chamber, so that lids are where the gap is narrowest.
    void close_gaps() {
        std::vector<int64_t> work;
        for (int64_t cell = 0; cell < static_cast<int64_t>(cells_.size()); ++cell)
            if (state_of(cell) == kChamber) work.push_back(cell);
        while (!work.empty()) {
            const int64_t from = work.back();
            work.pop_back();
            for (int direction = 0; direction < 6; ++direction) {
                const int64_t cell = next_to(from, direction);
                if (state_of(cell) != kBehind) continue;
                set_state(cell, kChamber);
                work.push_back(cell);
            }
        }
    }

    /// Distances by steps to the 26 neighbours of lengths 3, 4 and 5 [Borgefors 1986], in two passes.
    void measure() {
        struct Way {
            int64_t offset;
            uint16_t length;
        };
        std::vector<Way> before;  // neighbours that come earlier in memory
        for (int z = -1; z <= 0; ++z)
            for (int y = -1; y <= 1; ++y)
                for (int x = -1; x <= 1; ++x) {
                    const int64_t offset = x + y * stride_[1] + z * stride_[2];
                    if (offset >= 0) continue;
                    const int steps = (x != 0) + (y != 0) + (z != 0);
                    before.push_back({offset, static_cast<uint16_t>(2 + steps)});
                }
        // The cells around all do not bound the space: their distance is the farthest until the end.
        const auto set_around = [&](uint16_t value) {
            for (int axis = 0; axis < 3; ++axis) for_each_side(axis, [&](int64_t cell) { cells_[cell] = value; });
        };
        set_around(kFarthest);
        const auto n = static_cast<int64_t>(cells_.size());
        for (int sign : {1, -1}) {
            for (int64_t i = 0; i < n; ++i) {
                const int64_t cell = sign > 0 ? i : n - 1 - i;
                int nearest = cells_[cell];
                if (nearest == 0) continue;
                for (const Way& way : before) {
                    const int64_t other = cell + sign * way.offset;
                    if (other >= 0 && other < n) nearest = std::min(nearest, cells_[other] + way.length);
                }
                cells_[cell] = static_cast<uint16_t>(nearest);
            }
        }
        set_around(0);
    }

    int64_t extent(int axis) const { return 8 * int64_t{voxels_.size[axis]} + 2; }

    /// The cells of the layer around all on both sides of an axis.
    template <class Visit>
    void for_each_side(int axis, Visit visit) const {
        const int u = (axis + 1) % 3, v = (axis + 2) % 3;
        for (int64_t i = 0; i < extent(u); ++i)
            for (int64_t j = 0; j < extent(v); ++j)
                for (int64_t end : {int64_t{0}, extent(axis) - 1})
                    visit(i * stride_[u] + j * stride_[v] + end * stride_[axis]);
    }

    /// The voxels next to that layer; the input touches none of them.
    template <class Visit>
    void for_each_border(Visit visit) const {
        for (int axis = 0; axis < 3; ++axis) {
            const int u = (axis + 1) % 3, v = (axis + 2) % 3;
            for (int64_t i = 1; i < extent(u) - 1; ++i)
                for (int64_t j = 1; j < extent(v) - 1; ++j)
                    for (int64_t end : {int64_t{1}, extent(axis) - 2}) {
                        const int64_t cell = i * stride_[u] + j * stride_[v] + end * stride_[axis];
                        if (state_of(cell) == kUnseen && clearance_of(cell) > 0) visit(cell);
                    }
        }
    }

    template <class Visit>
    void for_each_voxel(Visit visit) const {
        int64_t at = 0;
        for (int32_t z = 0; z < voxels_.size[2]; ++z)
            for (int32_t y = 0; y < voxels_.size[1]; ++y)
                for (int32_t x = 0; x < voxels_.size[0]; ++x, ++at) {
                    const ShellBlock& block = voxels_.blocks[static_cast<size_t>(voxels_.slots[at])];
                    for (int i = 0; i < 512; ++i)
                        visit((8 * x + i % 8 + 1) + (8 * y + i / 8 % 8 + 1) * stride_[1] +
                                  (8 * z + i / 64 + 1) * stride_[2],
                              block, i);
                }
    }

    const ShellVoxels& voxels_;
    std::array<int64_t, 3> stride_ = {};
    std::vector<uint16_t> cells_;
};

}  // namespace

void reach_through_gaps(ShellVoxels& voxels, double width) {
    STIPPLE_ASSERT(voxels.blocks.size() == voxels.slots.size());
    GapFlood flood(voxels);
    flood.run(width);
    flood.write(voxels);
}

}  // namespace stipple::geometry
