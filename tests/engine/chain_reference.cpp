#include "tests/engine/chain_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "stipple/core/parallel.h"

namespace stipple::test {

using namespace engine;

float round_to_bf16(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

namespace {

float activate(float x, const Activation& activation) {
    if (activation.kind == ActivationKind::relu) return std::max(x, 0.0f);
    if (activation.kind == ActivationKind::leaky_relu) return x > 0 ? x : activation.slope * x;
    return x;
}

// The multiple of range / 127 nearest to x, as that multiple: -127 to 127.
float round_to_int8(float x, float range) {
    return range > 0 ? std::clamp(std::nearbyint(x * (127 / range)), -127.0f, 127.0f) : 0;
}

std::vector<float> product(const Dense& dense, const float* matrix, const float* x) {
    std::vector<float> y(static_cast<size_t>(dense.out));
    for (int64_t o = 0; o < dense.out; ++o) {
        const float* w = (matrix != nullptr ? matrix : dense.weight.data()) + o * dense.in;
        double sum = 0;
        if (dense.precision == Precision::int8) {
            float range = 0;
            for (int64_t i = 0; i < dense.in; ++i) range = std::max(range, std::abs(w[i]));
            for (int64_t i = 0; i < dense.in; ++i)
                sum += static_cast<double>(round_to_int8(x[i], dense.input_range)) * round_to_int8(w[i], range);
            sum *= static_cast<double>(range / 127) * (dense.input_range / 127);
        } else if (dense.precision == Precision::bf16) {
            for (int64_t i = 0; i < dense.in; ++i)
                sum += static_cast<double>(round_to_bf16(x[i])) * round_to_bf16(w[i]);
        } else {
            for (int64_t i = 0; i < dense.in; ++i) sum += static_cast<double>(x[i]) * w[i];
        }
        y[static_cast<size_t>(o)] = static_cast<float>(sum);
    }
    return y;
}

void finish_layer(const Dense& layer, float* raw) {
    for (int64_t o = 0; o < layer.out; ++o)
        raw[o] = activate(raw[o] + (layer.bias.empty() ? 0 : layer.bias[static_cast<size_t>(o)]), layer.activation);
}

}  // namespace

void finish_chain_reference(const std::vector<Dense>& layers, float* raw) {
    finish_layer(layers.back(), raw);
}

namespace {

/// One row through all layers; bias and activation of the last are left out.
std::vector<float> row_of_chain(const std::vector<Dense>& layers, const cpu::ChainTask& task, int64_t r) {
    std::vector<float> x;
    for (const cpu::ChainPart& part : task.parts)
        x.insert(x.end(), part.data + r * part.stride, part.data + r * part.stride + part.channels);
    for (size_t l = 0; l < layers.size(); ++l) {
        x = product(layers[l], task.matrices[l], x.data());
        if (l == 0)
            for (const cpu::ChainAddend& addend : task.addends) {
                const int64_t row = addend.access == Access::row     ? r
                                    : addend.access == Access::cloud ? 0
                                    : addend.access == Access::point ? r / addend.width
                                                                     : addend.neighbours[r];
                for (size_t o = 0; o < x.size(); ++o)
                    x[o] += addend.data[row * addend.stride + static_cast<int64_t>(o)];
            }
        if (l + 1 < layers.size()) finish_layer(layers[l], x.data());
    }
    return x;
}

}  // namespace

void run_chain_reference(const std::vector<Dense>& layers, Reduce reduce, const cpu::ChainTask& task) {
    const int64_t out = layers.back().out;
    if (reduce == Reduce::max_rows)
        for (int64_t p = 0; p < task.rows / task.width; ++p)
            std::fill_n(task.out + p * task.out_stride, out, -std::numeric_limits<float>::infinity());
    // All rows before anything is reduced: they may be computed side by side.
    std::vector<float> all(static_cast<size_t>(task.rows * out));
    parallel_for(task.rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const std::vector<float> y = row_of_chain(layers, task, r);
            std::copy(y.begin(), y.end(), all.begin() + r * out);
        }
    });
    for (int64_t r = 0; r < task.rows; ++r) {
        float* const y = all.data() + r * out;
        if (reduce == Reduce::none) {
            finish_chain_reference(layers, y);
            std::copy_n(y, out, task.out + r * task.out_stride);
            continue;
        }
        float* to = task.out + (reduce == Reduce::max_rows ? r / task.width * task.out_stride : 0);
        for (int64_t o = 0; o < out; ++o) to[o] = std::max(to[o], y[o]);
    }
    if (reduce == Reduce::max_rows)
        for (int64_t p = 0; p < task.rows / task.width; ++p)
            finish_chain_reference(layers, task.out + p * task.out_stride);
}

}  // namespace stipple::test
