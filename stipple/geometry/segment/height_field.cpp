#include "stipple/geometry/segment/height_field.h"

#include <algorithm>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

/// The extreme of each window of 2 * radius + 1 along a line with this stride: running extremes of blocks from both
/// sides [van Herk 1992, Gil and Werman 1993], three comparisons for each number whatever the radius.
template <class Better>
void extremes(const float* from, float* to, int64_t n, int64_t stride, int64_t radius, std::vector<float>& forward,
              std::vector<float>& backward, const Better& better) {
    const int64_t width = 2 * radius + 1;
    forward.resize(static_cast<size_t>(n)), backward.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
        const float x = from[i * stride];
        forward[i] = i % width == 0 ? x : better(forward[i - 1], x);
    }
    for (int64_t i = n - 1; i >= 0; --i) {
        const float x = from[i * stride];
        backward[i] = i == n - 1 || i % width == width - 1 ? x : better(backward[i + 1], x);
    }
    for (int64_t i = 0; i < n; ++i) {
        const int64_t low = std::max<int64_t>(0, i - radius), high = std::min(n - 1, i + radius);
        float value = better(backward[low], forward[high]);
        // At the ends the window is narrower than a block: when both ends are in one block, one of the two reaches
        // beyond it, and the numbers are few.
        if (low / width == high / width) {
            value = from[low * stride];
            for (int64_t j = low + 1; j <= high; ++j) value = better(value, from[j * stride]);
        }
        to[i * stride] = value;
    }
}

template <class Better>
HeightField extreme_around(const HeightField& field, int64_t radius, const Better& better) {
    HeightField along(field.columns, field.rows), across(field.columns, field.rows);
    parallel_for(field.rows, 16, [&](int64_t begin, int64_t end) {
        std::vector<float> forward, backward;
        for (int64_t row = begin; row < end; ++row)
            extremes(field.heights.data() + row * field.columns, along.heights.data() + row * field.columns,
                     field.columns, 1, radius, forward, backward, better);
    });
    parallel_for(field.columns, 16, [&](int64_t begin, int64_t end) {
        std::vector<float> forward, backward;
        for (int64_t column = begin; column < end; ++column)
            extremes(along.heights.data() + column, across.heights.data() + column, field.rows, field.columns, radius,
                     forward, backward, better);
    });
    return across;
}

/// Means of 2 x 2 cells, of those that are known.
HeightField halved(const HeightField& field) {
    HeightField half((field.columns + 1) / 2, (field.rows + 1) / 2);
    for (int64_t row = 0; row < half.rows; ++row)
        for (int64_t column = 0; column < half.columns; ++column) {
            double sum = 0;
            int count = 0;
            for (int64_t r = 2 * row; r < std::min(2 * row + 2, field.rows); ++r)
                for (int64_t c = 2 * column; c < std::min(2 * column + 2, field.columns); ++c)
                    if (!std::isnan(field.at(c, r))) sum += field.at(c, r), ++count;
            if (count > 0) half.at(column, row) = static_cast<float>(sum / count);
        }
    return half;
}

}  // namespace

double HeightField::between(double column, double row) const {
    const double c = std::clamp(column - 0.5, 0.0, static_cast<double>(columns - 1));
    const double r = std::clamp(row - 0.5, 0.0, static_cast<double>(rows - 1));
    const auto c0 = static_cast<int64_t>(c), r0 = static_cast<int64_t>(r);
    const int64_t c1 = std::min(c0 + 1, columns - 1), r1 = std::min(r0 + 1, rows - 1);
    const double u = c - static_cast<double>(c0), v = r - static_cast<double>(r0);
    return (1 - v) * ((1 - u) * at(c0, r0) + u * at(c1, r0)) + v * ((1 - u) * at(c0, r1) + u * at(c1, r1));
}

HeightField lowest_around(const HeightField& field, int64_t radius) {
    return extreme_around(field, radius, [](float a, float b) { return std::min(a, b); });
}

HeightField highest_around(const HeightField& field, int64_t radius) {
    return extreme_around(field, radius, [](float a, float b) { return std::max(a, b); });
}

HeightField filled(const HeightField& field) {
    const bool is_full =
        std::none_of(field.heights.begin(), field.heights.end(), [](float h) { return std::isnan(h); });
    if (is_full) return field;
    HeightField result = field;
    if (field.columns <= 1 && field.rows <= 1) {
        std::fill(result.heights.begin(), result.heights.end(), 0.0f);
        return result;
    }
    // From the coarse field, which is full, and then relaxed: each unknown height towards the mean of those around.
    const HeightField coarse = filled(halved(field));
    std::vector<int64_t> unknown;
    for (int64_t i = 0; i < field.columns * field.rows; ++i) {
        if (!std::isnan(field.heights[i])) continue;
        unknown.push_back(i);
        result.heights[i] = static_cast<float>(coarse.between((static_cast<double>(i % field.columns) + 0.5) / 2,
                                                              (static_cast<double>(i / field.columns) + 0.5) / 2));
    }
    constexpr int kSteps = 8;
    std::vector<float> next(unknown.size());
    for (int step = 0; step < kSteps; ++step) {
        parallel_for(static_cast<int64_t>(unknown.size()), 16384, [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) {
                const int64_t column = unknown[k] % field.columns, row = unknown[k] / field.columns;
                double sum = 0;
                int count = 0;
                if (column > 0) sum += result.at(column - 1, row), ++count;
                if (column + 1 < field.columns) sum += result.at(column + 1, row), ++count;
                if (row > 0) sum += result.at(column, row - 1), ++count;
                if (row + 1 < field.rows) sum += result.at(column, row + 1), ++count;
                next[k] = static_cast<float>(sum / count);
            }
        });
        for (size_t k = 0; k < unknown.size(); ++k) result.heights[unknown[k]] = next[k];
    }
    return result;
}

}  // namespace stipple::geometry
