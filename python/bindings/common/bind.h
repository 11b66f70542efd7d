#pragma once
// What every source of the bindings includes: pybind11, and the few types that give signatures readable names.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <utility>

namespace stipple::python {

namespace py = pybind11;

/// An argument that Call takes as an array. Anything passes here; Call says what is wrong with it, by name.
class ArrayLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(ArrayLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

/// Where the clouds of a ragged batch begin: clouds + 1 whole numbers, an array or a list of them; or None.
class OffsetsLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(OffsetsLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

/// How many of each cloud: a whole number for all, or a list of one number for each.
class CountsLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(CountsLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

/// A result: an array of the kind of the function's first array argument.
class ArrayResult : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(ArrayResult, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

/// Runs work that touches no Python object while other threads of Python go on. What it throws arrives as it would
/// without.
template <class Work>
decltype(auto) without_gil(Work&& work) {
    const py::gil_scoped_release released;
    return std::forward<Work>(work)();
}

}  // namespace stipple::python

namespace pybind11::detail {
template <>
struct handle_type_name<stipple::python::ArrayLike> {
    static constexpr auto name = const_name("ArrayLike");
};
template <>
struct handle_type_name<stipple::python::OffsetsLike> {
    static constexpr auto name = const_name("OffsetsLike");
};
template <>
struct handle_type_name<stipple::python::CountsLike> {
    static constexpr auto name = const_name("CountsLike");
};
template <>
struct handle_type_name<stipple::python::ArrayResult> {
    static constexpr auto name = const_name("ArrayResult");
};
}  // namespace pybind11::detail
