#pragma once
// What people ask of a picture, as options with fields, and the style of a figure that draws it.

#include "stipple/core/fields.h"
#include "stipple/picture/figure.h"

namespace stipple::picture {

inline constexpr const char* kEyeDomeWords[] = {"auto", "on", "off"};

struct PictureOptions {
    std::string size = "1024x1024";  // of a panel; the caller reads it into FigureStyle
    int64_t columns = 0;
    std::vector<std::string> captions = {};  // none, or one for each panel
    std::string title = {};
    std::vector<std::string> color_by = {};  // none, one, or one for each panel
    ColorMap color_map = ColorMap::viridis;
    std::optional<std::array<double, 2>> range = {};
    ViewName view = ViewName::automatic;
    std::optional<double> azimuth = {}, elevation = {};       // instead of the view's
    std::optional<std::array<double, 3>> aim = {}, eye = {};  // in the world
    double zoom = 1;
    UpAxis up = UpAxis::z;
    double point_size = 0;  // diameter in pixels
    EyeDome eye_dome = EyeDome::automatic;
    std::vector<double> inset = {};  // middle x and y, and size
    std::string unit = {};
    bool dark = false, flat = false, edges = false, orthographic = false, own_scale = false, axes = false,
         scale_bar = false, no_legend = false;
};
const Fields& picture_fields();

/// Of a Figure: what was drawn in each panel.
const Fields& figure_fields();

/// All but the size and what set_viewpoint() sets. Throws Error{bad_argument} for options out of their ranges, and for
/// captions and colours that are not as many as the panels.
FigureStyle style_of(const PictureOptions& options, size_t panels);

/// `sensor`: where the scan was taken, if that is known. Throws Error{bad_argument} for the view of a sensor without
/// it.
void set_viewpoint(const PictureOptions& options, const std::optional<std::array<double, 3>>& sensor,
                   Viewpoint& viewpoint);

}  // namespace stipple::picture
