#include "stipple/engine/cpu_chain.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "stipple/core/error.h"

namespace stipple::engine::cpu {
namespace {

constexpr int64_t kTile = 64;

float activate(float x, const Activation& activation) {
    switch (activation.kind) {
        case ActivationKind::none: return x;
        case ActivationKind::relu: return x > 0 ? x : 0;
        case ActivationKind::leaky_relu: return x > 0 ? x : activation.slope * x;
    }
    return x;
}

float round_to_bf16(float x) {
    if (std::isnan(x)) return x;
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// A multiple of the scale from -127 to 127, as a float.
float round_to_int8(float x, float per_scale) {
    return std::clamp(std::nearbyint(x * per_scale), -127.0f, 127.0f);
}

struct Layer {
    Dense dense;                // without its weight
    std::vector<float> weight;  // [in, out], as its precision represents them
    std::vector<float> scale;   // [out]: int8
};

// Rows of `from` become columns of `to`, in the precision's factors. scale: of each row, int8.
void pack(const float* from, int64_t out, int64_t in, Precision precision, float* to, float* scale) {
    for (int64_t o = 0; o < out; ++o) {
        float largest = 0;
        for (int64_t i = 0; i < in; ++i) largest = std::max(largest, std::abs(from[o * in + i]));
        const float per_scale = largest > 0 ? 127 / largest : 0;
        if (precision == Precision::int8) scale[o] = largest / 127;
        for (int64_t i = 0; i < in; ++i) {
            const float w = from[o * in + i];
            to[i * out + o] = precision == Precision::bf16   ? round_to_bf16(w)
                              : precision == Precision::int8 ? round_to_int8(w, per_scale)
                                                             : w;
        }
    }
}

}  // namespace

struct Chain::Packed {
    std::vector<Layer> layers;
    Reduce reduce = Reduce::none;
    int64_t widest = 0;          // numbers of a row, of any layer
    int64_t largest_matrix = 0;  // numbers of a cloud's own matrix
};

namespace {

// sum[o] = product of a row with the weights; the row is rounded to the layer's factors in place.
void multiply_row(const Dense& dense, float* x, const float* weight, const float* scale, float* sum) {
    const float per_scale = 127 / dense.input_range;
    for (int64_t i = 0; i < dense.in; ++i)
        x[i] = dense.precision == Precision::bf16   ? round_to_bf16(x[i])
               : dense.precision == Precision::int8 ? round_to_int8(x[i], per_scale)
                                                    : x[i];
    for (int64_t o = 0; o < dense.out; ++o) sum[o] = 0;
    for (int64_t i = 0; i < dense.in; ++i)
        for (int64_t o = 0; o < dense.out; ++o) sum[o] += x[i] * weight[i * dense.out + o];
    if (dense.precision == Precision::int8)
        for (int64_t o = 0; o < dense.out; ++o) sum[o] *= scale[o] * (dense.input_range / 127);
}

void add_addends(const ChainTask& task, int64_t row, int64_t out, float* sum) {
    for (const ChainAddend& addend : task.addends) {
        int64_t at = row;
        if (addend.access == Access::cloud) at = 0;
        if (addend.access == Access::point) at = row / addend.width;
        if (addend.access == Access::neighbour) at = addend.neighbours[row];
        for (int64_t o = 0; o < out; ++o) sum[o] += addend.data[at * addend.stride + o];
    }
}

void add_bias(const Dense& dense, float* row) {
    for (int64_t o = 0; o < dense.out; ++o)
        row[o] = activate(row[o] + dense.bias[static_cast<size_t>(o)], dense.activation);
}

}  // namespace

Chain::Chain(const std::vector<Dense>& layers, Reduce reduce) {
    auto packed = std::make_unique<Packed>();
    packed->reduce = reduce;
    for (const Dense& dense : layers) {
        STIPPLE_REQUIRE(dense.precision == Precision::fp32 || dense.precision == Precision::bf16 ||
                            dense.precision == Precision::int8,
                        "{}: the CPU computes in fp32, bf16 and int8, not in {}", dense.name, name_of(dense.precision));
        STIPPLE_REQUIRE(dense.precision != Precision::int8 || dense.input_range > 0, "{}: int8 without calibration",
                        dense.name);
        Layer layer;
        layer.dense = dense;
        layer.dense.weight = {};
        layer.dense.bias.resize(static_cast<size_t>(dense.out));
        if (dense.precision == Precision::int8) layer.scale.resize(static_cast<size_t>(dense.out));
        if (dense.matrix < 0) {
            layer.weight.resize(dense.weight.size());
            pack(dense.weight.data(), dense.out, dense.in, dense.precision, layer.weight.data(), layer.scale.data());
        } else {
            packed->largest_matrix = std::max(packed->largest_matrix, dense.out * (dense.in + 1));
        }
        packed->widest = std::max({packed->widest, dense.in, dense.out});
        packed->layers.push_back(std::move(layer));
    }
    packed_ = std::move(packed);
}

Chain::~Chain() = default;
Chain::Chain(Chain&&) noexcept = default;

int64_t Chain::weight_bytes() const {
    size_t numbers = 0;
    for (const Layer& layer : packed_->layers)
        numbers += layer.weight.size() + layer.scale.size() + layer.dense.bias.size();
    return static_cast<int64_t>(numbers * sizeof(float));
}

int64_t Chain::scratch_bytes() const {
    return (2 * kTile * packed_->widest + packed_->largest_matrix) * static_cast<int64_t>(sizeof(float));
}

int64_t Chain::tile_rows() const {
    return kTile;
}

std::string Chain::describe() const {
    std::string text;
    for (const Layer& layer : packed_->layers)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(layer.dense.precision));
    return "plain loops: " + text;
}

void Chain::run(const ChainTask& task, std::byte* scratch) const {
    const Packed& packed = *packed_;
    const int64_t widest = packed.widest;
    const Dense& last = packed.layers.back().dense;
    auto* x = reinterpret_cast<float*>(scratch);
    float* y = x + kTile * widest;
    float* matrix = y + kTile * widest;
    if (packed.reduce == Reduce::max_rows)
        for (int64_t p = 0; p < task.rows / task.width; ++p)
            std::fill_n(task.out + p * task.out_stride, last.out, -std::numeric_limits<float>::infinity());
    for (int64_t begin = 0; begin < task.rows; begin += kTile) {
        const int64_t rows = std::min(kTile, task.rows - begin);
        int64_t column = 0;
        for (const ChainPart& part : task.parts) {
            for (int64_t r = 0; r < rows; ++r)
                std::copy_n(part.data + (begin + r) * part.stride, part.channels, x + r * widest + column);
            column += part.channels;
        }
        for (size_t l = 0; l < packed.layers.size(); ++l) {
            const Layer& layer = packed.layers[l];
            const Dense& dense = layer.dense;
            const float* weight = layer.weight.data();
            const float* scale = layer.scale.data();
            if (dense.matrix >= 0) {
                weight = matrix;
                scale = matrix + dense.out * dense.in;
                pack(task.matrices[l], dense.out, dense.in, dense.precision, matrix, matrix + dense.out * dense.in);
            }
            for (int64_t r = 0; r < rows; ++r) {
                float* sum = y + r * widest;
                multiply_row(dense, x + r * widest, weight, scale, sum);
                if (l == 0) add_addends(task, begin + r, dense.out, sum);
                if (l + 1 < packed.layers.size()) add_bias(dense, sum);
            }
            std::swap(x, y);
        }
        for (int64_t r = 0; r < rows; ++r) {
            const float* raw = x + r * widest;
            const int64_t row = begin + r;
            if (packed.reduce == Reduce::none) {
                std::copy_n(raw, last.out, task.out + row * task.out_stride);
                add_bias(last, task.out + row * task.out_stride);
                continue;
            }
            float* out = task.out + (packed.reduce == Reduce::max_rows ? row / task.width * task.out_stride : 0);
            for (int64_t o = 0; o < last.out; ++o) out[o] = raw[o] > out[o] ? raw[o] : out[o];
        }
    }
    if (packed.reduce == Reduce::max_rows)
        for (int64_t p = 0; p < task.rows / task.width; ++p) add_bias(last, task.out + p * task.out_stride);
}

void Chain::finish(float* raw) const {
    add_bias(packed_->layers.back().dense, raw);
}

}  // namespace stipple::engine::cpu
