#pragma once
// From gradients to the next parameters, for all parameters of a network in one kernel, as ops::update_rules decided on
// the device: a step that is not made changes nothing, and the host need not know.
//
//   gradient_norm(gradients, norm);
//   update_rules(rules, rates, first_step, norm, loss, state, control, log);
//   optimizer_update(parameters, options, control);
//   restore_skipped(statistics, control);             running statistics of a step that is not made go back
//   average_update(averages, control);                after both: averages follow what they left

#include <span>

#include "stipple/core/dtype.h"
#include "stipple/core/fields.h"
#include "stipple/core/view.h"

namespace stipple::ops {

enum class UpdateKind {
    sgd,    // first = momentum first + g + decay p; p -= rate first
    adam,   // [Kingma and Ba 2015], decay joins the gradient: g + decay p
    adamw,  // [Loshchilov and Hutter 2019], decay apart: p -= rate decay p
};
inline constexpr const char* kUpdateKindWords[] = {"sgd", "adam", "adamw"};

struct UpdateOptions {
    UpdateKind kind = UpdateKind::adamw;
    double weight_decay = 0;  // of all parameters
    double momentum = 0.9;    // of sgd
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};
const Fields& update_fields();

/// A parameter: `count` adjacent numbers in each array, none of which overlap. What is stepped is the master where
/// there is one, and then rounded into the value; else the value. Types are f32, f16 and bf16; moments are of the type
/// of what is stepped.
struct UpdatedTensor {
    void* value = nullptr;
    DType value_type = DType::f32;
    const void* gradient = nullptr;
    DType gradient_type = DType::f32;
    void* first = nullptr;
    void* second = nullptr;  // not of sgd
    float* master = nullptr;
    int64_t count = 0;
};

/// One step of every tensor where control says is_made, else nothing. With g the gradient times gradient_factor, c1 and
/// c2 the corrections, adam and adamw are
///
///   first = beta1 first + (1 - beta1) g;   second = beta2 second + (1 - beta2) g g
///   p -= rate / c1 * first / (sqrt(second) / sqrt(c2) + eps)
///
/// control  [ControlSlot::count] of ops/update_rules.h. The tensors are on its device; lists are host memory and may go
///          once the call returns, their pointers must stay as long as a CUDA graph that holds the call
///
/// Arithmetic is float32, every operation rounded, factors rounded from float64: the same bits on CPU (any number of
/// threads) and CUDA where control is the same, but for those of NaN. Moments of 16 bits are rounded as they are
/// stored, and the step is made with what is stored; nothing else is rounded to 16 bits on the way. Reads and writes
/// every number once. On CUDA one launch for each 128 tensors, and four numbers at once in tensors all of whose arrays
/// begin at multiples of 16 bytes.
///
/// Throws Error{bad_argument} for options out of range, other types, counts below 0 or above 2^40, arrays that are
/// missing, another shape of control.
void optimizer_update(std::span<const UpdatedTensor> tensors, const UpdateOptions& options,
                      View<const double, 1> control, Stream stream = {});

/// A moving average of `count` numbers. Where a parameter has a master, that is the value to follow.
struct AveragedTensor {
    const void* value = nullptr;
    DType value_type = DType::f32;
    float* average = nullptr;
    int64_t count = 0;
};

/// average = d average + (1 - d) value with d the average_decay of control where it says is_made, else nothing. Memory,
/// arithmetic and errors as above.
void average_update(std::span<const AveragedTensor> tensors, View<const double, 1> control, Stream stream = {});

/// Numbers of any type, and what they were before the step.
struct RestoredTensor {
    void* value = nullptr;
    const void* saved = nullptr;
    DType dtype = DType::f32;
    int64_t count = 0;
};

/// value = saved where control says that the step is NOT made, else nothing. Memory and errors as above.
void restore_skipped(std::span<const RestoredTensor> tensors, View<const double, 1> control, Stream stream = {});

namespace cuda {
void optimizer_update(std::span<const UpdatedTensor> tensors, const UpdateOptions& options,
                      View<const double, 1> control, Stream stream);
void average_update(std::span<const AveragedTensor> tensors, View<const double, 1> control, Stream stream);
void restore_skipped(std::span<const RestoredTensor> tensors, View<const double, 1> control, Stream stream);
}  // namespace cuda

}  // namespace stipple::ops
