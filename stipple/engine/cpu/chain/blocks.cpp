#include "stipple/engine/cpu/chain/blocks.h"

#include <cstring>
#include <limits>

namespace stipple::engine::cpu {
namespace {

// Four lanes of any CPU, through the compiler's vector extension.
using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));

Float4 load(const float* from) {
    Float4 v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

void store(float* to, Float4 v) {
    std::memcpy(to, &v, sizeof v);
}

Float4 sums_as_float(const float* from) {
    Int4 v;
    std::memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, Float4);
}

void transpose(Float4& a, Float4& b, Float4& c, Float4& d) {
    const Float4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Float4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    c = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    d = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

Float4 activate(Float4 x, ActivationKind kind, Float4 slope) {
    const Float4 zero = {};
    switch (kind) {
        case ActivationKind::none: return x;
        case ActivationKind::relu: return x > zero ? x : zero;
        default: return x > zero ? x : slope * x;  // leaky_relu: chains have no others
    }
}

template <bool kScaled, ActivationKind kKind>
void finish_block(float* values, int64_t channels, const float* scale, const float* bias, float slope) {
    const Float4 slopes = {slope, slope, slope, slope};
    for (int64_t c = 0; c < channels; ++c) {
        const Float4 b = {bias[c], bias[c], bias[c], bias[c]};
        for (int64_t r = 0; r < kPanelRows; r += 4) {
            float* at = values + c * kPanelRows + r;
            Float4 v;
            if constexpr (kScaled) {
                v = sums_as_float(at) * Float4{scale[c], scale[c], scale[c], scale[c]};
            } else {
                v = load(at);
            }
            store(at, activate(v + b, kKind, slopes));
        }
    }
}

// row + a + b at channel c, as far as there are any: four of them, or one.
template <int kAdded>
Float4 four_sums(const float* row, const float* a, const float* b, int64_t c) {
    Float4 v = load(row + c);
    if constexpr (kAdded >= 1) v = v + load(a + c);
    if constexpr (kAdded == 2) v = v + load(b + c);
    return v;
}
template <int kAdded>
float one_sum(const float* row, const float* a, const float* b, int64_t c) {
    float v = row[c];
    if constexpr (kAdded >= 1) v += a[c];
    if constexpr (kAdded == 2) v += b[c];
    return v;
}

template <int kAdded, ActivationKind kKind>
void finish_rows_as(const float* rows, int64_t stride, const AddedRows& added, int64_t n_rows, int64_t channels,
                    const float* bias, float slope, float* out, int64_t out_stride) {
    const Float4 slopes = {slope, slope, slope, slope};
    for (int64_t r = 0; r < n_rows; ++r, rows += stride, out += out_stride) {
        const float* a = kAdded >= 1 ? added.rows[0][r] : nullptr;
        const float* b = kAdded == 2 ? added.rows[1][r] : nullptr;
        int64_t c = 0;
        for (; c + 4 <= channels; c += 4)
            store(out + c, activate(four_sums<kAdded>(rows, a, b, c) + load(bias + c), kKind, slopes));
        for (; c < channels; ++c) out[c] = activate(Float4{one_sum<kAdded>(rows, a, b, c) + bias[c]}, kKind, slopes)[0];
    }
}

template <int kAdded>
void finish_rows_with(const float* rows, int64_t stride, const AddedRows& added, int64_t n_rows, int64_t channels,
                      const float* bias, const Activation& activation, float* out, int64_t out_stride) {
    const auto finish = [&](auto finish_as) {
        finish_as(rows, stride, added, n_rows, channels, bias, activation.slope, out, out_stride);
    };
    switch (activation.kind) {
        case ActivationKind::none: return finish(finish_rows_as<kAdded, ActivationKind::none>);
        case ActivationKind::relu: return finish(finish_rows_as<kAdded, ActivationKind::relu>);
        default: return finish(finish_rows_as<kAdded, ActivationKind::leaky_relu>);
    }
}

template <int kAdded>
void raise_row_with(const float* row, const float* a, const float* b, int64_t channels, bool begin, float* out) {
    const float lowest = -std::numeric_limits<float>::infinity();
    const Float4 lowests = {lowest, lowest, lowest, lowest};
    int64_t c = 0;
    for (; c + 4 <= channels; c += 4) {
        const Float4 v = four_sums<kAdded>(row, a, b, c), before = begin ? lowests : load(out + c);
        store(out + c, v > before ? v : before);
    }
    for (; c < channels; ++c) {
        const float v = one_sum<kAdded>(row, a, b, c), before = begin ? lowest : out[c];
        out[c] = v > before ? v : before;
    }
}

template <ActivationKind kKind>
void finish_any(float* values, int64_t channels, const float* scale, const float* bias, float slope) {
    if (scale != nullptr)
        finish_block<true, kKind>(values, channels, scale, bias, slope);
    else
        finish_block<false, kKind>(values, channels, nullptr, bias, slope);
}

template <bool kAdd>
void rows_to_values(const float* const* rows, int64_t channels, float* values) {
    for (int64_t r = 0; r < kPanelRows; r += 4) {
        const float *r0 = rows[r], *r1 = rows[r + 1], *r2 = rows[r + 2], *r3 = rows[r + 3];
        int64_t c = 0;
        for (; c + 4 <= channels; c += 4) {
            Float4 v[4] = {load(r0 + c), load(r1 + c), load(r2 + c), load(r3 + c)};
            transpose(v[0], v[1], v[2], v[3]);
            for (int i = 0; i < 4; ++i) {
                float* at = values + (c + i) * kPanelRows + r;
                store(at, kAdd ? load(at) + v[i] : v[i]);
            }
        }
        for (; c < channels; ++c) {
            float* at = values + c * kPanelRows + r;
            const Float4 v = {r0[c], r1[c], r2[c], r3[c]};
            store(at, kAdd ? load(at) + v : v);
        }
    }
}

}  // namespace

