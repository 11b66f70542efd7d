#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstring>

#include "stipple/core/buffer.h"
#include "stipple/core/cuda/check.h"
#include "stipple/engine/cuda/chain.h"
#include "stipple/engine/cuda/chain_kernel.h"

namespace stipple::engine::cuda {
namespace {

constexpr float kLargestFp8 = 448, kLargestInt8 = 127;

float slope_of(const Activation& activation) {
    switch (activation.kind) {
        case ActivationKind::none: return 1;
        case ActivationKind::relu: return 0;
        default: return activation.slope;  // leaky_relu: chains have no others
    }
}

/// The channel whose number is stored at position `k` of a row of 8-bit numbers (cuda/chain_wgmma.cu, store_rows).
int64_t channel_at(Precision precision, int64_t k) {
    if (bytes_of(precision) != 1) return k;
    return k / 16 * 16 + k % 16 / 2 + k % 2 * 8;
}

void put(Precision precision, float value, std::byte* to) {
    switch (precision) {
        case Precision::fp16: {
            const __half h = __float2half_rn(value);
            std::memcpy(to, &h, 2);
            return;
        }
        case Precision::bf16: {
            const __nv_bfloat16 h = __float2bfloat16_rn(value);
            std::memcpy(to, &h, 2);
            return;
        }
        case Precision::fp8: {
            const __nv_fp8_storage_t byte = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
            std::memcpy(to, &byte, 1);
            return;
        }
        case Precision::int8: {
            const auto byte = static_cast<int8_t>(std::nearbyint(value));
            std::memcpy(to, &byte, 1);
            return;
        }
        case Precision::tf32: {
            // To nearest, ties away from zero, as cvt.rna does.
            uint32_t bits;
            std::memcpy(&bits, &value, 4);
            bits = (bits + 0x1000u) & ~0x1fffu;
            std::memcpy(to, &bits, 4);
            return;
        }
        case Precision::fp32: std::memcpy(to, &value, 4); return;
    }
}

/// Weights in the order in which the products' threads hold them: for every 64 channels, 32 bytes of inputs, warp and
/// lane 16 bytes: rows g and g + 8 of the warp's 16, bytes 4 t and 16 + 4 t, where lane = 4 g + t.
std::vector<std::byte> pack_factor(const Dense& layer, Precision precision, const std::vector<float>& row_scale) {
    const int64_t element = bytes_of(precision), row_bytes = layer.in * element;
    std::vector<std::byte> rows(static_cast<size_t>(layer.out * row_bytes));
    for (int64_t o = 0; o < layer.out; ++o)
        for (int64_t k = 0; k < layer.in; ++k) {
            const float value = layer.weight[o * layer.in + channel_at(precision, k)] / row_scale[o];
            put(precision, value, rows.data() + o * row_bytes + k * element);
        }
    std::vector<std::byte> packed(rows.size());
    std::byte* to = packed.data();
    for (int64_t group = 0; group < layer.out / 64; ++group)
        for (int64_t step = 0; step < row_bytes / 32; ++step)
            for (int64_t warp = 0; warp < 4; ++warp)
                for (int64_t lane = 0; lane < 32; ++lane)
                    for (int64_t part = 0; part < 4; ++part, to += 4) {
                        const int64_t row = group * 64 + warp * 16 + lane / 4 + part % 2 * 8;
                        const int64_t byte = step * 32 + part / 2 * 16 + lane % 4 * 4;
                        std::memcpy(to, rows.data() + row * row_bytes + byte, 4);
                    }
    return packed;
}

/// What the numbers of each row of weights are divided by before they are rounded.
std::vector<float> scales_of_rows(const Dense& layer, Precision precision) {
    std::vector<float> scales(static_cast<size_t>(layer.out), 1.f);
    const float largest_code = precision == Precision::int8  ? kLargestInt8
                               : precision == Precision::fp8 ? kLargestFp8
                                                             : 0;
    if (largest_code == 0) return scales;
    for (int64_t o = 0; o < layer.out; ++o) {
        float largest = 0;
        for (int64_t k = 0; k < layer.in; ++k) largest = std::max(largest, std::abs(layer.weight[o * layer.in + k]));
        if (largest > 0) scales[static_cast<size_t>(o)] = largest / largest_code;
    }
    return scales;
}

class TensorCoreChain final : public FusedChain {
public:
    TensorCoreChain(const std::vector<Dense>& layers, const DeviceInfo& device, ChainKernel kernel)
        : device_(device), kernel_(kernel) {
        const Dense& first = layers.front();
        const Dense& last = layers.back();
        precision_ = last.precision;
        // tf32 kernels round the middle weights themselves, or keep what rounding would take away.
        const Precision middle = bytes_of(precision_) == 1       ? Precision::fp16
                                 : precision_ == Precision::tf32 ? Precision::fp32
                                                                 : precision_;
        // Everything into one block of device memory.
        std::vector<std::byte> host;
        auto append = [&](const void* data, size_t bytes) {
            const size_t at = (host.size() + 255) / 256 * 256;
            host.resize(at + bytes);
            std::memcpy(host.data() + at, data, bytes);
            return at;
        };
        auto append_floats = [&](const std::vector<float>& values) {
            return append(values.data(), values.size() * sizeof(float));
        };
        const size_t first_weight = append_floats(first.weight), first_bias = append_floats(first.bias);
        size_t weights[kChainMiddle] = {}, biases[kChainMiddle] = {};
        n_middle_ = static_cast<int>(layers.size()) - 2;
        for (int m = 0; m < n_middle_; ++m) {
            const Dense& layer = layers[static_cast<size_t>(m + 1)];
            biases[m] = append_floats(layer.bias);
            if (layer.matrix >= 0) continue;
            const std::vector<std::byte> packed = pack_factor(layer, middle, std::vector<float>(layer.out, 1.f));
            weights[m] = append(packed.data(), packed.size());
        }
        const std::vector<float> row_scales = scales_of_rows(last, precision_);
        const std::vector<std::byte> packed = pack_factor(last, precision_, row_scales);
        const size_t last_weight = append(packed.data(), packed.size()), last_bias = append_floats(last.bias);
        float input_scale = 1;
        if (precision_ == Precision::int8) input_scale = kLargestInt8 / last.input_range;
        if (precision_ == Precision::fp8) input_scale = kLargestFp8 / last.input_range;
        std::vector<float> scales = row_scales;
        for (float& scale : scales) scale /= input_scale;
        const size_t last_scale = append_floats(scales);

        memory_ = Buffer(static_cast<int64_t>(host.size()), device.device);
        copy_bytes(memory_.data(), device.device, host.data(), Device{}, memory_.bytes());
        auto floats = [&](size_t at) { return reinterpret_cast<const float*>(memory_.data() + at); };
        auto words = [&](size_t at) { return reinterpret_cast<const uint4*>(memory_.data() + at); };
        arguments_.first_weight = floats(first_weight);
        arguments_.first_bias = floats(first_bias);
        arguments_.first_slope = slope_of(first.activation);
        arguments_.n_middle = n_middle_;
        for (int m = 0; m < n_middle_; ++m)
            arguments_.middle[m] = {words(weights[m]), nullptr, floats(biases[m]),
                                    slope_of(layers[static_cast<size_t>(m + 1)].activation)};
        arguments_.last_weight = words(last_weight);
        arguments_.last_input_scale = input_scale;
        arguments_.out = static_cast<int32_t>(last.out);
        finish_.scale = floats(last_scale);
        finish_.bias = floats(last_bias);
        finish_.slope = slope_of(last.activation);
        finish_.out = arguments_.out;
    }

