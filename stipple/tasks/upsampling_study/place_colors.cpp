#include "stipple/tasks/upsampling_study/place_colors.h"

#include <algorithm>
#include <cmath>

#include "stipple/metrics/nearest.h"

namespace stipple::tasks::study {
namespace {

Attribute& new_color(PointCloud& cloud) {
    std::erase_if(cloud.attributes, [](const Attribute& attribute) { return attribute.name() == "color"; });
    cloud.attributes.emplace_back("color", DType::u8, cloud.size(), 3);
    return cloud.attributes.back();
}

}  // namespace

void color_by_place(PointCloud& cloud) {
    const Bounds bounds = bounds_of(cloud);
    Attribute& color = new_color(cloud);
    for (int64_t i = 0; i < cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const auto at = static_cast<size_t>(axis);
            const double extent = bounds.max[at] - bounds.min[at];
            const double share = extent > 0 ? (cloud.world(i, axis) - bounds.min[at]) / extent : 0.5;
            color.as<uint8_t>()(i, axis) = static_cast<uint8_t>(std::lround(40 + 190 * std::clamp(share, 0.0, 1.0)));
        }
}

void color_by_nearest(PointCloud& cloud, const PointCloud& input) {
    const Attribute* given = find(input.attributes, "color");
    STIPPLE_REQUIRE(given && given->dtype() == DType::u8 && given->components() == 3,
                    "the input has no colours of three bytes");
    const metrics::Frame frame{input.origin, 1};
    const metrics::Nearest nearest =
        metrics::nearest_of(metrics::in_frame(cloud, frame), metrics::in_frame(input, frame));
    Attribute& color = new_color(cloud);
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const int32_t from = nearest.index.data()[i];
        for (int axis = 0; axis < 3; ++axis)
            color.as<uint8_t>()(i, axis) = from < 0 ? uint8_t{128} : given->as<uint8_t>()(from, axis);
    }
}

}  // namespace stipple::tasks::study
