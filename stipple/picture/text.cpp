#include "stipple/picture/text.h"

#include <algorithm>
#include <string>

#include "stipple/picture/canvas.h"
#include "stipple/picture/render/glyphs.h"

namespace stipple::picture {
namespace {

constexpr double kEm = 20;                                  // font units
constexpr double kBearing = 1.75;                           // on each side of the ink
constexpr double kRegular = 1.65, kBold = 2.5;              // stroke widths
constexpr double kTop = 17.5, kBottom = -5.5, kSide = 2.2;  // of the box around a glyph

// The next code point; bytes that are no UTF-8 count one each.
char32_t next_code(std::string_view text, size_t& at) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned first = byte(at++);
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    if (first < 0x80) return first < 0x20 || first == 0x7f ? U' ' : static_cast<char32_t>(first);
    if (more == 0) return 0xfffd;
    char32_t code = first & (0x3fu >> more);
    for (int i = 0; i < more; ++i) {
        if ((byte(at) & 0xc0) != 0x80) return 0xfffd;
        code = code << 6 | (byte(at++) & 0x3f);
    }
    return code;
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
    const double left = -kSide * scale, right = (static_cast<double>(glyph.width) + kSide) * scale;
    const double top = kTop * scale, bottom = kBottom * scale;
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
    for (size_t at = 0; at < text.size();) width += advance(glyph_of(next_code(text, at)), style);
    return width;
}

std::string fit_text(std::string_view text, const TextStyle& style, double width) {
    if (text_width(text, style) <= width) return std::string(text);
    constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
    double used = text_width(kEllipsis, style);
    size_t end = 0;
    while (end < text.size()) {
        size_t at = end;
        used += advance(glyph_of(next_code(text, at)), style);
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
    for (size_t at = 0; at < text.size();) {
        const Glyph& glyph = glyph_of(next_code(text, at));
        const double bearing = kBearing * style.size / kEm, step = advance(glyph, style);
        if (style.upward) {
            draw_glyph(image, x, y - bearing, glyph, style);
            y -= step;
        } else {
            draw_glyph(image, x + bearing, y, glyph, style);
            x += step;
        }
    }
}

}  // namespace stipple::picture
