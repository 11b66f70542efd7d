#include "stipple/engine/cpu/flow_step.h"

#include <algorithm>
#include <cmath>

#include "stipple/engine/kinds/flow_inverse.h"
#include "stipple/ops/common/fast_exp.h"
#include "stipple/ops/common/simd.h"

namespace stipple::engine::cpu {
namespace {

using ops::cpu::Float4;

constexpr int64_t kLanes = 16;  // rows
constexpr int64_t kHidden = network::kMostFlowHidden, kChannels = network::kMostFlowChannels;
constexpr int64_t kParts = 2 * kHidden + kChannels;  // of a condition: its shifts, or its gates

/// A number of each row.
using Lanes = float[kLanes];

/// By the exponential of a negative number: nothing overflows. Inlined, so that loops over lanes become vectors.
[[gnu::always_inline]] inline float sigmoid(float x) {
    const float above = 1 / (1 + ops::fast_exp(-std::fabs(x)));
    return 0.5f + std::copysign(above - 0.5f, x);
}

/// out[o] = the sum over i of weight[o, i] v[i]; four outputs at a time, their sums in registers.
void product(const float* weight, int64_t ins, int64_t outs, const Lanes* v, Lanes* out) {
    for (int64_t o = 0; o < outs; o += 4) {
        const float* w[4];
        Float4 sum[4][4] = {};
        for (int64_t k = 0; k < 4; ++k) w[k] = weight + std::min(o + k, outs - 1) * ins;
        for (int64_t i = 0; i < ins; ++i) {
            const float* from = v[i];
            const Float4 v0 = ops::cpu::load<Float4>(from), v1 = ops::cpu::load<Float4>(from + 4);
            const Float4 v2 = ops::cpu::load<Float4>(from + 8), v3 = ops::cpu::load<Float4>(from + 12);
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k) {
                const Float4 factor = ops::cpu::all(w[k][i]);
                sum[k][0] += factor * v0;
                sum[k][1] += factor * v1;
                sum[k][2] += factor * v2;
                sum[k][3] += factor * v3;
            }
        }
        for (int64_t k = 0; k < std::min<int64_t>(4, outs - o); ++k)
            for (int j = 0; j < 4; ++j) ops::cpu::store(out[o + k] + 4 * j, sum[k][j]);
    }
}

/// g and its Jacobian for sixteen rows.
class FlowBlock {
public:
    explicit FlowBlock(const FlowStepNet& net)
        : net_(net),
          c_(net.channels),
          h_(net.hidden),
          w1_(net.weight + h_ * c_),
          w2_(w1_ + h_ * h_),
          time_(w2_ + c_ * h_),
          parts_(2 * h_ + c_) {}

    /// Rows that are not there get those of the last one.
    void read(const RowSource& condition, int64_t begin, int64_t end) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            const float* from = condition.row(std::min(begin + lane, end - 1));
            for (int64_t i = 0; i < 2 * parts_; ++i) given_[i][lane] = from[i];
        }
        is_ready_ = false;
    }

    void evaluate(const Lanes* x, float t, bool with_jacobian) {
        if (!is_ready_ || (net_.steps > 0 && t != t_)) prepare(t);
        product(net_.weight, c_, h_, x, value_);
        activate(0);
        if (with_jacobian)
            for (int64_t j = 0; j < c_; ++j)
                for (int64_t o = 0; o < h_; ++o)
                    for (int64_t lane = 0; lane < kLanes; ++lane)
                        tangent_[j][o][lane] = slope_[o][lane] * net_.weight[o * c_ + j];
        product(w1_, h_, h_, value_, next_);
        std::swap(value_, next_);
        activate(h_);
        product(w2_, h_, c_, value_, g);
        const int64_t last = 2 * h_;
        for (int64_t i = 0; i < c_; ++i)
            for (int64_t lane = 0; lane < kLanes; ++lane)
                g[i][lane] = g[i][lane] * gate(last + i)[lane] + shift(last + i)[lane];
        if (!with_jacobian) return;
        for (int64_t j = 0; j < c_; ++j) {
            product(w1_, h_, h_, tangent_[j], next_);
            for (int64_t o = 0; o < h_; ++o)
                for (int64_t lane = 0; lane < kLanes; ++lane) next_[o][lane] *= slope_[o][lane];
            product(w2_, h_, c_, next_, column_);
            for (int64_t i = 0; i < c_; ++i)
                for (int64_t lane = 0; lane < kLanes; ++lane)
                    jacobian[3 * i + j][lane] = column_[i][lane] * gate(last + i)[lane];
        }
    }

    alignas(64) Lanes g[kChannels + 1] = {};
    alignas(64) Lanes jacobian[9] = {};  // row-major; zero where there are fewer channels

