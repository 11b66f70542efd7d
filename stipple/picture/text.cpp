#include "stipple/picture/text.h"

#include <algorithm>
#include <string>

#include "stipple/core/utf8.h"
#include "stipple/picture/canvas.h"
#include "stipple/picture/font/glyphs.h"

namespace stipple::picture {
namespace {

constexpr double kEm = 20;                      // font units
constexpr double kBearing = 1.75;               // on each side of the ink
constexpr double kRegular = 1.65, kBold = 2.5;  // stroke widths

// Not drawn and without a width: soft hyphens, joiners, marks of direction and of variants, the mark of byte order.
bool is_invisible(char32_t code) {
    return code == 0xad || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x2064) || (code >= 0xfe00 && code <= 0xfe0f) || code == 0xfeff;
}

// The next glyph, `at` moved behind it; null at the end. Control characters are spaces, a letter and combining marks
// behind it are one glyph where the font has it.
const Glyph* next_glyph(std::string_view text, size_t& at) {
    while (at < text.size()) {
        char32_t code = next_code_point(text, at);
        if (is_invisible(code)) continue;
        if (code < 0x20 || (code >= 0x7f && code < 0xa0)) code = U' ';
        for (size_t behind = at; behind < text.size(); at = behind) {
            const char32_t joined = joined_letter(code, next_code_point(text, behind));
            if (!joined) break;
            code = joined;
        }
        return &glyph_of(code);
    }
    return nullptr;
}

double advance(const Glyph& glyph, const TextStyle& style) {
    return (static_cast<double>(glyph.width) + 2 * kBearing + (style.bold ? 0.5 : 0)) * style.size / kEm;
}

double distance_sq(const GlyphSegment& s, double x, double y) {
    const double dx = static_cast<double>(s.x1 - s.x0), dy = static_cast<double>(s.y1 - s.y0);
    const double px = x - static_cast<double>(s.x0), py = y - static_cast<double>(s.y0);
    const double t = std::clamp((px * dx + py * dy) / (dx * dx + dy * dy + 1e-12), 0.0, 1.0);
    const double ex = px - t * dx, ey = py - t * dy;
    return ex * ex + ey * ey;
}

// (x, y) is the glyph's origin on the image; the pen runs right, or up.
void draw_glyph(Image& image, double x, double y, const Glyph& glyph, const TextStyle& style) {
    if (glyph.segments.empty()) return;
    const double scale = style.size / kEm, half = (style.bold ? kBold : kRegular) / 2 * scale;
    const double left = static_cast<double>(glyph.x_min) * scale - half - 1;
    const double right = static_cast<double>(glyph.x_max) * scale + half + 1;
    const double top = static_cast<double>(glyph.y_max) * scale + half + 1;
    const double bottom = static_cast<double>(glyph.y_min) * scale - half - 1;
    const double x0 = style.upward ? x - top : x + left, x1 = style.upward ? x - bottom : x + right;
    const double y0 = style.upward ? y - right : y - top, y1 = style.upward ? y - left : y - bottom;
    const double w = static_cast<double>(image.width()), h = static_cast<double>(image.height());
    if (!(x1 > 0 && x0 < w && y1 > 0 && y0 < h)) return;
    const auto last_x = static_cast<int64_t>(std::min(x1, w - 1)), last_y = static_cast<int64_t>(std::min(y1, h - 1));
    for (auto py = static_cast<int64_t>(std::max(y0, 0.0)); py <= last_y; ++py)
        for (auto px = static_cast<int64_t>(std::max(x0, 0.0)); px <= last_x; ++px) {
            const double ux = static_cast<double>(px) + 0.5 - x, uy = static_cast<double>(py) + 0.5 - y;
            const double gx = (style.upward ? -uy : ux) / scale, gy = (style.upward ? -ux : -uy) / scale;
            double nearest = 1e30;
            for (const GlyphSegment& segment : glyph.segments)
                nearest = std::min(nearest, distance_sq(segment, gx, gy));
            const double cover = std::clamp(half - std::sqrt(nearest) * scale + 0.5, 0.0, 1.0);
            blend(image, px, py, style.color, static_cast<float>(cover));
        }
}

}  // namespace

double text_width(std::string_view text, const TextStyle& style) {
    double width = 0;
    size_t at = 0;
    while (const Glyph* glyph = next_glyph(text, at)) width += advance(*glyph, style);
    return width;
}

std::string fit_text(std::string_view text, const TextStyle& style, double width) {
    if (text_width(text, style) <= width) return std::string(text);
    constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
    double used = text_width(kEllipsis, style);
    size_t end = 0, at = 0;
    while (const Glyph* glyph = next_glyph(text, at)) {
        used += advance(*glyph, style);
        if (used > width) break;
        end = at;
    }
    while (end > 0 && text[end - 1] == ' ') --end;
    return std::string(text.substr(0, end)).append(kEllipsis);
}

void draw_text(Image& image, double x, double y, std::string_view text, const TextStyle& style) {
    const double width = text_width(text, style);
    const double back = style.align == Align::center ? width / 2 : style.align == Align::right ? width : 0;
    (style.upward ? y : x) += style.upward ? back : -back;
    // Horizontal strokes on the base line fill whole rows of pixels.
    double& base = style.upward ? x : y;
    base = std::floor(base) + 0.5;
    size_t at = 0;
    while (const Glyph* glyph = next_glyph(text, at)) {
        const double bearing = kBearing * style.size / kEm, step = advance(*glyph, style);
        if (style.upward) {
            draw_glyph(image, x, y - bearing, *glyph, style);
            y -= step;
        } else {
            draw_glyph(image, x + bearing, y, *glyph, style);
            x += step;
        }
    }
}

}  // namespace stipple::picture
