// A block of threads makes a cloud of the batch: one thread finds the cloud and how it moves, all of them which rows
// there are (rows.cuh), then each thread moves points on their way from the set to the batch.

#include "stipple/data/augmentation/motion.h"
#include "stipple/data/augmentation/rows.cuh"
#include "stipple/ops/common/cuda_launch.h"

namespace stipple::data::cuda {
namespace {

struct Arguments {
    const float* stored;
    const int64_t* offsets;
    const int32_t* stored_labels;
    int64_t total, clouds, largest;  // of the set: points, clouds, points of a cloud
    const int32_t* order;
    int64_t order_size;
    const int64_t *first, *epoch;
    int64_t used, first_label;
    uint64_t seed;
    AugmentOptions options;
    MotionOptions motion;
    int capacity;  // rows in shared memory, a power of two; 0: the rows stay as they are
    uint32_t points;
    float* out;
    int64_t* out_labels;  // or null
};

/// What all threads of a block need to know.
struct Plan {
    ItemRandom random;
    Motion motion;
    int64_t begin;  // of the cloud in the set
    int32_t size;   // used points; 0: there is no such cloud
};

__device__ Plan plan_of(const Arguments& a, int64_t place) {
    const int64_t at = *a.first + place, epoch = *a.epoch;
    const int64_t item = at >= 0 && at < a.order_size ? a.order[at] : -1;
    Plan plan = {ItemRandom(a.seed, epoch, item), {}, 0, 0};
    if (item < 0 || item >= a.clouds || epoch < 0) return plan;
    plan.begin = a.offsets[item];
    const int64_t size = a.offsets[item + 1] - plan.begin;
    if (plan.begin < 0 || size <= 0 || size > a.largest || plan.begin > a.total - size) return plan;
    plan.size = static_cast<int32_t>(a.used > 0 ? min(size, a.used) : size);
    plan.motion = motion_of(a.motion, plan.random);
    return plan;
}

__global__ void __launch_bounds__(kThreads, 4) augment_clouds(const Arguments a) {
    extern __shared__ uint64_t memory[];  // keys, then the rows' sources
    __shared__ RowWork work;
    __shared__ alignas(Plan) unsigned char plan_memory[sizeof(Plan)];  // a Plan has a constructor
    Plan& plan = *reinterpret_cast<Plan*>(plan_memory);
    if (threadIdx.x == 0) plan = plan_of(a, blockIdx.x);
    __syncthreads();
    float* const out = a.out + 3 * int64_t{blockIdx.x} * a.points;
    int64_t* const out_labels = a.out_labels ? a.out_labels + int64_t{blockIdx.x} * a.points : nullptr;
    if (plan.size == 0) {
        for (uint32_t i = threadIdx.x; i < a.points; i += kThreads) {
            for (int axis = 0; axis < 3; ++axis) out[3 * int64_t{i} + axis] = nanf("");
            if (out_labels) out_labels[i] = 0;
        }
        return;
    }
    Rows rows = {&work, memory, reinterpret_cast<uint16_t*>(memory + a.capacity), plan.size};
    if (a.capacity > 0) select_rows(rows, a.options, plan.random);
    const auto count = static_cast<uint32_t>(rows.count);
    const bool moves = plan.motion.moves_points();
    const Rng jitter = plan.random.of(Draws::jitter);
    for (uint32_t i = threadIdx.x; i < a.points; i += kThreads) {
        const uint32_t row = i < count ? i : i % count;
        const auto index = static_cast<int32_t>(a.capacity > 0 ? rows.source[row] : row);
        const float* const from = a.stored + 3 * (plan.begin + index);
        float p[3] = {from[0], from[1], from[2]};
        if (moves && is_finite_point(p)) move_point(plan.motion, a.motion, jitter, index, p);
        for (int axis = 0; axis < 3; ++axis) out[3 * int64_t{i} + axis] = p[axis];
        if (out_labels) out_labels[i] = a.stored_labels[plan.begin + index] - a.first_label;
    }
}

}  // namespace

void augment_batch(const StoredClouds& set, const AugmentBatch& batch, View<float, 2> points, View<int64_t, 1> labels,
                   Stream stream) {
    const ops::cuda::CurrentDevice current(points.device());
    Arguments a = {};
    a.stored = set.points.data(), a.offsets = set.offsets.data();
    a.total = set.points.size(0), a.clouds = set.offsets.size(0) - 1, a.largest = set.largest;
    a.order = batch.order.data(), a.order_size = batch.order.size(0);
    a.first = batch.first, a.epoch = batch.epoch;
    a.used = batch.used, a.first_label = batch.first_label;
    a.seed = batch.seed, a.options = batch.options, a.motion = motion_options(batch.options);
    a.points = static_cast<uint32_t>(batch.points), a.out = points.data();
    if (labels.size(0) > 0) a.stored_labels = set.labels.data(), a.out_labels = labels.data();
    const int64_t largest = batch.used > 0 ? std::min(set.largest, batch.used) : set.largest;
    if (changes_rows(batch.options))
        for (a.capacity = 32; a.capacity < largest;) a.capacity *= 2;
    const size_t bytes = static_cast<size_t>(a.capacity) * (sizeof(uint64_t) + sizeof(uint16_t));
    augment_clouds<<<static_cast<unsigned>(batch.clouds), kThreads, bytes, ops::cuda::raw(stream)>>>(a);
    STIPPLE_CHECK_LAUNCH(augment_clouds);
}

}  // namespace stipple::data::cuda
