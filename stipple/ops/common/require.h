#pragma once
// The checks that ops share. Each throws Error{bad_argument} naming the op.

#include <limits>

#include "stipple/ops/neighbours.h"

namespace stipple::ops {

/// Stored indices are int32: no cloud has more points than they can count.
inline void require_clouds(const char* op, const char* name, const Clouds& clouds, int64_t dimension = 3) {
    STIPPLE_REQUIRE(clouds.dimension() == dimension, "{}: {} must be [n, {}], got {}", op, name, dimension,
                    shape_text(clouds.rows.shape().data(), 2));
    STIPPLE_REQUIRE(clouds.batch.largest() <= std::numeric_limits<int32_t>::max(),
                    "{}: a cloud of {} points; the most is {}", op, clouds.batch.largest(),
                    std::numeric_limits<int32_t>::max());
}

inline void require_same_batch(const char* op, const Batch& a, const Batch& b) {
    STIPPLE_REQUIRE(a.clouds() == b.clouds(), "{}: {} clouds against {}", op, a.clouds(), b.clouds());
}

inline void require_device(const char* op, const char* name, Device wanted, Device found) {
    STIPPLE_REQUIRE(wanted == found, "{}: points on {}, {} on {}", op, wanted, name, found);
}

/// Two clouds of points, pair by pair, on one device.
inline void require_pair(const char* op, const Clouds& a, const Clouds& b) {
    require_clouds(op, "a", a);
    require_clouds(op, "b", b);
    require_same_batch(op, a.batch, b.batch);
    require_device(op, "b", a.device(), b.device());
}

/// A contiguous output of the given shape on the given device.
template <class T, int Rank>
void require_output(const char* op, const char* name, const View<T, Rank>& view, std::array<int64_t, Rank> shape,
                    Device device) {
    STIPPLE_REQUIRE(view.shape() == shape, "{}: {} must be {}, got {}", op, name, shape_text(shape.data(), Rank),
                    shape_text(view.shape().data(), Rank));
    STIPPLE_REQUIRE(view.is_contiguous(), "{}: {} must be contiguous", op, name);
    require_device(op, name, device, view.device());
}

/// Neighbours that point into the clouds of `rows`.
inline void require_neighbours(const char* op, const Neighbours& neighbours, const Batch& rows, Device device) {
    require_same_batch(op, neighbours.batch, rows);
    require_device(op, "indices", device, neighbours.device());
    STIPPLE_REQUIRE(rows.largest() <= std::numeric_limits<int32_t>::max(), "{}: a cloud of {} points; the most is {}",
                    op, rows.largest(), std::numeric_limits<int32_t>::max());
    neighbours.entries();  // throws where m k overflows
}

}  // namespace stipple::ops
