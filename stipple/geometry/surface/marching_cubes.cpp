#include "stipple/geometry/marching_cubes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "stipple/core/parallel.h"
#include "stipple/geometry/surface/marching_cubes_table.h"

namespace stipple::geometry {
namespace {

constexpr int kSide = SparseGrid::kSide, kCorners = SparseGrid::kCorners;
constexpr int kWide = kSide + 1;  // corners of a block's cells along a side: the last are the next block's
constexpr int64_t kGrain = 64;    // blocks
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

using BlockPlace = std::array<int32_t, 3>;

bool is_before(const BlockPlace& a, const BlockPlace& b) {
    return std::tie(a[2], a[1], a[0]) < std::tie(b[2], b[1], b[0]);
}

/// The values of a block's cells, [z][y][x], kUnknown where there is none.
struct Patch {
    float values[kWide * kWide * kWide];

    static int at(int x, int y, int z) { return (z * kWide + y) * kWide + x; }
};

/// What the surface looks like in a block: which of the edges that begin at its corners have a vertex, and its number
/// among the block's.
struct BlockVertices {
    uint8_t rank[3][kCorners];
};

class Marcher {
public:
    using Fill = std::function<void(int64_t block, Patch& patch)>;

    /// Blocks in the order of is_before, each once.
    Marcher(const std::vector<BlockPlace>& blocks, Fill fill, float level)
        : blocks_(blocks),
          fill_(std::move(fill)),
          level_(level),
          vertices_(blocks.size()),
          first_vertex_(blocks.size() + 1, 0),
          first_triangle_(blocks.size() + 1, 0) {}

    Mesh run(const std::array<double, 3>& low, double step) {
        const auto n = static_cast<int64_t>(blocks_.size());
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t block = begin; block < end; ++block) count(block);
        });
        for (int64_t block = 0; block < n; ++block) {
            first_vertex_[block + 1] += first_vertex_[block];
            first_triangle_[block + 1] += first_triangle_[block];
        }
        constexpr int64_t kMost = INT32_MAX;
        STIPPLE_REQUIRE(first_vertex_[n] <= kMost && first_triangle_[n] <= kMost,
                        "marching_cubes: {} vertices and {} triangles, at most {}", first_vertex_[n],
                        first_triangle_[n], kMost);
        Mesh mesh;
        mesh.vertices = PointCloud(first_vertex_[n]);
        mesh.triangles = Array<int32_t, 2>({first_triangle_[n], 3});
        mesh.vertices.origin = origin_for(low, step);
        for (int axis = 0; axis < 3; ++axis) low_[axis] = low[axis] - mesh.vertices.origin[axis];
        step_ = step;
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t block = begin; block < end; ++block) {
                if (first_vertex_[block] == first_vertex_[block + 1] &&
                    first_triangle_[block] == first_triangle_[block + 1])
                    continue;
                Patch patch;
                fill_(block, patch);
                write_vertices(block, patch, mesh.vertices.positions.data() + 3 * first_vertex_[block]);
                write_triangles(block, patch, mesh.triangles.data() + 3 * first_triangle_[block]);
            }
        });
        return mesh;
    }

