#include "python/bindings/common/errors.h"

#include <string>

namespace stipple::python {
namespace {

/// What docs/errors.md names as base class, in the order of the codes. Null: the builtin itself is raised.
PyObject* builtin_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::internal: return PyExc_RuntimeError;
        case ErrorCode::bad_argument: return PyExc_ValueError;
        case ErrorCode::bad_config: return PyExc_ValueError;
        case ErrorCode::bad_file: return PyExc_ValueError;
        case ErrorCode::cannot_write: return PyExc_OSError;
        case ErrorCode::out_of_memory: return PyExc_MemoryError;
        case ErrorCode::no_device: return PyExc_RuntimeError;
        case ErrorCode::cuda: return PyExc_RuntimeError;
        case ErrorCode::not_finite: return PyExc_ArithmeticError;
        case ErrorCode::check_failed: return PyExc_AssertionError;
        case ErrorCode::lost_rank: return PyExc_RuntimeError;
        case ErrorCode::interrupted: return PyExc_KeyboardInterrupt;
        case ErrorCode::terminated: return PyExc_SystemExit;
    }
    return PyExc_RuntimeError;
}

constexpr size_t kCodes = static_cast<size_t>(ErrorCode::terminated) + 1;
PyObject* g_classes[kCodes] = {};  // as long as the process: exceptions may come late

py::object place_of(const Place& place) {
    if (place.path.empty() && !place.line && !place.offset) return py::none();
    py::dict found;
    found["path"] = place.path;
    found["line"] = place.line ? py::object(py::int_(*place.line)) : py::none();
    found["offset"] = place.offset ? py::object(py::int_(*place.offset)) : py::none();
    return found;
}

}  // namespace

void raise(const Error& error) {
    const py::handle type = g_classes[static_cast<size_t>(error.code())];
    const ErrorRule& rule = rule_of(error.code());
    if (error.code() == ErrorCode::terminated) {
        PyErr_SetObject(type.ptr(), py::int_(rule.exit_code).ptr());
        return;
    }
    try {
        const py::object exception = type(py::str(error.what()));
        exception.attr("code") = py::str(rule.name.data(), rule.name.size());
        exception.attr("place") = place_of(error.place());
        exception.attr("hint") = error.hint().empty() ? py::object(py::none()) : py::str(error.hint());
        if (!error.hint().empty()) {  // which tracebacks print from Python 3.11 on
            py::list notes;
            notes.append("hint: " + error.hint());
            exception.attr("__notes__") = notes;
        }
        PyErr_SetObject(type.ptr(), exception.ptr());
    } catch (py::error_already_set& failed) {
        failed.restore();
    }
}

void bind_errors(py::module_& module) {
    const auto error = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
        "stipple.Error",
        "What stipple raises. code: the name of the kind of error; place: None, or a dict of path, line and offset;\n"
        "hint: None, or what to do about it. docs/errors.md lists the classes.",
        PyExc_Exception, nullptr));
    if (!error) throw py::error_already_set();
    error.attr("code") = "";
    error.attr("place") = py::none();
    error.attr("hint") = py::none();
    module.attr("Error") = error;
    for (const ErrorRule& rule : error_table()) {
        const std::string name(rule.python_exception);
        PyObject* base = builtin_of(rule.code);
        PyObject*& slot = g_classes[static_cast<size_t>(rule.code)];
        if (name.rfind("stipple.", 0) != 0) {
            slot = base;
            continue;
        }
        const py::tuple bases = py::make_tuple(error, py::handle(base));
        slot = PyErr_NewException(name.c_str(), bases.ptr(), nullptr);
        if (!slot) throw py::error_already_set();
        module.attr(name.substr(8).c_str()) = py::handle(slot);
        py::handle(slot).attr("__doc__") =
            "docs/errors.md: the code " + std::string(rule.name) + ", exit status " + std::to_string(rule.exit_code);
    }
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const Error& known) {
            raise(known);
        } catch (const std::bad_alloc&) {
            raise(Error(ErrorCode::out_of_memory, "out of memory"));
        } catch (const py::cast_error&) {  // a key or a part of an argument; pybind11 says RuntimeError
            PyErr_SetString(PyExc_TypeError, "a part of an argument is of another type than wanted");
        }
    });
}

}  // namespace stipple::python
