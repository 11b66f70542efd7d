#include <algorithm>

#include "stipple/ops/argmax_points.h"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::ops::cuda {
namespace {

constexpr int kLanes = 32, kRows = 8;  // channels beside each other, rows that are read at the same time

/// A score and the point that it is of; -1: none yet.
struct ArgmaxPointsBest {
    float score;
    int32_t index;

    __device__ bool loses_to(float other_score, int32_t other) const {
        if (other < 0) return false;
        return index < 0 || other_score > score || (other_score == score && other < index);
    }
};

/// A block for 32 channels of a cloud: neighbouring threads read neighbouring numbers.
__global__ void __launch_bounds__(kLanes* kRows)
    find_winners(const float* __restrict__ scores, int64_t stride, int64_t channels, DeviceBatch batch, int64_t tiles,
                 float noise, uint64_t seed, int32_t* __restrict__ winners) {
    __shared__ ArgmaxPointsBest shared[kRows][kLanes];
    const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
    for (int64_t task = blockIdx.x; task < batch.clouds * tiles; task += gridDim.x) {
        const int64_t cloud = task / tiles, channel = task % tiles * kLanes + lane;
        const int64_t begin = batch.begin(cloud), n = batch.end(cloud) - begin;
        ArgmaxPointsBest best{0, -1};
        if (channel < channels)
            for (int64_t i = row; i < n; i += kRows) {
                float score = scores[(begin + i) * stride + channel];
                if (noise > 0)
                    score = __fadd_rn(score, __fmul_rn(noise, gumbel_noise(seed, cloud, i, channel, channels)));
                if (!isnan(score) && best.loses_to(score, static_cast<int32_t>(i)))
                    best = {score, static_cast<int32_t>(i)};
            }
        shared[row][lane] = best;
        __syncthreads();
        if (row == 0 && channel < channels) {
            for (int other = 1; other < kRows; ++other)
                if (best.loses_to(shared[other][lane].score, shared[other][lane].index)) best = shared[other][lane];
            winners[cloud * channels + channel] = best.index;
        }
        __syncthreads();
    }
}

}  // namespace

void argmax_points(const Clouds& scores, View<int32_t, 2> winners, const GumbelNoise& noise, Stream stream_of_call) {
    const CurrentDevice current(scores.device());
    const cudaStream_t stream = raw(stream_of_call);
    const UploadedBatch batch(scores.batch, stream);
    const int64_t channels = scores.dimension(), tiles = (channels + kLanes - 1) / kLanes;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(scores.batch.clouds() * tiles, int64_t{1} << 20));
    find_winners<<<blocks, dim3(kLanes, kRows), 0, stream>>>(scores.rows.data(), scores.rows.stride(0), channels,
                                                             batch.view(), tiles, noise.scale, noise.seed,
                                                             winners.data());
    STIPPLE_CHECK_LAUNCH(find_winners);
}

}  // namespace stipple::ops::cuda
