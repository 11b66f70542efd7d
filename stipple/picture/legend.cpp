#include "stipple/picture/legend.h"

#include <algorithm>

#include "stipple/picture/text.h"

namespace stipple::picture {
namespace {

constexpr double kBar = 1.1;      // width of a colour bar, in text sizes
constexpr double kTickGap = 0.5;  // between bar and numbers
constexpr double kLine = 1.55;    // from label to label
constexpr double kSwatch = 0.82;

TextStyle text_style(const LegendStyle& style) {
    return {style.text_size, style.color, Align::left, false, false};
}

int wanted_ticks(double height, double text_size) {
    return std::clamp(static_cast<int>(height / (text_size * 4)), 2, 7);
}

std::string name_of(int64_t label, const std::map<int64_t, std::string>& names) {
    const auto at = names.find(label);
    return at != names.end() ? at->second : fmt::format("{}", label);
}

double round_down(double value) {
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (double step : {5.0, 2.0})
        if (step * power <= value) return step * power;
    return power;
}

double widest_tick(const ColorScale& scale, const LegendStyle& style, double height) {
    double widest = 0;
    for (const Tick& tick : choose_ticks(scale.low, scale.high, wanted_ticks(height, style.text_size)))
        widest = std::max(widest, text_width(tick.text, text_style(style)));
    return widest;
}

}  // namespace

std::vector<Tick> choose_ticks(double low, double high, int wanted) {
    std::vector<Tick> ticks;
    const double span = high - low;
    if (!(span > 0) || !std::isfinite(span)) return ticks;
    double step = 0;
    const double power = std::pow(10, std::floor(std::log10(span / wanted)));
    for (double factor : {1.0, 2.0, 5.0, 10.0}) {
        step = factor * power;
        if (span / step <= wanted + 0.5) break;
    }
    if (!(step > 0) || !std::isfinite(low / step) || std::abs(low / step) > 1e12) return ticks;
    const double largest = std::max(std::abs(low), std::abs(high));
    const bool scientific = largest >= 1e6 || largest < 1e-3;
    const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
    const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
    for (double k = first; k <= last; ++k) {
        const double value = k == 0 ? 0 : k * step;
        std::string text = scientific ? fmt::format("{:g}", value) : fmt::format("{:.{}f}", value, decimals);
        if (text[0] == '-') text.replace(0, 1, "\xe2\x88\x92");  // a true minus sign
        ticks.push_back({value, std::move(text)});
    }
    return ticks;
}

double color_bar_width(const ColorScale& scale, const LegendStyle& style, double height) {
    const double title = style.title.empty() ? 0 : 1.5 * style.text_size;
    return (kBar + kTickGap) * style.text_size + widest_tick(scale, style, height) + title;
}

void draw_color_bar(Image& image, const Rect& where, const ColorScale& scale, const LegendStyle& style) {
    const double bar = kBar * style.text_size, line = std::max(1.0, std::round(style.text_size / 16));
    const double top = std::round(where.y), bottom = std::round(where.y + where.height), left = std::round(where.x);
    for (double y = top; y < bottom; ++y)
        fill_rect(image, {left, y, bar, 1}, map_color(scale.map, 1 - (y + 0.5 - top) / (bottom - top)));
    for (const Tick& tick : choose_ticks(scale.low, scale.high, wanted_ticks(where.height, style.text_size))) {
        const double y = bottom - (tick.value - scale.low) / (scale.high - scale.low) * (bottom - top);
        const double at = std::clamp(std::round(y - line / 2), top, bottom - line);
        fill_rect(image, {left + bar, at, 0.28 * style.text_size, line}, style.color);
        draw_text(image, left + bar + kTickGap * style.text_size, at + line / 2 + 0.35 * style.text_size, tick.text,
                  text_style(style));
    }
    if (style.title.empty()) return;
    TextStyle title = text_style(style);
    title.upward = true;
    title.align = Align::center;
    draw_text(image,
              left + bar + kTickGap * style.text_size + widest_tick(scale, style, where.height) + 1.3 * style.text_size,
              (top + bottom) / 2, fit_text(style.title, title, where.height), title);
}

double labels_width(const ColorScale& scale, const std::map<int64_t, std::string>& names, const LegendStyle& style) {
    double widest = text_width(style.title, text_style(style)) - 1.3 * style.text_size;
    for (int64_t label : scale.labels) widest = std::max(widest, text_width(name_of(label, names), text_style(style)));
    return std::clamp(widest + 1.4 * style.text_size, 3 * style.text_size, 16 * style.text_size);
}

void draw_labels(Image& image, const Rect& where, const ColorScale& scale, const std::map<int64_t, std::string>& names,
                 const LegendStyle& style) {
    const double line = kLine * style.text_size, swatch = kSwatch * style.text_size;
    const auto all = static_cast<int64_t>(scale.labels.size());
    const int64_t title_lines = style.title.empty() ? 0 : 1;
    const int64_t fit = std::max<int64_t>(1, static_cast<int64_t>(where.height / line) - title_lines);
    const int64_t shown = all <= fit ? all : fit - 1;
    const int64_t lines = title_lines + std::min(all, fit);
    double base = where.y + (where.height - static_cast<double>(lines) * line) / 2 + 0.7 * line;  // centred
    if (title_lines) {
        draw_text(image, where.x, base, fit_text(style.title, text_style(style), where.width), text_style(style));
        base += line;
    }
    const double text_x = where.x + 1.3 * style.text_size;
    for (int64_t i = 0; i < shown; ++i, base += line) {
        const double top = std::round(base - 0.35 * style.text_size - swatch / 2);
        fill_rect(image, {std::round(where.x), top, swatch, swatch}, category_color(i));
        const std::string name = name_of(scale.labels[static_cast<size_t>(i)], names);
        draw_text(image, text_x, base, fit_text(name, text_style(style), where.x + where.width - text_x),
                  text_style(style));
    }
    if (shown < all) draw_text(image, text_x, base, fmt::format("{} more", all - shown), text_style(style));
}

void draw_scale_bar(Image& image, const Rect& where, double units_per_pixel, const std::string& unit,
                    const LegendStyle& style) {
    const double most = where.width * units_per_pixel;
    if (!(most > 0) || !std::isfinite(most)) return;
    const double length = round_down(most), pixels = length / units_per_pixel;
    const double line = std::max(2.0, std::round(style.text_size / 6));
    const double y = std::round(where.y + where.height - line), x = std::round(where.x);
    fill_rect(image, {x, y, pixels, line}, style.color);
    for (double end : {x, x + pixels - line}) fill_rect(image, {end, y - line, line, line}, style.color);
    TextStyle text = text_style(style);
    text.align = Align::center;
    draw_text(image, x + pixels / 2, y - 1.6 * line - 0.1 * style.text_size,
              fmt::format("{:g}{}{}", length, unit.empty() ? "" : " ", unit), text);
}

void draw_axes(Image& image, double x, double y, const Camera& camera, double text_size) {
    const double arm = 2 * text_size, line = std::max(1.5, text_size / 8);
    const double cx = x + arm + text_size, cy = y - arm - text_size;
    const Vec3d units[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const Rgb colors[3] = {{204, 62, 54}, {58, 146, 72}, {52, 102, 196}};
    for (const int axis : {0, 1, 2}) {
        const double dx = dot(units[axis], camera.right) * arm, dy = -dot(units[axis], camera.up) * arm;
        draw_line(image, cx, cy, cx + dx, cy + dy, line, colors[axis], 1);
        const TextStyle text{0.9 * text_size, colors[axis], Align::center, true, false};
        const double away = 1 + 0.5 * text_size / std::max(std::hypot(dx, dy), 0.5 * text_size);
        draw_text(image, cx + dx * away, cy + dy * away + 0.3 * text_size, std::string(1, "xyz"[axis]), text);
    }
}

}  // namespace stipple::picture
