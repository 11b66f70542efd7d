#include "stipple/geometry/registration/descriptor_matches.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kRows = 64;  // of the source, a chunk

/// Square roots, column after column, so that a loop over rows is a loop over neighbours in memory.
struct Roots {
    int64_t rows = 0, columns = 0;
    std::vector<float> numbers;
    std::vector<uint8_t> is_none;

    explicit Roots(View<const float, 2> descriptors)
        : rows(descriptors.size(0)),
          columns(descriptors.size(1)),
          numbers(static_cast<size_t>(rows * columns)),
          is_none(static_cast<size_t>(rows), 1) {
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t c = 0; c < columns; ++c) {
                const float root = std::sqrt(std::max(descriptors(i, c), 0.0f));
                numbers[c * rows + i] = root;
                if (root > 0) is_none[i] = 0;
            }
    }
    float at(int64_t row, int64_t column) const { return numbers[column * rows + row]; }
};

struct Nearest {
    float distance_sq = std::numeric_limits<float>::infinity();
    int32_t index = -1;
};

/// For every row of `from` the nearest of `to`.
std::vector<Nearest> nearest_rows(const Roots& from, const Roots& to) {
    std::vector<Nearest> nearest(static_cast<size_t>(from.rows));
    parallel_for(from.rows, kRows, [&](int64_t begin, int64_t end) {
        std::vector<float> sums(static_cast<size_t>(to.rows));
        for (int64_t i = begin; i < end; ++i) {
            if (from.is_none[i]) continue;
            std::fill(sums.begin(), sums.end(), 0.0f);
            for (int64_t c = 0; c < to.columns; ++c) {
                const float value = from.at(i, c);
                const float* column = to.numbers.data() + c * to.rows;
                for (int64_t j = 0; j < to.rows; ++j) sums[j] += (column[j] - value) * (column[j] - value);
            }
            for (int64_t j = 0; j < to.rows; ++j)
                if (!to.is_none[j] && sums[j] < nearest[i].distance_sq) nearest[i] = {sums[j], static_cast<int32_t>(j)};
        }
    });
    return nearest;
}

}  // namespace

std::vector<Match> match_descriptors(View<const float, 2> source, View<const float, 2> target, int64_t most) {
    const Roots from(source), to(target);
    const std::vector<Nearest> forth = nearest_rows(from, to), back = nearest_rows(to, from);
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
