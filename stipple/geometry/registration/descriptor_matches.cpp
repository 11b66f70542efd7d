#include "stipple/geometry/registration/descriptor_matches.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kTileRows = 4, kTileWidth = 16;  // a tile of products that stays in registers
constexpr int64_t kRowChunk = 64;                  // rows of the source
constexpr float kNone = std::numeric_limits<float>::infinity();

/// Square roots, column after column and padded to whole tiles, so that a loop over rows is a loop over neighbours in
/// memory. Rows of zeros, and padding, are infinitely far from all.
struct Roots {
    int64_t rows = 0, padded = 0, columns = 0;
    std::vector<float> numbers, norms_sq;

    explicit Roots(View<const float, 2> descriptors)
        : rows(descriptors.size(0)),
          padded((rows + kTileWidth - 1) / kTileWidth * kTileWidth),
          columns(descriptors.size(1)),
          numbers(static_cast<size_t>(padded * columns), 0.0f),
          norms_sq(static_cast<size_t>(padded), kNone) {
        for (int64_t i = 0; i < rows; ++i) {
            float norm_sq = 0;
            for (int64_t c = 0; c < columns; ++c) {
                const float root = std::sqrt(std::max(descriptors(i, c), 0.0f));
                numbers[c * padded + i] = root;
                norm_sq += root * root;
            }
            if (norm_sq > 0) norms_sq[i] = norm_sq;
        }
    }
};

/// The nearest so far of many rows; -1 where there is none.
struct NearestRows {
    std::vector<float> distances_sq;
    std::vector<int32_t> indices;

    explicit NearestRows(int64_t rows)
        : distances_sq(static_cast<size_t>(rows), kNone), indices(static_cast<size_t>(rows), -1) {}

    /// Keeps the lower index of equals.
    void take_first(int64_t row, float distance_sq, int32_t index) {
        if (distance_sq > distances_sq[row] || (distance_sq == distances_sq[row] && index > indices[row])) return;
        distances_sq[row] = distance_sq;
        indices[row] = index;
    }
};

