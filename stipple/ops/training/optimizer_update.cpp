#include "stipple/ops/optimizer_update.h"

#include <cstring>

#include "stipple/ops/common/require.h"
#include "stipple/ops/training/optimizer_term.h"
#include "stipple/ops/training/tensor_list.h"

namespace stipple::ops {
namespace cpu {
namespace {

constexpr int64_t kPiece = 1024;  // numbers that are floats at a time, in the first cache

bool is_made(View<const double, 1> control) {
    return control(ControlSlot::is_made) != 0;
}

/// Stores floats, and leaves them as they are stored.
void store_and_round(float* numbers, DType dtype, int64_t first, int64_t count, void* to) {
    from_floats(numbers, dtype, first, count, to);
    if (dtype != DType::f32) to_floats(to, dtype, first, count, numbers);
}

template <UpdateKind kKind>
void update_piece(const UpdatedTensor& tensor, const UpdateFactors& factors, int64_t begin, int64_t end) {
    float value[kPiece], gradient[kPiece], first[kPiece], second[kPiece];
    const int64_t count = end - begin;
    void* const stepped = tensor.master != nullptr ? tensor.master : tensor.value;
    const DType type = tensor.master != nullptr ? DType::f32 : tensor.value_type;
    to_floats(stepped, type, begin, count, value);
    to_floats(tensor.gradient, tensor.gradient_type, begin, count, gradient);
    to_floats(tensor.first, type, begin, count, first);
    if constexpr (kKind == UpdateKind::sgd)
        std::fill_n(second, count, 0.0f);
    else
        to_floats(tensor.second, type, begin, count, second);
    for (int64_t i = 0; i < count; ++i) update_moments<kKind>(factors, gradient[i], value[i], first[i], second[i]);
    store_and_round(first, type, begin, count, tensor.first);
    if constexpr (kKind != UpdateKind::sgd) store_and_round(second, type, begin, count, tensor.second);
    for (int64_t i = 0; i < count; ++i) value[i] = updated_value<kKind>(factors, value[i], first[i], second[i]);
    from_floats(value, type, begin, count, stepped);
    if (tensor.master != nullptr) from_floats(value, tensor.value_type, begin, count, tensor.value);
}

void optimizer_update(std::span<const UpdatedTensor> tensors, const UpdateOptions& options,
                      View<const double, 1> control) {
    if (!is_made(control)) return;
    const UpdateFactors factors = update_factors(options, control.data());
    for_pieces(tensors, kPiece, [&](const UpdatedTensor& tensor, int64_t begin, int64_t end, int64_t) {
        switch (options.kind) {
            case UpdateKind::sgd: return update_piece<UpdateKind::sgd>(tensor, factors, begin, end);
            case UpdateKind::adam: return update_piece<UpdateKind::adam>(tensor, factors, begin, end);
            case UpdateKind::adamw: return update_piece<UpdateKind::adamw>(tensor, factors, begin, end);
        }
    });
}

void average_update(std::span<const AveragedTensor> tensors, View<const double, 1> control) {
    if (!is_made(control)) return;
    const AverageFactors factors = average_factors(control.data());
    for_pieces(tensors, kPiece, [&](const AveragedTensor& tensor, int64_t begin, int64_t end, int64_t) {
        float value[kPiece];
        to_floats(tensor.value, tensor.value_type, begin, end - begin, value);
        for (int64_t i = begin; i < end; ++i)
            tensor.average[i] = updated_average(factors, tensor.average[i], value[i - begin]);
    });
}

void restore_skipped(std::span<const RestoredTensor> tensors, View<const double, 1> control) {
    if (is_made(control)) return;
    for_pieces(tensors, kPiece, [&](const RestoredTensor& tensor, int64_t begin, int64_t end, int64_t) {
        const int64_t size = size_of(tensor.dtype);
        std::memcpy(static_cast<char*>(tensor.value) + begin * size,
                    static_cast<const char*>(tensor.saved) + begin * size, static_cast<size_t>((end - begin) * size));
    });
}

}  // namespace
}  // namespace cpu

namespace {

void require_control(const char* op, View<const double, 1> control) {
    require_output<const double, 1>(op, "control", control, {ControlSlot::count}, control.device());
}

}  // namespace

const Fields& update_fields() {
    using Options = UpdateOptions;
    static const Fields fields = {
        field<&Options::kind>("kind", "How gradients become the next parameters").words(kUpdateKindWords),
        field<&Options::weight_decay>("weight_decay", "How much parameters are drawn to 0").from(0),
        field<&Options::momentum>("momentum", "Of sgd: the share of the last step in the next").from(0).below(1),
        field<&Options::beta1>("beta1", "Of adam: the decay of the mean of gradients").from(0).below(1),
        field<&Options::beta2>("beta2", "Of adam: the decay of the mean of their squares").from(0).below(1),
        field<&Options::eps>("eps", "Of adam: what is added to the divisor").above(0)};
    return fields;
}

void optimizer_update(std::span<const UpdatedTensor> tensors, const UpdateOptions& options,
                      View<const double, 1> control, [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "optimizer_update";
    require_control(kOp, control);
    check_fields(update_fields(), &options,
                 [](const Field& field) { return std::string("optimizer_update: ") + field.name; });
    for (size_t i = 0; i < tensors.size(); ++i) {
        const UpdatedTensor& tensor = tensors[i];
        require_number_type(kOp, "a value", tensor.value_type);
        require_number_type(kOp, "a gradient", tensor.gradient_type);
        const bool has_moments =
            tensor.first != nullptr && (options.kind == UpdateKind::sgd || tensor.second != nullptr);
        require_tensor(kOp, "tensor", i, tensor.value != nullptr && tensor.gradient != nullptr && has_moments,
                       tensor.count);
    }
    switch (control.device().type) {
        case DeviceType::cpu: return cpu::optimizer_update(tensors, options, control);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::optimizer_update, tensors, options, control, stream);
    }
}

void average_update(std::span<const AveragedTensor> tensors, View<const double, 1> control,
                    [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "average_update";
    require_control(kOp, control);
    for (size_t i = 0; i < tensors.size(); ++i) {
        require_number_type(kOp, "a value", tensors[i].value_type);
        require_tensor(kOp, "tensor", i, tensors[i].value != nullptr && tensors[i].average != nullptr,
                       tensors[i].count);
    }
    switch (control.device().type) {
        case DeviceType::cpu: return cpu::average_update(tensors, control);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::average_update, tensors, control, stream);
    }
}

void restore_skipped(std::span<const RestoredTensor> tensors, View<const double, 1> control,
                     [[maybe_unused]] Stream stream) {
    constexpr const char* kOp = "restore_skipped";
    require_control(kOp, control);
    for (size_t i = 0; i < tensors.size(); ++i)
        require_tensor(kOp, "tensor", i, tensors[i].value != nullptr && tensors[i].saved != nullptr, tensors[i].count);
    switch (control.device().type) {
        case DeviceType::cpu: return cpu::restore_skipped(tensors, control);
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda::restore_skipped, tensors, control, stream);
    }
}

}  // namespace stipple::ops
