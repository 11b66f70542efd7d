#include "stipple/radiance/train/environment_map.h"

#include "stipple/radiance/march/environment.h"

namespace stipple::radiance {

Environment resampled(const Environment& map, int32_t side) {
    Environment result;
    result.side = side;
    result.texels.reserve(size_t{3} * static_cast<size_t>(side) * static_cast<size_t>(side));
    for (int32_t x = 0; x < side; ++x) {
        for (int32_t y = 0; y < side; ++y) {
            const Texels texels = texels_of(direction_of_texel(x, y, side), map.side);
            for (int channel = 0; channel < 3; ++channel) {
                result.texels.push_back(interpolate(texels, map.texels.data(), channel));
            }
        }
    }
    return result;
}

}  // namespace stipple::radiance
