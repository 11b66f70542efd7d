#pragma once
// One dense layer on the GPU: y = activation(x W^T + addends + bias), where x may be several values side by side and W
// may be the cloud's own, with the maximum over points or over the rows of a point instead of y where that is wanted.
// Values are float32 in memory; factors are rounded to the layer's precision on their way into the multiprocessor, sums
// are float32. int8 and fp8 layers run in fp16 here; tf32 layers take three products each, which make up a float32 one:
// they are not where the time is (cuda/chain.h), and their errors would add up. Included by .cu files only.

#include <span>
#include <string>

#include "stipple/core/buffer.h"
#include "stipple/engine/cuda/span.cuh"
#include "stipple/engine/program.h"

namespace stipple::engine::cuda {

constexpr int kMaxParts = 24;
constexpr int kMaxAddends = 12;

struct DensePart {
    const float* data = nullptr;
    int64_t stride = 0;
    int64_t origin = 0;             // the row that `data` begins with
    int32_t channels = 0;           // of this part
    int32_t packed = 0, plain = 0;  // its first channel in packed weights and in a matrix
    int32_t vectors = 0;            // rows may be read four numbers at a time
};

struct DenseAddend {
    const float* data = nullptr;
    int64_t stride = 0;
    const int32_t* indices = nullptr;  // Access::neighbour
    Access access = Access::row;
};

/// All that a kernel needs to know of one launch.
struct DenseArguments {
    Span span;
    DensePart parts[kMaxParts];
    DenseAddend addends[kMaxAddends];
    int32_t part_count = 0, addend_count = 0;
    const void* weight = nullptr;   // packed [out to 64, in to 32]
    const float* matrix = nullptr;  // or [clouds, out * in], contiguous
    const float* bias = nullptr;    // not used with keys: finish_max adds it
    Activation activation;
    int32_t in = 0, out = 0;
    int32_t packed_in = 0;     // channels to multiply, padding included
    int32_t weight_pitch = 0;  // numbers from row to row of `weight`
    int32_t shares_rows = 0;   // every cloud takes the same rows of x, from row 0 on
    Reduce reduce = Reduce::none;
    int32_t has_keys = 0;  // the maximum is found by raising int32 keys in y: [clouds, out] or [points, out]
    float* y = nullptr;
    int64_t y_stride = 0, y_origin = 0;
    int32_t y_vectors = 0;  // y and the addends may be moved four numbers at a time
};

/// Weights of all steps in one block of device memory.
class WeightBlock {
public:
    /// The place that the bytes will have; a multiple of 256.
    int64_t add(const void* bytes, int64_t count);
    void upload(Device device);
    int64_t bytes() const { return block_.bytes(); }
    template <class T>
    const T* at(int64_t place) const {
        return reinterpret_cast<const T*>(block_.data() + place);
    }

private:
    std::vector<std::byte> host_;
    Buffer block_;
};

/// What changes from call to call.
struct DenseCall {
    Span span;
    bool is_flat = false;              // rows [0, rows) with nothing to tell clouds apart: layers of cloud-level values
    int64_t rows = 0;                  // is_flat
    std::span<const DensePart> parts;  // data, stride, origin
    std::span<const DenseAddend> addends;
    const float* matrix = nullptr;
    Reduce reduce = Reduce::none;
    float* y = nullptr;
    int64_t y_stride = 0, y_origin = 0;
};

class DenseLayer {
public:
    /// part_channels: of each part, or one number for a layer that follows another.
    DenseLayer(const Dense& layer, std::vector<int64_t> part_channels, int capability, WeightBlock& weights);

    /// Queues kernels. Where has_keys(): between begin_max and finish_max.
    void run(const WeightBlock& weights, const DenseCall& call, cudaStream_t stream) const;

    static bool has_keys(Reduce reduce, int64_t width) {
        return reduce == Reduce::max_points || (reduce == Reduce::max_rows && kTileRows % width != 0);
    }
    Precision arithmetic() const { return arithmetic_; }  // what the kernels really use
    int64_t out() const { return out_; }
    const float* bias(const WeightBlock& weights) const { return weights.at<float>(bias_); }
    const Activation& activation() const { return activation_; }
    std::string describe() const;  // "fp16 mma, 128 -> 1024"

private:
    std::string name_;
    std::vector<int64_t> part_channels_;
    Precision wanted_ = Precision::fp32, arithmetic_ = Precision::fp32;
    int64_t in_ = 0, packed_in_ = 0, out_ = 0;
    Activation activation_;
    bool has_matrix_ = false;
    int64_t weight_ = 0, bias_ = 0;
};

/// Before and after all launches that raise keys: y is [rows, out], contiguous. bias: null for the bare maximum.
void begin_max(float* y, int64_t count, cudaStream_t stream);
void finish_max(float* y, int64_t rows, int64_t out, const float* bias, const Activation& activation,
                cudaStream_t stream);

// Launchers of the kernels, one file each.
void launch_dense_tiles_mma(const DenseArguments& arguments, Precision precision, cudaStream_t stream);
void launch_dense_tiles_fp32(const DenseArguments& arguments, cudaStream_t stream);
/// W T^T of every cloud: as above, one tf32 product or, `exactly`, three that make up a float32 one.
void launch_fold_tiles_mma(const DenseArguments& arguments, bool exactly, cudaStream_t stream);
/// Many cloud-level rows, fp16 and bf16.
bool fits_dense_clouds(const DenseArguments& arguments, Precision precision);
void launch_dense_clouds(const DenseArguments& arguments, int64_t rows, Precision precision, cudaStream_t stream);
/// Few rows: the sum over channels is cut among the warps of a block.
void launch_dense_rows(const DenseArguments& arguments, int64_t rows, Precision precision, cudaStream_t stream);

}  // namespace stipple::engine::cuda