private:
    bool is_above(float value) const { return value >= level_; }

    /// Calls each(axis, corner, value, next value) for the edges that begin in the block and are crossed.
    template <class Each>
    void for_each_crossing(const Patch& patch, Each each) const {
        constexpr int kNext[3] = {1, kWide, kWide * kWide};
        for (int corner = 0; corner < kCorners; ++corner) {
            const int at = Patch::at(corner % kSide, corner / kSide % kSide, corner / (kSide * kSide));
            const float value = patch.values[at];
            if (std::isnan(value)) continue;
            for (int axis = 0; axis < 3; ++axis) {
                const float next = patch.values[at + kNext[axis]];
                if (!std::isnan(next) && is_above(value) != is_above(next)) each(axis, corner, value, next);
            }
        }
    }

    /// Calls each(x, y, z, case) for the block's cells whose corners are known and lie on both sides.
    template <class Each>
    void for_each_cell(const Patch& patch, Each each) const {
        for (int cell = 0; cell < kCorners; ++cell) {
            const int x = cell % kSide, y = cell / kSide % kSide, z = cell / (kSide * kSide);
            int above = 0;
            bool known = true;
            for (int corner = 0; corner < 8; ++corner) {
                const float value = patch.values[Patch::at(x + (corner & 1), y + (corner >> 1 & 1), z + (corner >> 2))];
                known &= !std::isnan(value);
                above |= static_cast<int>(is_above(value)) << corner;
            }
            if (known && above != 0 && above != 255) each(x, y, z, kCellTable.cases[above]);
        }
    }

    void count(int64_t block) {
        Patch patch;
        fill_(block, patch);
        bool some_above = false, some_below = false;
        for (float value : patch.values) {
            some_above |= value >= level_;
            some_below |= value < level_;
        }
        if (!some_above || !some_below) return;
        int vertices = 0;
        for_each_crossing(patch, [&](int axis, int corner, float, float) {
            vertices_[block].rank[axis][corner] = static_cast<uint8_t>(vertices++);
        });
        first_vertex_[block + 1] = vertices;
        for_each_cell(patch,
                      [&](int, int, int, const CellCase& cell) { first_triangle_[block + 1] += cell.triangles; });
    }

    void write_vertices(int64_t block, const Patch& patch, float* to) const {
        for_each_crossing(patch, [&](int axis, int corner, float value, float next) {
            constexpr double kMargin = 1e-3;
            const double share = (double{level_} - double{value}) / (double{next} - double{value});
            const int local[3] = {corner % kSide, corner / kSide % kSide, corner / (kSide * kSide)};
            for (int i = 0; i < 3; ++i) {
                double at = static_cast<double>(blocks_[block][i]) * kSide + local[i];
                if (i == axis) at += std::clamp(share, kMargin, 1 - kMargin);
                *to++ = static_cast<float>(low_[i] + step_ * at);
            }
        });
    }

    void write_triangles(int64_t block, const Patch& patch, int32_t* to) const {
        int64_t neighbour[8];  // those that the block's cells reach, by bits x, y, z
        for (int i = 0; i < 8; ++i) neighbour[i] = i == 0 ? block : find(block, i);
        for_each_cell(patch, [&](int x, int y, int z, const CellCase& cell) {
            for (int triangle = 0; triangle < cell.triangles; ++triangle) {
                for (int8_t edge : cell.edges[triangle]) {
                    const int from = cell_edge(edge).from;
                    const int px = x + (from & 1), py = y + (from >> 1 & 1), pz = z + (from >> 2);
                    const int64_t owner = neighbour[px / kSide | py / kSide << 1 | pz / kSide << 2];
                    const int corner = (pz % kSide * kSide + py % kSide) * kSide + px % kSide;
                    *to++ = static_cast<int32_t>(first_vertex_[owner] + vertices_[owner].rank[edge / 4][corner]);
                }
            }
        });
    }

    /// The block one further along the axes of `bits`; -1 where it is not there, and then no vertex is sought in it.
    int64_t find(int64_t block, int bits) const {
        BlockPlace place = blocks_[block];
        for (int axis = 0; axis < 3; ++axis) place[axis] += bits >> axis & 1;
        const auto found = std::lower_bound(blocks_.begin() + block, blocks_.end(), place, is_before);
        return found != blocks_.end() && *found == place ? found - blocks_.begin() : -1;
    }

    std::array<double, 3> origin_for(const std::array<double, 3>& low, double step) const {
        if (blocks_.empty()) return {};
        std::array<double, 3> min, max;
        for (int axis = 0; axis < 3; ++axis) {
            const auto [least, most] =
                std::minmax_element(blocks_.begin(), blocks_.end(),
                                    [axis](const BlockPlace& a, const BlockPlace& b) { return a[axis] < b[axis]; });
            min[axis] = low[axis] + step * kSide * static_cast<double>((*least)[axis]);
            max[axis] = low[axis] + step * kSide * (static_cast<double>((*most)[axis]) + 1);
        }
        return choose_origin(min, max);
    }

    const std::vector<BlockPlace>& blocks_;
    Fill fill_;
    float level_;
    std::vector<BlockVertices> vertices_;
    std::vector<int64_t> first_vertex_, first_triangle_;
    std::array<double, 3> low_{};
    double step_ = 1;
};

