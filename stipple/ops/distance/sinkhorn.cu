// Sinkhorn on CUDA: the iterations and their result.

#include "stipple/ops/distance/sinkhorn_side.cuh"

namespace stipple::ops::cuda {
namespace {

/// Potentials in units of a new epsilon.
__global__ void __launch_bounds__(kThreads) sinkhorn_rescale_kernel(Side side, float ratio) {
    const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
    if (row >= side.batch.rows) return;
    const float log_mass = side.log_mass[row];
    if (log_mass > kNoMass) side.points[row].w = log_mass + (side.points[row].w - log_mass) * ratio;
}

/// Sum over the columns of 2^(exponent_j + shift - scale * cost), for kRows rows at once. Lanes take neighbouring
/// columns, so that a warp reads 512 bytes in one piece and uses them kRows times. Fixed order.
template <DistanceNorm norm, int kRows>
__device__ void sum_columns(const float4* __restrict__ columns, int64_t begin, int64_t end, const float4* rows,
                            const float* shift, float scale, double* sums) {
    for (int r = 0; r < kRows; ++r) sums[r] = 0;
    for (int64_t chunk = begin + threadIdx.x % 32; chunk < end; chunk += 32 * kFlush) {
        const int64_t last = min(end, chunk + 32 * kFlush);
        float part[kRows] = {};
        for (int64_t j = chunk; j < last; j += 32) {
            const float4 c = __ldg(columns + j);
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const float d = cost_of<norm>(rows[r].x - c.x, rows[r].y - c.y, rows[r].z - c.z);
                part[r] += exp2_approx(fmaf(-scale, d, c.w + shift[r]));
            }
        }
        for (int r = 0; r < kRows; ++r) sums[r] += part[r];
    }
    for (int r = 0; r < kRows; ++r) sums[r] = warp_sum(sums[r]);
}

/// The potentials that give the rows their weight. In an iteration that looks at the error, `next` receives them (in
/// powers of two) with the row's part in the error; otherwise they are written at once.
template <DistanceNorm norm, int kRows>
__global__ void __launch_bounds__(kThreads)
    sinkhorn_update_kernel(Side side, Side other, float scale, int64_t blocks_per_cloud,
                           const Progress* __restrict__ progress, float* __restrict__ next,
                           double* __restrict__ row_error) {
    const WarpRows<kRows> mine(side.batch, blocks_per_cloud, progress);
    if (mine.count == 0) return;
    const int64_t begin = other.batch.begin(mine.cloud), end = other.batch.end(mine.cloud);
    float4 rows[kRows];
    float shift[kRows], log_mass[kRows];
    for (int r = 0; r < kRows; ++r) {
        const int64_t row = mine.first + min(r, mine.count - 1);
        rows[r] = side.points[row];
        log_mass[r] = side.log_mass[row];
        shift[r] = log_mass[r] > kNoMass ? rows[r].w - log_mass[r] : 0.0f;
    }
    double sums[kRows];
    sum_columns<norm, kRows>(other.points, begin, end, rows, shift, scale, sums);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        if (r >= mine.count) break;
        const int64_t row = mine.first + r;
        const bool active = log_mass[r] > kNoMass;
        double base = shift[r], sum = sums[r];
        if (active && !(sum > 0x1p-60 && sum < 0x1p100)) {
            // The last potential was no guide, as in the first iterations: find the largest term first. All lanes have
            // the same sum, so they come here together.
            float top = kNoMass;
            for (int64_t j = begin + threadIdx.x % 32; j < end; j += 32) {
                const float4 c = __ldg(other.points + j);
                const float d = cost_of<norm>(rows[r].x - c.x, rows[r].y - c.y, rows[r].z - c.z);
                top = fmaxf(top, fmaf(-scale, d, c.w));
            }
            const float from_top = -warp_largest(top);
            sum_columns<norm, 1>(other.points, begin, end, &rows[r], &from_top, scale, &sum);
            base = from_top;
        }
        if (threadIdx.x % 32 != 0) continue;
        const double potential = base - log2(sum);
        if (next) {
            next[row] = static_cast<float>(potential);
            row_error[row] =
                active ? exp2(static_cast<double>(log_mass[r])) * fabs(exp2(shift[r] - potential) - 1) : 0.0;
        } else if (active) {
            side.points[row].w = static_cast<float>(log_mass[r] + potential);
        }
    }
}

/// One block for a cloud: stops it when the error is small enough, else takes the new potentials over.
__global__ void __launch_bounds__(kPartThreads)
    sinkhorn_look_kernel(Side side, const float* __restrict__ next, const double* __restrict__ row_error,
                         double tolerance, int iteration, Progress* __restrict__ progress, int* __restrict__ stopped) {
    __shared__ Double shared[32];
    const int64_t cloud = blockIdx.x;
    const int done = progress[cloud].done;
    if (done != 0) {
        if (threadIdx.x == 0) atomicAdd(stopped, 1);
        return;
    }
    const int64_t begin = side.batch.begin(cloud), end = side.batch.end(cloud);
    double mine = 0;
    for (int64_t row = begin + threadIdx.x; row < end; row += kPartThreads) mine += row_error[row];
    const double error = block_sum(mine, shared);
    if (error <= tolerance) {
        if (threadIdx.x == 0) {
            progress[cloud] = {1, iteration, error};
            atomicAdd(stopped, 1);
        }
        return;
    }
    for (int64_t row = begin + threadIdx.x; row < end; row += kPartThreads) {
        if (side.log_mass[row] > kNoMass) side.points[row].w = side.log_mass[row] + next[row];
    }
}

