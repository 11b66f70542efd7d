#include "python/bindings/common/values.h"

#include <fmt/format.h>

#include "python/bindings/common/foreign.h"
#include "stipple/core/number_text.h"

namespace stipple::python {
namespace {

PyObject* g_warning = nullptr;  // stipple.io.FileWarning

}  // namespace

std::string path_of(const py::object& path, const char* name) {
    PyObject* bytes = nullptr;
    if (!PyUnicode_FSConverter(path.ptr(), &bytes)) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
        PyErr_Clear();
        throw py::type_error(fmt::format("{}: {}; wanted is a str or a path", name, type_name(path)));
    }
    const auto held = py::reinterpret_steal<py::bytes>(bytes);
    return {PyBytes_AS_STRING(held.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(held.ptr()))};
}

std::vector<double> numbers_of(py::handle object, const char* name) {
    const bool is_text = PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr());
    const auto items =
        py::reinterpret_steal<py::object>(is_text ? nullptr : PySequence_Fast(object.ptr(), "no sequence"));
    std::vector<double> numbers;
    bool is_right = items.ptr() != nullptr;
    for (Py_ssize_t i = 0; is_right && i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
        numbers.push_back(PyFloat_AsDouble(PySequence_Fast_GET_ITEM(items.ptr(), i)));
        is_right = !PyErr_Occurred();
    }
    if (is_right) return numbers;
    PyErr_Clear();
    throw py::type_error(fmt::format("{}: {}; wanted is a list of numbers", name, type_name(object)));
}

std::vector<std::string> texts_of(py::handle object, const char* name) {
    std::vector<std::string> texts;
    const bool is_list = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
    for (size_t i = 0; is_list && i < py::len(object); ++i) {
        const py::object item = object[py::int_(i)];
        if (!PyUnicode_Check(item.ptr())) break;
        texts.push_back(item.cast<std::string>());
    }
    if (!is_list || texts.size() != py::len(object))
        throw py::type_error(fmt::format("{}: wanted is a list of texts", name));
    return texts;
}

void warn(const std::vector<std::string>& sentences) {
    for (const std::string& sentence : sentences)
        if (PyErr_WarnEx(g_warning, sentence.c_str(), 1) != 0) throw py::error_already_set();
}

void warn_of_nonfinite(const std::string& argument, int64_t nonfinite, int64_t points) {
    if (nonfinite > 0)
        warn(std::vector<std::string>{
            fmt::format("{}: {} of {} points not finite, dropped", argument, grouped(nonfinite), grouped(points))});
}

void bind_warning(py::module_& io) {
    g_warning = PyErr_NewExceptionWithDoc("stipple.io.FileWarning",
                                          "What reading or writing a file dropped, rounded or guessed.",
                                          PyExc_UserWarning, nullptr);
    if (!g_warning) throw py::error_already_set();
    io.attr("FileWarning") = py::handle(g_warning);
}

py::object numpy_of(std::shared_ptr<void> owner, const void* data, DType dtype, std::span<const int64_t> shape) {
    ArrayObject array;
    array.info.dtype = dtype;
    array.info.set_shape(shape);
    array.info.data = const_cast<void*>(data);
    array.owner = std::move(owner);
    return numpy_view(array);
}

}  // namespace stipple::python
