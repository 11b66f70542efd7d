#pragma once
// What the built-in font is made of: drawn letters, and rules that make letters of letters. Units as in glyphs.h.

#include <span>
#include <string_view>

namespace stipple::picture {

/// A path: M x y moves, L x y draws a line, C x1 y1 x2 y2 x y a cubic, O cx cy rx ry a whole ellipse, A cx cy rx ry
/// from to an arc of one in degrees, counter-clockwise.
struct Drawing {
    char32_t code;
    float width;
    const char* path;
};

/// Another letter with more strokes, in the coordinates of that letter; they may begin left of it.
struct Overlay {
    char32_t code, base;
    const char* path;
    char32_t combining = 0;  // the mark that makes it of the base, when there is one
};

enum class MarkPlace { above, below, right_foot };

/// A mark and the letters that carry it. The path is drawn from the middle of the letter's top (above), of its base
/// line (below), or from the right end of its base line.
struct Mark {
    char32_t combining;  // the code of the mark alone, which joins the letter before it
    MarkPlace place;
    const char* path;
    std::u32string_view letters;  // pairs: the letter with its mark, the letter without
};

/// Another letter made smaller and moved up or down.
struct Small {
    char32_t code, base;
    float up;
};
inline constexpr float kSmallScale = 0.58f;

std::span<const Drawing> latin_drawings();
std::span<const Drawing> sign_drawings();
std::span<const Drawing> greek_drawings();
std::span<const Drawing> cyrillic_drawings();

/// In the order of use: a letter is made of those that come before it. Marks come after the copies, overlays after the
/// marks.
std::u32string_view copies();  // pairs: a letter, and the one that looks the same
std::span<const Mark> marks();
std::span<const Overlay> overlays();
std::span<const Small> small_signs();

}  // namespace stipple::picture
