// Each number is one thread's, which reads it, computes and writes it back: no order to keep, and one pass over memory.
// Every block first asks control whether the step is made.

#include <vector>

#include "stipple/ops/optimizer_update.h"
#include "stipple/ops/training/optimizer_term.h"
#include "stipple/ops/training/tensor_list.cuh"

namespace stipple::ops::cuda {
namespace {

constexpr int kPerBlock = 2 * kListThreads * kEach;  // numbers: two vectors a thread

__device__ inline bool is_made(const double* control) {
    return control[ControlSlot::is_made] != 0;
}

struct UpdateItem {
    void* value;
    const void* gradient;
    void* first;
    void* second;
    float* master;
    int64_t count;
    uint8_t value_type, gradient_type;  // DType; 128 of them fit into a launch's parameters
    bool is_aligned;
};

template <UpdateKind kKind, int kCount>
__device__ inline void update_numbers(const UpdateItem& item, const UpdateFactors& factors, int64_t at) {
    const auto value_type = static_cast<DType>(item.value_type);
    const bool has_master = item.master != nullptr;
    const DType type = has_master ? DType::f32 : value_type;
    void* const stepped = has_master ? item.master : item.value;
    float value[kCount], gradient[kCount], first[kCount], second[kCount] = {};
    load_numbers(stepped, type, at, value);
    load_numbers(item.gradient, static_cast<DType>(item.gradient_type), at, gradient);
    load_numbers(item.first, type, at, first);
    if constexpr (kKind != UpdateKind::sgd) load_numbers(item.second, type, at, second);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        update_moments<kKind>(factors, gradient[i], value[i], first[i], second[i]);
        first[i] = rounded(first[i], type);
        if constexpr (kKind != UpdateKind::sgd) second[i] = rounded(second[i], type);
        value[i] = updated_value<kKind>(factors, value[i], first[i], second[i]);
    }
    store_numbers(first, item.first, type, at);
    if constexpr (kKind != UpdateKind::sgd) store_numbers(second, item.second, type, at);
    store_numbers(value, stepped, type, at);
    if (has_master) store_numbers(value, item.value, value_type, at);
}

template <UpdateKind kKind>
__global__ void __launch_bounds__(kListThreads)
    update_kernel(const __grid_constant__ TensorList<UpdateItem> list, const __grid_constant__ UpdateOptions options,
                  const double* control) {
    if (!is_made(control)) return;
    __shared__ UpdateFactors factors;
    if (threadIdx.x == 0) factors = update_factors(options, control);  // float64, which few GPUs have much of
    __syncthreads();
    const UpdateFactors f = factors;
    int32_t block_of_tensor;
    const UpdateItem& item = list.items[find_tensor(list, static_cast<int32_t>(blockIdx.x), block_of_tensor)];
    for_numbers<kPerBlock>(item.count, block_of_tensor, item.is_aligned,
                           [&]<int kCount>(int64_t at) { update_numbers<kKind, kCount>(item, f, at); });
}

struct AverageItem {
    const void* value;
    float* average;
    int64_t count;
    DType value_type;
    bool is_aligned;
};

__global__ void __launch_bounds__(kListThreads)
    average_kernel(const __grid_constant__ TensorList<AverageItem> list, const double* control) {
    if (!is_made(control)) return;
    const AverageFactors factors = average_factors(control);
    int32_t block_of_tensor;
    const AverageItem& item = list.items[find_tensor(list, static_cast<int32_t>(blockIdx.x), block_of_tensor)];
    for_numbers<kPerBlock>(item.count, block_of_tensor, item.is_aligned, [&]<int kCount>(int64_t at) {
        float value[kCount], average[kCount];
        load_numbers(item.value, item.value_type, at, value);
        load_numbers(item.average, DType::f32, at, average);
#pragma unroll
        for (int i = 0; i < kCount; ++i) average[i] = updated_average(factors, average[i], value[i]);
        store_numbers(average, item.average, DType::f32, at);
    });
}

/// Bytes, whatever they mean: words of 16 where both arrays are aligned, else one by one. Statistics are few.
struct RestoreItem {
    char* value;
    const char* saved;
    int64_t count;  // bytes
    bool is_aligned;
};

constexpr int kBytesPerBlock = 8192;

__global__ void __launch_bounds__(kListThreads)
    restore_kernel(const __grid_constant__ TensorList<RestoreItem> list, const double* control) {
    if (is_made(control)) return;
    int32_t block_of_tensor;
    const RestoreItem& item = list.items[find_tensor(list, static_cast<int32_t>(blockIdx.x), block_of_tensor)];
    const int64_t begin = static_cast<int64_t>(block_of_tensor) * kBytesPerBlock;
    const int here = static_cast<int>(min(item.count - begin, static_cast<int64_t>(kBytesPerBlock)));
    const int words = item.is_aligned ? here / 16 : 0;
    for (int i = threadIdx.x; i < words; i += kListThreads)
        reinterpret_cast<uint4*>(item.value + begin)[i] = reinterpret_cast<const uint4*>(item.saved + begin)[i];
    for (int i = words * 16 + threadIdx.x; i < here; i += kListThreads) item.value[begin + i] = item.saved[begin + i];
}

}  // namespace

