#include "tests/engine/chain_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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

std::vector<float> product(const Dense& dense, const float* matrix, const std::vector<float>& x) {
    std::vector<float> y(static_cast<size_t>(dense.out));
    for (int64_t o = 0; o < dense.out; ++o) {
        const float* w = (matrix != nullptr ? matrix : dense.weight.data()) + o * dense.in;
        float range = 0;
        for (int64_t i = 0; i < dense.in; ++i) range = std::max(range, std::abs(w[i]));
        double sum = 0;
        for (int64_t i = 0; i < dense.in; ++i) {
            const float a = x[static_cast<size_t>(i)], b = w[i];
            if (dense.precision == Precision::bf16)
                sum += static_cast<double>(round_to_bf16(a)) * round_to_bf16(b);
            else if (dense.precision == Precision::int8)
                sum += static_cast<double>(round_to_int8(a, dense.input_range)) * round_to_int8(b, range);
            else
                sum += static_cast<double>(a) * b;
        }
        if (dense.precision == Precision::int8) sum *= static_cast<double>(range / 127) * (dense.input_range / 127);
        y[static_cast<size_t>(o)] = static_cast<float>(sum);
    }
    return y;
}

}  // namespace

void finish_chain_reference(const std::vector<Dense>& layers, float* raw) {
    const Dense& last = layers.back();
    for (int64_t o = 0; o < last.out; ++o)
        raw[o] = activate(raw[o] + (last.bias.empty() ? 0 : last.bias[static_cast<size_t>(o)]), last.activation);
}

void run_chain_reference(const std::vector<Dense>& layers, Reduce reduce, const cpu::ChainTask& task) {
    const int64_t out = layers.back().out;
    if (reduce == Reduce::max_rows)
        for (int64_t p = 0; p < task.rows / task.width; ++p)
            std::fill_n(task.out + p * task.out_stride, out, -std::numeric_limits<float>::infinity());
    for (int64_t r = 0; r < task.rows; ++r) {
        std::vector<float> x;
        for (const cpu::ChainPart& part : task.parts)
            x.insert(x.end(), part.data + r * part.stride, part.data + r * part.stride + part.channels);
        for (size_t l = 0; l < layers.size(); ++l) {
            x = product(layers[l], task.matrices[l], x);
            if (l == 0)
                for (const cpu::ChainAddend& addend : task.addends) {
                    const int64_t row = addend.access == Access::row     ? r
                                        : addend.access == Access::cloud ? 0
                                        : addend.access == Access::point ? r / addend.width
                                                                         : addend.neighbours[r];
                    for (size_t o = 0; o < x.size(); ++o)
                        x[o] += addend.data[row * addend.stride + static_cast<int64_t>(o)];
                }
            if (l + 1 < layers.size()) finish_chain_reference({layers[l]}, x.data());
        }
        if (reduce == Reduce::none) {
            finish_chain_reference(layers, x.data());
            std::copy(x.begin(), x.end(), task.out + r * task.out_stride);
            continue;
        }
        float* to = task.out + (reduce == Reduce::max_rows ? r / task.width * task.out_stride : 0);
        for (size_t o = 0; o < x.size(); ++o) to[o] = std::max(to[o], x[o]);
    }
    if (reduce == Reduce::max_rows)
        for (int64_t p = 0; p < task.rows / task.width; ++p)
            finish_chain_reference(layers, task.out + p * task.out_stride);
}

}  // namespace stipple::test
