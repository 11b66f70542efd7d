// emd on CUDA: the algorithm of emd_auction.h, a group of blocks for each pair of clouds.
//
// A group is a thread block cluster (compute capability 9.0) or one block. Its state is in global scratch that stays in
// L2, read past L1 where another block may have written it; the many short rounds work on copies in registers and
// shared memory instead, and blocks tell each other what changed by messages into each other's shared memory. Row scans
// (bids, profits) give every bidder as many lanes as there are and read the objects from shared memory; searches give
// every object a thread, which takes the points of the front from shared memory, so a search needs no atomics on floats
// and no reductions but the lowest level. Which thread does what does not show in the result: see emd_auction.h.

#include <cstddef>

#include "stipple/ops/emd_bids.cuh"
#include "stipple/ops/emd_order.h"
#include "stipple/ops/emd_search.cuh"
#include "stipple/ops/emd_wide.cuh"

namespace stipple::ops::cuda {
namespace matching {

template <bool squared, int objects>
__device__ void Group<squared, objects>::solve(int64_t cloud) {
    const int64_t begin = task_.batch.begin(cloud);
    n_ = static_cast<int>(task_.batch.end(cloud) - begin);
    if (n_ == 0) {
        if (thread_ == 0) task_.cost[cloud] = task_.bound[cloud] = __int_as_float(0x7fc00000);
        return;
    }
    if (!load(begin)) {
        for (int i = thread_; i < n_; i += threads_) task_.matching[begin + i] = -1;
        if (thread_ == 0) task_.cost[cloud] = task_.bound[cloud] = __int_as_float(0x7fc00000);
        sync();  // nobody clears the control of the next cloud while it is read here
        return;
    }
    // Only eps lives through a phase: registers are short.
    const auto unit = [&] { return ldexp(1.0, squared ? -2 * shift_ : -shift_); };
    const auto schedule = [&] { return Schedule{task_.relative, task_.absolute / unit(), eps_, false}; };
    factor_ = ldexpf(1.0f, sum_shift(n_));
    update_profits();
    sum(true);
    Schedule first = schedule();
    first.begin(per_point(profit_sum_));
    eps_ = first.eps;
    for (;;) {
        release();
        auction();
        if (left_count_ > 0) update_profits();
        while (left_count_ > 0) {
            if constexpr (objects > 0)
                place_in_registers();
            else
                place();
        }
        update_profits();
        sum(false);
        Schedule next = schedule();
        next.advance(per_point(cost_sum_), per_point(profit_sum_ - price_sum_));
        if (next.done) break;
        eps_ = next.eps;
        lower_prices();
    }
    for (int i = thread_; i < n_; i += threads_) task_.matching[begin + i] = __ldcg(&w_.partner[i]);
    if (thread_ == 0) {
        task_.cost[cloud] = static_cast<float>(per_point(cost_sum_) * unit());
        task_.bound[cloud] = static_cast<float>(certified(per_point(profit_sum_ - price_sum_)) * unit());
    }
    sync();
}

template <bool squared, int objects>
__device__ bool Group<squared, objects>::load(int64_t begin) {
    Control* c = w_.control;
    if (thread_ == 0) {
        *c = Control{};
        for (int axis = 0; axis < 3; ++axis) c->low[axis] = INT_MAX, c->high[axis] = INT_MIN;
        __threadfence();
    }
    sync();
    const float *a = task_.a + 3 * begin, *b = task_.b + 3 * begin;
    int low[3] = {INT_MAX, INT_MAX, INT_MAX}, high[3] = {INT_MIN, INT_MIN, INT_MIN};
    bool finite = true;
    for (int i = thread_; i < n_; i += threads_) {
        for (int axis = 0; axis < 3; ++axis) {
            const float p = a[3 * i + axis], q = b[3 * i + axis];
            finite = finite && isfinite(p) && isfinite(q);
            low[axis] = min(low[axis], min(ordered(p), ordered(q)));
            high[axis] = max(high[axis], max(ordered(p), ordered(q)));
        }
    }
    for (int axis = 0; axis < 3; ++axis) {
        for (int step = 16; step > 0; step /= 2) {
            low[axis] = min(low[axis], __shfl_xor_sync(kFull, low[axis], step));
            high[axis] = max(high[axis], __shfl_xor_sync(kFull, high[axis], step));
        }
        if ((threadIdx.x & 31) == 0) {
            atomicMin(&c->low[axis], low[axis]);
            atomicMax(&c->high[axis], high[axis]);
        }
    }
    if (!finite) atomicOr(&c->bad, 1);
    sync();
    if (__ldcg(&c->bad) != 0) return false;
    Extent box;
    for (int axis = 0; axis < 3; ++axis) {
        box.low[axis] = unordered(__ldcg(&c->low[axis]));
        box.high[axis] = unordered(__ldcg(&c->high[axis]));
    }
    shift_ = scale_shift(box);
    const float scale = ldexpf(1.0f, shift_);
    for (int i = thread_; i < n_; i += threads_) {
        const float *p = a + 3 * i, *q = b + 3 * i;
        __stcg(&w_.point[i], make_float4(p[0] * scale, p[1] * scale, p[2] * scale, 0.0f));
        __stcg(&w_.object[i], make_float4(q[0] * scale, q[1] * scale, q[2] * scale, 0.0f));
        __stcg(&w_.partner[i], -1);
        __stcg(&w_.owner[i], -1);
        __stcg(&w_.guess[i], make_int2(i, i + 1 < n_ ? i + 1 : 0));
    }
    sync();
    static_assert(kChunk == 32, "a chunk for a warp");
    for (int base = thread_ - static_cast<int>(threadIdx.x & 31); base < n_; base += threads_) {
        const Box chunk = warp_box(__ldcg(&w_.object[min(base + static_cast<int>(threadIdx.x & 31), n_ - 1)]));
        if ((threadIdx.x & 31) == 0) {
            __stcg(&w_.box[base / kChunk].middle, chunk.middle);
            __stcg(&w_.box[base / kChunk].half, chunk.half);
        }
    }
    sync();
    return true;
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::add(unsigned long long* total, long long value) const {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kFull, value, step);
    if ((threadIdx.x & 31) == 0) atomicAdd(total, static_cast<unsigned long long>(value));
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::sum(bool profits_only) {
    Control* c = w_.control;
    if (thread_ == 0) {
        c->cost = c->profit = c->price = 0;
        c->lowest_price = 0x7f800000u;
        __threadfence();
    }
    sync();
    long long profit = 0, price = 0, cost = 0;
    float lowest = INFINITY;
    for (int i = thread_; i < n_; i += threads_) {
        const float4 p = __ldcg(&w_.point[i]), q = __ldcg(&w_.object[i]);
        profit += fixed(p.w, factor_);
        if (profits_only) continue;
        price += fixed(q.w, factor_);
        lowest = fminf(lowest, q.w);
        cost += fixed(cost_of(p, __ldcg(&w_.object[__ldcg(&w_.partner[i])])), factor_);
    }
    add(&c->profit, profit);
    if (!profits_only) {
        add(&c->price, price);
        add(&c->cost, cost);
        for (int step = 16; step > 0; step /= 2) lowest = fminf(lowest, __shfl_xor_sync(kFull, lowest, step));
        if ((threadIdx.x & 31) == 0) atomicMin(&c->lowest_price, __float_as_uint(lowest));
    }
    sync();
    profit_sum_ = static_cast<long long>(__ldcg(&c->profit));
    price_sum_ = static_cast<long long>(__ldcg(&c->price));
    cost_sum_ = static_cast<long long>(__ldcg(&c->cost));
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::lower_prices() {
    const float lowest = __uint_as_float(__ldcg(&w_.control->lowest_price));
    for (int i = thread_; i < n_; i += threads_) {
        float4 p = __ldcg(&w_.point[i]), q = __ldcg(&w_.object[i]);
        p.w -= lowest, q.w -= lowest;
        __stcg(&w_.point[i], p);
        __stcg(&w_.object[i], q);
    }
    sync();
}

template <bool squared, int objects>
template <class Keep>
__device__ void Group<squared, objects>::collect_left(const Keep& keep) {
    which_ ^= 1;
    if (thread_ == 0) __stcg(&w_.control->left[which_], 0);
    sync();
    for (int base = 0; base < n_; base += threads_) {
        const int i = base + thread_;
        push(i < n_ && !keep(i), i, left_list(which_), &w_.control->left[which_]);
    }
    sync();
    left_count_ = __ldcg(&w_.control->left[which_]);
}

template <bool squared, int objects>
__device__ void Group<squared, objects>::release() {
    collect_left([&](int i) {
        __stcg(&w_.offer[i], 0ull);  // prices may have fallen since
        const int j = __ldcg(&w_.partner[i]);
        if (j < 0) return false;
        const float4 p = __ldcg(&w_.point[i]), q = __ldcg(&w_.object[j]);
        if ((add_rounded(cost_of(p, q), q.w)) - p.w <= eps_) return true;
        __stcg(&w_.owner[j], -1);
        __stcg(&w_.partner[i], -1);
        return false;
    });
}
}  // namespace matching

namespace {

using namespace matching;

template <bool squared, int objects>
__global__ void __launch_bounds__(kThreads, objects == 1 ? 2 : 1)
    emd_kernel(const Task task, const Workspace workspace) {
    extern __shared__ float4 memory[];
    Group<squared, objects> group(task, workspace, *reinterpret_cast<Shared<objects>*>(memory));
    const int64_t groups = gridDim.x / task.group;
    for (int64_t cloud = blockIdx.x / task.group; cloud < task.batch.clouds; cloud += groups) group.solve(cloud);
}

struct Launch {
    int group = 1, objects = 0;
    bool replicas = false;
    int64_t groups = 0;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    /// Calls with a kernel that holds all objects of a search in registers, if there is one.
    template <bool squared, class Call>
    auto with_kernel(const Call& call) const {
        switch (objects) {
            case 1: return call(emd_kernel<squared, 1>);
            case 2: return call(emd_kernel<squared, 2>);
            case 4: return call(emd_kernel<squared, 4>);
            default: return call(emd_kernel<squared, 0>);
        }
    }

    template <int objects>
    static size_t bytes(int64_t replica) {
        return std::max(sizeof(Shared<objects>), offsetof(Shared<objects>, front) + static_cast<size_t>(replica));
    }
    static size_t bytes_for(int objects, int64_t replica) {
        return objects == 0   ? bytes<0>(replica)
               : objects == 1 ? bytes<1>(replica)
               : objects == 2 ? bytes<2>(replica)
                              : bytes<4>(replica);
    }

    void set_group(int blocks, int64_t largest, int shared_bytes) {
        group = blocks;
        const int64_t threads = int64_t{group} * kThreads;
        objects = largest <= threads ? 1 : largest <= 2 * threads ? 2 : largest <= 4 * threads ? 4 : 0;
        if (bytes_for(objects, 0) > static_cast<size_t>(shared_bytes)) objects = 0;
        config.dynamicSmemBytes = bytes_for(objects, Replica::bytes(largest));
        replicas = config.dynamicSmemBytes <= static_cast<size_t>(shared_bytes);
        if (!replicas) config.dynamicSmemBytes = bytes_for(objects, 0);
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {static_cast<unsigned>(group), 1, 1};
        config.attrs = &attribute;
        config.numAttrs = group > 1 ? 1 : 0;
        config.blockDim = dim3(kThreads);
    }

    /// How many groups run at once; 0 when the device grants no such group.
    template <bool squared>
    int resident() {
        return with_kernel<squared>([&](auto kernel) {
            config.gridDim = dim3(static_cast<unsigned>(group));
            int fit = 0;
            const bool asked =
                cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(config.dynamicSmemBytes)) == cudaSuccess &&
                (group <= 8 ||
                 cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess) &&
                cudaOccupancyMaxActiveClusters(&fit, kernel, &config) == cudaSuccess;
            if (!asked) cudaGetLastError();
            return asked ? fit : 0;
        });
    }
};

template <bool squared>
void launch(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, cudaStream_t stream) {
    const int64_t clouds = a.batch.clouds(), largest = std::max<int64_t>(a.batch.largest(), 1);
    int device = 0, processors = 0, major = 0, shared_bytes = 0;
    STIPPLE_CHECK_CUDA(cudaGetDevice(&device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    STIPPLE_CHECK_CUDA(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    // As many blocks for a pair of clouds as have an object for every thread, while all pairs run at once.
    Launch launch;
    int group = 1;
    while (major >= 9 && group < kMostBlocks && int64_t{group} * kThreads < largest) group *= 2;
    for (launch.set_group(group, largest, shared_bytes); group > 1; launch.set_group(group, largest, shared_bytes)) {
        if (clouds * group <= 2 * processors && launch.resident<squared>() >= clouds) break;
        group /= 2;
    }
    launch.groups = std::min<int64_t>(clouds, std::max(1, 2 * processors / group));
    launch.config.stream = stream;
    launch.config.gridDim = dim3(static_cast<unsigned>(launch.groups * group));
    const int64_t size = (std::max(largest, int64_t{group} * kThreads * launch.objects) + kChunk - 1) / kChunk * kChunk;
    const int64_t rows = checked_mul(launch.groups, size);
    const Scratch<Control> control(launch.groups, stream);
    const Scratch<float4> points(2 * rows, stream);
    const Scratch<unsigned long long> keys(2 * rows, stream);
    const Scratch<int2> guess(rows, stream);
    const Scratch<Box> boxes(rows / kChunk, stream);
    const Scratch<int> ints(13 * rows, stream);
    const UploadedBatch batch(a.batch, stream);
    const OrderedPairs pairs(a, b, batch.view(), stream);
    int* next = ints.get();
    const auto take = [&](int64_t count) {
        int* taken = next;
        next += count * rows;
        return taken;
    };
    Workspace w = {};
    w.control = control.get();
    w.point = points.get();
    w.object = points.get() + rows;
    w.box = boxes.get();
    w.offer = keys.get();
    w.found = keys.get() + rows;
    w.guess = guess.get();
    w.partner = take(1);
    w.owner = take(1);
    w.level = take(1);
    w.parent = take(1);
    w.settled = take(1);
    w.reach = take(1);
    w.root = take(1);
    w.left = take(2);
    w.front = take(4);
    w.size = size;
    Task task = {};
    task.a = pairs.a();
    task.b = pairs.b();
    task.batch = batch.view();
    task.relative = options.relative;
    task.absolute = options.absolute;
    task.cost = out.cost.data();
    task.bound = out.lower_bound.data();
    task.matching = pairs.matching();
    task.group = group;
    task.replicas = launch.replicas;
    launch.with_kernel<squared>([&](auto kernel) {
        STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(launch.config.dynamicSmemBytes)));
        // Without it the second block of a processor may find no shared memory left.
        STIPPLE_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                                cudaSharedmemCarveoutMaxShared));
        STIPPLE_CHECK_CUDA(cudaLaunchKernelEx(&launch.config, kernel, task, w));
    });
    STIPPLE_CHECK_LAUNCH(emd_kernel);
    pairs.translate(out.matching.data());
}

}  // namespace

void emd(const Clouds& a, const Clouds& b, const EmdOutput& out, const EmdOptions& options, Stream stream) {
    const CurrentDevice current(a.device());
    if (options.squared)
        launch<true>(a, b, out, options, raw(stream));
    else
        launch<false>(a, b, out, options, raw(stream));
}

}  // namespace stipple::ops::cuda
