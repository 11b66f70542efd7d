#include "stipple/picture/canvas.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

Span intersection(Span a, Span b) {
    return {std::max(a.first, b.first), std::min(a.last, b.last)};
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

void draw_polyline(Image& image, std::span<const std::array<double, 2>> points, double line_width, Rgb color,
                   const Rect& clip, double dash, double gap) {
    if (points.empty()) return;
    const double half = line_width / 2, reach = half + 1;
    double left = points[0][0], right = left, top = points[0][1], bottom = top;
    for (const auto& [x, y] : points) {
        left = std::min(left, x), right = std::max(right, x);
        top = std::min(top, y), bottom = std::max(bottom, y);
    }
    const Span xs = intersection(span_of(left - reach, right + reach, image.width()),
                                 span_of(clip.x, clip.x + clip.width, image.width()));
    const Span ys = intersection(span_of(top - reach, bottom + reach, image.height()),
                                 span_of(clip.y, clip.y + clip.height, image.height()));
    if (xs.first > xs.last || ys.first > ys.last) return;
    const int64_t width = xs.last - xs.first + 1;
    std::vector<float> cover(static_cast<size_t>(width * (ys.last - ys.first + 1)));

    double travelled = 0;
    for (size_t i = 0; i < points.size(); ++i) {
        const auto [x0, y0] = points[i > 0 ? i - 1 : 0];
        const auto [x1, y1] = points[i];
        if (i == 0 && points.size() > 1) continue;
        const double dx = x1 - x0, dy = y1 - y0, length_sq = dx * dx + dy * dy, length = std::sqrt(length_sq);
        const auto visit = [&, x0 = x0, y0 = y0](int64_t x, int64_t y) {
            const double px = static_cast<double>(x) + 0.5 - x0, py = static_cast<double>(y) + 0.5 - y0;
            const double t = length_sq > 0 ? std::clamp((px * dx + py * dy) / length_sq, 0.0, 1.0) : 0;
            const double ex = px - t * dx, ey = py - t * dy;
            double amount = half - std::sqrt(ex * ex + ey * ey) + 0.5;
            if (dash > 0) {
                const double phase = std::fmod(travelled + t * length, dash + gap);
                amount = std::min(amount, dash / 2 - std::abs(phase - dash / 2) + 0.5);
            }
            float& now = cover[static_cast<size_t>((y - ys.first) * width + x - xs.first)];
            now = std::max(now, static_cast<float>(std::clamp(amount, 0.0, 1.0)));
        };
        // Along the longer axis, and across it as far as the line can reach.
        const Span columns =
            intersection(xs, span_of(std::min(x0, x1) - reach, std::max(x0, x1) + reach, image.width()));
        const Span rows = intersection(ys, span_of(std::min(y0, y1) - reach, std::max(y0, y1) + reach, image.height()));
        const double across = 1.5 * reach + 1;
        if (std::abs(dx) >= std::abs(dy)) {
            for (int64_t x = columns.first; x <= columns.last; ++x) {
                const double t = length_sq > 0 ? std::clamp((static_cast<double>(x) + 0.5 - x0) / dx, 0.0, 1.0) : 0;
                const Span near =
                    intersection(rows, span_of(y0 + t * dy - across, y0 + t * dy + across, image.height()));
                for (int64_t y = near.first; y <= near.last; ++y) visit(x, y);
            }
        } else {
            for (int64_t y = rows.first; y <= rows.last; ++y) {
                const double t = std::clamp((static_cast<double>(y) + 0.5 - y0) / dy, 0.0, 1.0);
                const Span near =
                    intersection(columns, span_of(x0 + t * dx - across, x0 + t * dx + across, image.width()));
                for (int64_t x = near.first; x <= near.last; ++x) visit(x, y);
            }
        }
        travelled += length;
    }
    for (int64_t y = ys.first; y <= ys.last; ++y)
        for (int64_t x = xs.first; x <= xs.last; ++x)
            blend(image, x, y, color, cover[static_cast<size_t>((y - ys.first) * width + x - xs.first)]);
}

}  // namespace stipple::picture
