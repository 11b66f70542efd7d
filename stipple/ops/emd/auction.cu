// emd on CUDA: the phases of the algorithm (README.md), and the launch of a group of blocks for each pair of clouds.
// CPU twin: auction.cpp.
//
// The work is some thousand short rounds, so latency decides. Each block of a group has the whole state, in shared
// memory up to 8192 points, and goes through all steps. Parallel steps that take long (bids of large rounds, profits,
// passes over a whole forest) are divided among the blocks of the group and published through global memory; searches
// are divided among the blocks of a cluster, where there are clusters; everything else is computed redundantly, with
// the same result in every block. The order of the lists that are divided is therefore fixed; the rest may happen in
// any order: see auction.h.

#include "stipple/ops/emd.h"
#include "stipple/ops/emd/auction_rounds.cuh"
#include "stipple/ops/emd/augmenting_paths.cuh"
#include "stipple/ops/emd/curve_order.h"
#include "stipple/ops/emd/refine.cuh"

namespace stipple::ops::cuda {
namespace matching {

template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::solve(int64_t cloud) {
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t begin = task_.batch.begin(cloud);
    const bool writes_output = rank_ == 0;
    n_ = static_cast<int>(task_.batch.end(cloud) - begin);
    const bool solvable = n_ > 0 && load(begin);
    if (!solvable) {
        for (int i = thread; i < n_ && writes_output; i += kThreads) task_.matching[begin + i] = -1;
        if (thread == 0 && writes_output) task_.cost[cloud] = task_.bound[cloud] = __int_as_float(0x7fc00000);
        return;
    }
    const double unit = ldexp(1.0, squared ? -2 * shift_ : -shift_);
    Schedule schedule{task_.relative, task_.absolute / unit, 0.0f, 0.0, false};
    factor_ = ldexpf(1.0f, sum_shift(n_));
    restart_tags();
    double cost = 0;
    for (bool started = false;;) {
        // Profits for the next auction or search. Called in one place only: the kernel is large as it is.
        const bool placed = started && schedule.may_be_last() && unassigned_count_ == 0;
        const bool search = started && schedule.may_be_last();
        if (!placed)
            update_profits(!started ? 1.0f
                           : search ? kCandidateWindow * eps_
                                    : 8.0f * eps_,
                           search ? kSearchReach * eps_ : 0.0f);
        if (!started) {
            schedule.begin(dual_bound());
        } else if (unassigned_count_ > 0 &&
                   (schedule.may_be_last() || unassigned_count_ > tolerated_unassigned(n_, false))) {
            for (bool first = true; unassigned_count_ > 0; first = false) augment(first);
            continue;
        } else {
            cost = placed ? refine(schedule) : unassigned_count_ == 0 ? mean_cost() : static_cast<double>(INFINITY);
            schedule.advance(cost, dual_bound());
            if (schedule.done) break;
            normalise_prices();
        }
        started = true;
        eps_ = schedule.eps;
        unit_ = multiply_rounded(eps_, kUnit);
        inverse_unit_ = 1.0f / unit_;
        unassign_violators();
        auction(static_cast<int>(tolerated_unassigned(n_, schedule.may_be_last())));
    }
    if (!writes_output) return;
    for (int i = thread; i < n_; i += kThreads) task_.matching[begin + i] = partner_[i];
    if (thread == 0) {
        task_.cost[cloud] = static_cast<float>(cost * unit);
        task_.bound[cloud] = static_cast<float>(schedule.bound * unit);
    }
}

/// Loads a pair of clouds and initialises the state; false when a point is not finite.
template <bool squared, class Cloud>
__device__ bool BlockSolver<squared, Cloud>::load(int64_t begin) {
    const int thread = static_cast<int>(threadIdx.x);
    const float *a = task_.a + 3 * begin, *b = task_.b + 3 * begin;
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    bool finite = true;
    for (int i = thread; i < n_; i += kThreads) {
        for (int axis = 0; axis < 3; ++axis) {
            const float p = a[3 * i + axis], q = b[3 * i + axis];
            finite = finite && isfinite(p) && isfinite(q);
            low[axis] = fminf(low[axis], fminf(p, q));
            high[axis] = fmaxf(high[axis], fmaxf(p, q));
        }
    }
    for (int axis = 0; axis < 3; ++axis) low[axis] = warp_min(low[axis]), high[axis] = warp_max(high[axis]);
    if (lane_ == 0) {
        block_shared().box[0][warp_] = make_float4(low[0], low[1], low[2], 0.0f);
        block_shared().box[1][warp_] = make_float4(high[0], high[1], high[2], 0.0f);
    }
    if (__syncthreads_or(!finite) != 0) return false;
    Extent box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (int warp = 0; warp < kWarps; ++warp) {
        const float4 l = block_shared().box[0][warp], h = block_shared().box[1][warp];
        box.low[0] = fminf(box.low[0], l.x), box.high[0] = fmaxf(box.high[0], h.x);
        box.low[1] = fminf(box.low[1], l.y), box.high[1] = fmaxf(box.high[1], h.y);
        box.low[2] = fminf(box.low[2], l.z), box.high[2] = fmaxf(box.high[2], h.z);
    }
    shift_ = scale_shift(box);
    nodes_ = (n_ + kLeafObjects * kNodeLeaves - 1) / (kLeafObjects * kNodeLeaves);
    current_list_ = unassigned_count_ = 0;
    eps_ = 0.0f;  // before the first phase
    const float scale = ldexpf(1.0f, shift_);
    for (int i = thread; i < nodes_ * kNodeLeaves * kLeafObjects; i += kThreads) {
        if (i >= n_) {  // padding, never chosen; not at infinity, see cost_from_sq
            object()[i] = make_float4(1e18f, 1e18f, 1e18f, INFINITY);
            continue;
        }
        const float *p = a + 3 * i, *q = b + 3 * i;
        point_[i] = make_float4(p[0] * scale, p[1] * scale, p[2] * scale, 0.0f);
        object()[i] = make_float4(q[0] * scale, q[1] * scale, q[2] * scale, 0.0f);
        partner_[i] = owner()[i] = kNone;
        seed_[i] = static_cast<Index>(nearest_on_curve(begin, i));
        best_bid_[i] = 0;
    }
    __syncthreads();
    build_boxes();
    update_min_prices();
    return true;
}

/// The first object that is not before a bidder on the curve, or the last one.
template <bool squared, class Cloud>
__device__ int BlockSolver<squared, Cloud>::nearest_on_curve(int64_t begin, int i) const {
    const uint32_t key = task_.keys_a[begin + i], *keys = task_.keys_b + begin;
    int low = 0;
    for (int high = n_ - 1; low < high;) {
        const int middle = (low + high) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/// Stream compaction: writes item(k) for all k < count where it is >= 0 to the list, in order; returns how many.
/// item(k) is called once for each k.
template <bool squared, class Cloud>
template <class Item>
__device__ int BlockSolver<squared, Cloud>::compact(int count, const List<Index>& to, const Item& item) {
    int total = 0;
    for (int base = 0; base < count; base += kThreads) {
        const int k = base + static_cast<int>(threadIdx.x), mine = k < count ? item(k) : -1;
        const unsigned has = __ballot_sync(kAllLanes, mine >= 0);
        if (lane_ == 0) block_shared().counts[warp_] = __popc(has);
        __syncthreads();
        int before = total;
        for (int warp = 0; warp < kWarps; ++warp) {
            if (warp < warp_) before += block_shared().counts[warp];
            total += block_shared().counts[warp];
        }
        if (mine >= 0) to.set(before + __popc(has & ((1u << lane_) - 1)), mine);
        __syncthreads();
    }
    return total;
}

/// Unassigns the bidders that violate complementary slackness for the next eps; lists all that are unassigned.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::unassign_violators() {
    unassigned_count_ = compact(n_, unassigned(), [&](int i) {
        const Index j = partner_[i];
        if (j != kNone) {
            const float4 p = point_[i], q = object()[j];
            if (add_rounded(add_rounded(cost_of(p, q), q.w), -p.w) <= eps_) return -1;
            owner()[j] = partner_[i] = kNone;
        }
        return i;
    });
}

/// Shifts prices so that the lowest is 0: they would grow from phase to phase.
template <bool squared, class Cloud>
__device__ void BlockSolver<squared, Cloud>::normalise_prices() {
    float lowest = INFINITY;
    for (int node = 0; node < nodes_; ++node) lowest = fminf(lowest, node_center()[node].w);
    price_drop_ = add_rounded(price_drop_, lowest);
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads) {
        point_[i].w = add_rounded(point_[i].w, -lowest);
        object()[i].w = add_rounded(object()[i].w, -lowest);
    }
    __syncthreads();
    update_min_prices();
}

/// The mean over n_ of a fixed-point sum over the threads of the block, exact; the same in all of them.
template <bool squared, class Cloud>
__device__ double BlockSolver<squared, Cloud>::per_point(long long sum) {
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    if (lane_ == 0) block_shared().sums[warp_] = sum;
    __syncthreads();
    sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += block_shared().sums[warp];
    __syncthreads();
    return static_cast<double>(sum) / static_cast<double>(factor_) / static_cast<double>(n_);
}

template <bool squared, class Cloud>
__device__ double BlockSolver<squared, Cloud>::mean_cost() {
    long long sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads)
        sum += to_fixed_point(cost_of(point_[i], object()[partner_[i]]), factor_);
    return per_point(sum);
}

template <bool squared, class Cloud>
__device__ double BlockSolver<squared, Cloud>::dual_bound() {
    long long sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads)
        sum += to_fixed_point(point_[i].w, factor_) - to_fixed_point(object()[i].w, factor_);
    return per_point(sum);
}

}  // namespace matching

