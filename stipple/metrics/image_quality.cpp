#include "stipple/metrics/image_quality.h"

#include <array>
#include <cmath>
#include <vector>

#include "stipple/core/parallel.h"

namespace stipple::metrics {
namespace {

constexpr int kWindow = 11;
constexpr double kSigma = 1.5, kK1 = 0.01, kK2 = 0.03;

void require_pair(const char* who, View<const float, 3> a, View<const float, 3> b, double range) {
    STIPPLE_REQUIRE(a.shape() == b.shape(), "{}: images of {} and {}", who, shape_text(a.shape().data(), 3),
                    shape_text(b.shape().data(), 3));
    STIPPLE_REQUIRE(a.elements() > 0, "{}: empty images", who);
    STIPPLE_REQUIRE(a.device() == Device{} && b.device() == Device{}, "{}: images on {} and {}", who, a.device(),
                    b.device());
    STIPPLE_REQUIRE(range > 0 && std::isfinite(range), "{}: a range of {}", who, range);
}

Array<float, 3> as_float(const Image& image) {
    Array<float, 3> result(image.pixels.shape());
    for (int64_t i = 0; i < result.elements(); ++i) result.data()[i] = image.pixels.data()[i];
    return result;
}

std::array<double, kWindow> gaussian() {
    std::array<double, kWindow> weights;
    double sum = 0;
    for (int i = 0; i < kWindow; ++i) {
        const double x = (i - kWindow / 2) / kSigma;
        sum += weights[i] = std::exp(-x * x / 2);
    }
    for (double& weight : weights) weight /= sum;
    return weights;
}

/// Weighted means of a, b, a^2, b^2 and ab in a window: along rows first, then down columns.
struct Moments {
    double a = 0, b = 0, aa = 0, bb = 0, ab = 0;

    void add(double weight, const Moments& m) {
        a += weight * m.a;
        b += weight * m.b;
        aa += weight * m.aa;
        bb += weight * m.bb;
        ab += weight * m.ab;
    }
};

/// Sum of the similarity of all valid windows of one channel.
double channel_sum(View<const float, 3> a, View<const float, 3> b, int64_t channel, double range) {
    static const std::array<double, kWindow> weights = gaussian();
    const int64_t height = a.size(0), columns = a.size(1) - kWindow + 1, rows = height - kWindow + 1;
    std::vector<Moments> along(static_cast<size_t>(height * columns));
    parallel_for(height, 16, [&](int64_t begin, int64_t end) {
        for (int64_t y = begin; y < end; ++y)
            for (int64_t x = 0; x < columns; ++x)
                for (int k = 0; k < kWindow; ++k) {
                    const double p = a(y, x + k, channel), q = b(y, x + k, channel);
                    along[y * columns + x].add(weights[k], {p, q, p * p, q * q, p * q});
                }
    });
    const double c1 = (kK1 * range) * (kK1 * range), c2 = (kK2 * range) * (kK2 * range);
    std::vector<double> row_sums(static_cast<size_t>(rows));
    parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t y = begin; y < end; ++y)
            for (int64_t x = 0; x < columns; ++x) {
                Moments m;
                for (int k = 0; k < kWindow; ++k) m.add(weights[k], along[(y + k) * columns + x]);
                const double variances = (m.aa - m.a * m.a) + (m.bb - m.b * m.b), covariance = m.ab - m.a * m.b;
                row_sums[y] +=
                    (2 * m.a * m.b + c1) * (2 * covariance + c2) / ((m.a * m.a + m.b * m.b + c1) * (variances + c2));
            }
    });
    double sum = 0;
    for (const double row : row_sums) sum += row;
    return sum;
}

}  // namespace

double psnr(View<const float, 3> a, View<const float, 3> b, double range) {
    require_pair("psnr", a, b, range);
    double sum = 0;
    for (int64_t y = 0; y < a.size(0); ++y)
        for (int64_t x = 0; x < a.size(1); ++x)
            for (int64_t c = 0; c < a.size(2); ++c) {
                const double d = static_cast<double>(a(y, x, c)) - b(y, x, c);
                sum += d * d;
            }
    return -10 * std::log10(sum / static_cast<double>(a.elements()) / (range * range));
}

double psnr(const Image& a, const Image& b) {
    const Array<float, 3> x = as_float(a), y = as_float(b);
    return psnr(x.view(), y.view(), 255);
}

double ssim(View<const float, 3> a, View<const float, 3> b, double range) {
    require_pair("ssim", a, b, range);
    STIPPLE_REQUIRE(a.size(0) >= kWindow && a.size(1) >= kWindow, "ssim: an image of {} x {}, the window is {} x {}",
                    a.size(1), a.size(0), kWindow, kWindow);
    double sum = 0;
    for (int64_t c = 0; c < a.size(2); ++c) sum += channel_sum(a, b, c, range);
    return sum / static_cast<double>((a.size(0) - kWindow + 1) * (a.size(1) - kWindow + 1) * a.size(2));
}

double ssim(const Image& a, const Image& b) {
    const Array<float, 3> x = as_float(a), y = as_float(b);
    return ssim(x.view(), y.view(), 255);
}

}  // namespace stipple::metrics
