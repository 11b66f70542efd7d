#pragma once
// Lines and areas on an image of 3 channels. Coordinates are pixels from the upper left corner, pixel centres at .5;
// what lies outside is left out.

#include <array>
#include <span>

#include "stipple/core/image.h"
#include "stipple/picture/color_map.h"

namespace stipple::picture {

struct Rect {
    double x = 0, y = 0, width = 0, height = 0;
};

/// Mixes `color` into the pixel, 0..1; nothing outside the image.
void blend(Image& image, int64_t x, int64_t y, Rgb color, float amount);

void fill(Image& image, Rgb color);
/// Edges between pixels are smooth.
void fill_rect(Image& image, const Rect& rect, Rgb color, float amount = 1);
/// A frame whose line runs inside the rectangle.
void draw_frame(Image& image, const Rect& rect, double line_width, Rgb color);
/// A line with round ends.
void draw_line(Image& image, double x0, double y0, double x1, double y1, double line_width, Rgb color,
               float amount = 1);

/// A line through the points with round joints; every pixel is covered once, however dense the points are. Pixels
/// outside `clip` are left out. A positive `dash` leaves gaps: the lengths of dashes, and with `gap` of what is
/// between.
void draw_polyline(Image& image, std::span<const std::array<double, 2>> points, double line_width, Rgb color,
                   const Rect& clip, double dash = 0, double gap = 0);

}  // namespace stipple::picture
