#include "stipple/engine/cpu/steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stipple/ops/common/fast_exp.h"
#include "stipple/ops/common/simd.h"

namespace stipple::engine::cpu {

void copy_rows(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) std::copy_n(x.row(r), channels, out.row(r));
}

void reverse(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) std::reverse_copy(x.row(r), x.row(r) + channels, out.row(r));
}

namespace {

template <class F>
void for_each_number(const float* from, int64_t channels, float* to, F f) {
    for (int64_t c = 0; c < channels; ++c) to[c] = f(from[c]);
}

}  // namespace

void activate(const RowSource& x, int64_t channels, const Activation& activation, Rows out, int64_t begin,
              int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float* from = x.row(r);
        float* to = out.row(r);
        switch (activation.kind) {
            case ActivationKind::none: std::copy_n(from, channels, to); break;
            case ActivationKind::relu:
                for (int64_t c = 0; c < channels; ++c) to[c] = from[c] < 0 ? 0 : from[c];
                break;
            case ActivationKind::leaky_relu:
                for (int64_t c = 0; c < channels; ++c) to[c] = from[c] < 0 ? activation.slope * from[c] : from[c];
                break;
            case ActivationKind::tanh: for_each_number(from, channels, to, [](float v) { return std::tanh(v); }); break;
            case ActivationKind::sigmoid:
                for_each_number(from, channels, to, [](float v) { return 1 / (1 + std::exp(-v)); });
                break;
            case ActivationKind::elu:
                for_each_number(from, channels, to,
                                [&](float v) { return v < 0 ? activation.slope * std::expm1(v) : v; });
                break;
            case ActivationKind::gelu:  // by erfc: 1 + erf would lose the small numbers of the left side
                for_each_number(from, channels, to, [](float v) {
                    return 0.5f * v * std::erfc(v * static_cast<float>(-1 / std::numbers::sqrt2));
                });
                break;
            case ActivationKind::swish:
                for_each_number(from, channels, to, [](float v) { return v / (1 + std::exp(-v)); });
                break;
            case ActivationKind::softplus:
                for_each_number(from, channels, to,
                                [](float v) { return (v > 0 ? v : 0) + std::log1p(std::exp(-std::abs(v))); });
                break;
            case ActivationKind::log:
                for_each_number(from, channels, to,
                                [&](float v) { return std::log((v > 0 ? v : 0) + activation.slope); });
                break;
        }
    }
}

void add(const RowSource& x, const RowSource& y, float factor, int64_t channels, Rows out, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float *a = x.row(r), *b = y.row(r);
        float* to = out.row(r);
        for (int64_t c = 0; c < channels; ++c) to[c] = a[c] + factor * b[c];
    }
}

void couple(const RowSource& x, const RowSource& t, float factor, int64_t first, int64_t channels, Rows out,
            int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float *from = x.row(r), *shift = t.row(r);
        float* to = out.row(r);
        for (int64_t c = 0; c < first; ++c) to[c] = from[c];
        for (int64_t c = first; c < channels; ++c) to[c] = from[c] + factor * shift[c - first];
    }
}

void inject(const RowSource& x, const RowSource& s, const RowSource& b, bool inverse, int64_t channels, Rows out,
            int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float *from = x.row(r), *scale = s.row(r), *shift = b.row(r);
        float* to = out.row(r);
        if (inverse)
            for (int64_t c = 0; c < channels; ++c) to[c] = from[c] * std::exp(scale[c]) + shift[c];
        else
            for (int64_t c = 0; c < channels; ++c) to[c] = (from[c] - shift[c]) * std::exp(-scale[c]);
    }
}

void sum_channels(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float* from = x.row(r);
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c) sum += from[c];
        *out.row(r) = static_cast<float>(sum);
    }
}

