#pragma once
// Text in UTF-8 in a stroke font of the project's own: Latin with the accents of European languages, Greek, Cyrillic,
// superscripts, arrows and the common signs. Strokes are drawn by their distance, so any size and weight is smooth. A
// character that the font lacks, and each byte that is no UTF-8, is drawn as an empty box; control characters are
// spaces.

#include <string>
#include <string_view>

#include "stipple/core/image.h"
#include "stipple/picture/color_map.h"

namespace stipple::picture {

enum class Align { left, center, right };

struct TextStyle {
    double size = 16;  // pixels from line to line without leading; capitals are 0.7 of it
    Rgb color{30, 32, 36};
    Align align = Align::left;
    bool bold = false;
    bool upward = false;  // turned by a quarter to the left, read from below
};

/// Pixels.
double text_width(std::string_view text, const TextStyle& style);

/// The part of `text` that fits, with an ellipsis when something had to go.
std::string fit_text(std::string_view text, const TextStyle& style, double width);

/// `x`, `y` is where the base line begins, has its middle, or ends, by `align`. Pixels outside the image (3 channels)
/// are left out.
void draw_text(Image& image, double x, double y, std::string_view text, const TextStyle& style);

}  // namespace stipple::picture
