#include "stipple/engine/cpu/attend.h"

#include <algorithm>
#include <cmath>

#include "stipple/ops/common/fast_exp.h"
#include "stipple/ops/common/simd.h"

namespace stipple::engine::cpu {
namespace {

using ops::cpu::Float4;

constexpr int64_t kLanes = 16;  // queries
constexpr int64_t kKeys = 64;   // of a block
constexpr int64_t kMost = network::kMostAttendChannels;
constexpr float kLowest = -3e38f;  // below all logits, and finite: no difference of two is none

/// A number of each query.
using Lanes = float[kLanes];

/// out[o] (+)= the sum over i of x[o * of_out + i * of_in] v[i]; four outputs at a time, their sums in registers.
void product(const float* x, int64_t of_out, int64_t of_in, int64_t ins, int64_t outs, const Lanes* v, bool is_more,
             Lanes* out) {
    for (int64_t o = 0; o < outs; o += 4) {
        const int64_t count = std::min<int64_t>(4, outs - o);
        const float* from[4];
        Float4 sum[4][4] = {};
        for (int64_t k = 0; k < 4; ++k) from[k] = x + (o + std::min(k, count - 1)) * of_out;
        if (is_more)
            for (int64_t k = 0; k < count; ++k)
                for (int j = 0; j < 4; ++j) sum[k][j] = ops::cpu::load<Float4>(out[o + k] + 4 * j);
        for (int64_t i = 0; i < ins; ++i) {
            const Float4 v0 = ops::cpu::load<Float4>(v[i]), v1 = ops::cpu::load<Float4>(v[i] + 4);
            const Float4 v2 = ops::cpu::load<Float4>(v[i] + 8), v3 = ops::cpu::load<Float4>(v[i] + 12);
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) {
                const Float4 factor = ops::cpu::all(from[k][i * of_in]);
                sum[k][0] += factor * v0;
                sum[k][1] += factor * v1;
                sum[k][2] += factor * v2;
                sum[k][3] += factor * v3;
            }
        }
        for (int64_t k = 0; k < count; ++k)
            for (int j = 0; j < 4; ++j) ops::cpu::store(out[o + k] + 4 * j, sum[k][j]);
    }
}

float unit_factor(const float* x, int64_t channels) {
    float square = network::kUnitGuard;
    for (int64_t c = 0; c < channels; ++c) square += x[c] * x[c];
    return 1 / std::sqrt(square);
}

/// Sixteen queries and what they have gathered so far.
struct QueryBlock {
    explicit QueryBlock(const AttendCall& of) : call(of) {}

    /// Queries that are not there get those of the last one.
    void read(const RowSource& queries, int64_t begin, int64_t end) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            const float* from = queries.row(std::min(begin + lane, end - 1));
            const float factor = call.unit ? call.factor * unit_factor(from, call.channels) : call.factor;
            for (int64_t c = 0; c < call.channels; ++c) query[c][lane] = factor * from[c];
        }
        for (int64_t c = 0; c < call.outputs; ++c) std::fill_n(gathered[c], kLanes, 0.0f);
        std::fill_n(most, kLanes, kLowest);
        std::fill_n(sum, kLanes, 0.0f);
        first = begin;
    }

    void look_at(const float* keys, int64_t key_stride, const float* values, int64_t value_stride, int64_t begin,
                 int64_t count) {
        product(keys, key_stride, 1, call.channels, count, query, false, weight);
        if (call.unit)
            for (int64_t k = 0; k < count; ++k) {
                const float factor = unit_factor(keys + k * key_stride, call.channels);
                for (int64_t lane = 0; lane < kLanes; ++lane) weight[k][lane] *= factor;
            }
        if (call.skips_self) hide_self(begin, count, call.is_softmax ? kLowest : 0.0f);
        if (call.is_softmax) {
            exponentials(count);
            if (call.skips_self) hide_self(begin, count, 0.0f);
            for (int64_t k = 0; k < count; ++k)
                for (int64_t lane = 0; lane < kLanes; ++lane) sum[lane] += weight[k][lane];
        }
        product(values, 1, value_stride, count, call.outputs, weight, true, gathered);
    }

    void write(float* to, int64_t lane) const {
        const float factor =
            !call.is_softmax ? 1 / static_cast<float>(call.keys) : (sum[lane] > 0 ? 1 / sum[lane] : 0.0f);
        for (int64_t c = 0; c < call.outputs; ++c) to[c] = gathered[c][lane] * factor;
        if (call.log_sum) to[call.outputs] = sum[lane] > 0 ? most[lane] + std::log(sum[lane]) : kLowest;
    }

private:
    void hide_self(int64_t begin, int64_t count, float value) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            const int64_t k = first + lane - begin;
            if (k >= 0 && k < count) weight[k][lane] = value;
        }
    }

    /// Logits become exponentials beside the largest so far; what was gathered beside a smaller one shrinks.
    void exponentials(int64_t count) {
        Lanes largest, shrink;
        std::copy_n(most, kLanes, largest);
        for (int64_t k = 0; k < count; ++k)
            for (int64_t lane = 0; lane < kLanes; ++lane)
                largest[lane] = weight[k][lane] > largest[lane] ? weight[k][lane] : largest[lane];
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            shrink[lane] = ops::fast_exp(most[lane] - largest[lane]);
            sum[lane] *= shrink[lane];
        }
        for (int64_t c = 0; c < call.outputs; ++c)
            for (int64_t lane = 0; lane < kLanes; ++lane) gathered[c][lane] *= shrink[lane];
        for (int64_t k = 0; k < count; ++k)
            for (int64_t lane = 0; lane < kLanes; ++lane)
                weight[k][lane] = ops::fast_exp(weight[k][lane] - largest[lane]);
        std::copy_n(largest, kLanes, most);
    }

    const AttendCall& call;
    int64_t first = 0;
    alignas(64) Lanes query[kMost], gathered[kMost], weight[kKeys];
    alignas(64) Lanes most, sum;
};

}  // namespace

void attend(const AttendCall& call, const RowSource& queries, const RowSource& keys, const RowSource& values, Rows out,
            int64_t begin, int64_t end) {
    QueryBlock block(call);
    for (int64_t first = begin; first < end; first += kLanes) {
        const int64_t rows = std::min(kLanes, end - first);
        block.read(queries, first, first + rows);
        for (int64_t k = 0; k < call.keys; k += kKeys)
            block.look_at(keys.row(k), keys.stride, values.row(k), values.stride, k, std::min(kKeys, call.keys - k));
        for (int64_t lane = 0; lane < rows; ++lane) block.write(out.row(first + lane), lane);
    }
}

void weigh_points(const RowSource& x, int64_t rows, int64_t channels, Rows out) {
    float most = kLowest;
    for (int64_t r = 0; r < rows; ++r) most = std::max(most, x.row(r)[channels]);
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += std::exp(double{x.row(r)[channels]} - most);
    for (int64_t r = 0; r < rows; ++r) {
        const float* from = x.row(r);
        const auto weight = static_cast<float>(std::exp(double{from[channels]} - most) / sum);
        for (int64_t c = 0; c < channels; ++c) out.row(r)[c] = weight * from[c];
    }
}

}  // namespace stipple::engine::cpu