void log_softmax(const RowSource& x, int64_t channels, Rows out, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float* from = x.row(r);
        float* to = out.row(r);
        float most = from[0];
        for (int64_t c = 1; c < channels; ++c) most = from[c] > most ? from[c] : most;
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c) sum += ops::fast_exp(from[c] - most);
        const float shift = most + static_cast<float>(std::log(sum));
        for (int64_t c = 0; c < channels; ++c) to[c] = from[c] - shift;
    }
}

void edge_distance(const RowSource& xi, const RowSource& xj, int64_t channels, Rows out, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
        const float *a = xi.row(r), *b = xj.row(r);
        float* to = out.row(r);
        float sum = 0;
        for (int64_t c = 0; c < channels; ++c) {
            const float difference = a[c] - b[c];
            to[c] = a[c];
            to[channels + c] = b[c];
            to[2 * channels + c] = difference;
            sum += difference * difference;
        }
        to[3 * channels] = std::sqrt(sum);
    }
}

void max_rows(const RowSource& x, int64_t width, int64_t channels, Rows out, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
        float* to = out.row(p);
        std::copy_n(x.row(p * width), channels, to);
        for (int64_t j = 1; j < width; ++j) {
            const float* from = x.row(p * width + j);
            for (int64_t c = 0; c < channels; ++c) to[c] = from[c] > to[c] ? from[c] : to[c];
        }
    }
}

void softmax_rows(const RowSource& x, int64_t width, int64_t channels, Rows out, int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 32;  // channels at a time
    for (int64_t p = begin; p < end; ++p)
        for (int64_t first = 0; first < channels; first += kBlock) {
            const int64_t n = std::min(kBlock, channels - first);
            float most[kBlock], sum[kBlock];
            for (int64_t c = 0; c < n; ++c) {
                most[c] = -std::numeric_limits<float>::infinity();
                sum[c] = 0;
            }
            for (int64_t j = 0; j < width; ++j) {
                const float* from = x.row(p * width + j) + first;
                for (int64_t c = 0; c < n; ++c) most[c] = from[c] > most[c] ? from[c] : most[c];
            }
            for (int64_t j = 0; j < width; ++j) {
                const float* from = x.row(p * width + j) + first;
                float* to = out.row(p * width + j) + first;
                for (int64_t c = 0; c < n; ++c) {
                    to[c] = ops::fast_exp(from[c] - most[c]);
                    sum[c] += to[c];
                }
            }
            for (int64_t j = 0; j < width; ++j) {
                float* to = out.row(p * width + j) + first;
                for (int64_t c = 0; c < n; ++c) to[c] /= sum[c];
            }
        }
}

void interpolate(const RowSource& weights, const RowSource& values, int64_t width, int64_t children, int64_t channels,
                 Rows out, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
        for (int64_t r = 0; r < children; ++r) std::fill_n(out.row(p * children + r), channels, 0.0f);
        for (int64_t j = 0; j < width; ++j) {
            const float *weight = weights.row(p * width + j), *value = values.row(p * width + j);
            for (int64_t r = 0; r < children; ++r) {
                float* to = out.row(p * children + r);
                for (int64_t c = 0; c < channels; ++c) to[c] += weight[r] * value[c];
            }
        }
    }
}

void max_points(const RowSource& x, int64_t rows, float* out, int64_t begin, int64_t end) {
    std::copy_n(x.row(0) + begin, end - begin, out + begin);
    for (int64_t r = 1; r < rows; ++r) {
        const float* from = x.row(r);
        for (int64_t c = begin; c < end; ++c) out[c] = from[c] > out[c] ? from[c] : out[c];
    }
}

void sum_points(const RowSource& x, int64_t rows, float* out, int64_t begin, int64_t end) {
    constexpr int64_t kBlock = 32;
    for (int64_t first = begin; first < end; first += kBlock) {
        const int64_t n = std::min(kBlock, end - first);
        double sum[kBlock] = {};
        for (int64_t r = 0; r < rows; ++r) {
            const float* from = x.row(r) + first;
            for (int64_t c = 0; c < n; ++c) sum[c] += from[c];
        }
        for (int64_t c = 0; c < n; ++c) out[first + c] = static_cast<float>(sum[c]);
    }
}

