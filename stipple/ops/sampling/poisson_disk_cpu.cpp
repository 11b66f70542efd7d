#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/sampling/poisson_weight.h"

namespace stipple::ops::cpu {
namespace {

/// Finite points as columns, ordered by cell; a cell's neighbours are nine runs of them, one for each row of three.
struct Cells {
    struct Run {
        int32_t begin, end;
    };
    int64_t n = 0;
    Array<float, 2> columns;        // [3, n]
    Array<int32_t, 1> index, cell;  // [n] in the cloud, and the point's cell
    std::vector<std::array<Run, 9>> runs;

    const float* column(int axis) const { return columns.data() + axis * n; }

    Cells(View<const float, 2> points, const FiniteBox& box, float reach) {
        VoxelGrid grid = ops::voxel_grid(points, poisson_cell_size(box, reach), poisson_cell_origin(box));
        index = std::move(grid.order);
        n = index.size(0);
        columns = Array<float, 2>({3, n});
        cell = Array<int32_t, 1>({n});
        runs.resize(static_cast<size_t>(grid.cells.rows()));
        const int64_t cells = grid.cells.rows();
        for (int64_t c = 0; c < cells; ++c) {
            for (int64_t i = grid.offsets.data()[c]; i < grid.offsets.data()[c + 1]; ++i) {
                cell.data()[i] = static_cast<int32_t>(c);
                const float* p = points.data() + index.data()[i] * points.stride(0);
                for (int axis = 0; axis < 3; ++axis) columns.data()[axis * n + i] = p[axis];
            }
        }
        find_runs(grid);
    }

private:
    /// Cells are sorted, and so are the cells beside them: each of the nine runs moves on as the cell does.
    void find_runs(const VoxelGrid& grid) {
        const int64_t cells = grid.cells.rows();
        const auto before = [&](int64_t a, int32_t x, int32_t y, int32_t z) {
            const int32_t* c = grid.coordinates.data() + 3 * a;
            return c[2] != z ? c[2] < z : c[1] != y ? c[1] < y : c[0] < x;
        };
        for (int k = 0; k < 9; ++k) {
            const int32_t dz = k / 3 - 1, dy = k % 3 - 1;
            int64_t first = 0;
            for (int64_t c = 0; c < cells; ++c) {
                const int32_t* at = grid.coordinates.data() + 3 * c;
                while (first < cells && before(first, at[0] - 1, at[1] + dy, at[2] + dz)) ++first;
                int64_t last = first;
                while (last < cells && before(last, at[0] + 2, at[1] + dy, at[2] + dz)) ++last;
                runs[c][k] = {static_cast<int32_t>(grid.offsets.data()[first]),
                              static_cast<int32_t>(grid.offsets.data()[last])};
            }
        }
    }
};

int64_t sum_of_weights(const Cells& cells, int64_t i, float inverse_reach) {
    const float* __restrict x = cells.column(0), * __restrict y = cells.column(1), * __restrict z = cells.column(2);
    const float px = x[i], py = y[i], pz = z[i];
    int64_t sum = 0;
    for (const Cells::Run run : cells.runs[cells.cell.data()[i]])
        for (int32_t j = run.begin; j < run.end; ++j)
            sum += poisson_weight(distance_sq(px - x[j], py - y[j], pz - z[j]), inverse_reach);
    return sum - poisson_weight(0, inverse_reach);  // its own
}

/// Subtracts sample i's term from the weights of its neighbours, removed ones included: theirs are not read any more.
void take_weights(const Cells& cells, int64_t i, float inverse_reach, int64_t* __restrict sums) {
    const float* __restrict x = cells.column(0), * __restrict y = cells.column(1), * __restrict z = cells.column(2);
    const float px = x[i], py = y[i], pz = z[i];
    for (const Cells::Run run : cells.runs[cells.cell.data()[i]])
        for (int32_t j = run.begin; j < run.end; ++j)
            sums[j] -= poisson_weight(distance_sq(px - x[j], py - y[j], pz - z[j]), inverse_reach);
}

int32_t count_within(const Cells& cells, int64_t i, float reach_sq) {
    const float* __restrict x = cells.column(0), * __restrict y = cells.column(1), * __restrict z = cells.column(2);
    const float px = x[i], py = y[i], pz = z[i];
    int32_t count = 0;
    for (const Cells::Run run : cells.runs[cells.cell.data()[i]])
        for (int32_t j = run.begin; j < run.end; ++j) count += distance_sq(px - x[j], py - y[j], pz - z[j]) <= reach_sq;
    return count;
}

/// The largest (sum, lowest index) among samples whose sums only fall: an entry may be out of date, but never too low,
/// so one that is up to date at the top is the largest. Neighbours of a removed sample need not be found in the queue.
class Queue {
public:
    /// Of the places whose factor is not 0; none: all, with factor 1. Key: factor times sum.
    Queue(const int64_t* sums, const Cells& cells, const uint8_t* factors = nullptr) : sums_(sums), factors_(factors) {
        entries_.reserve(static_cast<size_t>(cells.n));
        for (int32_t i = 0; i < static_cast<int32_t>(cells.n); ++i)
            if (!factors || factors[i] > 0) entries_.push_back({key(i), cells.index.data()[i], i});
        for (int64_t i = static_cast<int64_t>(entries_.size()) / 2; i-- > 0;) sink(i, entries_[i]);
    }

