#pragma once
// The CUDA launchers behind outliers.h. All wait for the stream: what they give is decided on by the host.

#include <cstdint>

#include "stipple/core/view.h"

namespace stipple::geometry::cuda {

/// mean_distance of each row of distances_sq [m, k], to host memory.
void mean_distances(View<const float, 2> distances_sq, double* means, Stream stream);

void to_host(View<const int32_t, 1> from, int32_t* to, Stream stream);
void to_device(const uint8_t* from, View<uint8_t, 1> to, Stream stream);

}  // namespace stipple::geometry::cuda
