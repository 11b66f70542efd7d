#pragma once
// The map of what lies behind the box, on the device. Included by .cu files only.

#include "stipple/radiance/cuda/memory.cuh"
#include "stipple/radiance/cuda/step.cuh"
#include "stipple/radiance/march/environment.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/train/environment_map.h"
#include "stipple/radiance/train/state.h"

namespace stipple::radiance::cuda {

/// What is behind a ray, by its direction, in place of a background that is the same everywhere.
__device__ inline void look_behind(const float* texels, int32_t side, Vec3f direction, float (&colour)[3]) {
    if (side == 0) return;
    const Texels about = texels_of(direction, side);
#pragma unroll
    for (int k = 0; k < 3; ++k) colour[k] = sigmoid(interpolate(about, texels, k));
}

/// Twelve lanes of a ray's warp: a channel of one of the four texels each. slope: of the loss, by the pixel's channels;
/// left: what is seen behind the last sample.
template <bool kFixed>
__device__ inline void add_behind(const EnvironmentMemory& map, Vec3f direction, const float (&slope)[3], float left,
                                  const float (&colour)[3], int lane) {
    if (map.side == 0 || lane >= 12) return;
    const Texels about = texels_of(direction, map.side);
    const int channel = lane % 3, corner = lane / 3;
    const float s = channel == 0 ? slope[0] : channel == 1 ? slope[1] : slope[2];
    const float c = channel == 0 ? colour[0] : channel == 1 ? colour[1] : colour[2];
    float weight = 0;
    int32_t texel = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {  // no index that is not known when it is compiled
        if (k == corner) weight = about.weight[k], texel = about.texel[k];
    }
    const float gradient = weight * (s * left * c * (1 - c));
    if (gradient != 0) add_gradient<kFixed>(map.gradient, int64_t{3} * texel + channel, gradient);
}

/// Adam over the texels that have a gradient; others stay as they are, bit for bit.
void launch_optimise_environment(const EnvironmentMemory& map, const StepState* state, float rate, bool fixed,
                                 cudaStream_t stream);

/// The map's memory; none of it for a side of 0.
class EnvironmentArrays {
public:
    /// Grey, or on from the map that is there, on other texels. gradient_bytes: of a number. The stream has nothing to
    /// do with the map any more.
    void begin(MemoryMeter& meter, int32_t side, int64_t gradient_bytes, cudaStream_t stream, bool go_on = false) {
        const Environment before = go_on ? download() : Environment{};
        side_ = side;
        const int64_t count = int64_t{3} * side * side;
        value_ = DeviceArray<float>(meter, count);
        mean_ = DeviceArray<float>(meter, count);
        square_ = DeviceArray<float>(meter, count);
        gradient_ = DeviceArray<uint8_t>(meter, count * gradient_bytes);
        value_.clear(stream);
        gradient_.clear(stream);
        reset_moments(stream);
        if (before.side == 0) return;
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
        value_.upload(resampled(before, side).texels);
    }
    void reset_moments(cudaStream_t stream) {
        if (side_ == 0) return;
        mean_.clear(stream);
        square_.clear(stream);
    }
    EnvironmentMemory memory() const {
        if (side_ == 0) return {};
        return {value_.get(), mean_.get(), square_.get(), gradient_.get(), side_};
    }
    /// Waits for nothing: the caller has.
    Environment download() const {
        if (side_ == 0) return {};
        return {side_, value_.download()};
    }

    MovedNumbers save() const {
        if (side_ == 0) return {};
        return {value_.download(), mean_.download(), square_.download()};
    }
    /// After begin, and when the stream is done with it.
    void restore(const MovedNumbers& numbers) {
        if (side_ == 0) return;
        value_.upload(numbers.value);
        mean_.upload(numbers.mean);
        square_.upload(numbers.square);
    }

private:
    DeviceArray<float> value_, mean_, square_;
    DeviceArray<uint8_t> gradient_;
    int32_t side_ = 0;
};

}  // namespace stipple::radiance::cuda
