#pragma once
// Legends: colour bars, lists of labels, scale bars.

#include <map>
#include <string>
#include <vector>

#include "stipple/picture/camera.h"
#include "stipple/picture/canvas.h"
#include "stipple/picture/coloring.h"

namespace stipple::picture {

/// Round numbers within [low, high], about `wanted` of them and at least two where possible, with their texts, which
/// share their decimals.
struct Tick {
    double value;
    std::string text;
};
std::vector<Tick> choose_ticks(double low, double high, int wanted);

struct LegendStyle {
    double text_size = 16;
    Rgb color{30, 32, 36};
    std::string title = {};
};

/// The width that draw_color_bar or draw_labels needs.
double color_bar_width(const ColorScale& scale, const LegendStyle& style, double height);
double labels_width(const ColorScale& scale, const std::map<int64_t, std::string>& names, const LegendStyle& style);

/// A vertical bar with ticks to its right and the title along them.
void draw_color_bar(Image& image, const Rect& where, const ColorScale& scale, const LegendStyle& style);

/// A swatch and a name per label, from top to bottom; what does not fit is counted in a last line.
void draw_labels(Image& image, const Rect& where, const ColorScale& scale, const std::map<int64_t, std::string>& names,
                 const LegendStyle& style);

/// A bar of a round length of at most `where.width` pixels, its length written above.
void draw_scale_bar(Image& image, const Rect& where, double units_per_pixel, const std::string& unit,
                    const LegendStyle& style);

/// The directions of x, y and z as the middle of the picture sees them, in the corner whose lowest left pixel is (x,
/// y).
void draw_axes(Image& image, double x, double y, const Camera& camera, double text_size);

}  // namespace stipple::picture
