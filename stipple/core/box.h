#pragma once
// Box: an axis-parallel box, from low to high on each axis.

#include <algorithm>
#include <limits>

namespace stipple {

template <class T>
struct Box {
    T low[3], high[3];

    /// The box of nothing: adding anything makes it the box of that.
    static constexpr Box none() {
        if constexpr (std::numeric_limits<T>::has_infinity) {
            constexpr T kMost = std::numeric_limits<T>::infinity();
            return {{kMost, kMost, kMost}, {-kMost, -kMost, -kMost}};
        } else {
            constexpr T kLeast = std::numeric_limits<T>::lowest(), kMost = std::numeric_limits<T>::max();
            return {{kMost, kMost, kMost}, {kLeast, kLeast, kLeast}};
        }
    }
    bool is_none() const { return !(low[0] <= high[0]); }

    void add(int axis, T value) {
        low[axis] = std::min(low[axis], value);
        high[axis] = std::max(high[axis], value);
    }
    /// A point; coordinates that are not numbers do not count.
    template <class Point>
    void add(const Point& point) {
        for (int axis = 0; axis < 3; ++axis) add(axis, static_cast<T>(point[axis]));
    }
    void add(const Box& other) {
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], other.low[axis]);
            high[axis] = std::max(high[axis], other.high[axis]);
        }
    }

    T extent(int axis) const { return high[axis] - low[axis]; }
    T longest_side() const { return std::max({extent(0), extent(1), extent(2)}); }
};

}  // namespace stipple