void require_grid(const std::array<double, 3>& low, double step, const std::vector<float>& values, float level) {
    STIPPLE_REQUIRE(std::isfinite(level), "marching_cubes: the level is {}", level);
    STIPPLE_REQUIRE(std::isfinite(step) && step > 0, "marching_cubes: the step must be above 0, got {}", step);
    for (double x : low) STIPPLE_REQUIRE(std::isfinite(x), "marching_cubes: the low corner is not finite");
    std::atomic<bool> finite = true;
    parallel_for(static_cast<int64_t>(values.size()), 1 << 16, [&](int64_t begin, int64_t end) {
        bool all = true;
        for (int64_t i = begin; i < end; ++i) all &= std::abs(values[i]) <= std::numeric_limits<float>::max();
        if (!all) finite = false;
    });
    STIPPLE_REQUIRE(finite, "marching_cubes: a value is not finite");
}

/// The blocks of a dense grid whose cells see both sides.
std::vector<BlockPlace> crossed_blocks(const ScalarGrid& grid, float level) {
    const int64_t across = (grid.size[0] + kSide - 1) / kSide, rows = (grid.size[1] + kSide - 1) / kSide,
                  layers = (grid.size[2] + kSide - 1) / kSide;
    std::vector<std::vector<BlockPlace>> of_layer(static_cast<size_t>(layers));
    parallel_for(layers, 1, [&](int64_t begin, int64_t end) {
        for (int64_t layer = begin; layer < end; ++layer) {
            // For each block: bit 0, a corner of its cells is below; bit 1, one is above.
            std::vector<uint8_t> sides(static_cast<size_t>(across * rows), 0);
            for (int64_t z = layer * kSide; z < std::min(grid.size[2], layer * kSide + kWide); ++z) {
                for (int64_t y = 0; y < grid.size[1]; ++y) {
                    const float* values = grid.values.data() + (z * grid.size[1] + y) * grid.size[0];
                    for (int64_t block = 0; block < across; ++block) {
                        uint8_t seen = 0;
                        for (int64_t x = block * kSide; x < std::min(grid.size[0], block * kSide + kWide); ++x)
                            seen |= values[x] >= level ? 2 : 1;
                        sides[y / kSide * across + block] |= seen;
                        if (y % kSide == 0 && y > 0) sides[(y / kSide - 1) * across + block] |= seen;
                    }
                }
            }
            for (int64_t i = 0; i < across * rows; ++i) {
                if (sides[i] == 3)
                    of_layer[layer].push_back({static_cast<int32_t>(i % across), static_cast<int32_t>(i / across),
                                               static_cast<int32_t>(layer)});
            }
        }
    });
    std::vector<BlockPlace> blocks;
    for (const auto& some : of_layer) blocks.insert(blocks.end(), some.begin(), some.end());
    return blocks;
}

}  // namespace