/// Rows [begin, end) of `from` against all of `to`: |a|^2 + |b|^2 - 2 a b once for both directions. Lanes are compared
/// on their own, so that the first of equals stays whatever the width of a vector.
template <class Real, class Index>
[[gnu::always_inline]] inline void compare_rows(const Roots& from, const Roots& to, int64_t begin, int64_t end,
                                                NearestRows& forth, NearestRows& back) {
    constexpr int kLanes = sizeof(Real) / sizeof(float), kVectors = 2;
    static_assert(kTileWidth % (kLanes * kVectors) == 0);
    const auto load = [](auto& vector, const auto* numbers) { std::memcpy(&vector, numbers, sizeof(vector)); };
    for (int64_t i = begin; i < end; i += kTileRows) {
        Real best[kTileRows][kVectors];
        Index best_tile[kTileRows][kVectors];
        for (int row = 0; row < kTileRows; ++row)
            for (int v = 0; v < kVectors; ++v) best[row][v] = kNone + Real{}, best_tile[row][v] = Index{} - 1;
        for (int64_t j = 0; j < to.padded; j += kLanes * kVectors) {
            Real products[kTileRows][kVectors] = {};
            const float* a = from.numbers.data() + i;
            const float* b = to.numbers.data() + j;
            for (int64_t c = 0; c < to.columns; ++c, a += from.padded, b += to.padded) {
                Real left, right;
                load(left, b);
                load(right, b + kLanes);
                for (int row = 0; row < kTileRows; ++row) {
                    products[row][0] += a[row] * left;
                    products[row][1] += a[row] * right;
                }
            }
            for (int v = 0; v < kVectors; ++v) {
                const int64_t at = j + v * kLanes;
                Real norms_sq, back_distances;
                Index back_indices;
                load(norms_sq, to.norms_sq.data() + at);
                load(back_distances, back.distances_sq.data() + at);
                load(back_indices, back.indices.data() + at);
                for (int row = 0; row < kTileRows; ++row) {
                    Real distance = (from.norms_sq[i + row] + norms_sq) - 2 * products[row][v];
                    distance = distance > 0 ? distance : Real{};
                    const Index is_nearer = distance < best[row][v], is_nearer_back = distance < back_distances;
                    best[row][v] = is_nearer ? distance : best[row][v];
                    best_tile[row][v] = is_nearer ? Index{} + static_cast<int32_t>(at) : best_tile[row][v];
                    back_distances = is_nearer_back ? distance : back_distances;
                    back_indices = is_nearer_back ? Index{} + static_cast<int32_t>(i + row) : back_indices;
                }
                std::memcpy(back.distances_sq.data() + at, &back_distances, sizeof(back_distances));
                std::memcpy(back.indices.data() + at, &back_indices, sizeof(back_indices));
            }
        }
        for (int row = 0; row < std::min(kTileRows, end - i); ++row)
            for (int v = 0; v < kVectors; ++v)
                for (int k = 0; k < kLanes; ++k)
                    if (best_tile[row][v][k] >= 0) forth.take_first(i + row, best[row][v][k], best_tile[row][v][k] + k);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void compare_rows_avx2(const Roots& from, const Roots& to, int64_t begin, int64_t end,
                                                       NearestRows& forth, NearestRows& back) {
    using Float8 = float __attribute__((vector_size(32)));
    using Int8 = int32_t __attribute__((vector_size(32)));
    compare_rows<Float8, Int8>(from, to, begin, end, forth, back);
}
#endif

void compare_rows(const Roots& from, const Roots& to, int64_t begin, int64_t end, NearestRows& forth,
                  NearestRows& back) {
#if defined(__x86_64__)
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (has_avx2) return compare_rows_avx2(from, to, begin, end, forth, back);
#endif
    using Float4 = float __attribute__((vector_size(16)));
    using Int4 = int32_t __attribute__((vector_size(16)));
    compare_rows<Float4, Int4>(from, to, begin, end, forth, back);
}

struct BothNearest {
    NearestRows forth, back;  // of the rows of `from` in `to`, and the other way
};

BothNearest nearest_rows(const Roots& from, const Roots& to) {
    BothNearest found{NearestRows(from.padded), NearestRows(to.padded)};
    const int64_t chunks = (from.rows + kRowChunk - 1) / kRowChunk;
    std::vector<NearestRows> backs(static_cast<size_t>(chunks), NearestRows(0));
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
        for (int64_t chunk = first; chunk < last; ++chunk) {
            backs[chunk] = NearestRows(to.padded);
            compare_rows(from, to, chunk * kRowChunk, std::min((chunk + 1) * kRowChunk, from.rows), found.forth,
                         backs[chunk]);
        }
    });
    for (const NearestRows& back : backs)  // in the order of the rows: ties stay with the lowest
        for (int64_t j = 0; j < to.rows; ++j) {
            if (!(back.distances_sq[j] < found.back.distances_sq[j])) continue;
            found.back.distances_sq[j] = back.distances_sq[j];
            found.back.indices[j] = back.indices[j];
        }
    return found;
}

}  // namespace

std::vector<Match> match_descriptors(View<const float, 2> source, View<const float, 2> target, int64_t most) {
    const Roots from(source), to(target);
    const auto [forth, back] = nearest_rows(from, to);
    std::vector<Match> matches;
    for (int32_t i = 0; i < from.rows; ++i)
        if (const int32_t j = forth.indices[i]; j >= 0)
            matches.push_back({i, j, forth.distances_sq[i], back.indices[j] == i});
    for (int32_t j = 0; j < to.rows; ++j)
        if (const int32_t i = back.indices[j]; i >= 0 && forth.indices[i] != j)
            matches.push_back({i, j, back.distances_sq[j], false});
    std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
        if (a.is_mutual != b.is_mutual) return a.is_mutual;
        if (a.distance_sq != b.distance_sq) return a.distance_sq < b.distance_sq;
        return a.source != b.source ? a.source < b.source : a.target < b.target;
    });
    if (static_cast<int64_t>(matches.size()) > most) matches.resize(static_cast<size_t>(most));
    return matches;
}

}  // namespace stipple::geometry
