#pragma once
// The strokes of the built-in font.

#include <vector>

namespace stipple::picture {

/// Units: the base line is y = 0, capitals reach 14, small letters 10, descenders -4; one em is 20.
struct GlyphSegment {
    float x0, y0, x1, y1;
};

struct Glyph {
    float width = 0;                                   // of the ink's box, from x = 0
    float x_min = 0, y_min = 0, x_max = 0, y_max = 0;  // of the strokes' middles; a mark may stand out a little
    std::vector<GlyphSegment> segments;                // curves are flattened
};

/// The glyph of a Unicode code point; an empty box for one that the font lacks.
const Glyph& glyph_of(char32_t code);

/// The letter that `letter` and a combining mark after it make together; 0 where the font has none. Names of files
/// come so on some systems.
char32_t joined_letter(char32_t letter, char32_t combining);

}  // namespace stipple::picture
