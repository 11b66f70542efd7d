#include "stipple/cli/common/draw_values.h"

#include <algorithm>
#include <cmath>

#include "stipple/picture/figure.h"

namespace stipple::cli {

void add_up(Arguments& app, std::string& up) {
    app.option("--up", up, "Up axis of the picture").one_of(picture::up_axis_names());
}

Image draw_values(const std::vector<const PointCloud*>& clouds, const std::vector<std::string>& captions,
                  const ValuePicture& how) {
    std::vector<double> sizes;
    std::vector<picture::Panel> panels;
    for (size_t i = 0; i < clouds.size(); ++i) {
        const Attribute* values = find(clouds[i]->attributes, how.attribute);
        STIPPLE_ASSERT(values);
        for (int64_t row = 0; row < values->rows(); ++row)
            if (std::isfinite(values->value(row))) sizes.push_back(std::abs(values->value(row)));
        panels.push_back({.cloud = clouds[i], .caption = captions[i], .color_by = how.attribute});
    }
    double high = 1;
    if (!sizes.empty()) {
        const auto most = sizes.begin() + static_cast<int64_t>(0.98 * static_cast<double>(sizes.size() - 1));
        std::nth_element(sizes.begin(), most, sizes.end());
        if (*most > 0) high = *most;
    }
    picture::FigureStyle style;
    style.panel_width = style.panel_height = panels.size() == 1 ? 900 : 420;
    style.shared_camera = false;
    style.viewpoint.up = picture::up_axis_by_name(how.up);
    style.legend_title = how.title;
    style.color_map = how.is_signed ? picture::ColorMap::coolwarm : picture::ColorMap::viridis;
    style.range = {how.is_signed ? -high : 0.0, high};
    return picture::draw_figure(panels, style).image;
}

}  // namespace stipple::cli
