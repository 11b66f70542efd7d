#pragma once
// The strokes of the built-in font.

#include <string_view>
#include <vector>

namespace stipple::picture {

/// Units: the base line is y = 0, capitals reach 14, small letters 10, descenders -4; one em is 20.
struct GlyphSegment {
    float x0, y0, x1, y1;
};

struct Glyph {
    float width = 0;                     // of the ink's box, from x = 0
    std::vector<GlyphSegment> segments;  // curves are flattened
};

/// The glyph of a Unicode code point; an empty box for one that the font lacks.
const Glyph& glyph_of(char32_t code);

}  // namespace stipple::picture
