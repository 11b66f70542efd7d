#pragma once
// The innermost loops of a chain: products of 12 rows with a panel of output channels. One file for each instruction
// set, compiled for it alone; kernels_of() says at run time which of them this CPU can run. Internal to cpu/chain,
// its tests and its bench.
//
// Factors lie as a kernel reads them, from one end to the other. `group` inputs that one instruction sums lie together:
//   a panel of rows:    [inputs / group][12 rows][group]
//   a panel of weights: [inputs / group][channels][group]
// Rows and inputs that are missing are filled up: inputs with zeros, rows with copies of the last (so that a maximum
// does not see them).
//
// Every sum runs over the inputs in ascending order in one accumulator, so a row's result does not depend on the rows
// beside it: product(), few() and maximum() of one kernel agree bit for bit.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stipple/engine/precision.h"
#include "stipple/network/network.h"

namespace stipple::engine::cpu {

inline constexpr int64_t kPanelRows = 12;
inline constexpr int64_t kMostChannels = 32;  // of any kernel's panel

/// How factors are stored. u8: rows plus 128, weights i8; a panel of weights then begins with `channels` int32: what
/// its sums start from, -128 times the sum of the channel's weights.
enum class Factor { f32, bf16, i8, i16, u8 };

int64_t bytes_of(Factor factor);

/// What follows a product: values = activation(sums * scales + bias), of the panel's channels. Scales: int8 only.
struct Finish {
    const float* scales = nullptr;
    const float* bias = nullptr;
    network::Activation activation;
};

/// Rows that are added to the rows of a panel, in this order: none, one or two for each.
struct AddedRows {
    int count = 0;
    const float* rows[2][kPanelRows];
};

/// What becomes of the sums of a panel of rows: out[r * stride + c] = activation(sums + added + bias), of the first
/// n_rows rows and the first `channels` channels.
struct RowFinish {
    AddedRows added;
    const float* bias = nullptr;
    network::Activation activation;
    int64_t n_rows = kPanelRows, channels = 0;
    float* out = nullptr;
    int64_t stride = 0;
};

struct Kernel {
    const char* name = nullptr;  // "neon 8x12"
    Precision precision = Precision::fp32;
    Factor factor = Factor::f32;
    int64_t group = 1;
    int64_t channels = 8;  // of a panel: a multiple of 8, and so of every kernel's group
    int64_t few_rows = 0;  // that few() can do; 0: there is none
    bool (*can_run)() = nullptr;

    /// sums[channels][12], of float, or of int32 for int8.
    void (*product)(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) = nullptr;
    /// As product() for the first few_rows rows alone; the other sums are not meant.
    void (*few)(const std::byte* weights, const std::byte* rows, int64_t groups, void* sums) = nullptr;
    /// largest[channels]: raised to the largest sum of any row in `panels` panels of rows, panel_bytes apart.
    void (*maximum)(const std::byte* weights, const std::byte* rows, int64_t groups, int64_t panels,
                    int64_t panel_bytes, void* largest) = nullptr;
    /// Writes values[channels][12] as rows of this kernel, `channels` a multiple of `group`. per_scale: int8 only.
    void (*store)(const float* values, int64_t channels, float per_scale, std::byte* rows) = nullptr;

    /// product(), the finish and store() in one, the same bits: rows of a next layer with this same kernel. Null: there
    /// is none.
    void (*advance)(const std::byte* weights, const std::byte* rows, int64_t groups, const Finish& finish,
                    float per_scale, std::byte* out) = nullptr;

    /// product() and its finish row by row, the same bits; and the sums alone, of all rows and channels. For kernels
    /// whose lanes are channels: nothing is turned. Null: there are none.
    void (*rows)(const std::byte* weights, const std::byte* rows, int64_t groups, const RowFinish& finish) = nullptr;
    void (*lines)(const std::byte* weights, const std::byte* rows, int64_t groups, float* out,
                  int64_t stride) = nullptr;

    /// Its rows are the values themselves: no need to store() what is written in place.
    bool stores_values() const { return precision == Precision::fp32 && factor == Factor::f32 && group == 1; }
    int64_t factor_bytes() const { return bytes_of(factor); }
    int64_t groups(int64_t inputs) const { return (inputs + group - 1) / group; }
    int64_t row_panel_bytes(int64_t inputs) const { return groups(inputs) * group * kPanelRows * factor_bytes(); }
    int64_t weight_panel_bytes(int64_t inputs) const {
        return (groups(inputs) * group * factor_bytes() + (factor == Factor::u8 ? 4 : 0)) * channels;
    }
};

/// Those that this CPU can run, the fastest first; the last one is portable.
std::vector<const Kernel*> kernels_of(Precision precision);

/// Each file's kernels; null where they are for another architecture.
const Kernel* portable_kernel(Precision precision);
const Kernel* neon_kernel(Precision precision);
const Kernel* neon_bf16_kernel();
const Kernel* neon_dot_kernel();
const Kernel* neon_i8mm_kernel();
const Kernel* avx2_kernel(Precision precision);
const Kernel* avx_vnni_kernel();
const Kernel* avx512_kernel(Precision precision);
const Kernel* avx512_bf16_kernel();
const Kernel* avx512_vnni_kernel();

float round_to_bf16(float x);
/// -127 to 127: the nearest multiple of the scale, ties to even.
float round_to_int8(float x, float per_scale);

}  // namespace stipple::engine::cpu
