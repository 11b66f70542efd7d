#pragma once
// stipple::Error as Python's exceptions: the table of core/error.h, with the builtin that each class derives from.

#include "python/bindings/common/bind.h"
#include "stipple/core/error.h"

namespace stipple::python {

/// Makes stipple.Error and its classes, and sees to it that what C++ throws becomes one of them.
void bind_errors(py::module_& module);

/// Sets Python's error from ours: the class of its code, with .code, .place and .hint.
void raise(const Error& error);

}  // namespace stipple::python