/// Mass and cost of each row of the plan, relative to the row's weight.
template <DistanceNorm norm>
__global__ void __launch_bounds__(kThreads)
    sinkhorn_plan_kernel(Side side, Side other, float scale, int64_t blocks_per_cloud, double2* __restrict__ row_plan) {
    const WarpRows<1> mine(side.batch, blocks_per_cloud, nullptr);
    if (mine.count == 0) return;
    const int64_t begin = other.batch.begin(mine.cloud), end = other.batch.end(mine.cloud);
    const float4 row = side.points[mine.first];
    const float log_mass = side.log_mass[mine.first];
    const float shift = log_mass > kNoMass ? row.w - log_mass : kNoMass;
    double mass = 0, spent = 0;
    for (int64_t chunk = begin + threadIdx.x % 32; chunk < end; chunk += 32 * kFlush) {
        const int64_t last = min(end, chunk + 32 * kFlush);
        float part_mass = 0, part_spent = 0;
        for (int64_t j = chunk; j < last; j += 32) {
            const float4 c = __ldg(other.points + j);
            const float d = cost_of<norm>(row.x - c.x, row.y - c.y, row.z - c.z);
            const float p = exp2_approx(fmaf(-scale, d, c.w + shift));
            part_mass += p;
            part_spent = fmaf(p, d, part_spent);
        }
        mass += part_mass;
        spent += part_spent;
    }
    mass = warp_sum(mass);
    spent = warp_sum(spent);
    if (threadIdx.x % 32 == 0) row_plan[mine.first] = {mass, spent};
}

struct Output {
    float *cost, *dual, *error;
    int32_t *iterations, *converged;
    float *f, *g;
};

/// One block for a pair of clouds: sums the rows in order and writes every result.
__global__ void __launch_bounds__(kPartThreads)
    sinkhorn_finish_kernel(const __grid_constant__ Side a, const __grid_constant__ Side b,
                           const double2* __restrict__ row_plan, const Progress* __restrict__ progress, int iterations,
                           double epsilon, double tolerance, const __grid_constant__ Output out) {
    __shared__ Double shared[32];
    const int64_t cloud = blockIdx.x;
    const Progress state = progress[cloud];
    const double unit = epsilon / kLog2E;  // of a potential, in powers of two
    double mass = 0, spent = 0, error = 0, dual = 0;
    for (int which = 0; which < 2; ++which) {
        const Side& side = which == 0 ? a : b;
        float* potentials = which == 0 ? out.f : out.g;
        const int64_t end = side.batch.end(cloud);
        for (int64_t row = side.batch.begin(cloud) + threadIdx.x; row < end; row += kPartThreads) {
            const float log_mass = side.log_mass[row];
            if (state.done == 2 || !(log_mass > kNoMass)) {
                potentials[row] = 0;
                continue;
            }
            const double weight = exp2(static_cast<double>(log_mass));
            const double potential = (static_cast<double>(side.points[row].w) - log_mass) * unit;
            potentials[row] = static_cast<float>(potential);
            dual += weight * potential;
            if (which == 1) continue;
            mass += weight * row_plan[row].x;
            spent += weight * row_plan[row].y;
            error += weight * fabs(row_plan[row].x - 1);
        }
    }
    mass = block_sum(mass, shared);
    spent = block_sum(spent, shared);
    error = block_sum(error, shared);
    dual = block_sum(dual, shared);
    if (threadIdx.x != 0) return;
    if (state.done == 2) {
        out.cost[cloud] = out.dual[cloud] = out.error[cloud] = NAN;
        out.iterations[cloud] = out.converged[cloud] = 0;
        return;
    }
    if (state.done == 1) error = state.error;
    out.cost[cloud] = static_cast<float>(spent);
    out.dual[cloud] = static_cast<float>(dual + epsilon * (1 - mass));
    out.error[cloud] = static_cast<float>(error);
    out.iterations[cloud] = state.done == 1 ? state.iterations : iterations;
    out.converged[cloud] = error <= tolerance;
}

// ---------------------------------------------------------------------------------------------------------------- host

template <DistanceNorm norm>
struct Solver {
    const Batch &batch_a, &batch_b;
    Side a, b;
    Scratch<Progress> progress;
    Scratch<float> next;
    Scratch<double> row_error;
    Scratch<double2> row_plan;
    Scratch<int> stopped;
    cudaStream_t stream;