namespace {

using namespace matching;

template <bool squared, class Cloud>
__global__ void __launch_bounds__(kThreads, 1) emd_kernel(const __grid_constant__ Task task) {
    BlockSolver<squared, Cloud> solver(task);
    const int64_t groups = gridDim.x / task.group;
    for (int64_t cloud = blockIdx.x / task.group; cloud < task.batch.clouds; cloud += groups) {
        solver.solve(cloud);
        __syncthreads();
    }
}

struct Device {
    int processors = 0, shared_bytes = 0;
    bool has_clusters = false;

    static Device current() {
        int index = 0;
        Device device;
        STIPPLE_CHECK_CUDA(cudaGetDevice(&index));
        STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&device.processors, cudaDevAttrMultiProcessorCount, index));
        STIPPLE_CHECK_CUDA(
            cudaDeviceGetAttribute(&device.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
        int major = 0;
        STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index));
        device.has_clusters = major >= 9;
        return device;
    }
    template <class Cloud>
    int64_t shared_room() const {
        return shared_bytes - static_cast<int64_t>(sizeof(BlockShared<typename Cloud::Index>));
    }
};

constexpr int64_t kPointsPerBlock = 256;                // a group has at most one block for so many points
constexpr int64_t kMaxStateBytes = int64_t{512} << 20;  // bytes: beyond that, no redundant copies

