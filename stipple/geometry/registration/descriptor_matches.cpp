#include "stipple/geometry/registration/descriptor_matches.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kTileRows = 4, kTileWidth = 16;  // a tile of products that stays in registers
constexpr int64_t kRowChunk = 64;                  // rows of the source

/// Square roots, column after column and padded to whole tiles, so that a loop over rows is a loop over neighbours in
/// memory.
struct Roots {
    int64_t rows = 0, padded = 0, columns = 0;
    std::vector<float> numbers, norms_sq;
    std::vector<uint8_t> is_none;

    explicit Roots(View<const float, 2> descriptors)
        : rows(descriptors.size(0)),
          padded((rows + kTileWidth - 1) / kTileWidth * kTileWidth),
          columns(descriptors.size(1)),
          numbers(static_cast<size_t>(padded * columns), 0.0f),
          norms_sq(static_cast<size_t>(padded), 0.0f),
          is_none(static_cast<size_t>(padded), 1) {
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t c = 0; c < columns; ++c) {
                const float root = std::sqrt(std::max(descriptors(i, c), 0.0f));
                numbers[c * padded + i] = root;
                norms_sq[i] += root * root;
                if (root > 0) is_none[i] = 0;
            }
    }
    float at(int64_t row, int64_t column) const { return numbers[column * padded + row]; }
};

struct Nearest {
    float distance_sq = std::numeric_limits<float>::infinity();
    int32_t index = -1;
    void take(float distance, int64_t candidate) {
        if (distance < distance_sq) *this = {distance, static_cast<int32_t>(candidate)};
    }
};

struct BothNearest {
    std::vector<Nearest> forth, back;  // of the rows of `from` in `to`, and the other way
};

/// All distances |a|^2 + |b|^2 - 2 a b once, for both directions.
BothNearest nearest_rows(const Roots& from, const Roots& to) {
    BothNearest found{std::vector<Nearest>(static_cast<size_t>(from.rows)),
                      std::vector<Nearest>(static_cast<size_t>(to.rows))};
    const int64_t chunks = (from.rows + kRowChunk - 1) / kRowChunk;
    std::vector<std::vector<Nearest>> backs(static_cast<size_t>(chunks));
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
        for (int64_t chunk = first; chunk < last; ++chunk) {
            std::vector<Nearest>& back = backs[chunk];
            back.resize(static_cast<size_t>(to.rows));
            for (int64_t i = chunk * kRowChunk; i < std::min((chunk + 1) * kRowChunk, from.rows); i += kTileRows)
                for (int64_t j = 0; j < to.padded; j += kTileWidth) {
                    float products[kTileRows][kTileWidth] = {};
                    for (int64_t c = 0; c < to.columns; ++c) {
                        const float* b = to.numbers.data() + c * to.padded + j;
                        for (int64_t row = 0; row < kTileRows; ++row) {
                            const float a = from.at(i + row, c);
                            for (int64_t k = 0; k < kTileWidth; ++k) products[row][k] += a * b[k];
                        }
                    }
                    for (int64_t row = 0; row < std::min(kTileRows, from.rows - i); ++row) {
                        if (from.is_none[i + row]) continue;
                        for (int64_t k = 0; k < std::min(kTileWidth, to.rows - j); ++k) {
                            if (to.is_none[j + k]) continue;
                            const float distance =
                                std::max(0.0f, (from.norms_sq[i + row] + to.norms_sq[j + k]) - 2 * products[row][k]);
                            found.forth[i + row].take(distance, j + k);
                            back[j + k].take(distance, i + row);
                        }
                    }
                }
        }
    });
    for (const std::vector<Nearest>& back : backs)  // in the order of the rows: ties stay with the lowest
        for (int64_t j = 0; j < to.rows; ++j) found.back[j].take(back[j].distance_sq, back[j].index);
    return found;
}

}  // namespace

std::vector<Match> match_descriptors(View<const float, 2> source, View<const float, 2> target, int64_t most) {
    const Roots from(source), to(target);
    const auto [forth, back] = nearest_rows(from, to);
    std::vector<Match> matches;
    for (int64_t i = 0; i < from.rows; ++i)
        if (forth[i].index >= 0)
            matches.push_back({static_cast<int32_t>(i), forth[i].index, forth[i].distance_sq,
                               back[forth[i].index].index == static_cast<int32_t>(i)});
    for (int64_t j = 0; j < to.rows; ++j)
        if (back[j].index >= 0 && forth[back[j].index].index != static_cast<int32_t>(j))
            matches.push_back({back[j].index, static_cast<int32_t>(j), back[j].distance_sq, false});
    std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
        if (a.is_mutual != b.is_mutual) return a.is_mutual;
        if (a.distance_sq != b.distance_sq) return a.distance_sq < b.distance_sq;
        return a.source != b.source ? a.source < b.source : a.target < b.target;
    });
    if (static_cast<int64_t>(matches.size()) > most) matches.resize(static_cast<size_t>(most));
    return matches;
}

}  // namespace stipple::geometry
