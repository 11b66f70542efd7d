// The gradient of sinkhorn's dual on CUDA.

#include "stipple/ops/distance/sinkhorn_side.cuh"

namespace stipple::ops::cuda {
namespace {

/// Sum over the columns of P_ij dC_ij: a warp for a row, in a fixed order.
template <DistanceNorm norm>
__global__ void __launch_bounds__(kThreads)
    sinkhorn_gradient_kernel(Side side, Side other, float scale, int64_t blocks_per_cloud,
                             const Progress* __restrict__ progress, const float* __restrict__ dL_ddual,
                             float* __restrict__ gradient) {
    const WarpRows<1> mine(side.batch, blocks_per_cloud, nullptr);
    if (mine.count == 0) return;
    const float4 row = side.points[mine.first];
    const float log_mass = side.log_mass[mine.first];
    const bool active = log_mass > kNoMass && progress[mine.cloud].done == 0;
    const int64_t begin = other.batch.begin(mine.cloud), end = active ? other.batch.end(mine.cloud) : begin;
    const float shift = row.w - log_mass;
    double x = 0, y = 0, z = 0;
    for (int64_t chunk = begin + threadIdx.x % 32; chunk < end; chunk += 32 * kFlush) {
        const int64_t last = min(end, chunk + 32 * kFlush);
        float part_x = 0, part_y = 0, part_z = 0;
        for (int64_t j = chunk; j < last; j += 32) {
            const float4 c = __ldg(other.points + j);
            const float dx = row.x - c.x, dy = row.y - c.y, dz = row.z - c.z;
            const float d = cost_of<norm>(dx, dy, dz);
            const float p = exp2_approx(fmaf(-scale, d, c.w + shift));
            const float w = norm == DistanceNorm::squared ? 2 * p : (d > 0 ? p / d : 0.0f);
            part_x = fmaf(w, dx, part_x);
            part_y = fmaf(w, dy, part_y);
            part_z = fmaf(w, dz, part_z);
        }
        x += part_x;
        y += part_y;
        z += part_z;
    }
    x = warp_sum(x);
    y = warp_sum(y);
    z = warp_sum(z);
    if (threadIdx.x % 32 != 0) return;
    const double weight = active ? dL_ddual[mine.cloud] * exp2(static_cast<double>(log_mass)) : 0.0;
    gradient[3 * mine.first] = static_cast<float>(weight * x);
    gradient[3 * mine.first + 1] = static_cast<float>(weight * y);
    gradient[3 * mine.first + 2] = static_cast<float>(weight * z);
}

template <DistanceNorm norm>
void gradient(const Batch& batch, const Side& side, const Side& other, float scale, const Progress* progress,
              const float* dL_ddual, View<float, 2> out, cudaStream_t stream) {
    const int64_t per_cloud = blocks_per_cloud(batch, 1);
    if (out.elements() == 0 || per_cloud == 0) return;
    sinkhorn_gradient_kernel<norm><<<blocks_for(batch.clouds() * per_cloud, 1), kThreads, 0, stream>>>(
        side, other, scale, per_cloud, progress, dL_ddual, out.data());
    STIPPLE_CHECK_LAUNCH(sinkhorn_gradient_kernel);
}

}  // namespace

void sinkhorn_backward(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
                       const SinkhornOptions& options, View<const float, 1> f, View<const float, 1> g,
                       View<const float, 1> dL_ddual, View<float, 2> dL_da, View<float, 2> dL_db, Stream stream) {
    const CurrentDevice current(a.device());
    const SideMemory side_a(a.batch, raw(stream)), side_b(b.batch, raw(stream));
    const Scratch<Progress> progress(a.batch.clouds(), raw(stream));
    const float scale = static_cast<float>(kLog2E / options.epsilon);
    prepare(a.batch.clouds(), side_a, side_b, input_of(a, weights_a, f.data()), input_of(b, weights_b, g.data()), scale,
            progress.get(), raw(stream));
    const auto run =
        options.norm == DistanceNorm::squared ? &gradient<DistanceNorm::squared> : &gradient<DistanceNorm::euclidean>;
    run(a.batch, side_a.view(), side_b.view(), scale, progress.get(), dL_ddual.data(), dL_da, raw(stream));
    run(b.batch, side_b.view(), side_a.view(), scale, progress.get(), dL_ddual.data(), dL_db, raw(stream));
}

}  // namespace stipple::ops::cuda
