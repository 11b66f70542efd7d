#pragma once
// stipple.Array: numbers of any type and rank on one device, shared with whoever asks by DLPack, and the description of
// an array that a caller gave.

#include <memory>
#include <span>
#include <vector>

#include "python/bindings/common/bind.h"
#include "python/bindings/common/dlpack.h"
#include "stipple/core/buffer.h"
#include "stipple/core/dtype.h"
#include "stipple/core/view.h"

namespace stipple::python {

constexpr int kMostDimensions = 8;

/// Where an array's numbers are. Owns nothing.
struct ArrayInfo {
    void* data = nullptr;
    DType dtype = DType::f32;
    int rank = 0;
    int64_t shape[kMostDimensions] = {};
    int64_t strides[kMostDimensions] = {};  // in elements
    Device device;
    bool is_writable = true;

    int64_t elements() const;
    bool is_contiguous() const;
    void set_shape(std::span<const int64_t> extents);  // contiguous
};

/// "[1024, 3]", "(3072, 3)" for a message.
std::string shape_of(const ArrayInfo& info);

/// The array that Python sees. Copies of it share the numbers.
struct ArrayObject {
    ArrayInfo info;
    std::shared_ptr<void> owner;  // keeps info.data alive: a Buffer, or the object of another library
    Stream stream;                // on which a GPU may still be writing
};

/// Takes over a buffer of contiguous numbers.
ArrayObject make_array(Buffer buffer, DType dtype, std::span<const int64_t> shape, Stream stream = {});

/// The numbers, contiguous, on a device: waits for the stream that made them. Copies.
ArrayObject copy_to(const ArrayObject& array, Device device);

/// A numpy array that views the numbers and keeps them alive. CPU.
py::object numpy_view(const ArrayObject& array);

/// A DLPack capsule, which shares the numbers until whoever takes it lets go.
py::capsule to_dlpack(const ArrayObject& array, bool is_versioned);

dlpack::TypeTag tag_of(DType dtype);
dlpack::DeviceTag tag_of(Device device);

/// A numpy dtype for each type but bfloat16, which throws TypeError. Made once.
const py::dtype& numpy_dtype(DType dtype);
/// "float32" or a numpy dtype; names the argument in a TypeError otherwise.
DType dtype_argument(py::handle dtype, const char* name);
/// None, "cpu", "cuda:1", or what str() gives of the object (a torch.device).
Device device_argument(py::handle device);

void bind_array(py::module_& module);

}  // namespace stipple::python