void optimizer_update(std::span<const UpdatedTensor> tensors, const UpdateOptions& options,
                      View<const double, 1> control, Stream stream) {
    const CurrentDevice current(control.device());
    const auto item = [](const UpdatedTensor& t) {
        return UpdateItem{.value = t.value,
                          .gradient = t.gradient,
                          .first = t.first,
                          .second = t.second,
                          .master = t.master,
                          .count = t.count,
                          .value_type = static_cast<uint8_t>(t.value_type),
                          .gradient_type = static_cast<uint8_t>(t.gradient_type),
                          .is_aligned = are_aligned(t.value, t.gradient, t.first, t.second, t.master)};
    };
    for_lists<UpdateItem>(tensors, kPerBlock, item, [&](const TensorList<UpdateItem>& list, unsigned blocks) {
        const double* numbers = control.data();
        switch (options.kind) {
            case UpdateKind::sgd:
                update_kernel<UpdateKind::sgd><<<blocks, kListThreads, 0, raw(stream)>>>(list, options, numbers);
                break;
            case UpdateKind::adam:
                update_kernel<UpdateKind::adam><<<blocks, kListThreads, 0, raw(stream)>>>(list, options, numbers);
                break;
            case UpdateKind::adamw:
                update_kernel<UpdateKind::adamw><<<blocks, kListThreads, 0, raw(stream)>>>(list, options, numbers);
                break;
        }
        STIPPLE_CHECK_LAUNCH(update_kernel);
    });
}

void average_update(std::span<const AveragedTensor> tensors, View<const double, 1> control, Stream stream) {
    const CurrentDevice current(control.device());
    const auto item = [](const AveragedTensor& t) {
        return AverageItem{t.value, t.average, t.count, t.value_type, are_aligned(t.value, t.average)};
    };
    for_lists<AverageItem>(tensors, kPerBlock, item, [&](const TensorList<AverageItem>& list, unsigned blocks) {
        average_kernel<<<blocks, kListThreads, 0, raw(stream)>>>(list, control.data());
        STIPPLE_CHECK_LAUNCH(average_kernel);
    });
}

void restore_skipped(std::span<const RestoredTensor> tensors, View<const double, 1> control, Stream stream) {
    const CurrentDevice current(control.device());
    std::vector<RestoreItem> bytes;
    for (const RestoredTensor& t : tensors)
        bytes.push_back({static_cast<char*>(t.value), static_cast<const char*>(t.saved), t.count * size_of(t.dtype),
                         are_aligned(t.value, t.saved)});
    const auto item = [](const RestoreItem& one) { return one; };
    for_lists<RestoreItem>(std::span<const RestoreItem>(bytes), kBytesPerBlock, item,
                           [&](const TensorList<RestoreItem>& list, unsigned blocks) {
                               restore_kernel<<<blocks, kListThreads, 0, raw(stream)>>>(list, control.data());
                               STIPPLE_CHECK_LAUNCH(restore_kernel);
                           });
}

}  // namespace stipple::ops::cuda
