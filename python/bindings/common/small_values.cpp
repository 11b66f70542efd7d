#include "python/bindings/common/small_values.h"

#include <fmt/format.h>

namespace stipple::python {
namespace {

[[noreturn]] void refuse(py::handle object, const char* name, std::string_view wanted) {
    throw py::type_error(fmt::format("{}: {}; wanted is {}", name, type_name(object), wanted));
}

template <class Values>
py::tuple numbers_tuple(const Values& values) {
    py::tuple made(values.size());
    for (size_t i = 0; i < values.size(); ++i) made[i] = values[i];
    return made;
}

}  // namespace

std::string text_of(py::handle object, const char* name) {
    if (!PyUnicode_Check(object.ptr())) refuse(object, name, "a str");
    return object.cast<std::string>();
}

std::map<std::string, std::string> text_map_of(py::handle object, const char* name) {
    std::map<std::string, std::string> found;
    if (object.is_none()) return found;
    if (!PyDict_Check(object.ptr())) refuse(object, name, "a dict");
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(object)) {
        const std::string text =
            PyBool_Check(value.ptr()) ? (value.cast<bool>() ? "true" : "false") : std::string(py::str(value));
        found.emplace(text_of(key, name), text);
    }
    return found;
}

py::object sequence_part(const py::object& sequence, const char* name, int count, int i) {
    const Py_ssize_t size = PySequence_Check(sequence.ptr()) ? PySequence_Size(sequence.ptr()) : -1;
    if (size != count) {
        PyErr_Clear();
        refuse(sequence, name, fmt::format("a tuple of {}", count));
    }
    auto part = py::reinterpret_steal<py::object>(PySequence_GetItem(sequence.ptr(), i));
    if (!part) throw py::error_already_set();
    return part;
}

py::str str_of(std::string_view text) {
    return py::str(text.data(), text.size());
}

py::tuple tuple_of(const std::vector<std::string>& texts) {
    py::tuple made(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) made[i] = str_of(texts[i]);
    return made;
}

py::tuple tuple_of(const std::vector<double>& numbers) {
    return numbers_tuple(numbers);
}

py::tuple tuple_of(const std::vector<int64_t>& numbers) {
    return numbers_tuple(numbers);
}

py::dict dict_of(const std::map<std::string, std::string>& map) {
    py::dict made;
    for (const auto& [key, value] : map) made[str_of(key)] = str_of(value);
    return made;
}

}  // namespace stipple::python