float gaussian_log_density(const RowSource& z, int64_t rows, int64_t channels) {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
        const float* from = z.row(r);
        for (int64_t c = 0; c < channels; ++c) sum += static_cast<double>(from[c]) * from[c];
    }
    const double ln_2pi = std::log(2 * std::numbers::pi);
    return static_cast<float>(-0.5 * (sum + static_cast<double>(rows * channels) * ln_2pi));
}

namespace {

using ops::cpu::Float4;

// out[r, j] = (is_more: itself +) the sum over i < n of weight[r, i] * x[i, j], for at most 4 rows and 16 columns; out
// and weight have rows of k numbers, x of `stride`. Sixteen sums in registers.
void add_tile(const float* weight, int64_t k, int64_t rows, const float* x, int64_t stride, int64_t n, bool is_more,
              float* out, int64_t columns) {
    float edge[4][16] = {};
    if (is_more)
        for (int64_t r = 0; r < rows; ++r) std::copy_n(out + r * k, columns, edge[r]);
    Float4 sum[4][4];
    const float* w[4];
    for (int r = 0; r < 4; ++r) {
        w[r] = weight + std::min<int64_t>(r, rows - 1) * k;
        for (int j = 0; j < 4; ++j) sum[r][j] = ops::cpu::load<Float4>(edge[r] + 4 * j);
    }
    for (int64_t i = 0; i < n; ++i, x += stride) {
        const Float4 x0 = ops::cpu::load<Float4>(x), x1 = ops::cpu::load<Float4>(x + 4);
        const Float4 x2 = ops::cpu::load<Float4>(x + 8), x3 = ops::cpu::load<Float4>(x + 12);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
            const Float4 factor = ops::cpu::all(w[r][i]);
            sum[r][0] += factor * x0;
            sum[r][1] += factor * x1;
            sum[r][2] += factor * x2;
            sum[r][3] += factor * x3;
        }
    }
    for (int64_t r = 0; r < rows; ++r) {
        for (int j = 0; j < 4; ++j) ops::cpu::store(edge[r] + 4 * j, sum[r][j]);
        std::copy_n(edge[r], columns, out + r * k);
    }
}

}  // namespace

void fold_matrix(const float* weight, const float* matrix, int64_t k, float* out, int64_t begin, int64_t end) {
    if (weight == nullptr) {
        for (int64_t o = begin; o < end; ++o)
            for (int64_t j = 0; j < k; ++j) out[o * k + j] = matrix[j * k + o];
        return;
    }
    // Row o of W T^T is the sum over i of w[o, i] times column i of T. Blocks of T are turned on the way, so that the
    // innermost loops run along j over neighbours in memory; the sum over i is in order whatever the block.
    constexpr int64_t kBlock = 64;
    alignas(64) float turned[kBlock * kBlock];
    for (int64_t j0 = 0; j0 < k; j0 += kBlock)
        for (int64_t i0 = 0; i0 < k; i0 += kBlock) {
            const int64_t ni = std::min(kBlock, k - i0), nj = std::min(kBlock, k - j0);
            for (int64_t i = 0; i < ni; ++i) {
                for (int64_t j = 0; j < nj; ++j) turned[i * kBlock + j] = matrix[(j0 + j) * k + i0 + i];
                std::fill(turned + i * kBlock + nj, turned + (i + 1) * kBlock, 0.0f);
            }
            for (int64_t o = begin; o < end; o += 4)
                for (int64_t j = 0; j < nj; j += 16) {
                    const int64_t rows = std::min<int64_t>(4, end - o), columns = std::min<int64_t>(16, nj - j);
                    add_tile(weight + o * k + i0, k, rows, turned + j, kBlock, ni, i0 > 0, out + o * k + j0 + j,
                             columns);
                }
        }
}

}  // namespace stipple::engine::cpu