    int64_t weight_bytes() const override { return memory_.bytes(); }

    int64_t scratch_bytes(int64_t clouds, int64_t points) const override {
        const int64_t smallest_tile = kernel_ == ChainKernel::wgmma ? 256 : kChainMmaPoints;
        const int64_t tiles = clouds * ((points + smallest_tile - 1) / smallest_tile);
        return tiles * arguments_.out * static_cast<int64_t>(sizeof(float));
    }

    std::string describe() const override {
        return fmt::format("fused chain, {} {}", name_of(precision_), kernel_ == ChainKernel::wgmma ? "wgmma" : "mma");
    }

    void run(const FusedChainTask& task, Stream stream) const override {
        const bool wgmma = kernel_ == ChainKernel::wgmma;
        const int tile =
            wgmma ? chain_wgmma_points(precision_, task.clouds, task.points, device_.units) : kChainMmaPoints;
        ChainArguments arguments = arguments_;
        arguments.x = task.x;
        arguments.x_stride = task.x_stride;
        arguments.offsets = task.offsets;
        arguments.clouds = static_cast<int32_t>(task.clouds);
        arguments.points = static_cast<int32_t>(task.points);
        arguments.partial = static_cast<float*>(task.scratch);
        if (task.matrices.front() != nullptr) {
            arguments.first_weight = task.matrices.front();
            arguments.first_of_cloud = true;
        }
        for (int m = 0; m < n_middle_; ++m) arguments.middle[m].matrix = task.matrices[static_cast<size_t>(m + 1)];
        if (wgmma)
            launch_chain_wgmma(precision_, tile, device_.units, arguments, stream);
        else
            launch_chain_mma(precision_, device_.units, arguments, stream);

        ChainFinish finish = finish_;
        finish.partial = arguments.partial;
        finish.offsets = task.offsets;
        finish.clouds = arguments.clouds;
        finish.points = arguments.points;
        finish.tile_points = tile;
        finish.result = task.out;
        launch_chain_finish(finish, stream);
    }

private:
    DeviceInfo device_;
    ChainKernel kernel_;
    Precision precision_ = Precision::fp16;
    int n_middle_ = 0;
    Buffer memory_;
    ChainArguments arguments_;
    ChainFinish finish_;
};

bool fits(const std::vector<Dense>& layers, Reduce reduce) {
    if (reduce != Reduce::max_points || layers.size() < 3 || layers.size() > kChainMiddle + 2) return false;
    const Dense& first = layers.front();
    const Dense& last = layers.back();
    if (first.in != 3 || first.out != kChainFirst || first.parts.size() != 1) return false;
    if (last.in != kChainLast || last.out % kChainOutStep != 0 || last.matrix >= 0) return false;
    for (size_t i = 0; i < layers.size(); ++i) {
        if (!layers[i].addends.empty()) return false;
        const bool is_middle = i > 0 && i + 1 < layers.size();
        const int64_t out = i + 2 == layers.size() ? kChainLast : kChainFirst;
        if (is_middle && (layers[i].in != kChainFirst || layers[i].out != out)) return false;
    }
    if (bytes_of(last.precision) == 1 && !(last.input_range > 0)) return false;
    return last.precision != Precision::fp32;
}

}  // namespace

std::unique_ptr<FusedChain> make_fused_chain(const std::vector<Dense>& layers, Reduce reduce, Device device,
                                             ChainKernel kernel) {
    if (!fits(layers, reduce)) return nullptr;
    for (const DeviceInfo& info : list_devices()) {
        if (info.device != device) continue;
        const int needed = layers.back().precision == Precision::fp8 ? 89 : 80;
        if (info.compute_capability < needed) return nullptr;
        if (kernel == ChainKernel::fastest)
            kernel = info.compute_capability == 90 ? ChainKernel::wgmma : ChainKernel::mma;
        if (kernel == ChainKernel::wgmma && info.compute_capability != 90) return nullptr;
        int shared = 0;
        STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, info.device.index));
        if (kernel == ChainKernel::mma && shared < chain_mma_shared_bytes(layers.back().precision)) return nullptr;
        return std::make_unique<TensorCoreChain>(layers, info, kernel);
    }
    return nullptr;
}

}  // namespace stipple::engine::cuda