    int32_t take() {
        for (int64_t now; entries_[0].sum != (now = key(entries_[0].place));) {
            Entry entry = entries_[0];
            entry.sum = now;
            sink(0, entry);
        }
        const int32_t place = entries_[0].place;
        const Entry last = entries_.back();
        entries_.pop_back();
        if (!entries_.empty()) sink(0, last);
        return place;
    }

private:
    int64_t key(int32_t place) const { return sums_[place] * (factors_ ? factors_[place] : 1); }

    struct Entry {
        int64_t sum;
        int32_t index, place;
        bool before(const Entry& other) const { return sum != other.sum ? sum > other.sum : index < other.index; }
    };

    void sink(int64_t hole, Entry entry) {
        const auto n = static_cast<int64_t>(entries_.size());
        for (int64_t child; (child = 2 * hole + 1) < n; hole = child) {
            if (child + 1 < n && entries_[child + 1].before(entries_[child])) ++child;
            if (!entries_[child].before(entry)) break;
            entries_[hole] = entries_[child];
        }
        entries_[hole] = entry;
    }

    const int64_t* sums_;
    const uint8_t* factors_;
    std::vector<Entry> entries_;
};

FiniteBox box_of(View<const float, 2> points) {
    return finite_boxes(points)[0];
}

float reach_of(View<const float, 2> points, const FiniteBox& box, int64_t m) {
    int64_t finite = 0;
    for (int64_t i = 0; i < points.size(0); ++i)
        finite += std::isfinite(points(i, 0)) && std::isfinite(points(i, 1)) && std::isfinite(points(i, 2));
    return solve_poisson_reach(box, finite, m, [&](float reach) {
        const Cells cells(points, box, reach);
        const int64_t queries = std::min(cells.n, kPoissonQueries);
        std::vector<uint64_t> shares(static_cast<size_t>(queries));
        parallel_for(queries, 64, [&](int64_t begin, int64_t end) {
            for (int64_t q = begin; q < end; ++q)
                shares[q] = (uint64_t{1} << 32) / static_cast<uint64_t>(count_within(
                                                      cells, poisson_query(q, queries, cells.n), reach * reach));
        });
        return std::accumulate(shares.begin(), shares.end(), uint64_t{0});
    });
}

/// Removes all but m of the finite points; what goes, in that order. Throws when there are fewer.
std::vector<int32_t> eliminate(View<const float, 2> points, int64_t m, float radius) {
    const FiniteBox box = box_of(points);
    const float reach = radius > 0 ? 2 * radius : reach_of(points, box, m);
    const Cells cells(points, box, kPoissonCell * reach);
    STIPPLE_REQUIRE(cells.n >= m, "poisson_disk: asked for {} samples of {} finite points", m, cells.n);
    const float inverse = reach > 0 ? 1 / reach : 0;
    Array<int64_t, 1> sums({cells.n});
    parallel_for(cells.n, 512, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) sums.data()[i] = reach > 0 ? sum_of_weights(cells, i, inverse) : 0;
    });
    std::vector<int32_t> removed(static_cast<size_t>(cells.n - m));
    Queue queue(sums.data(), cells);
    for (int32_t& index : removed) {
        const int32_t place = queue.take();
        index = cells.index.data()[place];
        if (reach > 0) take_weights(cells, place, inverse, sums.data());
    }
    return removed;
}

}  // namespace

