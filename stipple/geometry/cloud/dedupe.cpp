#include "stipple/geometry/dedupe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "stipple/core/parallel.h"
#include "stipple/geometry/cloud/point_cells.h"
#include "stipple/ops/common/require.h"

namespace stipple::geometry {
namespace {

bool is_finite(const float* p) {
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
}

/// For each point the first point at its place: a table of open addresses, filled in the order of the points.
std::vector<int32_t> first_equal(View<const float, 2> points) {
    const int64_t n = points.size(0);
    std::vector<int32_t> first(static_cast<size_t>(n));
    const auto slots = std::bit_ceil(static_cast<uint64_t>(2 * n + 1));
    std::vector<int32_t> table(slots, -1);
    const auto hash = [&](const float* p) {
        uint64_t h = 0;
        for (int axis = 0; axis < 3; ++axis)  // + 0 makes -0 equal to 0
            h = (h ^ std::bit_cast<uint32_t>(p[axis] + 0.0f)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
        return h;
    };
    for (int64_t i = 0; i < n; ++i) {
        const float* p = points.data() + i * points.stride(0);
        first[i] = static_cast<int32_t>(i);
        if (!is_finite(p)) continue;
        for (uint64_t slot = hash(p) & (slots - 1);; slot = (slot + 1) & (slots - 1)) {
            if (table[slot] < 0) {
                table[slot] = static_cast<int32_t>(i);
                break;
            }
            const float* q = points.data() + table[slot] * points.stride(0);
            if (p[0] == q[0] && p[1] == q[1] && p[2] == q[2]) {
                first[i] = table[slot];
                break;
            }
        }
    }
    return first;
}

/// Points by cell, and which of each cell stay. Points that stay are further apart than a cell is wide, so there are
/// few of them in any cell, however many points it holds. A point is known here by its place in the order of the cells,
/// and is lower than another by its index.
class Thinning {
public:
    Thinning(View<const float, 2> points, float distance)
        : limit_(double{distance} * distance),
          cells_(point_cells(points, distance)),
          index_(cells_.order.data()),
          staying_(static_cast<size_t>(cells_.order.size(0))),
          count_(static_cast<size_t>(cells_.cells()), 0),
          first_(static_cast<size_t>(points.size(0))) {
        std::iota(first_.begin(), first_.end(), 0);
        split();
        decide();
    }

    std::vector<int32_t> take() { return std::move(first_); }

private:
    /// A point that may or may not stay, its cell and the cells around.
    struct Open {
        int32_t place;
        int32_t cell;
        int64_t runs;  // in runs_
    };

    /// A point that stays.
    struct Staying {
        float at[3];
        int32_t index;
    };

    bool within(const float* p, const float* q) const {
        const double dx = double{p[0]} - q[0], dy = double{p[1]} - q[1], dz = double{p[2]} - q[2];
        return dx * dx + dy * dy + dz * dz <= limit_;
    }

    const float* point(int64_t place) const { return cells_.points.data() + 3 * place; }

    bool has_lower(int64_t place, const PointCells::Runs& runs) const {
        const int64_t* offsets = cells_.offsets.data();
        for (const PointCells::Run run : runs)
            for (int64_t j = offsets[run.begin]; j < offsets[run.end]; ++j)
                if (index_[j] < index_[place] && within(point(place), point(j))) return true;
        return false;
    }

    void stay(int64_t place, int64_t cell) {
        const float* p = point(place);
        staying_[cells_.offsets.data()[cell] + count_[cell]++] = {{p[0], p[1], p[2]}, index_[place]};
    }

    /// The lowest of the points that stay, or any when that will do, below and within the distance; else the own index.
    int32_t stands_for(const Open& open, bool any) const {
        int32_t first = index_[open.place];
        const float* p = point(open.place);
        for (const PointCells::Run run : runs_[open.runs]) {
            for (int32_t cell = run.begin; cell < run.end; ++cell) {
                const Staying* s = staying_.data() + cells_.offsets.data()[cell];
                for (const Staying* end = s + count_[cell]; s < end; ++s) {
                    if (s->index >= first || !within(p, s->at)) continue;
                    first = s->index;
                    if (any) return first;
                }
            }
        }
        return first;
    }

    /// Points without a lower one within the distance stay, whatever becomes of the others; the rest is open. In the
    /// order of the cells, in which memory is read in order.
    void split() {
        constexpr int64_t kCells = 4096;
        struct Piece {
            std::vector<Open> open;
            std::vector<PointCells::Runs> runs;
        };
        std::vector<Piece> pieces(static_cast<size_t>((cells_.cells() + kCells - 1) / kCells));
        parallel_for(cells_.cells(), kCells, [&](int64_t begin, int64_t end) {
            auto& [open, runs_of_open] = pieces[begin / kCells];
            cells_.for_each(begin, end, [&](int64_t cell, const PointCells::Runs& runs) {
                const size_t before = open.size();
                for (int64_t i = cells_.offsets.data()[cell]; i < cells_.offsets.data()[cell + 1]; ++i) {
                    const auto place = static_cast<int32_t>(i);
                    if (has_lower(i, runs))
                        open.push_back({place, static_cast<int32_t>(cell), static_cast<int64_t>(runs_of_open.size())});
                    else
                        stay(place, cell);
                }
                if (open.size() > before) runs_of_open.push_back(runs);
            });
        });
        for (const Piece& piece : pieces) {
            const auto base = static_cast<int64_t>(runs_.size());
            for (const Open& open : piece.open) open_.push_back({open.place, open.cell, base + open.runs});
            runs_.insert(runs_.end(), piece.runs.begin(), piece.runs.end());
        }
    }

    /// Who stays: one after the other, since each depends on those before it. Who stands for whom: in any order, so in
    /// that of the cells.
    void decide() {
        std::vector<int32_t> open_of_index(first_.size(), -1);
        for (size_t k = 0; k < open_.size(); ++k) open_of_index[index_[open_[k].place]] = static_cast<int32_t>(k);
        for (const int32_t k : open_of_index)
            if (k >= 0 && stands_for(open_[k], true) == index_[open_[k].place]) stay(open_[k].place, open_[k].cell);
        parallel_for(static_cast<int64_t>(open_.size()), 4096, [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) first_[index_[open_[k].place]] = stands_for(open_[k], false);
        });
    }

    double limit_;
    PointCells cells_;
    const int32_t* index_;          // of the point at a place
    std::vector<Staying> staying_;  // of each cell from its offset on ...
    std::vector<int32_t> count_;    // ... so many
    std::vector<Open> open_;
    std::vector<PointCells::Runs> runs_;
    std::vector<int32_t> first_;
};

}  // namespace

UniquePoints unique_points(View<const float, 2> points, float distance) {
    ops::require_clouds("unique_points", "points", points);
    STIPPLE_REQUIRE(points.device() == Device{}, "unique_points: works on the CPU, the points are on {}",
                    to_string(points.device()));
    STIPPLE_REQUIRE(distance >= 0 && std::isfinite(distance), "unique_points: distance {}", distance);
    const int64_t n = points.size(0);
    const std::vector<int32_t> first = distance > 0 ? Thinning(points, distance).take() : first_equal(points);
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += first[i] == i;
    UniquePoints unique = {Array<int32_t, 1>({count}), Array<int32_t, 1>({n})};
    count = 0;
    for (int64_t i = 0; i < n; ++i) {  // what stands for a point comes before it
        if (first[i] == i) unique.kept.data()[count] = static_cast<int32_t>(i);
        unique.unique_of.data()[i] = first[i] == i ? static_cast<int32_t>(count++) : unique.unique_of.data()[first[i]];
    }
    return unique;
}

PointCloud dedupe_points(const PointCloud& cloud, float distance) {
    validate(cloud);
    return select(cloud, unique_points(cloud.positions.view(), distance).kept.view());
}

MeshPart dedupe_vertices(const Mesh& mesh, float distance) {
    validate(mesh);
    UniquePoints unique = unique_points(mesh.vertices.positions.view(), distance);
    MeshPart part;
    part.mesh.vertices = select(mesh.vertices, unique.kept.view());
    part.mesh.triangles = Array<int32_t, 2>({mesh.faces(), 3});
    for (int64_t i = 0; i < 3 * mesh.faces(); ++i)
        part.mesh.triangles.data()[i] = unique.unique_of.data()[mesh.triangles.data()[i]];
    for (const Attribute& attribute : mesh.face_attributes) part.mesh.face_attributes.push_back(attribute.clone());
    part.vertices = std::move(unique.kept);
    part.new_vertices = std::move(unique.unique_of);
    part.faces = Array<int32_t, 1>({mesh.faces()});
    std::iota(part.faces.data(), part.faces.data() + mesh.faces(), 0);
    return part;
}

}  // namespace stipple::geometry
