// Steps that make each number of a row from the same row of their inputs.

#include "stipple/engine/cuda/dense.cuh"
#include "stipple/engine/cuda/rows.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

struct CopyArguments {
    RowSource parts[kMaxParts];
    int32_t count = 0;
};

__global__ void copy_parts(const __grid_constant__ CopyArguments a, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels;
        int c = static_cast<int>(i - row * out.channels), p = 0;
        const int column = c;
        while (p + 1 < a.count && c >= a.parts[p].channels) c -= a.parts[p++].channels;
        out.data[row * out.stride + column] = source_row(a.parts[p], space, row)[c];
    }
}

/// Points of another set: `of_x` says where its clouds begin.
__global__ void gather_points(RowSource x, BatchView of_x, const int32_t* indices, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        const int32_t cloud = space.batch.cloud_of(static_cast<int32_t>(row / space.width));
        out.data[row * out.stride + c] = x.data[(of_x.begin(cloud) + indices[row]) * x.stride + c];
    }
}

__global__ void reverse_channels(RowSource x, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels;
        const auto c = static_cast<int32_t>(i - row * out.channels);
        out.data[row * out.stride + c] = source_row(x, space, row)[out.channels - 1 - c];
    }
}

/// Those of chains, and the others.
__device__ float apply_any(const Activation& activation, float x) {
    switch (activation.kind) {
        case ActivationKind::tanh: return tanhf(x);
        case ActivationKind::sigmoid: return 1 / (1 + expf(-x));
        case ActivationKind::elu: return x < 0 ? activation.slope * expm1f(x) : x;
        case ActivationKind::gelu: return 0.5f * x * erfcf(x * -0.70710678f);
        case ActivationKind::swish: return x / (1 + expf(-x));
        case ActivationKind::softplus: return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
        case ActivationKind::log: return logf((x > 0 ? x : 0) + activation.slope);
        default: return apply(activation, x);
    }
}

__global__ void activate(RowSource x, RowSpace space, Activation activation, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        out.data[row * out.stride + c] = apply_any(activation, source_row(x, space, row)[c]);
    }
}

/// x + factor * y; y begins at channel `begin` and has its own number of channels.
__global__ void add_scaled(RowSource x, RowSource y, RowSpace space, int32_t begin, float factor, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels;
        const auto c = static_cast<int32_t>(i - row * out.channels), d = c - begin;
        float sum = source_row(x, space, row)[c];
        if (d >= 0 && d < y.channels) sum += factor * source_row(y, space, row)[d];
        out.data[row * out.stride + c] = sum;
    }
}

__global__ void multiply(RowSource x, RowSource y, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        out.data[row * out.stride + c] = source_row(x, space, row)[c] * source_row(y, space, row)[c];
    }
}

__global__ void inject(RowSource x, RowSource s, RowSource b, RowSpace space, bool inverse, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        const float value = source_row(x, space, row)[c], scale = source_row(s, space, row)[c];
        const float shift = source_row(b, space, row)[c];
        out.data[row * out.stride + c] = inverse ? value * expf(scale) + shift : (value - shift) * expf(-scale);
    }
}

__global__ void repeat_weight(const float* weight, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        out.data[row * out.stride + c] = weight[c];
    }
}

__global__ void unflatten(RowSource x, ValueView out, int32_t points) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels, cloud = row / points;
        out.data[row * out.stride + c] = x.data[cloud * x.stride + (row - cloud * points) * out.channels + c];
    }
}

__global__ void regroup(RowSource x, int32_t width, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels, point = row / out.width;
        const int64_t at = (row - point * out.width) * out.channels + c, from = at / x.channels;
        out.data[row * out.stride + c] = x.data[(point * width + from) * x.stride + at - from * x.channels];
    }
}

/// As on the CPU (kinds/matrix.cpp).
__global__ void rotations(RowSource quaternions, RowSpace space, bool inverse, ValueView out) {
    STIPPLE_GRID_LOOP(row, out.rows) {
        const float* q = source_row(quaternions, space, row);
        float* to = out.data + row * out.stride;
        constexpr float kTiny = 1.17549435e-38f;
        const float largest = fmaxf(fmaxf(fmaxf(kTiny, fabsf(q[0])), fabsf(q[1])), fmaxf(fabsf(q[2]), fabsf(q[3])));
        const float w = q[0] / largest, v[3] = {q[1] / largest, q[2] / largest, q[3] / largest};
        const float factor = 2 / fmaxf(w * w + v[0] * v[0] + v[1] * v[1] + v[2] * v[2], kTiny);
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            const int j = (i + 1) % 3, k = (i + 2) % 3;
            to[4 * i] = 1 - factor * (v[j] * v[j] + v[k] * v[k]);
            const float same = factor * v[i] * v[j], turned = factor * w * v[k];
            to[3 * i + j] = inverse ? same + turned : same - turned;
            to[3 * j + i] = inverse ? same - turned : same + turned;
        }
    }
}

