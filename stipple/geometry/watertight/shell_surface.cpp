#include "stipple/geometry/watertight/shell_surface.h"

#include <algorithm>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

// Around a voxel corner there are eight voxels; voxel b lies on the upper side of axis k where bit k of b is set. An
// edge joins two of them along an axis; it is crossed where one is outside and the other is not. Surface comes through
// each crossed edge, and the crossed edges form loops around the corner: one vertex for each loop, one quad for each
// crossed edge, between the four corners of the face that the two voxels share.

/// Edge 4 * k + r: along axis k, r says on which sides of axes k + 1 (bit 0) and k + 2 (bit 1).
constexpr int edge_of(int axis, int low_voxel) {
    return 4 * axis + (low_voxel >> ((axis + 1) % 3) & 1) + 2 * (low_voxel >> ((axis + 2) % 3) & 1);
}
constexpr int low_voxel_of(int edge) {
    const int axis = edge / 4;
    return ((edge & 1) << ((axis + 1) % 3)) | ((edge >> 1 & 1) << ((axis + 2) % 3));
}

struct Loops {
    uint8_t count = 0;
    std::array<int8_t, 12> of{};  // each edge's loop, -1 where it is not crossed
};

/// By which voxels around the corner are outside. Voxels that are not hold together across an edge or a corner, outside
/// ones do not: as the search from outside goes through faces only.
std::array<Loops, 256> make_loops() {
    std::array<Loops, 256> table;
    for (int outside = 0; outside < 256; ++outside) {
        std::array<int8_t, 12> root;
        for (int e = 0; e < 12; ++e) root[e] = static_cast<int8_t>(e);
        const auto crossed = [&](int e) {
            const int a = low_voxel_of(e), b = a | 1 << e / 4;
            return (outside >> a & 1) != (outside >> b & 1);
        };
        const auto join = [&](int a, int b) {
            const int8_t from = root[a], to = root[b];
            for (int8_t& r : root)
                if (r == from) r = to;
        };
        for (int face = 0; face < 6; ++face) {  // of the cube of voxel centres; across `axis`, at `side`
            const int axis = face / 2, u = (axis + 1) % 3, v = (axis + 2) % 3, side = (face & 1) << axis;
            const int voxel[4] = {side, side | 1 << u, side | 1 << u | 1 << v, side | 1 << v};
            const int edge[4] = {edge_of(u, voxel[0]), edge_of(v, voxel[1]), edge_of(u, voxel[3]),
                                 edge_of(v, voxel[0])};
            int crossings = 0, first = -1;
            for (int e : edge) crossings += crossed(e);
            for (int i = 0; i < 4; ++i) {
                if (crossings == 4 && (outside >> voxel[i] & 1)) join(edge[(i + 3) % 4], edge[i]);
                if (crossings != 2 || !crossed(edge[i])) continue;
                if (first >= 0) join(first, edge[i]);
                first = edge[i];
            }
        }
        Loops& loops = table[outside];
        std::array<int8_t, 12> number;
        number.fill(-1);
        for (int e = 0; e < 12; ++e) {
            loops.of[e] = -1;
            if (!crossed(e)) continue;
            if (number[root[e]] < 0) number[root[e]] = static_cast<int8_t>(loops.count++);
            loops.of[e] = number[root[e]];
        }
    }
    return table;
}

const std::array<Loops, 256>& loops_table() {
    static const std::array<Loops, 256> table = make_loops();
    return table;
}

/// The four voxels around the edge from a corner to the next one along `axis`, of the eight around the corner.
constexpr uint8_t around(uint8_t eight, int axis) {
    const int up = 1 << axis, u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3;
    return static_cast<uint8_t>((eight >> up & 1) | (eight >> (up | u) & 1) << 1 | (eight >> (up | v) & 1) << 2 |
                                (eight >> (up | u | v) & 1) << 3);
}

/// The surface meets itself along the voxel edge from corner a to the next corner b along `axis`, and both strips end
/// in the same vertex at either end: one strip gets a vertex of its own in the middle of the edge.
bool is_doubled(uint8_t a, uint8_t b, int axis) {
    const uint8_t four = around(a, axis);
    if (four != 0b1001 && four != 0b0110) return false;
    const int u = (axis + 1) % 3, v = (axis + 2) % 3, up = 1 << axis;
    const auto one_loop = [&](uint8_t eight, int side) {
        const auto& of = loops_table()[eight].of;
        return of[edge_of(u, side)] == of[edge_of(u, side | 1 << v)];
    };
    return one_loop(a, up) && one_loop(b, 0);
}

