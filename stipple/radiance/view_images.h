#pragma once
// Rendered views as 8-bit pictures, and what a field holds in numbers.

#include "stipple/radiance/render.h"

namespace stipple::radiance {

Image colour_image(const RenderedView& view);  // RGB, clipped
Image alpha_image(const RenderedView& view);   // grey
/// RGB: 0 to 255 for -1 to 1 on x, y, z; black where there is none.
Image normal_image(const RenderedView& view);
/// The least and the largest finite depth; {0, 0} where there is none.
std::pair<float, float> depth_range(const RenderedView& view);

struct FieldSummary {
    int64_t nodes = 0, bricks = 0, stored_bricks = 0, occupied_nodes = 0;
    int64_t packed_bytes = 0;  // grids and network, as on disk
    int64_t render_bytes = 0;  // of memory, to render it on the CPU
};
FieldSummary summarise(const Field& field);

}  // namespace stipple::radiance
