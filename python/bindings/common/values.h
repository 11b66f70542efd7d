#pragma once
// Arguments and results that are no arrays of the caller's kind: paths, a few numbers, lists of C++.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "python/bindings/common/array_object.h"
#include "stipple/core/array.h"
#include "stipple/core/atomic_file.h"

namespace stipple::python {

/// A str, bytes or anything with __fspath__.
class PathLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(PathLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};
/// A few numbers: a tuple, a list or an array.
class NumbersLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(NumbersLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

/// The bytes of a path as the file system has them. TypeError names the argument.
std::string path_of(const py::object& path, const char* name = "path");

/// Any sequence or array of numbers, as float64.
std::vector<double> numbers_of(py::handle object, const char* name);
/// Exactly N of them.
template <size_t N>
std::array<double, N> numbers_of(py::handle object, const char* name) {
    const std::vector<double> list = numbers_of(object, name);
    STIPPLE_REQUIRE(list.size() == N, "{}: {} numbers; wanted are {}", name, list.size(), N);
    std::array<double, N> numbers;
    for (size_t i = 0; i < N; ++i) numbers[i] = list[i];
    return numbers;
}
/// Texts of a list or a tuple.
std::vector<std::string> texts_of(py::handle object, const char* name);

/// One warning of Python (stipple.io.FileWarning) for each sentence.
void warn(const std::vector<std::string>& sentences);
/// Warns where points of an argument were left out because they are not finite, in the words of the command line.
void warn_of_nonfinite(const std::string& argument, int64_t nonfinite, int64_t points);
void bind_warning(py::module_& io);

/// A numpy array of numbers that C++ made, which owns them. `shape` may differ from the list's in rank alone.
py::object numpy_of(std::shared_ptr<void> owner, const void* data, DType dtype, std::span<const int64_t> shape);

template <class T>
struct ItemOf {
    using Number = T;
    static constexpr int64_t kWidth = 0;
};
template <class T, size_t N>
struct ItemOf<std::array<T, N>> {
    using Number = T;
    static constexpr int64_t kWidth = N;
};

/// [n], or [n, k] for items of k numbers; nothing is copied.
template <class Item>
py::object numpy_of(std::vector<Item>&& list, DType dtype = dtype_of<typename ItemOf<Item>::Number>) {
    auto owner = std::make_shared<std::vector<Item>>(std::move(list));
    const int64_t shape[] = {static_cast<int64_t>(owner->size()), ItemOf<Item>::kWidth};
    const void* data = owner->data();
    return numpy_of(std::move(owner), data, dtype, {shape, ItemOf<Item>::kWidth == 0 ? size_t{1} : size_t{2}});
}

/// The same for a mask of 0 and 1, as booleans, which is what numpy chooses rows by.
inline py::object numpy_mask(std::vector<uint8_t>&& list) {
    return numpy_of(std::move(list), DType::boolean);
}

template <class T, int Rank>
py::object numpy_of(Array<T, Rank>&& array, DType dtype = dtype_of<T>) {
    auto owner = std::make_shared<Array<T, Rank>>(std::move(array));
    const auto shape = owner->shape();
    const void* data = owner->data();
    return numpy_of(std::move(owner), data, dtype, {shape.data(), shape.size()});
}

/// A copy of a few numbers.
template <size_t N>
py::tuple tuple_of(const std::array<double, N>& numbers) {
    py::tuple made(N);
    for (size_t i = 0; i < N; ++i) made[i] = py::float_(numbers[i]);
    return made;
}

inline Overwrite overwrite_of(bool overwrite) {
    return overwrite ? Overwrite::allow : Overwrite::refuse;
}

}  // namespace stipple::python

namespace pybind11::detail {
template <>
struct handle_type_name<stipple::python::PathLike> {
    static constexpr auto name = const_name("PathLike");
};
template <>
struct handle_type_name<stipple::python::NumbersLike> {
    static constexpr auto name = const_name("NumbersLike");
};
}  // namespace pybind11::detail
