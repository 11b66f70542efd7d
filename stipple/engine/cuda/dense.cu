#include <cstring>

#include "stipple/engine/cuda/dense.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::engine::cuda {
namespace {

// Below this many rows launch_dense_rows reads weights fewer times than it saves.
constexpr int64_t kFewRows = 256;

int64_t round_up(int64_t x, int64_t step) {
    return (x + step - 1) / step * step;
}

Precision arithmetic_of(Precision wanted, int capability) {
    if (capability < 80) return Precision::fp32;  // older tensor cores know neither bf16 nor tf32
    return wanted == Precision::int8 || wanted == Precision::fp8 ? Precision::fp16 : wanted;
}
template <class Element, class Convert>
int64_t pack(const Dense& layer, const std::vector<int64_t>& part_channels, int64_t packed_in, Convert convert,
             WeightBlock& weights) {
    std::vector<Element> packed(static_cast<size_t>(round_up(layer.out, kTileColumns) * packed_in), convert(0.0f));
    for (int64_t n = 0; n < layer.out; ++n) {
        int64_t from = n * layer.in, to = n * packed_in;
        for (int64_t channels : part_channels) {
            for (int64_t c = 0; c < channels; ++c) packed[to + c] = convert(layer.weight[from + c]);
            from += channels;
            to += round_up(channels, 4);
        }
    }
    return weights.add(packed.data(), static_cast<int64_t>(packed.size() * sizeof(Element)));
}

__global__ void fill_keys(int* keys, int64_t count) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) keys[i] = order_key(-INFINITY);
}

__global__ void finish_keys(float* y, int64_t count, int32_t out, const float* bias, Activation activation) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float x = from_order_key(reinterpret_cast<const int*>(y)[i]);
    y[i] = bias != nullptr ? apply(activation, x + bias[i % out]) : x;
}

bool is_aligned(const void* address, int64_t stride) {
    return reinterpret_cast<uintptr_t>(address) % 16 == 0 && stride % 4 == 0;
}

}  // namespace

int64_t WeightBlock::add(const void* bytes, int64_t count) {
    const auto place = static_cast<size_t>(round_up(static_cast<int64_t>(host_.size()), 256));
    host_.resize(place + static_cast<size_t>(count));
    std::memcpy(host_.data() + place, bytes, static_cast<size_t>(count));
    return static_cast<int64_t>(place);
}

void WeightBlock::upload(Device device) {
    block_ = Buffer(static_cast<int64_t>(host_.size()), device);
    copy_bytes(block_.data(), device, host_.data(), {}, block_.bytes());
    host_ = {};
}

DenseLayer::DenseLayer(const Dense& layer, std::vector<int64_t> part_channels, int capability, WeightBlock& weights)
    : name_(layer.name),
      part_channels_(std::move(part_channels)),
      wanted_(layer.precision),
      arithmetic_(arithmetic_of(layer.precision, capability)),
      in_(layer.in),
      out_(layer.out),
      activation_(layer.activation),
      has_matrix_(layer.matrix >= 0) {
    STIPPLE_REQUIRE(part_channels_.size() <= kMaxParts && layer.addends.size() <= kMaxAddends,
                    "layer {}: {} inputs and {} addends; {} and {} at most", layer.name, part_channels_.size(),
                    layer.addends.size(), kMaxParts, kMaxAddends);
    int64_t channels = 0;
    for (int64_t part : part_channels_) {
        channels += part;
        packed_in_ += round_up(part, 4);
    }
    STIPPLE_REQUIRE(channels == in_, "layer {}: {} channels in its parts, {} inputs", layer.name, channels, in_);
    packed_in_ = round_up(packed_in_, 32);
    if (in_ == 0) arithmetic_ = Precision::fp32;  // addends alone
    std::vector<float> bias = layer.bias;
    bias.resize(static_cast<size_t>(out_), 0.0f);
    bias_ = weights.add(bias.data(), out_ * 4);
    if (has_matrix_) return;
    STIPPLE_REQUIRE(static_cast<int64_t>(layer.weight.size()) == in_ * out_, "layer {}: {} weights for {} x {}",
                    layer.name, layer.weight.size(), out_, in_);
    switch (arithmetic_) {
        case Precision::fp16:
            weight_ = pack<__half>(
                layer, part_channels_, packed_in_, [](float x) { return __float2half_rn(x); }, weights);
            break;
        case Precision::bf16:
            weight_ = pack<__nv_bfloat16>(
                layer, part_channels_, packed_in_, [](float x) { return __float2bfloat16_rn(x); }, weights);
            break;
        default:
            weight_ = pack<float>(
                layer, part_channels_, packed_in_, [](float x) { return x; }, weights);
    }
}