/// Which of the two outside voxels around a doubled edge has the vertex in the middle: the upper one on axis + 2.
constexpr int middle_side(uint8_t four) {
    return four == 0b1001 ? 3 : 2;
}

constexpr int kWide = 11;  // voxels of a block, one more below and two above

struct Neighbourhood {
    std::array<uint8_t, kWide * kWide * kWide> bits;

    uint8_t at(int x, int y, int z) const { return bits[(z * kWide + y) * kWide + x]; }
    /// The voxels around the corner that is the low one of the block's voxel (x, y, z); 0 .. 9.
    uint8_t eight(int x, int y, int z) const {
        return static_cast<uint8_t>(at(x, y, z) | at(x + 1, y, z) << 1 | at(x, y + 1, z) << 2 |
                                    at(x + 1, y + 1, z) << 3 | at(x, y, z + 1) << 4 | at(x + 1, y, z + 1) << 5 |
                                    at(x, y + 1, z + 1) << 6 | at(x + 1, y + 1, z + 1) << 7);
    }
};

/// The voxels in and around a block; those of blocks without bits have `of_outside` outside and 0 elsewhere.
Neighbourhood gather(const ShellVoxels& voxels, std::array<int32_t, 3> block,
                     std::array<uint64_t, 8> ShellBlock::*words, uint8_t of_outside) {
    Neighbourhood near;
    for (int part = 0; part < 27; ++part) {
        const int d[3] = {part % 3 - 1, part / 3 % 3 - 1, part / 9 - 1};
        const int32_t slot = voxels.slot(block[0] + d[0], block[1] + d[1], block[2] + d[2]);
        int first[3], last[3];
        for (int k = 0; k < 3; ++k) {
            first[k] = d[k] < 0 ? 0 : d[k] == 0 ? 1 : 9;
            last[k] = d[k] < 0 ? 0 : d[k] == 0 ? 8 : kWide - 1;
        }
        for (int z = first[2]; z <= last[2]; ++z) {
            for (int y = first[1]; y <= last[1]; ++y) {
                for (int x = first[0]; x <= last[0]; ++x) {
                    uint8_t& value = near.bits[(z * kWide + y) * kWide + x];
                    if (slot < 0) {
                        value = slot == ShellVoxels::kOutside ? of_outside : 0;
                    } else {
                        const uint64_t word = (voxels.blocks[static_cast<size_t>(slot)].*words)[(z + 7) & 7];
                        value = word >> (8 * ((y + 7) & 7) + ((x + 7) & 7)) & 1;
                    }
                }
            }
        }
    }
    return near;
}

bool is_doubled(const Neighbourhood& near, std::array<int, 3> at, int axis) {
    const uint8_t here = near.eight(at[0], at[1], at[2]);
    ++at[axis];
    return is_doubled(here, near.eight(at[0], at[1], at[2]), axis);
}

/// A block with surface at the low corners of its voxels.
struct Piece {
    std::array<int32_t, 3> block;
    int32_t first = 0;  // its first vertex
    int32_t vertices = 0;
    std::array<uint16_t, 512> offset{};  // of each corner's vertices: its loops, then its middles by axis
};

class Extraction {
public:
    explicit Extraction(const ShellVoxels& voxels) : voxels_(voxels), piece_of_(voxels.slots.size(), -1) {
        // A crossed edge has a voxel of a block in use at one end; the corners are at most one further up.
        const auto& size = voxels.size;
        for (int32_t z = 0; z < size[2]; ++z)
            for (int32_t y = 0; y < size[1]; ++y)
                for (int32_t x = 0; x < size[0]; ++x) {
                    bool used = false;
                    for (int b = 0; b < 8; ++b) used |= voxels.slot(x - (b & 1), y - (b >> 1 & 1), z - (b >> 2)) >= 0;
                    if (!used) continue;
                    piece_of_[index_of(x, y, z)] = static_cast<int32_t>(pieces_.size());
                    pieces_.push_back({{x, y, z}});
                }
    }

