#include "python/bindings/common/record.h"

#include <structseq.h>

namespace stipple::python {

PyTypeObject* make_record_type(py::module_& module, const char* name, const char* const* fields, int count) {
    // Names and fields live as long as the type: it keeps pointers to them.
    auto* full = new std::string(module.attr("__name__").cast<std::string>() + "." + name);
    auto* list = new std::vector<PyStructSequence_Field>;
    for (int i = 0; i < count; ++i) list->push_back({fields[i], nullptr});
    list->push_back({nullptr, nullptr});
    PyStructSequence_Desc description{full->c_str(), "A tuple whose parts have names.", list->data(), count};
    PyTypeObject* type = PyStructSequence_NewType(&description);
    if (!type) throw py::error_already_set();
    module.attr(name) = py::handle(reinterpret_cast<PyObject*>(type));
    return type;
}

PyObject* make_record(PyTypeObject* type, py::object* parts, int count) {
    PyObject* made = PyStructSequence_New(type);
    if (!made) throw py::error_already_set();
    for (int i = 0; i < count; ++i) PyStructSequence_SetItem(made, i, parts[i].release().ptr());
    return made;
}

}  // namespace stipple::python
