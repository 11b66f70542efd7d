#include "stipple/picture/font/glyphs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "stipple/io/text.h"
#include "stipple/picture/font/tables.h"

namespace stipple::picture {
namespace {

class PathReader {
public:
    PathReader(const char* path, Glyph& glyph) : at_(path), glyph_(glyph) {}

    void read() {
        while (*at_) switch (*at_++) {
                case 'M': x_ = number(), y_ = number(); break;
                case 'L': {
                    const float x = number();
                    line_to(x, number());
                    break;
                }
                case 'C': {
                    float p[6];
                    for (float& v : p) v = number();
                    cubic(p);
                    break;
                }
                case 'O':
                case 'A': {
                    const bool whole = at_[-1] == 'O';
                    float p[6] = {0, 0, 0, 0, 0, 360};
                    for (int i = 0; i < (whole ? 4 : 6); ++i) p[i] = number();
                    ellipse(p);
                    break;
                }
                default: break;
            }
    }

private:
    float number() {
        while (*at_ == ' ') ++at_;
        double value = 0;
        io::scan_number(at_, at_ + std::strlen(at_), value);
        return static_cast<float>(value);
    }

    void line_to(float x, float y) {
        glyph_.segments.push_back({x_, y_, x, y});
        x_ = x, y_ = y;
    }

    void cubic(const float p[6]) {
        const float x0 = x_, y0 = y_;
        constexpr int kPieces = 8;
        for (int i = 1; i <= kPieces; ++i) {
            const float t = static_cast<float>(i) / kPieces, s = 1 - t;
            const float a = s * s * s, b = 3 * s * s * t, c = 3 * s * t * t, d = t * t * t;
            line_to(a * x0 + b * p[0] + c * p[2] + d * p[4], a * y0 + b * p[1] + c * p[3] + d * p[5]);
        }
    }

    void ellipse(const float p[6]) {
        constexpr int kPieces = 24;
        for (int i = 0; i <= kPieces; ++i) {
            const float angle = (p[4] + (p[5] - p[4]) * static_cast<float>(i) / kPieces) * 0.01745329252f;
            const float x = p[0] + p[2] * std::cos(angle), y = p[1] + p[3] * std::sin(angle);
            if (i == 0) {
                x_ = x, y_ = y;
            } else {
                line_to(x, y);
            }
        }
    }

    const char* at_;
    Glyph& glyph_;
    float x_ = 0, y_ = 0;
};

Glyph draw_path(const char* path) {
    Glyph glyph;
    PathReader(path, glyph).read();
    return glyph;
}

void measure(Glyph& glyph) {
    for (const GlyphSegment& s : glyph.segments) {
        const bool first = &s == glyph.segments.data();
        glyph.x_min = std::min({first ? s.x0 : glyph.x_min, s.x0, s.x1});
        glyph.x_max = std::max({first ? s.x0 : glyph.x_max, s.x0, s.x1});
        glyph.y_min = std::min({first ? s.y0 : glyph.y_min, s.y0, s.y1});
        glyph.y_max = std::max({first ? s.y0 : glyph.y_max, s.y0, s.y1});
    }
}

// The base with strokes added at (x, y). What stands out by more than `slack` makes the letter wider.
Glyph with_strokes(const Glyph& base, const char* path, float x, float y, float slack) {
    Glyph glyph = base;
    for (const GlyphSegment& s : draw_path(path).segments)
        glyph.segments.push_back({s.x0 + x, s.y0 + y, s.x1 + x, s.y1 + y});
    measure(glyph);
    const float shift = std::max(0.f, -slack - glyph.x_min);
    for (GlyphSegment& s : glyph.segments) s.x0 += shift, s.x1 += shift;
    measure(glyph);
    glyph.width = std::max(base.width + shift, glyph.x_max - slack);
    return glyph;
}

Glyph made_small(const Glyph& base, float up) {
    Glyph glyph = base;
    glyph.width *= kSmallScale;
    for (GlyphSegment& s : glyph.segments)
        s = {s.x0 * kSmallScale, s.y0 * kSmallScale + up, s.x1 * kSmallScale, s.y1 * kSmallScale + up};
    measure(glyph);
    return glyph;
}

struct Font {
    std::map<char32_t, Glyph> glyphs;
    std::map<std::pair<char32_t, char32_t>, char32_t> joined;  // letter and combining mark

    Font() {
        for (const auto drawings : {latin_drawings(), sign_drawings(), greek_drawings(), cyrillic_drawings()})
            for (const Drawing& drawing : drawings) {
                Glyph& glyph = glyphs[drawing.code] = draw_path(drawing.path);
                glyph.width = drawing.width;
                measure(glyph);
            }
        const std::u32string_view same = copies();
        for (size_t i = 0; i + 1 < same.size(); i += 2) glyphs[same[i]] = glyphs.at(same[i + 1]);
        for (const Mark& mark : marks())
            for (size_t i = 0; i + 1 < mark.letters.size(); i += 2) add(mark, mark.letters[i], mark.letters[i + 1]);
        for (const Overlay& overlay : overlays()) {
            glyphs[overlay.code] = with_strokes(glyphs.at(overlay.base), overlay.path, 0, 0, 0);
            if (overlay.combining) joined[{overlay.base, overlay.combining}] = overlay.code;
        }
        for (const Small& sign : small_signs()) glyphs[sign.code] = made_small(glyphs.at(sign.base), sign.up);
    }

    void add(const Mark& mark, char32_t code, char32_t base) {
        const Glyph& letter = glyphs.at(base);
        const bool above = mark.place == MarkPlace::above;
        const float x = mark.place == MarkPlace::right_foot ? letter.width : letter.width / 2;
        glyphs[code] = with_strokes(letter, mark.path, x, above ? letter.y_max : 0, 0.4f);
        const char32_t alone = base == U'ı' ? (code == U'ї' ? U'і' : U'i') : base == U'ȷ' ? U'j' : base;
        joined[{alone, mark.combining}] = code;
    }
};

const Font& font() {
    static const Font font;
    return font;
}

}  // namespace

const Glyph& glyph_of(char32_t code) {
    const auto at = font().glyphs.find(code);
    return at != font().glyphs.end() ? at->second : font().glyphs.at(0xfffd);
}

char32_t joined_letter(char32_t letter, char32_t combining) {
    const auto at = font().joined.find({letter, combining});
    return at != font().joined.end() ? at->second : 0;
}

}  // namespace stipple::picture