void poisson_disk_of_part(View<const float, 2> points, View<const uint8_t, 1> roles, View<const uint8_t, 1> factors,
                          float radius, View<int32_t, 1> indices) {
    const float reach = 2 * radius, inverse = 1 / reach;
    const Cells cells(points, box_of(points), kPoissonCell * reach);
    Array<int64_t, 1> sums({cells.n});
    parallel_for(cells.n, 512, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) sums.data()[i] = sum_of_weights(cells, i, inverse);
    });
    std::vector<uint8_t> factor_at(static_cast<size_t>(cells.n));  // in the order of the cells; 0: fixed
    int64_t candidates = 0;
    for (int64_t i = 0; i < cells.n; ++i) {
        const int32_t point = cells.index.data()[i];
        const auto role = static_cast<SampleRole>(roles(point));
        candidates += role == SampleRole::candidate;
        factor_at[static_cast<size_t>(i)] = role == SampleRole::fixed ? 0
                                            : factors.size(0) > 0     ? factors(point)
                                                                      : uint8_t{1};
    }
    const int64_t m = indices.size(0);
    STIPPLE_REQUIRE(candidates >= m, "poisson_disk_of_part: asked for {} of {} finite candidates", m, candidates);
    std::vector<char> is_kept(static_cast<size_t>(points.size(0)), 0);
    for (int64_t i = 0; i < cells.n; ++i) {
        const int32_t point = cells.index.data()[i];
        is_kept[static_cast<size_t>(point)] = static_cast<SampleRole>(roles(point)) == SampleRole::candidate;
    }
    Queue queue(sums.data(), cells, factor_at.data());
    while (candidates > m) {
        const int32_t place = queue.take(), point = cells.index.data()[place];
        candidates -= static_cast<SampleRole>(roles(point)) == SampleRole::candidate;
        is_kept[static_cast<size_t>(point)] = 0;
        take_weights(cells, place, inverse, sums.data());
    }
    int32_t* to = indices.data();
    for (int64_t i = 0; i < points.size(0); ++i)
        if (is_kept[static_cast<size_t>(i)]) *to++ = static_cast<int32_t>(i);
}

float poisson_reach(View<const float, 2> points, int64_t m) {
    return reach_of(points, box_of(points), m);
}

void poisson_disk(View<const float, 2> points, int32_t* out, int64_t m, const PoissonDiskOptions& options) {
    std::vector<char> gone(static_cast<size_t>(points.size(0)), 0);
    for (int32_t index : eliminate(points, m, options.radius)) gone[index] = 1;
    int32_t* to = out;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const bool finite = std::isfinite(points(i, 0)) && std::isfinite(points(i, 1)) && std::isfinite(points(i, 2));
        if (finite && !gone[i]) *to++ = static_cast<int32_t>(i);
    }
    STIPPLE_ASSERT(to == out + m);
    if (options.progressive) progressive_order(points, options, out, m);
}

void progressive_order(View<const float, 2> points, const PoissonDiskOptions& options, int32_t* samples, int64_t m) {
    std::vector<int32_t> set(samples, samples + m);
    double radius = options.radius;
    while (set.size() > 1) {
        const auto size = static_cast<int64_t>(set.size()), half = size / 2;
        Array<float, 2> part({size, 3});
        for (int64_t i = 0; i < size; ++i)
            for (int axis = 0; axis < 3; ++axis) part.data()[3 * i + axis] = points(set[i], axis);
        radius *= std::sqrt(static_cast<double>(size) / static_cast<double>(half));
        const std::vector<int32_t> removed = eliminate(part.view(), half, static_cast<float>(radius));
        // What goes first stands last.
        for (size_t k = 0; k < removed.size(); ++k) samples[size - 1 - static_cast<int64_t>(k)] = set[removed[k]];
        for (int32_t i : removed) set[i] = -1;
        set.erase(std::remove(set.begin(), set.end(), -1), set.end());
    }
    samples[0] = set[0];
}

}  // namespace stipple::ops::cpu