private:
    const float* shift(int64_t i) const { return now_[i]; }
    const float* gate(int64_t i) const { return now_[parts_ + i]; }

    /// Shifts and gates at a time.
    void prepare(float t) {
        for (int64_t i = 0; i < 2 * parts_; ++i) {
            const float growth = net_.steps > 0 ? t * time_[i] : 0;
            Lanes sum;
            for (int64_t lane = 0; lane < kLanes; ++lane) sum[lane] = given_[i][lane] + growth;
            if (i >= parts_)
                for (int64_t lane = 0; lane < kLanes; ++lane) sum[lane] = sigmoid(sum[lane]);
            std::copy_n(sum, kLanes, now_[i]);
        }
        t_ = t;
        is_ready_ = true;
    }

    /// What is behind a hidden layer, and its slope against the product.
    void activate(int64_t first) {
        const bool is_tanh = net_.activation.kind == ActivationKind::tanh;
        for (int64_t o = 0; o < h_; ++o) {
            const float *s = gate(first + o), *b = shift(first + o), *product_of = value_[o];
            Lanes value, slope;  // of their own: nothing else is at their place, which vectors want to know
            if (is_tanh)
                for (int64_t lane = 0; lane < kLanes; ++lane) {
                    const float y = 2 * sigmoid(2 * (product_of[lane] * s[lane] + b[lane])) - 1;
                    value[lane] = y;
                    slope[lane] = s[lane] * (1 - y * y);
                }
            else
                for (int64_t lane = 0; lane < kLanes; ++lane) {
                    const float v = product_of[lane] * s[lane] + b[lane], p = sigmoid(v), y = v * p;
                    value[lane] = y;
                    slope[lane] = s[lane] * (p + y * (1 - p));
                }
            std::copy_n(value, kLanes, value_[o]);
            std::copy_n(slope, kLanes, slope_[o]);
        }
    }

    const FlowStepNet& net_;
    const int64_t c_, h_;
    const float *w1_, *w2_, *time_;
    const int64_t parts_;
    bool is_ready_ = false;
    float t_ = 0;
    alignas(64) Lanes given_[2 * kParts], now_[2 * kParts];
    alignas(64) Lanes layers_[2][kHidden];
    Lanes *value_ = layers_[0], *next_ = layers_[1];
    alignas(64) Lanes slope_[kHidden], tangent_[kChannels][kHidden], column_[kChannels + 1];
};

/// det or trace wants the Jacobian of one row.
void jacobian_of(const FlowBlock& block, int64_t lane, float* j) {
    for (int i = 0; i < 9; ++i) j[i] = block.jacobian[i][lane];
}

void residual(const FlowStepNet& net, FlowBlock& block, Lanes* x, float* log_det) {
    block.evaluate(x, 0, net.log_det);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
        for (int64_t i = 0; i < net.channels; ++i) x[i][lane] += block.g[i][lane];
        if (!net.log_det) continue;
        float j[9];
        jacobian_of(block, lane, j);
        log_det[lane] = std::log(std::fabs(determinant_beside_one(j)));
    }
}