Mesh marching_cubes(const ScalarGrid& grid, float level) {
    int64_t corners = 1;
    for (int64_t side : grid.size) {
        STIPPLE_REQUIRE(side >= 0 && side <= INT32_MAX, "marching_cubes: a grid of {}",
                        shape_text(grid.size.data(), 3));
        corners = checked_mul(corners, side);
    }
    STIPPLE_REQUIRE(corners == static_cast<int64_t>(grid.values.size()), "marching_cubes: {} values for a grid of {}",
                    grid.values.size(), shape_text(grid.size.data(), 3));
    require_grid(grid.low, grid.step, grid.values, level);
    const std::vector<BlockPlace> blocks = corners > 0 ? crossed_blocks(grid, level) : std::vector<BlockPlace>();
    const auto fill = [&](int64_t block, Patch& patch) {
        const auto [bx, by, bz] = blocks[block];
        for (int z = 0; z < kWide; ++z) {
            for (int y = 0; y < kWide; ++y) {
                for (int x = 0; x < kWide; ++x) {
                    const int64_t gx = int64_t{bx} * kSide + x, gy = int64_t{by} * kSide + y,
                                  gz = int64_t{bz} * kSide + z;
                    const bool known = gx < grid.size[0] && gy < grid.size[1] && gz < grid.size[2];
                    patch.values[Patch::at(x, y, z)] = known ? grid.at(gx, gy, gz) : kUnknown;
                }
            }
        }
    };
    return Marcher(blocks, fill, level).run(grid.low, grid.step);
}

Mesh marching_cubes(const SparseGrid& grid, float level) {
    const auto n = static_cast<int64_t>(grid.blocks.size());
    STIPPLE_REQUIRE(n * kCorners == static_cast<int64_t>(grid.values.size()),
                    "marching_cubes: {} values for {} blocks of {}", grid.values.size(), n, kCorners);
    STIPPLE_REQUIRE(n <= INT32_MAX, "marching_cubes: {} blocks, at most {}", n, INT32_MAX);
    require_grid(grid.low, grid.step, grid.values, level);
    std::vector<int32_t> order(grid.blocks.size());
    for (int64_t i = 0; i < n; ++i) order[i] = static_cast<int32_t>(i);
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return is_before(grid.blocks[a], grid.blocks[b]); });
    std::vector<BlockPlace> blocks(grid.blocks.size());
    for (int64_t i = 0; i < n; ++i) {
        blocks[i] = grid.blocks[order[i]];
        constexpr int32_t kFurthest = 1 << 29;  // corners have int32 places
        for (int32_t x : blocks[i])
            STIPPLE_REQUIRE(x >= -kFurthest && x < kFurthest, "marching_cubes: block ({}, {}, {}) is too far out",
                            blocks[i][0], blocks[i][1], blocks[i][2]);
        STIPPLE_REQUIRE(i == 0 || blocks[i] != blocks[i - 1], "marching_cubes: block ({}, {}, {}) is there twice",
                        blocks[i][0], blocks[i][1], blocks[i][2]);
    }
    const auto fill = [&](int64_t block, Patch& patch) {
        for (int bits = 0; bits < 8; ++bits) {
            BlockPlace place = blocks[block];
            for (int axis = 0; axis < 3; ++axis) place[axis] += bits >> axis & 1;
            const auto found = std::lower_bound(blocks.begin() + block, blocks.end(), place, is_before);
            const bool known = found != blocks.end() && *found == place;
            const float* values =
                known ? grid.values.data() + int64_t{order[found - blocks.begin()]} * kCorners : nullptr;
            const int first[3] = {bits & 1, bits >> 1 & 1, bits >> 2};
            for (int z = first[2] * kSide; z < (first[2] ? kWide : kSide); ++z) {
                for (int y = first[1] * kSide; y < (first[1] ? kWide : kSide); ++y) {
                    for (int x = first[0] * kSide; x < (first[0] ? kWide : kSide); ++x) {
                        const int corner = (z % kSide * kSide + y % kSide) * kSide + x % kSide;
                        patch.values[Patch::at(x, y, z)] = known ? values[corner] : kUnknown;
                    }
                }
            }
        }
    };
    return Marcher(blocks, fill, level).run(grid.low, grid.step);
}

}  // namespace stipple::geometry
