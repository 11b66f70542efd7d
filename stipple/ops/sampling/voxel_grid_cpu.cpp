// Points to cells on the CPU: bounds, keys, a stable radix sort of (key, row), then the cells in order. Every pass runs
// on all threads; a stable sort has one result, so none depends on their number.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/ops/sampling/voxel_cell.h"

namespace stipple::ops::cpu {
namespace {

constexpr int64_t kPiece = 32768;  // rows or entries that a thread takes at a time
constexpr int64_t kBlock = 256;    // points that are made columns at a time
constexpr int kDigitBits = 11;     // 2048 counters: 16 KiB, half an L1
constexpr int64_t kSmall = 2048;   // fewer are sorted by comparison

/// Rows of one cloud.
struct Piece {
    int64_t cloud, begin, end;
};

std::vector<Piece> pieces_of(const Batch& batch) {
    std::vector<Piece> pieces;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
        for (int64_t begin = batch.begin(cloud); begin < batch.end(cloud); begin += kPiece)
            pieces.push_back({cloud, begin, std::min(begin + kPiece, batch.end(cloud))});
    return pieces;
}

/// kBlock points as columns, and which are finite. The last block is filled up with non-finite ones.
struct Block {
    float at[3][kBlock];
    int32_t finite[kBlock];

    void load(const View<const float, 2>& rows, int64_t begin, int64_t count) {
        const float* from = rows.data() + begin * rows.stride(0);
        const int64_t stride = rows.stride(0);
        if (stride == 3) {
            for (int64_t i = 0; i < count; ++i)
                for (int axis = 0; axis < 3; ++axis) at[axis][i] = from[3 * i + axis];
        } else {
            for (int64_t i = 0; i < count; ++i)
                for (int axis = 0; axis < 3; ++axis) at[axis][i] = from[stride * i + axis];
        }
        for (int64_t i = count; i < kBlock; ++i) at[0][i] = std::numeric_limits<float>::infinity();
        for (int64_t i = 0; i < kBlock; ++i)  // 0 times infinity is no number
            finite[i] = (at[0][i] * 0 == 0) & (at[1][i] * 0 == 0) & (at[2][i] * 0 == 0);
    }
};

/// Calls body(block, first row, rows) for the blocks of a piece.
template <class Body>
void for_each_block(const View<const float, 2>& rows, const Piece& piece, const Body& body) {
    Block block;
    for (auto& column : block.at) std::fill_n(column, kBlock, 0.f);
    for (int64_t begin = piece.begin; begin < piece.end; begin += kBlock) {
        const int64_t count = std::min(kBlock, piece.end - begin);
        block.load(rows, begin, count);
        body(block, begin, count);
    }
}

struct Bounds {
    FiniteBox box;
    int64_t finite;
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr FiniteBox kNoBox = {{kInfinity, kInfinity, kInfinity}, {-kInfinity, -kInfinity, -kInfinity}};

void widen(FiniteBox& box, const FiniteBox& other) {
    for (int axis = 0; axis < 3; ++axis) {
        box.low[axis] = std::min(box.low[axis], other.low[axis]);
        box.high[axis] = std::max(box.high[axis], other.high[axis]);
    }
}

std::vector<Bounds> bounds_of(const Clouds& points, const std::vector<Piece>& pieces) {
    std::vector<Bounds> bounds(pieces.size(), {kNoBox, 0});
    parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p) {
            float low[3][kBlock], high[3][kBlock];  // of every kBlock'th point
            std::fill_n(low[0], 3 * kBlock, kInfinity);
            std::fill_n(high[0], 3 * kBlock, -kInfinity);
            int64_t finite = 0;
            for_each_block(points.rows, pieces[p], [&](const Block& block, int64_t, int64_t) {
                int32_t count = 0;
                for (int64_t i = 0; i < kBlock; ++i) count += block.finite[i];
                finite += count;
                for (int axis = 0; axis < 3; ++axis) {
                    float* __restrict lowest = low[axis], * __restrict highest = high[axis];
                    for (int64_t i = 0; i < kBlock; ++i) {
                        const float v = block.at[axis][i];
                        const float up = block.finite[i] ? v : kInfinity, down = block.finite[i] ? v : -kInfinity;
                        lowest[i] = up < lowest[i] ? up : lowest[i];
                        highest[i] = down > highest[i] ? down : highest[i];
                    }
                }
            });
            for (int axis = 0; axis < 3; ++axis) {
                bounds[p].box.low[axis] = *std::min_element(low[axis], low[axis] + kBlock);
                bounds[p].box.high[axis] = *std::max_element(high[axis], high[axis] + kBlock);
            }
            bounds[p].finite = finite;
        }
    });
    return bounds;
}

