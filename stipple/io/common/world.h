#pragma once
// World coordinates against float32 positions about an origin: what the readers and writers of plain arrays share.

#include <string_view>

#include "stipple/core/point_cloud.h"
#include "stipple/io/format.h"

namespace stipple::io {

/// Positions of a new cloud from `n` rows of three doubles, `stride` doubles apart. The origin is choose_origin() of a
/// sample of the finite rows, except that it stays 0 when every value is a float32 already. Non-finite values are kept.
PointCloud cloud_from_world(const double* xyz, int64_t n, int64_t stride = 3);

/// The world coordinates of a cloud as float32, for formats that hold nothing finer. Costs a copy only where the origin
/// is not 0; then a rounding is told in a warning that names `format` and the largest error.
class FloatWorld {
public:
    FloatWorld(const PointCloud& cloud, std::string_view format, Warnings& warnings);
    const float* data() const { return data_; }  // [n, 3]

private:
    Array<float, 2> own_;
    const float* data_;
};

}  // namespace stipple::io
