#include "stipple/geometry/registration/cell_centroids.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/sampling/voxel_cell.h"
#include "stipple/ops/voxel_grid.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kChunk = 1 << 15;  // points: the unit of sums, whatever the threads

struct CellSum {
    int32_t cell[3];
    int32_t count;  // of a chunk, or of a cloud that int32 can number
    double sum[3];
};

/// Cells in the order of their first points, found by hashing with open addressing.
class CellTable {
public:
    CellTable() : places_(kFirst, -1) { cells_.reserve(kFirst / 2); }

    /// The cell's sum, new ones of no points.
    CellSum& at(const int32_t* cell) {
        const size_t mask = places_.size() - 1;
        size_t place = hash(cell) & mask;
        while (places_[place] >= 0 && !is_cell(cells_[places_[place]], cell)) place = (place + 1) & mask;
        if (places_[place] < 0) {
            places_[place] = static_cast<int32_t>(cells_.size());
            cells_.push_back({{cell[0], cell[1], cell[2]}, 0, {}});
            if (2 * cells_.size() > places_.size()) grow();
            return cells_.back();
        }
        return cells_[places_[place]];
    }
    /// Says that the cell will be asked for soon.
    void fetch(const int32_t* cell) const { __builtin_prefetch(&places_[hash(cell) & (places_.size() - 1)]); }
    const std::vector<CellSum>& cells() const { return cells_; }

private:
    static constexpr size_t kFirst = 1 << 13;

    static bool is_cell(const CellSum& known, const int32_t* cell) {
        return known.cell[0] == cell[0] && known.cell[1] == cell[1] && known.cell[2] == cell[2];
    }
    /// Three large odd numbers, then the upper bits mixed into the lower ones.
    static size_t hash(const int32_t* cell) {
        const uint64_t sum = static_cast<uint32_t>(cell[0]) * uint64_t{0x9e3779b97f4a7c15} +
                             static_cast<uint32_t>(cell[1]) * uint64_t{0xc2b2ae3d27d4eb4f} +
                             static_cast<uint32_t>(cell[2]) * uint64_t{0x165667b19e3779f9};
        return static_cast<size_t>(sum ^ sum >> 32);
    }
    void grow() {
        places_.assign(2 * places_.size(), -1);
        const size_t mask = places_.size() - 1;
        for (size_t i = 0; i < cells_.size(); ++i) {
            size_t place = hash(cells_[i].cell) & mask;
            while (places_[place] >= 0) place = (place + 1) & mask;
            places_[place] = static_cast<int32_t>(i);
        }
    }

    std::vector<int32_t> places_;  // a power of two of them, at most half of them taken
    std::vector<CellSum> cells_;
};

/// False when a cell is out of range.
bool add_points(CellTable& table, View<const float, 2> points, int64_t begin, int64_t end, double size) {
    constexpr int64_t kBatch = 64;  // whose places are fetched while the cells of the others are computed
    constexpr auto kMost = static_cast<double>(ops::kMaxVoxelCell);
    const double inverse = 1 / size;
    int32_t cells[kBatch][3];
    const float* places[kBatch];
    for (int64_t first = begin; first < end; first += kBatch) {
        int64_t count = 0;
        for (int64_t i = first; i < std::min(end, first + kBatch); ++i) {
            const float* p = points.data() + i * points.stride(0);
            const bool inside = std::abs(p[0] * inverse) < kMost && std::abs(p[1] * inverse) < kMost &&
                                std::abs(p[2] * inverse) < kMost;
            if (!inside) {
                if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2])) return false;
                continue;
            }
            for (int axis = 0; axis < 3; ++axis) cells[count][axis] = ops::voxel_cell(p[axis], 0, size, inverse);
            table.fetch(cells[count]);
            places[count++] = p;
        }
        for (int64_t i = 0; i < count; ++i) {
            CellSum& sum = table.at(cells[i]);
            ++sum.count;
            for (int axis = 0; axis < 3; ++axis) sum.sum[axis] += places[i][axis];
        }
    }
    return true;
}

}  // namespace

Array<float, 2> cell_centroids(View<const float, 2> points, float size) {
    const int64_t n = points.size(0), chunks = (n + kChunk - 1) / kChunk;
    STIPPLE_REQUIRE(size > 0 && std::isfinite(size) && std::isfinite(1.0 / size),
                    "cell_centroids: the size of a cell must be above 0, got {}", size);
    std::vector<CellTable> tables(static_cast<size_t>(chunks));
    std::vector<uint8_t> fits(static_cast<size_t>(chunks), 0);
    parallel_for(n, kChunk, [&](int64_t begin, int64_t end) {
        fits[begin / kChunk] = add_points(tables[begin / kChunk], points, begin, end, size);
    });
    if (std::find(fits.begin(), fits.end(), 0) != fits.end())
        ops::voxel_grid(points, size);  // throws, and says what is too large
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
        for (const CellSum& from : tables[chunk].cells()) {
            CellSum& to = tables[0].at(from.cell);
            to.count += from.count;
            for (int axis = 0; axis < 3; ++axis) to.sum[axis] += from.sum[axis];
        }
        tables[chunk] = CellTable();
    }
    const auto cells = chunks > 0 ? static_cast<int64_t>(tables[0].cells().size()) : 0;
    Array<float, 2> centroids({cells, 3});
    for (int64_t i = 0; i < cells; ++i) {
        const CellSum& cell = tables[0].cells()[i];
        for (int axis = 0; axis < 3; ++axis)
            centroids.data()[3 * i + axis] = static_cast<float>(cell.sum[axis] / static_cast<double>(cell.count));
    }
    return centroids;
}

}  // namespace stipple::geometry
