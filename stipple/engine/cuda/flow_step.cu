// flow_step: a warp for each row. Its lanes share the hidden layers, two units each; what the second layer reads of the
// first, values beside their three derivatives, is in shared memory, and so are the weights. Every lane has the row's
// own numbers and decides alike.

#include "stipple/engine/cuda/rows.cuh"
#include "stipple/engine/kinds/flow_inverse.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

constexpr int kWarp = 32, kFlowStepWarps = kThreads / kWarp;
constexpr int kHidden = network::kMostFlowHidden, kChannels = network::kMostFlowChannels;
constexpr int kUnits = kHidden / kWarp;  // of a lane in each hidden layer
constexpr unsigned kAll = 0xffffffffu;

struct FlowArguments {
    RowSource x, condition;
    RowSpace space;
    ValueView out;
    const float* weight = nullptr;
    int32_t channels = 0, hidden = 0, steps = 0;
    bool is_tanh = false, inverse = false, log_det = false;
};

/// Rows of zeros where there are fewer units or channels: no lane and no loop asks which are there.
struct FlowShared {
    float w0[kHidden][kChannels + 1];
    float w1[kHidden][kHidden];  // [in][out]
    float w2[kHidden][kChannels + 1];
    float4 hidden[kFlowStepWarps][kHidden];
};

struct Activated {
    float y, slope;
};

__device__ Activated activated(float v, bool is_tanh) {
    if (is_tanh) {
        const float y = tanhf(v);
        return {y, 1 - y * y};
    }
    const float p = 1 / (1 + expf(-v)), y = v * p;
    return {y, p + y * (1 - p)};
}

__device__ float sum_of_warp(float value) {
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
    return value;
}

/// g and its Jacobian at a point of one row.
struct FlowRow {
    const FlowArguments& a;
    const FlowShared& shared;
    float4* hidden;
    const float* condition;
    int lane;
    float t;
    bool is_ready;
    float shift[2][kUnits], gate[2][kUnits], last_shift[kChannels], last_gate[kChannels];
    float g[kChannels], jacobian[9];

    __device__ float part(int i) const {
        const int weights = a.hidden * (2 * a.channels + a.hidden);
        return condition[i] + (a.steps > 0 ? t * a.weight[weights + i] : 0.0f);
    }

    /// Shifts and gates at time t; of units that are not there zeros, so that nothing comes of them.
    __device__ void prepare() {
        const int h = a.hidden, parts = 2 * h + a.channels;
#pragma unroll
        for (int u = 0; u < kUnits; ++u) {
            const int o = lane + u * kWarp;
#pragma unroll
            for (int layer = 0; layer < 2; ++layer) {
                const bool is_there = o < h;
                shift[layer][u] = is_there ? part(layer * h + o) : 0.0f;
                gate[layer][u] = is_there ? 1 / (1 + expf(-part(parts + layer * h + o))) : 0.0f;
            }
        }
#pragma unroll
        for (int i = 0; i < kChannels; ++i) {
            const bool is_there = i < a.channels;
            last_shift[i] = is_there ? part(2 * h + i) : 0.0f;
            last_gate[i] = is_there ? 1 / (1 + expf(-part(parts + 2 * h + i))) : 0.0f;
        }
        is_ready = true;
    }

