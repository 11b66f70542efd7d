// emd on CUDA: the algorithm of emd/auction.h, a group of blocks for each pair of clouds.
//
// The work is some thousand short rounds, so their latency counts. Each block of a group has the whole state, in its
// shared memory up to 8192 points, and goes through all steps as if it were alone. What takes long and need not wait
// for itself, the bids of large rounds, the profits and passes over a whole forest, is divided among the blocks of the
// group and told through global memory; searches are shared by the blocks of a cluster, where there are clusters;
// everything else every block finds out for itself, and all find the same. The order of lists that are divided is
// therefore fixed; the rest may happen in any order: see emd/auction.h.

#include "stipple/ops/emd.h"
#include "stipple/ops/emd/auction_rounds.cuh"
#include "stipple/ops/emd/augmenting_paths.cuh"
#include "stipple/ops/emd/curve_order.h"
#include "stipple/ops/emd/refine.cuh"

namespace stipple::ops::cuda {
namespace matching {

template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::solve(int64_t cloud) {
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t begin = task_.batch.begin(cloud);
    const bool speaks = rank_ == 0;
    n_ = static_cast<int>(task_.batch.end(cloud) - begin);
    const bool solvable = n_ > 0 && load(begin);
    if (!solvable) {
        for (int i = thread; i < n_ && speaks; i += kThreads) task_.matching[begin + i] = -1;
        if (thread == 0 && speaks) task_.cost[cloud] = task_.bound[cloud] = __int_as_float(0x7fc00000);
        return;
    }
    const double unit = ldexp(1.0, squared ? -2 * shift_ : -shift_);
    Schedule schedule{task_.relative, task_.absolute / unit, 0.0f, 0.0, false};
    factor_ = ldexpf(1.0f, sum_shift(n_));
    renew_tags();
    double cost = 0;
    for (bool begun = false;;) {
        // What the next auction needs to know, or a search. Called in one place: the kernel is large as it is.
        const bool placed = begun && schedule.may_end() && left_count_ == 0;
        const bool search = begun && schedule.may_end();
        if (!placed)
            update_profits(!begun ? 1.0f : search ? kWindow * eps_ : 8.0f * eps_, search ? kSearchReach * eps_ : 0.0f);
        if (!begun) {
            schedule.begin(proven_bound());
        } else if (left_count_ > 0 && (schedule.may_end() || left_count_ > left_over(n_, false))) {
            for (bool first = true; left_count_ > 0; first = false) place(first);
            continue;
        } else {
            cost = placed ? finish(schedule) : left_count_ == 0 ? mean_cost() : static_cast<double>(INFINITY);
            schedule.advance(cost, proven_bound());
            if (schedule.done) break;
            lower_prices();
        }
        begun = true;
        eps_ = schedule.eps;
        unit_ = multiply_rounded(eps_, kUnit);
        inverse_unit_ = 1.0f / unit_;
        release();
        auction(static_cast<int>(left_over(n_, schedule.may_end())));
    }
    if (!speaks) return;
    for (int i = thread; i < n_; i += kThreads) task_.matching[begin + i] = partner_[i];
    if (thread == 0) {
        task_.cost[cloud] = static_cast<float>(cost * unit);
        task_.bound[cloud] = static_cast<float>(schedule.bound * unit);
    }
}

/// False when a point is not finite.
template <bool squared, class Cloud>
__device__ bool Replica<squared, Cloud>::load(int64_t begin) {
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
        board().box[0][warp_] = make_float4(low[0], low[1], low[2], 0.0f);
        board().box[1][warp_] = make_float4(high[0], high[1], high[2], 0.0f);
    }
    if (__syncthreads_or(!finite) != 0) return false;
    Extent box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (int warp = 0; warp < kWarps; ++warp) {
        const float4 l = board().box[0][warp], h = board().box[1][warp];
        box.low[0] = fminf(box.low[0], l.x), box.high[0] = fmaxf(box.high[0], h.x);
        box.low[1] = fminf(box.low[1], l.y), box.high[1] = fmaxf(box.high[1], h.y);
        box.low[2] = fminf(box.low[2], l.z), box.high[2] = fmaxf(box.high[2], h.z);
    }
    shift_ = scale_shift(box);
    groups_ = (n_ + kChunk * kGroup - 1) / (kChunk * kGroup);
    which_ = left_count_ = 0;
    eps_ = 0.0f;  // no phase yet
    const float scale = ldexpf(1.0f, shift_);
    for (int i = thread; i < groups_ * kGroup * kChunk; i += kThreads) {
        if (i >= n_) {  // nobody wants these; not infinitely far, see root_of
            object()[i] = make_float4(1e18f, 1e18f, 1e18f, INFINITY);
            continue;
        }
        const float *p = a + 3 * i, *q = b + 3 * i;
        point_[i] = make_float4(p[0] * scale, p[1] * scale, p[2] * scale, 0.0f);
        object()[i] = make_float4(q[0] * scale, q[1] * scale, q[2] * scale, 0.0f);
        partner_[i] = owner()[i] = kNobody;
        home_[i] = static_cast<Index>(nearest_on_curve(begin, i));
        offer_[i] = 0;
    }
    __syncthreads();
    build_boxes();
    bound_prices();
    return true;
}

/// The first object that is not before a point on the curve, or the last one.
template <bool squared, class Cloud>
__device__ int Replica<squared, Cloud>::nearest_on_curve(int64_t begin, int i) const {
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

/// Writes item(k) for all k < count that have one (>= 0) to the list, in their order; returns how many. item(k) is
/// called once, for all k of one thread count after another.
template <bool squared, class Cloud>
template <class Item>
__device__ int Replica<squared, Cloud>::compact(int count, const List<Index>& to, const Item& item) {
    int total = 0;
    for (int base = 0; base < count; base += kThreads) {
        const int k = base + static_cast<int>(threadIdx.x), mine = k < count ? item(k) : -1;
        const unsigned has = __ballot_sync(kAllLanes, mine >= 0);
        if (lane_ == 0) board().counts[warp_] = __popc(has);
        __syncthreads();
        int before = total;
        for (int warp = 0; warp < kWarps; ++warp) {
            if (warp < warp_) before += board().counts[warp];
            total += board().counts[warp];
        }
        if (mine >= 0) to.set(before + __popc(has & ((1u << lane_) - 1)), mine);
        __syncthreads();
    }
    return total;
}

/// Takes apart the pairs that the next eps does not allow; finds who is without a partner.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::release() {
    left_count_ = compact(n_, left(), [&](int i) {
        const Index j = partner_[i];
        if (j != kNobody) {
            const float4 p = point_[i], q = object()[j];
            if (add_rounded(add_rounded(cost_of(p, q), q.w), -p.w) <= eps_) return -1;
            owner()[j] = partner_[i] = kNobody;
        }
        return i;
    });
}

/// The lowest price becomes 0: they would grow from phase to phase.
template <bool squared, class Cloud>
__device__ void Replica<squared, Cloud>::lower_prices() {
    float lowest = INFINITY;
    for (int group = 0; group < groups_; ++group) lowest = fminf(lowest, group_middle()[group].w);
    lowered_ = add_rounded(lowered_, lowest);
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads) {
        point_[i].w = add_rounded(point_[i].w, -lowest);
        object()[i].w = add_rounded(object()[i].w, -lowest);
    }
    __syncthreads();
    bound_prices();
}