std::vector<FiniteBox> boxes_of(const Batch& batch, const std::vector<Piece>& pieces,
                                const std::vector<Bounds>& bounds) {
    std::vector<FiniteBox> boxes(static_cast<size_t>(batch.clouds()), kNoBox);
    for (size_t p = 0; p < pieces.size(); ++p) widen(boxes[pieces[p].cloud], bounds[p].box);
    return boxes;
}

/// A point to be sorted. Key and row share a word where they fit, which halves what the sort moves.
struct Narrow {
    uint64_t word;
    static Narrow make(int64_t key, int64_t row, int row_bits) {
        return {static_cast<uint64_t>(key) << row_bits | static_cast<uint64_t>(row)};
    }
    int64_t key(int row_bits) const { return static_cast<int64_t>(word >> row_bits); }
    int64_t row(int row_bits) const { return static_cast<int64_t>(word & ((uint64_t{1} << row_bits) - 1)); }
    bool operator<(const Narrow& other) const { return word < other.word; }
};
struct Wide {
    int64_t key_, row_;
    static Wide make(int64_t key, int64_t row, int) { return {key, row}; }
    int64_t key(int) const { return key_; }
    int64_t row(int) const { return row_; }
    bool operator<(const Wide& other) const { return key_ != other.key_ ? key_ < other.key_ : row_ < other.row_; }
};

int64_t pieces_in(int64_t n) {
    return (n + kPiece - 1) / kPiece;
}

/// Sorts by key and row; entries come ascending by row, so a stable sort by key will do. Least significant digit
/// first; the result is in `entries`.
template <class Entry>
void sort_entries(Array<Entry, 1>& entries, int key_bits, int row_bits) {
    const int64_t n = entries.size(0);
    if (n < kSmall) return std::sort(entries.data(), entries.data() + n);
    if (key_bits == 0) return;
    const int passes = (key_bits + kDigitBits - 1) / kDigitBits;
    const int bits = (key_bits + passes - 1) / passes;
    const int64_t digits = int64_t{1} << bits, pieces = pieces_in(n);
    Array<Entry, 1> other({n});
    Array<int64_t, 2> counts({pieces, digits});
    for (int pass = 0; pass < passes; ++pass) {
        const int shift = pass * bits;
        const auto digit = [=](const Entry& entry) { return (entry.key(row_bits) >> shift) & (digits - 1); };
        const Entry* from = entries.data();
        Entry* to = other.data();
        parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
            int64_t* count = counts.data() + begin / kPiece * digits;
            std::fill_n(count, digits, 0);
            for (int64_t i = begin; i < end; ++i) ++count[digit(from[i])];
        });
        int64_t next = 0;
        for (int64_t d = 0; d < digits; ++d)
            for (int64_t p = 0; p < pieces; ++p) next += std::exchange(counts.data()[p * digits + d], next);
        parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
            int64_t* place = counts.data() + begin / kPiece * digits;
            for (int64_t i = begin; i < end; ++i) to[place[digit(from[i])]++] = from[i];
        });
        std::swap(entries, other);
    }
}

/// Fills the grid from sorted entries.
template <class Entry>
void cells_of(const Array<Entry, 1>& entries, const std::vector<VoxelBox>& boxes, int row_bits, VoxelGrid& grid) {
    const int64_t n = entries.size(0), clouds = grid.points.clouds();
    const Entry* sorted = entries.data();
    const auto starts = [=](int64_t i) { return i == 0 || sorted[i].key(row_bits) != sorted[i - 1].key(row_bits); };
    std::vector<int64_t> first(static_cast<size_t>(pieces_in(n)) + 1, 0);  // cells before each piece
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
        int64_t count = 0;
        for (int64_t i = begin; i < end; ++i) count += starts(i);
        first[begin / kPiece + 1] = count;
    });
    for (size_t p = 1; p < first.size(); ++p) first[p] += first[p - 1];
    const int64_t cells = first.back();
    grid.order = Array<int32_t, 1>({n});
    grid.offsets = Array<int64_t, 1>({cells + 1});
    grid.coordinates = Array<int32_t, 2>({cells, 3});
    grid.offsets.data()[cells] = n;
    std::vector<int64_t> first_cell(static_cast<size_t>(clouds) + 1, cells);
    const auto cloud_of = [&](int64_t key) {
        return std::upper_bound(boxes.begin(), boxes.end(), key,
                                [](int64_t k, const VoxelBox& box) { return k < box.base; }) -
               boxes.begin() - 1;
    };
    parallel_for(n, kPiece, [&](int64_t begin, int64_t end) {
        int64_t cell = first[begin / kPiece];
        int64_t cloud = begin == 0 ? -1 : cloud_of(sorted[begin - 1].key(row_bits));
        for (int64_t i = begin; i < end; ++i) {
            if (starts(i)) {
                const int64_t key = sorted[i].key(row_bits);
                while (cloud < 0 || key >= boxes[cloud + 1].base) first_cell[++cloud] = cell;
                grid.offsets.data()[cell] = i;
                voxel_coordinates(boxes[cloud], key, grid.coordinates.data() + 3 * cell);
                ++cell;
            }
            grid.order.data()[i] = static_cast<int32_t>(sorted[i].row(row_bits) - grid.points.begin(cloud));
        }
    });
    grid.cells = clouds == 1 ? Batch::single(cells) : Batch::ragged(std::move(first_cell));
}

