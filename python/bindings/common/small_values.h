#pragma once
// Texts, maps and short lists between Python and C++, where <pybind11/stl.h> would be too much, and numpy arrays that
// view what C++ keeps.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python/bindings/common/call.h"
#include "python/bindings/common/values.h"

namespace stipple::python {

/// TypeError that names the argument for what is no str.
std::string text_of(py::handle object, const char* name);
/// A dict; values that are no text become what str() makes of them, True and False "true" and "false". None is empty.
std::map<std::string, std::string> text_map_of(py::handle object, const char* name);
/// Part i of any sequence of `count` parts.
py::object sequence_part(const py::object& sequence, const char* name, int count, int i);

py::str str_of(std::string_view text);
py::tuple tuple_of(const std::vector<std::string>& texts);
/// The words of an enumeration.
template <size_t N>
py::tuple words_of(const char* const (&words)[N]) {
    return tuple_of(std::vector<std::string>(words, words + N));
}
py::tuple tuple_of(const std::vector<double>& numbers);
py::tuple tuple_of(const std::vector<int64_t>& numbers);
py::dict dict_of(const std::map<std::string, std::string>& map);
template <class T>
py::object or_none(const std::optional<T>& value) {
    return value ? py::cast(*value) : py::none();
}

/// A numpy array of memory that `owner` keeps. CPU.
template <class T, int Rank>
ArrayResult view_numpy(View<T, Rank> view, std::shared_ptr<void> owner, bool is_writable = false) {
    ArrayObject array;
    array.info.set_shape({view.shape().data(), static_cast<size_t>(Rank)});
    array.info.data = const_cast<std::remove_const_t<T>*>(view.data());
    array.info.dtype = dtype_of<std::remove_const_t<T>>;
    array.info.is_writable = is_writable;
    array.owner = std::move(owner);
    return py::reinterpret_steal<ArrayResult>(numpy_view(array).release());
}

}  // namespace stipple::python