/// The mean over n_ of a sum over the threads of the block, exact; the same in all of them.
template <bool squared, class Cloud>
__device__ double Replica<squared, Cloud>::per_point(long long sum) {
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    if (lane_ == 0) board().sums[warp_] = sum;
    __syncthreads();
    sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += board().sums[warp];
    __syncthreads();
    return static_cast<double>(sum) / static_cast<double>(factor_) / static_cast<double>(n_);
}

template <bool squared, class Cloud>
__device__ double Replica<squared, Cloud>::mean_cost() {
    long long sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads)
        sum += fixed(cost_of(point_[i], object()[partner_[i]]), factor_);
    return per_point(sum);
}

template <bool squared, class Cloud>
__device__ double Replica<squared, Cloud>::proven_bound() {
    long long sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads)
        sum += fixed(point_[i].w, factor_) - fixed(object()[i].w, factor_);
    return per_point(sum);
}

}  // namespace matching

namespace {

using namespace matching;

template <bool squared, class Cloud>
__global__ void __launch_bounds__(kThreads, 1) emd_kernel(const __grid_constant__ Task task) {
    Replica<squared, Cloud> replica(task);
    const int64_t groups = gridDim.x / task.group;
    for (int64_t cloud = blockIdx.x / task.group; cloud < task.batch.clouds; cloud += groups) {
        replica.solve(cloud);
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
        return shared_bytes - static_cast<int64_t>(sizeof(Board<typename Cloud::Index>));
    }
};

constexpr int64_t kPointsOfABlock = 256;            // a group has no more blocks than it has these
constexpr int64_t kMostState = int64_t{512} << 20;  // bytes: beyond that, no copies for the sake of speed

/// Cooperative: the blocks of a group wait for each other, so all have to run.
cudaLaunchConfig_t launch_of(int64_t blocks, const Task& task, cudaLaunchAttribute (&attributes)[2],
                             cudaStream_t stream) {
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {static_cast<unsigned>(task.team), 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = static_cast<size_t>(task.layout.shared_bytes);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = task.team > 1 ? 2 : 1;
    return config;
}

/// The largest cluster that divides a group and lets all blocks run at once.
template <class Kernel>
int team_of(Kernel kernel, int64_t blocks, Task task, bool clusters, cudaStream_t stream) {
    for (task.team = kMostTeam; clusters && task.team > 1; task.team /= 2) {
        if (task.group % task.team != 0) continue;
        cudaLaunchAttribute attributes[2] = {};
        cudaLaunchConfig_t config = launch_of(blocks, task, attributes, stream);
        config.attrs = &attributes[1];
        config.numAttrs = 1;
        int most = 0;
        if (cudaOccupancyMaxActiveClusters(&most, kernel, &config) != cudaSuccess) {
            cudaGetLastError();
            most = 0;
        }
        if (most >= blocks / task.team) return task.team;
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
    // As many blocks for a pair of clouds as help it, while all pairs run at once.
    const int64_t help = std::min(kMostBlocks, (largest + kPointsOfABlock - 1) / kPointsOfABlock);
    const int64_t room = std::min(device.processors / clouds, kMostState / (clouds * task.layout.global_bytes + 1));
    task.group = static_cast<int>(std::max<int64_t>(std::min(help, room), 1));
    const int64_t groups = std::min<int64_t>(clouds, device.processors / task.group), blocks = groups * task.group;
    const Scratch<char> state(checked_mul(blocks, task.layout.global_bytes), stream);
    const Scratch<unsigned long long> exchange(checked_mul(groups * kBuffers, largest), stream);
    STIPPLE_CHECK_CUDA(
        cudaMemsetAsync(exchange.get(), 0, groups * kBuffers * largest * sizeof(unsigned long long), stream));
    const Scratch<Memory<typename Cloud::Index>> memories(checked_mul(groups * 2, largest), stream);
    const Scratch<unsigned> met(groups, stream);
    STIPPLE_CHECK_CUDA(cudaMemsetAsync(met.get(), 0, groups * sizeof(unsigned), stream));
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
    task.exchange = exchange.get();
    task.memories = memories.get();
    task.met = met.get();
    task.rows = largest;
    STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(task.layout.shared_bytes)));
    task.team = team_of(kernel, blocks, task, Cloud::kShared && device.has_clusters, stream);
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config = launch_of(blocks, task, attributes, stream);
    STIPPLE_CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, task));
    STIPPLE_CHECK_LAUNCH(emd_kernel);
    pairs.translate(out.matching.data());
}

template <bool squared>
void launch_for_size(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options,
                     cudaStream_t stream) {
    // Where a block has too little shared memory for a small cloud's, all of it goes to global memory.
    const int64_t largest = std::max<int64_t>(a.batch.largest(), 1);
    const int64_t room = Device::current().shared_room<SmallCloud>();
    if (largest <= kMostInShared && Layout::of<SmallCloud>(largest, room).hot_is_shared())
        launch<squared, SmallCloud>(a, b, out, options, stream);
    else
        launch<squared, LargeCloud>(a, b, out, options, stream);
}

}  // namespace

void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, Stream stream) {
    const CurrentDevice current(a.device());
    if (options.squared)
        launch_for_size<true>(a, b, out, options, raw(stream));
    else
        launch_for_size<false>(a, b, out, options, raw(stream));
}

}  // namespace stipple::ops::cuda
