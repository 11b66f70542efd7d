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

__global__ void reverse_channels(RowSource x, RowSpace space, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels;
        const auto c = static_cast<int32_t>(i - row * out.channels);
        out.data[row * out.stride + c] = source_row(x, space, row)[out.channels - 1 - c];
    }
}

__global__ void activate(RowSource x, RowSpace space, Activation activation, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        out.data[row * out.stride + c] = apply(activation, source_row(x, space, row)[c]);
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

__global__ void inject(RowSource x, RowSource s, RowSource b, RowSpace space, bool inverse, ValueView out) {
    STIPPLE_GRID_LOOP(i, out.rows * out.channels) {
        const int64_t row = i / out.channels, c = i - row * out.channels;
        const float value = source_row(x, space, row)[c], scale = source_row(s, space, row)[c];
        const float shift = source_row(b, space, row)[c];
        out.data[row * out.stride + c] = inverse ? value * expf(scale) + shift : (value - shift) * expf(-scale);
    }
}

}  // namespace

void run_row_step(const StepCall& call) {
    const Step& step = *call.step;
    const ValueView& out = call.out;
    const RowSpace space = space_of(call, out);
    const unsigned blocks = grid_for(out.rows * out.channels);
    switch (step.kind) {
        case StepKind::copy:
        case StepKind::gather:
        case StepKind::slice: {
            CopyArguments a;
            STIPPLE_REQUIRE(call.inputs.size() <= kMaxParts, "step {}: {} parts, {} at most", step.name,
                            call.inputs.size(), kMaxParts);
            for (const RowSource& input : call.inputs) a.parts[a.count++] = input;
            if (step.kind == StepKind::slice) {
                a.count = 1;
                a.parts[0].data += step.begin;
                a.parts[0].channels = out.channels;
            }
            if (step.kind == StepKind::gather) {
                a.count = 1;
                a.parts[0].access = Access::neighbour;
                a.parts[0].indices = call.values[1].indices();
            }
            copy_parts<<<blocks, kThreads, 0, call.stream>>>(a, space, out);
            break;
        }
        case StepKind::reverse:
            reverse_channels<<<blocks, kThreads, 0, call.stream>>>(call.inputs[0], space, out);
            break;
        case StepKind::activation:
            activate<<<blocks, kThreads, 0, call.stream>>>(call.inputs[0], space, step.activation, out);
            break;
        case StepKind::add:
        case StepKind::couple:
            add_scaled<<<blocks, kThreads, 0, call.stream>>>(
                call.inputs[0], call.inputs[1], space,
                step.kind == StepKind::couple ? static_cast<int32_t>(step.begin) : 0, step.factor, out);
            break;
        default:
            STIPPLE_ASSERT(step.kind == StepKind::inject);
            inject<<<blocks, kThreads, 0, call.stream>>>(call.inputs[0], call.inputs[1], call.inputs[2], space,
                                                         step.inverse, out);
    }
    STIPPLE_CHECK_LAUNCH(run_row_step);
}

}  // namespace stipple::engine::cuda