void scale_sums(float* values, int64_t channels, const float* scale) {
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t r = 0; r < kPanelRows; r += 4) {
            float* at = values + c * kPanelRows + r;
            store(at, sums_as_float(at) * Float4{scale[c], scale[c], scale[c], scale[c]});
        }
}

void finish_sums(float* values, int64_t channels, const float* scale, const float* bias, const Activation& activation) {
    switch (activation.kind) {
        case ActivationKind::none:
            return finish_any<ActivationKind::none>(values, channels, scale, bias, activation.slope);
        case ActivationKind::relu:
            return finish_any<ActivationKind::relu>(values, channels, scale, bias, activation.slope);
        default: return finish_any<ActivationKind::leaky_relu>(values, channels, scale, bias, activation.slope);
    }
}

void finish_row(const float* row, int64_t channels, const float* bias, const Activation& activation, float* out) {
    finish_rows_with<0>(row, 0, {}, 1, channels, bias, activation, out, 0);
}

void finish_rows(const float* rows, int64_t stride, const AddedRows& added, int64_t n_rows, int64_t channels,
                 const float* bias, const Activation& activation, float* out, int64_t out_stride) {
    const auto finish = [&](auto finish_with) {
        finish_with(rows, stride, added, n_rows, channels, bias, activation, out, out_stride);
    };
    switch (added.count) {
        case 0: return finish(finish_rows_with<0>);
        case 1: return finish(finish_rows_with<1>);
        default: return finish(finish_rows_with<2>);
    }
}

void raise_row(const float* row, const AddedRows& added, int64_t r, int64_t channels, bool begin, float* out) {
    switch (added.count) {
        case 0: return raise_row_with<0>(row, nullptr, nullptr, channels, begin, out);
        case 1: return raise_row_with<1>(row, added.rows[0][r], nullptr, channels, begin, out);
        default: return raise_row_with<2>(row, added.rows[0][r], added.rows[1][r], channels, begin, out);
    }
}

void add_row(const float* from, int64_t channels, float* row) {
    int64_t c = 0;
    for (; c + 4 <= channels; c += 4) store(row + c, load(row + c) + load(from + c));
    for (; c < channels; ++c) row[c] += from[c];
}

void take_rows(const float* const* rows, int64_t channels, float* values) {
    rows_to_values<false>(rows, channels, values);
}

void add_rows(const float* const* rows, int64_t channels, float* values) {
    rows_to_values<true>(rows, channels, values);
}

void put_rows(const float* values, int64_t channels, int64_t n_rows, float* out, int64_t stride) {
    int64_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        float* to = out + r * stride;
        int64_t c = 0;
        for (; c + 4 <= channels; c += 4) {
            const float* at = values + c * kPanelRows + r;
            Float4 v[4] = {load(at), load(at + kPanelRows), load(at + 2 * kPanelRows), load(at + 3 * kPanelRows)};
            transpose(v[0], v[1], v[2], v[3]);
            for (int i = 0; i < 4; ++i) store(to + i * stride + c, v[i]);
        }
        for (; c < channels; ++c)
            for (int i = 0; i < 4; ++i) to[i * stride + c] = values[c * kPanelRows + r + i];
    }
    for (; r < n_rows; ++r)
        for (int64_t c = 0; c < channels; ++c) out[r * stride + c] = values[c * kPanelRows + r];
}

void raise_to(const float* values, int64_t channels, int64_t n_rows, float* out) {
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t r = 0; r < n_rows; ++r) {
            const float v = values[c * kPanelRows + r];
            if (v > out[c]) out[c] = v;
        }
}

}  // namespace stipple::engine::cpu
