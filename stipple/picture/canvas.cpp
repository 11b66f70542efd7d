#include "stipple/picture/canvas.h"

#include <algorithm>

namespace stipple::picture {
namespace {

// Pixels [first, last] that [low, high] touches within [0, n); empty as first > last. Safe for any finite or infinite
// numbers.
struct Span {
    int64_t first, last;
};
Span span_of(double low, double high, int64_t n) {
    const double limit = static_cast<double>(n);
    if (!(low < limit && high > 0)) return {0, -1};
    return {static_cast<int64_t>(std::max(std::floor(low), 0.0)),
            static_cast<int64_t>(std::min(std::ceil(high), limit)) - 1};
}

float overlap(int64_t pixel, double low, double high) {
    const double at = static_cast<double>(pixel);
    return static_cast<float>(std::clamp(std::min(high, at + 1) - std::max(low, at), 0.0, 1.0));
}

}  // namespace

void blend(Image& image, int64_t x, int64_t y, Rgb color, float amount) {
    if (x < 0 || y < 0 || x >= image.width() || y >= image.height() || !(amount > 0)) return;
    uint8_t* p = image.at(x, y);
    const Vec3f now{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2])};
    const Rgb mixed = to_rgb(mix(now, to_vec(color), std::min(amount, 1.f)));
    p[0] = mixed.r, p[1] = mixed.g, p[2] = mixed.b;
}

void fill(Image& image, Rgb color) {
    uint8_t* p = image.pixels.data();
    for (int64_t i = 0; i < image.width() * image.height(); ++i, p += 3) p[0] = color.r, p[1] = color.g, p[2] = color.b;
}

void fill_rect(Image& image, const Rect& rect, Rgb color, float amount) {
    const double right = rect.x + rect.width, bottom = rect.y + rect.height;
    const Span xs = span_of(rect.x, right, image.width()), ys = span_of(rect.y, bottom, image.height());
    for (int64_t y = ys.first; y <= ys.last; ++y)
        for (int64_t x = xs.first; x <= xs.last; ++x)
            blend(image, x, y, color, amount * overlap(x, rect.x, right) * overlap(y, rect.y, bottom));
}

void draw_frame(Image& image, const Rect& rect, double line_width, Rgb color) {
    const double inner = rect.height - 2 * line_width;
    fill_rect(image, {rect.x, rect.y, rect.width, line_width}, color);
    fill_rect(image, {rect.x, rect.y + rect.height - line_width, rect.width, line_width}, color);
    fill_rect(image, {rect.x, rect.y + line_width, line_width, inner}, color);
    fill_rect(image, {rect.x + rect.width - line_width, rect.y + line_width, line_width, inner}, color);
}

void draw_line(Image& image, double x0, double y0, double x1, double y1, double line_width, Rgb color, float amount) {
    const double half = line_width / 2, dx = x1 - x0, dy = y1 - y0, length_sq = dx * dx + dy * dy;
    const Span xs = span_of(std::min(x0, x1) - half - 1, std::max(x0, x1) + half + 1, image.width());
    const Span ys = span_of(std::min(y0, y1) - half - 1, std::max(y0, y1) + half + 1, image.height());
    for (int64_t y = ys.first; y <= ys.last; ++y)
        for (int64_t x = xs.first; x <= xs.last; ++x) {
            const double px = static_cast<double>(x) + 0.5 - x0, py = static_cast<double>(y) + 0.5 - y0;
            const double t = length_sq > 0 ? std::clamp((px * dx + py * dy) / length_sq, 0.0, 1.0) : 0;
            const double distance = std::hypot(px - t * dx, py - t * dy);
            blend(image, x, y, color, amount * static_cast<float>(std::clamp(half - distance + 0.5, 0.0, 1.0)));
        }
}

}  // namespace stipple::picture