    ShellSurface run() {
        const auto n = static_cast<int64_t>(pieces_.size());
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) count(pieces_[static_cast<size_t>(i)]);
        });
        int64_t total = 0;
        for (Piece& piece : pieces_) {
            piece.first = static_cast<int32_t>(total);
            total += piece.vertices;
            STIPPLE_REQUIRE(total <= INT32_MAX / 8, "watertight: more than 2^28 vertices, take a lower resolution");
        }
        ShellSurface surface;
        surface.places.resize(static_cast<size_t>(total));
        surface.lid.resize(static_cast<size_t>(total));
        struct Part {
            std::vector<ShellSurface::Crowded> crowded;
            std::vector<std::array<int32_t, 4>> quads;
            std::vector<std::array<int32_t, 3>> triangles;
        };
        std::vector<Part> parts(static_cast<size_t>((n + kGrain - 1) / kGrain));
        parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
            Part& part = parts[static_cast<size_t>(begin / kGrain)];
            for (int64_t i = begin; i < end; ++i) emit(pieces_[static_cast<size_t>(i)], surface, part);
        });
        for (const Part& part : parts) {
            surface.crowded.insert(surface.crowded.end(), part.crowded.begin(), part.crowded.end());
            surface.quads.insert(surface.quads.end(), part.quads.begin(), part.quads.end());
            surface.triangles.insert(surface.triangles.end(), part.triangles.begin(), part.triangles.end());
        }
        return surface;
    }

