#pragma once
// Arrays of other libraries: how they come in, and how results go out as the same kind.

#include "python/bindings/common/array_object.h"

namespace stipple::python {

/// Whose array an argument is, and so what results are.
enum class Kind { numpy, torch, stipple, other };

/// What came in: its description, whose it is, and what keeps it alive beyond the call. Without an owner the argument
/// itself must be held.
struct Foreign {
    ArrayInfo info;
    Kind kind = Kind::numpy;
    std::shared_ptr<void> owner;
    Stream stream;  // in whose order the numbers may be read
};

/// Describes a numpy array, a stipple.Array or anything with __dlpack__, without a copy. `name` is the argument's.
///
/// Throws TypeError for what is no array and for element types that stipple has none of (big-endian, structured,
/// objects, complex), and masked arrays; Error{bad_argument} for more than 8 dimensions, strides that are no whole
/// number of elements, and devices that are neither CPU nor CUDA.
Foreign describe(py::handle object, const char* name);

/// The array as a result of the given kind; `like` is the argument that decided it.
py::object give_as(ArrayObject array, Kind kind, py::handle like);

/// An uninitialised tensor of torch's own memory; None for a type that torch has none of.
py::object empty_tensor(DType dtype, std::span<const int64_t> shape, Device device);
void* tensor_data(py::handle tensor);
/// The tensor in another shape of as many numbers; bytes as booleans where those are wanted.
py::object tensor_as(const py::object& tensor, DType dtype, std::span<const int64_t> shape);

/// "numpy.ndarray", for messages.
std::string type_name(py::handle object);

/// numpy.asarray for what has neither __dlpack__ nor is numpy's: lists, scalars, other buffers.
py::object numpy_asarray(py::handle object);

/// Keeps a Python object alive; lets it go with the GIL held, whoever drops it.
std::shared_ptr<void> keep(py::object object);

/// As stipple.asarray does.
ArrayObject as_array(py::handle object, py::handle dtype, py::handle device, bool may_copy);

}  // namespace stipple::python