void DenseLayer::run(const WeightBlock& weights, const DenseCall& call, cudaStream_t stream) const {
    STIPPLE_ASSERT(call.parts.size() == part_channels_.size() && call.addends.size() <= kMaxAddends);
    DenseArguments a;
    a.span = call.span;
    a.part_count = static_cast<int32_t>(call.parts.size());
    int32_t packed = 0, plain = 0;
    for (size_t i = 0; i < call.parts.size(); ++i) {
        DensePart& part = a.parts[i];
        part = call.parts[i];
        part.channels = static_cast<int32_t>(part_channels_[i]);
        part.packed = packed;
        part.plain = plain;
        part.vectors = part.channels % 4 == 0 && is_aligned(part.data, part.stride);
        packed += static_cast<int32_t>(round_up(part.channels, 4));
        plain += part.channels;
    }
    a.addend_count = static_cast<int32_t>(call.addends.size());
    a.y_vectors = out_ % 4 == 0 && is_aligned(call.y, call.y_stride);
    for (size_t i = 0; i < call.addends.size(); ++i) {
        a.addends[i] = call.addends[i];
        a.y_vectors = a.y_vectors && is_aligned(call.addends[i].data, call.addends[i].stride);
    }
    a.weight = weights.at<std::byte>(weight_);
    a.matrix = has_matrix_ ? call.matrix : nullptr;
    a.bias = bias(weights);
    a.activation = activation_;
    a.in = static_cast<int32_t>(in_);
    a.packed_in = a.weight_pitch = static_cast<int32_t>(packed_in_);
    a.out = static_cast<int32_t>(out_);
    a.reduce = call.reduce;
    a.has_keys = has_keys(call.reduce, call.span.width);
    a.y = call.y;
    a.y_stride = call.y_stride;
    a.y_origin = call.y_origin;
    if (call.is_flat && call.rows <= kFewRows && !has_matrix_ && call.reduce == Reduce::none)
        return launch_dense_rows(a, call.rows, arithmetic_, stream);
    if (call.is_flat && fits_dense_clouds(a, arithmetic_))
        return launch_dense_clouds(a, call.rows, arithmetic_, stream);
    if (a.span.tiles == 0) return;
    if (arithmetic_ == Precision::fp32) {
        a.packed_in = packed;  // a layer of three inputs multiplies four
        return launch_dense_tiles_fp32(a, stream);
    }
    launch_dense_tiles_mma(a, arithmetic_, stream);
}

std::string DenseLayer::describe() const {
    const char* how = arithmetic_ == Precision::fp32 ? "fma" : "mma";
    std::string text = fmt::format("{} {} {}, {} -> {}", name_, name_of(arithmetic_), how, in_, out_);
    if (arithmetic_ != wanted_) text += fmt::format(" (for {})", name_of(wanted_));
    return text;
}

void begin_max(float* y, int64_t count, cudaStream_t stream) {
    fill_keys<<<ops::cuda::blocks_for(count, 256), 256, 0, stream>>>(reinterpret_cast<int*>(y), count);
    STIPPLE_CHECK_LAUNCH(fill_keys);
}

void finish_max(float* y, int64_t rows, int64_t out, const float* bias, const Activation& activation,
                cudaStream_t stream) {
    finish_keys<<<ops::cuda::blocks_for(rows * out, 256), 256, 0, stream>>>(y, rows * out, static_cast<int32_t>(out),
                                                                            bias, activation);
    STIPPLE_CHECK_LAUNCH(finish_keys);
}

}  // namespace stipple::engine::cuda