    __device__ void evaluate(const float* x, float time, bool with_jacobian) {
        if (!is_ready || (a.steps > 0 && time != t)) {
            t = time;
            prepare();
        }
        __syncwarp();  // all have read what the evaluation before left
#pragma unroll
        for (int u = 0; u < kUnits; ++u) {
            const int o = lane + u * kWarp;
            const float* w = shared.w0[o];
            const Activated v =
                activated((w[0] * x[0] + w[1] * x[1] + w[2] * x[2]) * gate[0][u] + shift[0][u], a.is_tanh);
            const float slope = v.slope * gate[0][u];
            hidden[o] = make_float4(v.y, slope * w[0], slope * w[1], slope * w[2]);
        }
        __syncwarp();
        float4 sum[kUnits];
#pragma unroll
        for (int u = 0; u < kUnits; ++u) sum[u] = make_float4(0, 0, 0, 0);
        for (int i = 0; i < a.hidden; ++i) {
            const float4 v = hidden[i];
#pragma unroll
            for (int u = 0; u < kUnits; ++u) {
                const float w = shared.w1[i][lane + u * kWarp];
                sum[u].x += w * v.x;
                if (with_jacobian) {
                    sum[u].y += w * v.y;
                    sum[u].z += w * v.z;
                    sum[u].w += w * v.w;
                }
            }
        }
        float4 out[kChannels];
#pragma unroll
        for (int i = 0; i < kChannels; ++i) out[i] = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int u = 0; u < kUnits; ++u) {
            const Activated v = activated(sum[u].x * gate[1][u] + shift[1][u], a.is_tanh);
            const float slope = v.slope * gate[1][u];
#pragma unroll
            for (int i = 0; i < kChannels; ++i) {
                const float w = shared.w2[lane + u * kWarp][i];
                out[i].x += w * v.y;
                out[i].y += w * slope * sum[u].y;
                out[i].z += w * slope * sum[u].z;
                out[i].w += w * slope * sum[u].w;
            }
        }
#pragma unroll
        for (int i = 0; i < kChannels; ++i) {
            g[i] = sum_of_warp(out[i].x) * last_gate[i] + last_shift[i];
            if (!with_jacobian) continue;
            jacobian[3 * i] = sum_of_warp(out[i].y) * last_gate[i];
            jacobian[3 * i + 1] = sum_of_warp(out[i].z) * last_gate[i];
            jacobian[3 * i + 2] = sum_of_warp(out[i].w) * last_gate[i];
        }
    }

    __device__ float residual(float* x) {
        evaluate(x, 0, a.log_det);
#pragma unroll
        for (int i = 0; i < kChannels; ++i) x[i] += g[i];
        return a.log_det ? logf(fabsf(determinant_beside_one(jacobian))) : 0.0f;
    }

    __device__ float residual_inverse(float* x) {
        InverseSearch search;
        search.begin(x);
        for (int i = 0; i < kMostInverseIterations && !search.is_done; ++i) {
            evaluate(search.at, 0, true);
            search.next(g, jacobian);
        }
#pragma unroll
        for (int i = 0; i < kChannels; ++i) x[i] = search.x[i];
        return -logf(fabsf(determinant_beside_one(search.j)));
    }

    __device__ float runge_kutta(float* x) {
        const float h = (a.inverse ? -1.0f : 1.0f) / static_cast<float>(a.steps);
        float log_det = 0;
        for (int step = 0; step < a.steps; ++step) {
            const float begin = (a.inverse ? 1.0f : 0.0f) + static_cast<float>(step) * h;
            float at[kChannels], sum[kChannels];
#pragma unroll
            for (int i = 0; i < kChannels; ++i) at[i] = sum[i] = x[i];
            for (int stage = 0; stage < 4; ++stage) {
                const bool is_middle = stage == 1 || stage == 2;
                const float weight = h * (is_middle ? 1 / 3.0f : 1 / 6.0f), next = h * (stage == 2 ? 1.0f : 0.5f);
                evaluate(at, begin + h * (stage == 0 ? 0.0f : is_middle ? 0.5f : 1.0f), a.log_det);
#pragma unroll
                for (int i = 0; i < kChannels; ++i) {
                    sum[i] += weight * g[i];
                    at[i] = x[i] + next * g[i];
                    if (a.log_det) log_det += weight * jacobian[4 * i];
                }
            }
#pragma unroll
            for (int i = 0; i < kChannels; ++i) x[i] = sum[i];
        }
        return log_det;
    }
};

__global__ void __launch_bounds__(kThreads) move_rows(const __grid_constant__ FlowArguments a) {
    __shared__ FlowShared shared;
    const int c = a.channels, h = a.hidden;
    const float *w1 = a.weight + h * c, *w2 = w1 + h * h;
    for (int i = threadIdx.x; i < kHidden * (kChannels + 1); i += kThreads) {
        const int o = i / (kChannels + 1), k = i % (kChannels + 1);
        const bool is_there = o < h && k < c;
        shared.w0[o][k] = is_there ? a.weight[o * c + k] : 0.0f;
        shared.w2[o][k] = is_there ? w2[k * h + o] : 0.0f;
    }
    for (int i = threadIdx.x; i < kHidden * kHidden; i += kThreads) {
        const int in = i / kHidden, out = i % kHidden;
        shared.w1[in][out] = in < h && out < h ? w1[out * h + in] : 0.0f;
    }
    __syncthreads();

    const int warp = threadIdx.x / kWarp;
    FlowRow row{a, shared, shared.hidden[warp], nullptr, static_cast<int>(threadIdx.x % kWarp), 0, false};
    for (int i = 0; i < 9; ++i) row.jacobian[i] = 0;
    for (int64_t r = static_cast<int64_t>(blockIdx.x) * kFlowStepWarps + warp; r < a.out.rows;
         r += static_cast<int64_t>(gridDim.x) * kFlowStepWarps) {
        const float* from = source_row(a.x, a.space, r);
        float x[kChannels];
#pragma unroll
        for (int i = 0; i < kChannels; ++i) x[i] = i < c ? from[i] : 0.0f;
        row.condition = source_row(a.condition, a.space, r);
        row.is_ready = false;
        const float log_det = a.steps > 0 ? row.runge_kutta(x) : a.inverse ? row.residual_inverse(x) : row.residual(x);
        float* to = a.out.data + r * a.out.stride;
#pragma unroll
        for (int i = 0; i < kChannels; ++i)
            if (row.lane == i && i < c) to[i] = x[i];
        if (row.lane == c && a.log_det) to[c] = log_det;
    }
}

void run_flow_step(const StepCall& call) {
    const Step& step = *call.step;
    FlowArguments a{call.inputs[0], call.inputs[1], space_of(call, call.out), call.out, call.weight};
    a.channels = call.inputs[0].channels;
    a.hidden = static_cast<int32_t>(step.begin);
    a.steps = static_cast<int32_t>(step.end);
    a.is_tanh = step.activation.kind == ActivationKind::tanh;
    a.inverse = step.inverse;
    a.log_det = call.out.channels > a.channels;
    move_rows<<<grid_for(call.out.rows * kWarp), kThreads, 0, call.stream>>>(a);
    STIPPLE_CHECK_LAUNCH(move_rows);
}

constexpr StepLauncher kFlowSteps[] = {{StepKind::flow_step, run_flow_step}};

}  // namespace

std::span<const StepLauncher> flow_steps() {
    return kFlowSteps;
}

}  // namespace stipple::engine::cuda
