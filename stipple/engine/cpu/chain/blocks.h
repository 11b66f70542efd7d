#pragma once
// What happens to a block of results between two products of a chain: values[channels][12], 12 rows of a few channels.
// Internal to cpu/chain.

#include "stipple/engine/cpu/chain/kernels.h"
#include "stipple/engine/program.h"

namespace stipple::engine::cpu {

inline constexpr int64_t kBlockFloats = kMostChannels * kPanelRows;

/// Sums of int8 products, int32 in place of float, become values: each times its channel's scale.
void scale_sums(float* values, int64_t channels, const float* scale);

/// values = activation(values + bias[channel]); with a scale (int8), that of the sums first.
void finish_sums(float* values, int64_t channels, const float* scale, const float* bias, const Activation& activation);

/// One row: out = activation(row + bias). The two may be the same.
void finish_row(const float* row, int64_t channels, const float* bias, const Activation& activation, float* out);
/// n_rows rows, `stride` apart: out = activation(row + added + bias).
void finish_rows(const float* rows, int64_t stride, const AddedRows& added, int64_t n_rows, int64_t channels,
                 const float* bias, const Activation& activation, float* out, int64_t out_stride);
/// The larger of out and row + added, of which it is row r; `begin`: row + added alone.
void raise_row(const float* row, const AddedRows& added, int64_t r, int64_t channels, bool begin, float* out);
void add_row(const float* from, int64_t channels, float* row);

/// values[c][r] = rows[r][c], and the sum of both, for 12 rows.
void take_rows(const float* const* rows, int64_t channels, float* values);
void add_rows(const float* const* rows, int64_t channels, float* values);

/// out[r * stride + c] = values[c][r] for n_rows rows.
void put_rows(const float* values, int64_t channels, int64_t n_rows, float* out, int64_t stride);

/// out[c] = the larger of itself and the values of its first n_rows rows.
void raise_to(const float* values, int64_t channels, int64_t n_rows, float* out);

}  // namespace stipple::engine::cpu
