#include "stipple/radiance/scene/pixels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/error.h"

namespace stipple::radiance {
namespace {

/// r^2 up to which x (1 + k1 r^2 + k2 r^4) grows with x; infinity where it always does: the least positive root of
/// 1 + 3 k1 s + 5 k2 s^2.
double turning_radius_sq(const io::Lens& lens) {
    const double a = 5 * lens.k2, b = 3 * lens.k1;
    if (a == 0) return b < 0 ? -1 / b : INFINITY;
    const double discriminant = b * b - 4 * a;
    if (discriminant < 0) return INFINITY;
    const double root = std::sqrt(discriminant);
    double least = INFINITY;
    for (const double s : {(-b - root) / (2 * a), (-b + root) / (2 * a)})
        if (s > 0) least = std::min(least, s);
    return least;
}

void distort(const io::Lens& lens, double x, double y, double& to_x, double& to_y) {
    const double r_sq = x * x + y * y, radial = 1 + r_sq * (lens.k1 + lens.k2 * r_sq);
    to_x = x * radial + 2 * lens.p1 * x * y + lens.p2 * (r_sq + 2 * x * x);
    to_y = y * radial + 2 * lens.p2 * x * y + lens.p1 * (r_sq + 2 * y * y);
}

/// Linear between the centres of pixels, weighted by alpha.
void sample_linear(const Image& image, double u, double v, uint8_t* rgba) {
    const double x = std::clamp(u - 0.5, 0.0, static_cast<double>(image.width() - 1));
    const double y = std::clamp(v - 0.5, 0.0, static_cast<double>(image.height() - 1));
    const auto x0 = static_cast<int64_t>(x), y0 = static_cast<int64_t>(y);
    const int64_t x1 = std::min(x0 + 1, image.width() - 1), y1 = std::min(y0 + 1, image.height() - 1);
    const double fx = x - static_cast<double>(x0), fy = y - static_cast<double>(y0);
    const uint8_t* const corners[4] = {image.at(x0, y0), image.at(x1, y0), image.at(x0, y1), image.at(x1, y1)};
    const double weights[4] = {(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy};
    double sums[3] = {}, alpha = 0;
    for (int corner = 0; corner < 4; ++corner) {
        const double weight = weights[corner] * corners[corner][3];
        alpha += weight;
        for (int c = 0; c < 3; ++c) sums[c] += weight * corners[corner][c];
    }
    for (int c = 0; c < 3; ++c) rgba[c] = alpha > 0 ? static_cast<uint8_t>(std::lround(sums[c] / alpha)) : uint8_t{0};
    rgba[3] = static_cast<uint8_t>(std::lround(alpha));
}

}  // namespace

Image to_rgba(Image image) {
    const int64_t channels = image.channels(), pixels = image.width() * image.height();
    if (channels == 4) return image;
    Image rgba(image.width(), image.height(), 4);
    const uint8_t* from = image.pixels.data();
    uint8_t* to = rgba.pixels.data();
    STIPPLE_REQUIRE(channels == 1 || channels == 3, "a picture has 1, 3 or 4 channels, not {}", channels);
    for (int64_t i = 0; i < pixels; ++i, to += 4, from += channels) {
        to[0] = from[0];
        to[1] = from[channels == 1 ? 0 : 1];
        to[2] = from[channels == 1 ? 0 : 2];
        to[3] = 255;
    }
    return rgba;
}

bool has_transparent(const Image& image) {
    const uint8_t* at = image.pixels.data();
    for (int64_t i = 0, n = image.width() * image.height(); i < n; ++i)
        if (at[4 * i + 3] != 255) return true;
    return false;
}

bool distorted_place(const io::Lens& lens, double x, double y, double& to_x, double& to_y) {
    distort(lens, x, y, to_x, to_y);
    return x * x + y * y < turning_radius_sq(lens);
}

Image undistorted(const Image& image, const io::Lens& lens) {
    const double turning = turning_radius_sq(lens);
    const auto width = static_cast<double>(image.width()), height = static_cast<double>(image.height());
    Image result(image.width(), image.height(), 4);
    for (int64_t row = 0; row < image.height(); ++row) {
        for (int64_t column = 0; column < image.width(); ++column) {
            const double x = (static_cast<double>(column) + 0.5 - lens.cx) / lens.fx;
            const double y = (static_cast<double>(row) + 0.5 - lens.cy) / lens.fy;
            uint8_t* rgba = result.at(column, row);
            double u = 0, v = 0;
            distort(lens, x, y, u, v);
            u = lens.fx * u + lens.cx;
            v = lens.fy * v + lens.cy;
            if (x * x + y * y < turning && u >= 0 && v >= 0 && u <= width && v <= height)
                sample_linear(image, u, v, rgba);
            else
                std::memset(rgba, 0, 4);
        }
    }
    return result;
}

Image reduced(const Image& image, int factor) {
    STIPPLE_REQUIRE(factor >= 1, "pictures are reduced by a factor from 1, not by {}", factor);
    const int64_t width = image.width() / factor, height = image.height() / factor;
    STIPPLE_REQUIRE(width > 0 && height > 0, "a picture of {} x {} pixels cannot be reduced by {}", image.width(),
                    image.height(), factor);
    Image result(width, height, 4);
    const int64_t cells = int64_t{factor} * factor;
    for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
            int64_t sums[3] = {}, alpha = 0;
            for (int64_t row = 0; row < factor; ++row) {
                const uint8_t* from = image.at(x * factor, y * factor + row);
                for (int64_t column = 0; column < factor; ++column, from += 4) {
                    alpha += from[3];
                    for (int c = 0; c < 3; ++c) sums[c] += int64_t{from[c]} * from[3];
                }
            }
            uint8_t* to = result.at(x, y);
            for (int c = 0; c < 3; ++c)
                to[c] = alpha > 0 ? static_cast<uint8_t>((sums[c] + alpha / 2) / alpha) : uint8_t{0};
            to[3] = static_cast<uint8_t>((alpha + cells / 2) / cells);
        }
    }
    return result;
}

}  // namespace stipple::radiance