unsigned blocks_of(const StepCall& call) {
    return grid_for(call.out.rows * call.out.channels);
}

void launch_copy(const StepCall& call, const CopyArguments& a) {
    copy_parts<<<blocks_of(call), kThreads, 0, call.stream>>>(a, space_of(call, call.out), call.out);
    STIPPLE_CHECK_LAUNCH(copy_parts);
}

void run_copy(const StepCall& call) {
    CopyArguments a;
    STIPPLE_REQUIRE(call.inputs.size() <= kMaxParts, "step {}: {} parts, {} at most", call.step->name,
                    call.inputs.size(), kMaxParts);
    for (const RowSource& input : call.inputs) a.parts[a.count++] = input;
    launch_copy(call, a);
}

void run_slice(const StepCall& call) {
    CopyArguments a;
    a.count = 1;
    a.parts[0] = call.inputs[0];
    a.parts[0].data += call.step->begin;
    a.parts[0].channels = call.out.channels;
    launch_copy(call, a);
}

void run_gather(const StepCall& call) {
    if (call.values[0].set != call.out.set) {
        gather_points<<<blocks_of(call), kThreads, 0, call.stream>>>(
            call.inputs[0], call.batches[static_cast<size_t>(call.values[0].set)], call.values[1].indices(),
            space_of(call, call.out), call.out);
        STIPPLE_CHECK_LAUNCH(gather_points);
        return;
    }
    CopyArguments a;
    a.count = 1;
    a.parts[0] = call.inputs[0];
    a.parts[0].access = Access::neighbour;
    a.parts[0].indices = call.values[1].indices();
    launch_copy(call, a);
}

void run_reverse(const StepCall& call) {
    reverse_channels<<<blocks_of(call), kThreads, 0, call.stream>>>(call.inputs[0], space_of(call, call.out), call.out);
    STIPPLE_CHECK_LAUNCH(reverse_channels);
}

void run_activation(const StepCall& call) {
    activate<<<blocks_of(call), kThreads, 0, call.stream>>>(call.inputs[0], space_of(call, call.out),
                                                            call.step->activation, call.out);
    STIPPLE_CHECK_LAUNCH(activate);
}

void launch_add(const StepCall& call, int64_t begin) {
    add_scaled<<<blocks_of(call), kThreads, 0, call.stream>>>(call.inputs[0], call.inputs[1], space_of(call, call.out),
                                                              static_cast<int32_t>(begin), call.step->factor, call.out);
    STIPPLE_CHECK_LAUNCH(add_scaled);
}

void run_add(const StepCall& call) {
    launch_add(call, 0);
}

void run_couple(const StepCall& call) {
    launch_add(call, call.step->begin);
}

void run_multiply(const StepCall& call) {
    multiply<<<blocks_of(call), kThreads, 0, call.stream>>>(call.inputs[0], call.inputs[1], space_of(call, call.out),
                                                            call.out);
    STIPPLE_CHECK_LAUNCH(multiply);
}

void run_inject(const StepCall& call) {
    inject<<<blocks_of(call), kThreads, 0, call.stream>>>(call.inputs[0], call.inputs[1], call.inputs[2],
                                                          space_of(call, call.out), call.step->inverse, call.out);
    STIPPLE_CHECK_LAUNCH(inject);
}

void run_constant(const StepCall& call) {
    repeat_weight<<<blocks_of(call), kThreads, 0, call.stream>>>(call.weight, call.out);
    STIPPLE_CHECK_LAUNCH(repeat_weight);
}

void run_unflatten(const StepCall& call) {
    unflatten<<<blocks_of(call), kThreads, 0, call.stream>>>(call.inputs[0], call.out,
                                                             call.inputs[0].channels / call.out.channels);
    STIPPLE_CHECK_LAUNCH(unflatten);
}

void run_regroup(const StepCall& call) {
    regroup<<<blocks_of(call), kThreads, 0, call.stream>>>(call.inputs[0], call.values[0].width, call.out);
    STIPPLE_CHECK_LAUNCH(regroup);
}

void run_rotation(const StepCall& call) {
    rotations<<<grid_for(call.out.rows), kThreads, 0, call.stream>>>(call.inputs[0], space_of(call, call.out),
                                                                     call.step->inverse, call.out);
    STIPPLE_CHECK_LAUNCH(rotations);
}

constexpr StepLauncher kRowSteps[] = {
    {StepKind::copy, run_copy},         {StepKind::slice, run_slice},           {StepKind::gather, run_gather},
    {StepKind::reverse, run_reverse},   {StepKind::activation, run_activation}, {StepKind::add, run_add},
    {StepKind::couple, run_couple},     {StepKind::inject, run_inject},         {StepKind::multiply, run_multiply},
    {StepKind::constant, run_constant}, {StepKind::unflatten, run_unflatten},   {StepKind::rotation, run_rotation},
    {StepKind::regroup, run_regroup},
};

}  // namespace

std::span<const StepLauncher> row_steps() {
    return kRowSteps;
}

}  // namespace stipple::engine::cuda
