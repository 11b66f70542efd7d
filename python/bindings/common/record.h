#pragma once
// Results of several arrays: tuples whose parts have names, as types of Python's own kind (struct sequences).
//
//   struct KnnResult {
//       static constexpr auto name = py::detail::const_name("KnnResult");
//       static constexpr const char* fields[] = {"indices", "distances_sq"};
//   };
//   add_record<KnnResult>(module);
//   return record<KnnResult>(call.give(...), call.give(...));        // the lambda returns Record<KnnResult>

#include <iterator>
#include <string>
#include <vector>

#include "python/bindings/common/bind.h"

namespace stipple::python {

template <class Tag>
class Record : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(Record, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

PyTypeObject* make_record_type(py::module_& module, const char* name, const char* const* fields, int count);
PyObject* make_record(PyTypeObject* type, py::object* parts, int count);

template <class Tag>
inline PyTypeObject* g_record_type = nullptr;

template <class Tag>
void add_record(py::module_& module) {
    g_record_type<Tag> =
        make_record_type(module, Tag::name.text, Tag::fields, static_cast<int>(std::size(Tag::fields)));
}

template <class Tag, class... Parts>
Record<Tag> record(Parts&&... parts) {
    static_assert(sizeof...(Parts) == std::size(Tag::fields));
    py::object list[] = {py::object(std::forward<Parts>(parts))...};
    return py::reinterpret_steal<Record<Tag>>(make_record(g_record_type<Tag>, list, sizeof...(Parts)));
}

}  // namespace stipple::python

namespace pybind11::detail {
template <class Tag>
struct handle_type_name<stipple::python::Record<Tag>> {
    static constexpr auto name = Tag::name;
};
}  // namespace pybind11::detail