private:
    static constexpr int64_t kGrain = 16;

    size_t index_of(int32_t x, int32_t y, int32_t z) const {
        return (static_cast<size_t>(z) * voxels_.size[1] + y) * voxels_.size[0] + x;
    }

    void count(Piece& piece) const {
        const Neighbourhood near = gather(voxels_, piece.block, &ShellBlock::outside, 1);
        int at = 0, total = 0;
        for (int z = 0; z < 8; ++z)
            for (int y = 0; y < 8; ++y)
                for (int x = 0; x < 8; ++x, ++at) {
                    piece.offset[at] = static_cast<uint16_t>(total);
                    const uint8_t eight = near.eight(x, y, z);
                    if (eight == 0 || eight == 255) continue;
                    total += loops_table()[eight].count;
                    for (int k = 0; k < 3; ++k) total += is_doubled(near, {x, y, z}, k);
                }
        piece.vertices = total;
    }

    /// The first vertex at a corner of this piece or the next ones (0 .. 8). The corner has some.
    int32_t first_at(const Piece& from, const std::array<int, 3>& corner) const {
        const auto& block = from.block;
        const Piece& piece = pieces_[piece_of_[index_of(block[0] + (corner[0] >> 3), block[1] + (corner[1] >> 3),
                                                        block[2] + (corner[2] >> 3))]];
        return piece.first + piece.offset[((corner[2] & 7) * 8 + (corner[1] & 7)) * 8 + (corner[0] & 7)];
    }

    template <class Part>
    void emit(const Piece& piece, ShellSurface& surface, Part& part) const {
        if (piece.vertices == 0) return;
        const Neighbourhood near = gather(voxels_, piece.block, &ShellBlock::outside, 1);
        const Neighbourhood touched = gather(voxels_, piece.block, &ShellBlock::touched, 0);
        for (int z = 0; z < 8; ++z)
            for (int y = 0; y < 8; ++y)
                for (int x = 0; x < 8; ++x) {
                    const uint8_t eight = near.eight(x, y, z);
                    if (eight == 0 || eight == 255) continue;
                    emit_vertices(piece, near, touched.eight(x, y, z), {x, y, z}, surface, part.crowded);
                    for (int k = 0; k < 3; ++k) emit_face(piece, near, {x, y, z}, k, part);
                }
    }

    void emit_vertices(const Piece& piece, const Neighbourhood& near, uint8_t touched, std::array<int, 3> at,
                       ShellSurface& surface, std::vector<ShellSurface::Crowded>& crowded) const {
        const uint8_t eight = near.eight(at[0], at[1], at[2]);
        const Loops& loops = loops_table()[eight];
        const Vec3d corner = {8.0 * piece.block[0] + at[0], 8.0 * piece.block[1] + at[1], 8.0 * piece.block[2] + at[2]};
        int32_t vertex = piece.first + piece.offset[(at[2] * 8 + at[1]) * 8 + at[0]];
        for (int loop = 0; loop < loops.count; ++loop, ++vertex) {
            surface.places[vertex] = corner;
            uint8_t behind = 0;
            std::array<float, 3> pull{};  // to the middle of the faces that the loop passes
            for (int e = 0; e < 12; ++e) {
                if (loops.of[e] != loop) continue;
                const int low = low_voxel_of(e), high = low | 1 << e / 4;
                behind |= static_cast<uint8_t>(~eight & (1 << low | 1 << high));
                for (int k = 0; k < 3; ++k) pull[k] += k == e / 4 ? 0.0f : (low >> k & 1) ? 0.5f : -0.5f;
            }
            surface.lid[vertex] = (behind & touched) == 0;
            if (loops.count > 1) crowded.push_back({vertex, pull});
        }
        for (int k = 0; k < 3; ++k) {
            if (!is_doubled(near, at, k)) continue;
            Vec3d middle = corner;
            middle[k] += 0.5;
            surface.places[vertex] = middle;
            surface.lid[vertex] = (touched & ~eight) == 0;
            const int side = middle_side(around(eight, k));
            std::array<float, 3> pull{};
            pull[(k + 1) % 3] = side & 1 ? 0.5f : -0.5f;
            pull[(k + 2) % 3] = side & 2 ? 0.5f : -0.5f;
            crowded.push_back({vertex++, pull});
        }
    }

    /// The face across `axis` between the corner's two voxels that are upper on both other axes, where it is crossed.
    template <class Part>
    void emit_face(const Piece& piece, const Neighbourhood& near, std::array<int, 3> at, int axis, Part& part) const {
        const int u = (axis + 1) % 3, v = (axis + 2) % 3;
        const uint8_t own = near.eight(at[0], at[1], at[2]);
        const int low = 1 << u | 1 << v, high = low | 1 << axis;
        const bool high_outside = own >> high & 1;
        if ((own >> low & 1) == high_outside) return;
        static constexpr int kRing[5][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}};  // seen from above
        std::array<int32_t, 8> ring;
        int n = 0, middle = -1;
        for (int i = 0; i < 4; ++i) {
            std::array<int, 3> corner = at;
            corner[u] += kRing[i][0], corner[v] += kRing[i][1];
            const uint8_t eight = near.eight(corner[0], corner[1], corner[2]);
            ring[n++] = first_at(piece, corner) + loops_table()[eight].of[4 * axis + !kRing[i][0] + 2 * !kRing[i][1]];
            // The side from here to the next corner, from its lower end.
            const int along = i % 2 == 0 ? u : v, upper = kRing[i][i % 2 == 0 ? 1 : 0];
            corner[along] = at[along];
            const uint8_t from = near.eight(corner[0], corner[1], corner[2]);
            if (!is_doubled(near, corner, along)) continue;
            const int bit_axis = high_outside, bit_across = upper == 0;
            const int side = (along + 1) % 3 == axis ? bit_axis + 2 * bit_across : bit_across + 2 * bit_axis;
            if (side != middle_side(around(from, along))) continue;
            int rank = loops_table()[from].count;
            for (int k = 0; k < along; ++k) rank += is_doubled(near, corner, k);
            middle = n;
            ring[n++] = first_at(piece, corner) + rank;
        }
        if (!high_outside) {
            std::reverse(ring.begin(), ring.begin() + n);
            middle = n - 1 - middle;
        }
        if (n == 4) return part.quads.push_back({ring[0], ring[1], ring[2], ring[3]});
        // Edges from a vertex in the middle of a side lead to no other face: the fan is as manifold as the quad was.
        for (int i = 1; i + 1 < n; ++i)
            part.triangles.push_back({ring[middle], ring[(middle + i) % n], ring[(middle + i + 1) % n]});
    }

    const ShellVoxels& voxels_;
    std::vector<int32_t> piece_of_;
    std::vector<Piece> pieces_;
};

}  // namespace

ShellSurface extract_surface(const ShellVoxels& voxels) {
    return Extraction(voxels).run();
}

}  // namespace stipple::geometry