    template <int kRows>
    void launch_update(const Batch& batch, const Side& side, const Side& other, float scale, bool look) const {
        const int64_t per_cloud = blocks_per_cloud(batch, kRows);
        if (per_cloud == 0) return;
        sinkhorn_update_kernel<norm, kRows><<<blocks_for(batch.clouds() * per_cloud, 1), kThreads, 0, stream>>>(
            side, other, scale, per_cloud, progress.get(), look ? next.get() : nullptr, row_error.get());
        STIPPLE_CHECK_LAUNCH(sinkhorn_update_kernel);
    }

    /// Four rows a warp once that still fills the machine; the sums are the same.
    void update(const Batch& batch, const Side& side, const Side& other, float scale, bool look) const {
        if (batch.rows() >= 16384)
            launch_update<4>(batch, side, other, scale, look);
        else
            launch_update<1>(batch, side, other, scale, look);
    }

    void rescale(const Side& side, float ratio) const {
        if (side.batch.rows == 0) return;
        sinkhorn_rescale_kernel<<<blocks_for(side.batch.rows, kThreads), kThreads, 0, stream>>>(side, ratio);
        STIPPLE_CHECK_LAUNCH(sinkhorn_rescale_kernel);
    }

    /// True when every cloud has stopped. The host waits here.
    bool look(const SinkhornOptions& options, int iteration) const {
        STIPPLE_CHECK_CUDA(cudaMemsetAsync(stopped.get(), 0, sizeof(int), stream));
        sinkhorn_look_kernel<<<blocks_for(batch_a.clouds(), 1), kPartThreads, 0, stream>>>(
            a, next.get(), row_error.get(), options.tolerance, iteration, progress.get(), stopped.get());
        STIPPLE_CHECK_LAUNCH(sinkhorn_look_kernel);
        int count = 0;
        STIPPLE_CHECK_CUDA(cudaMemcpyAsync(&count, stopped.get(), sizeof count, cudaMemcpyDeviceToHost, stream));
        STIPPLE_CHECK_CUDA(cudaStreamSynchronize(stream));
        return count == batch_a.clouds();
    }

    void run(const SinkhornOptions& options, const SinkhornResult& result) const {
        float epsilon = sinkhorn_epsilon(options, 0);
        int iteration = 0;
        for (; iteration < options.max_iterations; ++iteration) {
            const float wanted = sinkhorn_epsilon(options, iteration);
            if (wanted != epsilon) {
                rescale(a, epsilon / wanted);
                rescale(b, epsilon / wanted);
                epsilon = wanted;
            }
            const float scale = static_cast<float>(kLog2E / epsilon);
            const bool looks = sinkhorn_looks(options, iteration);
            update(batch_a, a, b, scale, looks);
            if (looks && look(options, iteration)) break;
            update(batch_b, b, a, scale, false);
        }
        const int64_t per_cloud = blocks_per_cloud(batch_a, 1);
        if (per_cloud > 0) {
            sinkhorn_plan_kernel<norm><<<blocks_for(batch_a.clouds() * per_cloud, 1), kThreads, 0, stream>>>(
                a, b, static_cast<float>(kLog2E / epsilon), per_cloud, row_plan.get());
            STIPPLE_CHECK_LAUNCH(sinkhorn_plan_kernel);
        }
        const Output out = {result.cost.data(),      result.dual.data(), result.error.data(), result.iterations.data(),
                            result.converged.data(), result.f.data(),    result.g.data()};
        sinkhorn_finish_kernel<<<blocks_for(batch_a.clouds(), 1), kPartThreads, 0, stream>>>(
            a, b, row_plan.get(), progress.get(), iteration, epsilon, options.tolerance, out);
        STIPPLE_CHECK_LAUNCH(sinkhorn_finish_kernel);
    }
};

template <DistanceNorm norm>
void solve(const Batch& batch_a, const Batch& batch_b, const Side& a, const Side& b, Scratch<Progress> progress,
           const SinkhornOptions& options, const SinkhornResult& result, cudaStream_t stream) {
    const Solver<norm> solver = {batch_a,
                                 batch_b,
                                 a,
                                 b,
                                 std::move(progress),
                                 Scratch<float>(batch_a.rows(), stream),
                                 Scratch<double>(batch_a.rows(), stream),
                                 Scratch<double2>(batch_a.rows(), stream),
                                 Scratch<int>(1, stream),
                                 stream};
    solver.run(options, result);
}

}  // namespace

void sinkhorn(const Clouds& a, const Clouds& b, View<const float, 1> weights_a, View<const float, 1> weights_b,
              const SinkhornOptions& options, const SinkhornResult& result, Stream stream) {
    const CurrentDevice current(a.device());
    const SideMemory side_a(a.batch, raw(stream)), side_b(b.batch, raw(stream));
    Scratch<Progress> progress(a.batch.clouds(), raw(stream));
    prepare(a.batch.clouds(), side_a, side_b, input_of(a, weights_a, nullptr), input_of(b, weights_b, nullptr), 0.0f,
            progress.get(), raw(stream));
    const auto run =
        options.norm == DistanceNorm::squared ? &solve<DistanceNorm::squared> : &solve<DistanceNorm::euclidean>;
    run(a.batch, b.batch, side_a.view(), side_b.view(), std::move(progress), options, result, raw(stream));
}

}  // namespace stipple::ops::cuda
