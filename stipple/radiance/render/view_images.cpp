#include "stipple/radiance/view_images.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stipple/radiance/field/dense_field.h"

namespace stipple::radiance {
namespace {

uint8_t to_byte(float value) {
    return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0f, 1.0f)));
}

Image image_of(const Array<float, 3>& values, float scale, float offset) {
    Image image(values.size(1), values.size(0), values.size(2));
    std::transform(values.span().begin(), values.span().end(), image.pixels.data(),
                   [&](float v) { return to_byte(offset + scale * v); });
    return image;
}

}  // namespace

Image colour_image(const RenderedView& view) {
    return image_of(view.colour, 1, 0);
}

Image alpha_image(const RenderedView& view) {
    return image_of(view.alpha, 1, 0);
}

Image normal_image(const RenderedView& view) {
    Image image = image_of(view.normal, 0.5f, 0.5f);
    for (int64_t i = 0; i < view.normal.size(0) * view.normal.size(1); ++i) {
        const float* n = view.normal.data() + 3 * i;
        if (n[0] == 0 && n[1] == 0 && n[2] == 0) std::fill_n(image.pixels.data() + 3 * i, 3, uint8_t{0});
    }
    return image;
}

std::pair<float, float> depth_range(const RenderedView& view) {
    std::pair<float, float> range = {INFINITY, -INFINITY};
    for (float depth : view.depth.span()) {
        if (!std::isfinite(depth)) continue;
        range.first = std::min(range.first, depth), range.second = std::max(range.second, depth);
    }
    return range.first <= range.second ? range : std::pair<float, float>{0, 0};
}

FieldSummary summarise(const Field& field) {
    FieldSummary summary;
    summary.nodes = field.grid.nodes();
    summary.bricks = static_cast<int64_t>(field.brick.size());
    summary.stored_bricks = field.stored_bricks();
    for (uint64_t bits : field.occupied) summary.occupied_nodes += std::popcount(bits);
    const ColourNetwork& n = field.network;
    const size_t network =
        n.weight1.size() + n.bias1.size() + n.weight2.size() + n.bias2.size() + n.weight3.size() + n.bias3.size();
    summary.packed_bytes =
        static_cast<int64_t>(4 * field.brick.size() + 8 * field.occupied.size() + 4 * field.density.size() +
                             2 * field.features.size() + 4 * network + 4 * field.environment.texels.size());
    // Densities and bits of all nodes, the features of stored ones in single precision (render/cpu_field.h).
    summary.render_bytes = summary.nodes * 4 + summary.nodes / 8 +
                           static_cast<int64_t>(4 * field.brick.size() + 4 * field.features.size() + 4 * network);
    return summary;
}

}  // namespace stipple::radiance