/// Cooperative: the blocks of a group wait for each other, so all have to be resident.
cudaLaunchConfig_t launch_of(int64_t blocks, const Task& task, cudaLaunchAttribute (&attributes)[2],
                             cudaStream_t stream) {
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {static_cast<unsigned>(task.cluster), 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = static_cast<size_t>(task.layout.shared_bytes);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = task.cluster > 1 ? 2 : 1;
    return config;
}

/// The largest cluster size that divides a group and keeps all blocks resident.
template <class Kernel>
int cluster_size_for(Kernel kernel, int64_t blocks, Task task, bool clusters, cudaStream_t stream) {
    for (task.cluster = kMaxCluster; clusters && task.cluster > 1; task.cluster /= 2) {
        if (task.group % task.cluster != 0) continue;
        cudaLaunchAttribute attributes[2] = {};
        cudaLaunchConfig_t config = launch_of(blocks, task, attributes, stream);
        config.attrs = &attributes[1];
        config.numAttrs = 1;
        int most = 0;
        if (cudaOccupancyMaxActiveClusters(&most, kernel, &config) != cudaSuccess) {
            cudaGetLastError();
            most = 0;
        }
        if (most >= blocks / task.cluster) return task.cluster;
    }
    return 1;
}

template <bool squared, class Cloud>
void launch(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, cudaStream_t stream) {
    const auto kernel = emd_kernel<squared, Cloud>;
    const Device device = Device::current();
    const int64_t clouds = a.batch.clouds(), largest = std::max<int64_t>(a.batch.largest(), 1);
    const UploadedBatch batch(a.batch, stream);
    const OrderedPairs pairs(a, b, batch.view(), stream);
    Task task = {};
    task.layout = Layout::of<Cloud>(largest, device.template shared_room<Cloud>());
    // As many blocks per pair of clouds as are useful, while all pairs run at once.
    const int64_t help = std::min(kMaxBlocks, (largest + kPointsPerBlock - 1) / kPointsPerBlock);
    const int64_t room = std::min(device.processors / clouds, kMaxStateBytes / (clouds * task.layout.global_bytes + 1));
    task.group = static_cast<int>(std::max<int64_t>(std::min(help, room), 1));
    const int64_t groups = std::min<int64_t>(clouds, device.processors / task.group), blocks = groups * task.group;
    const Scratch<char> state(checked_mul(blocks, task.layout.global_bytes), stream);
    const Scratch<unsigned long long> buffers(checked_mul(groups * kBuffers, largest), stream);
    STIPPLE_CHECK_CUDA(
        cudaMemsetAsync(buffers.get(), 0, groups * kBuffers * largest * sizeof(unsigned long long), stream));
    const Scratch<CandidateList<typename Cloud::Index>> candidate_lists(checked_mul(groups * 2, largest), stream);
    const Scratch<unsigned> arrived(groups, stream);
    STIPPLE_CHECK_CUDA(cudaMemsetAsync(arrived.get(), 0, groups * sizeof(unsigned), stream));
    task.a = pairs.a();
    task.b = pairs.b();
    task.keys_a = pairs.keys_a();
    task.keys_b = pairs.keys_b();
    task.batch = batch.view();
    task.relative = options.relative;
    task.absolute = options.absolute;
    task.cost = out.cost.data();
    task.bound = out.lower_bound.data();
    task.matching = pairs.matching();
    task.state = state.get();
    task.buffers = buffers.get();
    task.candidate_lists = candidate_lists.get();
    task.arrived = arrived.get();
    task.rows = largest;
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(task.layout.shared_bytes)));
    task.cluster = cluster_size_for(kernel, blocks, task, Cloud::kShared && device.has_clusters, stream);
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config = launch_of(blocks, task, attributes, stream);
    STIPPLE_CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, task));
    STIPPLE_CHECK_LAUNCH(emd_kernel);
    pairs.translate(out.matching.data());
}

template <bool squared>
void launch_for_size(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options,
                     cudaStream_t stream) {
    // Where a block has too little shared memory for the hot arrays of a small cloud, all arrays are in global memory.
    const int64_t largest = std::max<int64_t>(a.batch.largest(), 1);
    const int64_t room = Device::current().shared_room<SmallCloud>();
    if (largest <= kMaxSharedPoints && Layout::of<SmallCloud>(largest, room).hot_is_shared())
        launch<squared, SmallCloud>(a, b, out, options, stream);
    else
        launch<squared, LargeCloud>(a, b, out, options, stream);
}

}  // namespace

void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, Stream stream) {
    const CurrentDevice current(a.device());
    if (options.norm == DistanceNorm::squared)
        launch_for_size<true>(a, b, out, options, raw(stream));
    else
        launch_for_size<false>(a, b, out, options, raw(stream));
}

}  // namespace stipple::ops::cuda
