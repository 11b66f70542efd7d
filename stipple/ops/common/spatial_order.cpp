#include "stipple/ops/common/spatial_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "stipple/ops/space_curve.h"

namespace stipple::ops::cpu {
namespace {

constexpr int kAxisBits = 10;
constexpr int kDigits = 3, kDigitBits = 10;  // of a key of 3 * kAxisBits bits

struct Item {
    uint32_t key;
    int32_t index;
};

/// Least significant digit first, stable; the result is in `items`.
void sort_by_key(Item* items, Item* other, int64_t n) {
    if (n < 256) {
        std::sort(items, items + n,
                  [](const Item& a, const Item& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; });
        return;
    }
    constexpr uint32_t kMask = (1u << kDigitBits) - 1;
    std::array<std::array<int32_t, 1 << kDigitBits>, kDigits> begin{};
    for (int64_t i = 0; i < n; ++i) {
        for (int digit = 0; digit < kDigits; ++digit) ++begin[digit][items[i].key >> (digit * kDigitBits) & kMask];
    }
    Item *from = items, *to = other;
    for (int digit = 0; digit < kDigits; ++digit) {
        int32_t sum = 0;
        bool all_in_one = false;
        for (int32_t& count : begin[digit]) {
            all_in_one |= count == n;
            sum += std::exchange(count, sum);
        }
        if (all_in_one) continue;
        for (int64_t i = 0; i < n; ++i) to[begin[digit][from[i].key >> (digit * kDigitBits) & kMask]++] = from[i];
        std::swap(from, to);
    }
    if (from != items) std::copy(from, from + n, items);
}

void order_range(View<const float, 2> points, Item* items, Item* other, int64_t n, int64_t crowd) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    std::array<float, 3> low{kInfinity, kInfinity, kInfinity}, high{-kInfinity, -kInfinity, -kInfinity};
    for (int64_t i = 0; i < n; ++i) {
        const float* p = &points(items[i].index, 0);
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], p[axis]);
            high[axis] = std::max(high[axis], p[axis]);
        }
    }
    // Cubic cells. In double, where neither the extent nor its inverse can overflow.
    double extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent = std::max(extent, double{high[axis]} - double{low[axis]});
    if (extent == 0) return;
    const double scale = (1 << kAxisBits) / extent;
    for (int64_t i = 0; i < n; ++i) {
        const float* p = &points(items[i].index, 0);
        uint32_t key = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const auto cell = static_cast<int32_t>((double{p[axis]} - double{low[axis]}) * scale);
            key |= spread_bits(static_cast<uint32_t>(std::min(cell, (1 << kAxisBits) - 1))) << axis;
        }
        items[i].key = key;
    }
    sort_by_key(items, other, n);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && items[end].key == items[begin].key;) ++end;
        if (end - begin > crowd) order_range(points, items + begin, other, end - begin, crowd);
    }
}

}  // namespace

void spatial_order(View<const float, 2> points, std::vector<int32_t>& indices, int64_t crowd) {
    const auto n = static_cast<int64_t>(indices.size());
    std::vector<Item> items(indices.size()), other(indices.size());
    for (int64_t i = 0; i < n; ++i) items[i].index = indices[i];
    order_range(points, items.data(), other.data(), n, crowd);
    for (int64_t i = 0; i < n; ++i) indices[i] = items[i].index;
}

}  // namespace stipple::ops::cpu