void residual_inverse(const FlowStepNet& net, FlowBlock& block, Lanes* x, float* log_det) {
    InverseSearch search[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
        float y[3] = {};
        for (int64_t i = 0; i < net.channels; ++i) y[i] = x[i][lane];
        search[lane].begin(y);
    }
    bool is_done = false;
    for (int i = 0; i < kMostInverseIterations && !is_done; ++i) {
        block.evaluate(x, 0, true);
        is_done = true;
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            if (search[lane].is_done) continue;
            float g[3] = {}, j[9];
            for (int64_t k = 0; k < net.channels; ++k) g[k] = block.g[k][lane];
            jacobian_of(block, lane, j);
            search[lane].next(g, j);
            for (int64_t k = 0; k < net.channels; ++k) x[k][lane] = search[lane].at[k];
            is_done &= search[lane].is_done;
        }
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) {
        for (int64_t i = 0; i < net.channels; ++i) x[i][lane] = search[lane].x[i];
        log_det[lane] = -std::log(std::fabs(determinant_beside_one(search[lane].j)));
    }
}

void runge_kutta(const FlowStepNet& net, FlowBlock& block, Lanes* x, float* log_det) {
    const float h = (net.inverse ? -1.0f : 1.0f) / static_cast<float>(net.steps);
    std::fill_n(log_det, kLanes, 0.0f);
    for (int64_t step = 0; step < net.steps; ++step) {
        const float t = (net.inverse ? 1.0f : 0.0f) + static_cast<float>(step) * h;
        constexpr float kAhead[4] = {0, 0.5f, 0.5f, 1}, kWeights[4] = {1 / 6.0f, 1 / 3.0f, 1 / 3.0f, 1 / 6.0f};
        alignas(64) Lanes at[kChannels], sum[kChannels];
        for (int64_t i = 0; i < net.channels; ++i) {
            std::copy_n(x[i], kLanes, at[i]);
            std::copy_n(x[i], kLanes, sum[i]);
        }
        for (int stage = 0; stage < 4; ++stage) {
            block.evaluate(at, t + kAhead[stage] * h, net.log_det);
            for (int64_t i = 0; i < net.channels; ++i)
                for (int64_t lane = 0; lane < kLanes; ++lane) {
                    sum[i][lane] += kWeights[stage] * h * block.g[i][lane];
                    if (stage < 3) at[i][lane] = x[i][lane] + kAhead[stage + 1] * h * block.g[i][lane];
                    if (net.log_det) log_det[lane] += kWeights[stage] * h * block.jacobian[4 * i][lane];
                }
        }
        for (int64_t i = 0; i < net.channels; ++i) std::copy_n(sum[i], kLanes, x[i]);
    }
}

}  // namespace

void flow_step(const FlowStepNet& net, const RowSource& x, const RowSource& condition, Rows out, int64_t begin,
               int64_t end) {
    FlowBlock block(net);
    for (int64_t first = begin; first < end; first += kLanes) {
        const int64_t rows = std::min(kLanes, end - first);
        alignas(64) Lanes values[kChannels];
        float log_det[kLanes];
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            const float* from = x.row(first + std::min(lane, rows - 1));
            for (int64_t i = 0; i < net.channels; ++i) values[i][lane] = from[i];
        }
        block.read(condition, first, first + rows);
        if (net.steps > 0)
            runge_kutta(net, block, values, log_det);
        else if (net.inverse)
            residual_inverse(net, block, values, log_det);
        else
            residual(net, block, values, log_det);
        for (int64_t lane = 0; lane < rows; ++lane) {
            float* to = out.row(first + lane);
            for (int64_t i = 0; i < net.channels; ++i) to[i] = values[i][lane];
            if (net.log_det) to[net.channels] = log_det[lane];
        }
    }
}

}  // namespace stipple::engine::cpu