/// The inverse of the order: scattered writes, in a pass of their own because they need the clouds' first cells.
template <class Entry>
void number_points(const Array<Entry, 1>& entries, int row_bits, VoxelGrid& grid) {
    int32_t* cell_of_point = grid.cell_of_point.data();
    if (entries.size(0) < grid.points.rows()) std::fill_n(cell_of_point, grid.points.rows(), -1);
    const int64_t* offsets = grid.offsets.data();
    for (int64_t cloud = 0; cloud < grid.cells.clouds(); ++cloud) {
        const int64_t first = grid.cells.begin(cloud);
        parallel_for(grid.cells.size(cloud), 2048, [&](int64_t begin, int64_t end) {
            for (int64_t cell = begin; cell < end; ++cell)
                for (int64_t i = offsets[first + cell]; i < offsets[first + cell + 1]; ++i)
                    cell_of_point[entries.data()[i].row(row_bits)] = static_cast<int32_t>(cell);
        });
    }
}

template <class Entry>
void group(const Clouds& points, const std::vector<Piece>& pieces, const std::vector<Bounds>& bounds,
           const std::vector<VoxelBox>& boxes, int key_bits, int row_bits, VoxelGrid& grid) {
    const VoxelScale scale = voxel_scale(grid.size, grid.origin);
    std::vector<int64_t> place(pieces.size() + 1, 0);
    for (size_t p = 0; p < pieces.size(); ++p) place[p + 1] = place[p] + bounds[p].finite;
    Array<Entry, 1> entries({place.back()});
    parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; ++p) {
            Entry* to = entries.data() + place[p];
            const VoxelBox box = boxes[pieces[p].cloud];
            for_each_block(points.rows, pieces[p], [&](Block& block, int64_t row, int64_t count) {
                int32_t cell[3][kBlock];
                for (int axis = 0; axis < 3; ++axis) {
                    const float inside = bounds[p].box.low[axis];  // stands for what is not finite
                    const double origin = scale.origin[axis];
                    for (int64_t i = 0; i < kBlock; ++i)
                        cell[axis][i] =
                            voxel_cell(block.finite[i] ? block.at[axis][i] : inside, origin, scale.size, scale.inverse);
                }
                for (int64_t i = 0; i < count; ++i) {
                    if (!block.finite[i]) continue;
                    *to++ = Entry::make(voxel_key(box, cell[0][i], cell[1][i], cell[2][i]), row + i, row_bits);
                }
            });
        }
    });
    sort_entries(entries, key_bits, row_bits);
    cells_of(entries, boxes, row_bits, grid);
    number_points(entries, row_bits, grid);
}

int bits_below(int64_t count) {  // bits of the numbers below count
    return count <= 1 ? 0 : std::bit_width(static_cast<uint64_t>(count - 1));
}

}  // namespace

std::vector<FiniteBox> finite_boxes(const Clouds& points) {
    const std::vector<Piece> pieces = pieces_of(points.batch);
    return boxes_of(points.batch, pieces, bounds_of(points, pieces));
}

void voxel_grid(const Clouds& points, VoxelGrid& grid) {
    const std::vector<Piece> pieces = pieces_of(points.batch);
    const std::vector<Bounds> bounds = bounds_of(points, pieces);
    const std::vector<VoxelBox> boxes =
        voxel_boxes(boxes_of(points.batch, pieces, bounds), voxel_scale(grid.size, grid.origin));
    grid.cell_of_point = Array<int32_t, 1>({points.batch.rows()});
    const int key_bits = bits_below(boxes.back().base), row_bits = bits_below(points.batch.rows());
    if (key_bits + row_bits <= 63)
        group<Narrow>(points, pieces, bounds, boxes, key_bits, row_bits, grid);
    else
        group<Wide>(points, pieces, bounds, boxes, key_bits, row_bits, grid);
}

}  // namespace stipple::ops::cpu
