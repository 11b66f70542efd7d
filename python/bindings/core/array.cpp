// stipple.Array, asarray and from_dlpack.

#include <fmt/format.h>

#include "docstrings.h"
#include "python/bindings/common/foreign.h"
#include "python/bindings/module.h"
#include "stipple/core/synchronize.h"

namespace stipple::python {
namespace {

py::tuple numbers(const int64_t* values, int count, int64_t factor = 1) {
    py::tuple made(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) made[static_cast<size_t>(i)] = values[i] * factor;
    return made;
}

py::object numpy_of(const ArrayObject& array) {
    return numpy_view(array.info.device.type == DeviceType::cpu ? array : copy_to(array, {}));
}

/// What __array_interface__ and __cuda_array_interface__ have in common.
py::dict interface(const ArrayObject& array, int version) {
    const ArrayInfo& info = array.info;
    const int64_t size = size_of(info.dtype);
    if (info.dtype == DType::bf16) throw py::attribute_error("bfloat16 has no array interface; take __dlpack__");
    const char kind = info.dtype == DType::boolean              ? 'b'
                      : is_float(info.dtype)                    ? 'f'
                      : tag_of(info.dtype).code == dlpack::kInt ? 'i'
                                                                : 'u';
    py::dict made;
    made["shape"] = numbers(info.shape, info.rank);
    made["strides"] = numbers(info.strides, info.rank, size);
    made["typestr"] = fmt::format("{}{}{}", size == 1 ? '|' : '<', kind, size);
    made["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(info.data), !info.is_writable);
    made["version"] = version;
    return made;
}

py::capsule share(const ArrayObject& array, const py::object& stream, const py::object& max_version,
                  const py::object& dl_device, const py::object& copy) {
    if (!dl_device.is_none()) {
        const auto wanted = dl_device.cast<std::pair<int, int>>();
        const dlpack::DeviceTag tag = tag_of(array.info.device);
        if (wanted != std::pair<int, int>(tag.kind, tag.index))
            throw py::buffer_error(fmt::format("the array is on {}; Array.to copies it", array.info.device));
    }
    if (array.info.device.type == DeviceType::cuda) {
        // -1: the consumer asks for no order. None and 1 are the legacy default stream, 2 that of the thread.
        const int64_t asked = stream.is_none() ? 1 : stream.cast<int64_t>();
        const auto own = reinterpret_cast<int64_t>(array.stream.handle);
        if (asked != -1 && asked != (own == 0 ? 1 : own))
            without_gil([&] { synchronize(array.info.device, array.stream); });
    }
    const bool is_versioned = !max_version.is_none() && max_version.cast<std::pair<int, int>>().first >= 1;
    if (!copy.is_none() && copy.cast<bool>()) return to_dlpack(copy_to(array, array.info.device), is_versioned);
    if (!is_versioned && !array.info.is_writable)
        throw py::buffer_error("a read-only array is shared by version 1 of DLPack only: max_version=(1, 0)");
    return to_dlpack(array, is_versioned);
}

}  // namespace

void bind_array(py::module_& module) {
    py::class_<ArrayObject>(module, "Array",
                            "Numbers of one type on one device, shared without copies with every library that knows\n"
                            "DLPack (torch, cupy, jax, numpy). Made by stipple.asarray and stipple.from_dlpack, and\n"
                            "what functions return when their first array is one.")
        .def_property_readonly(
            "shape", [](const ArrayObject& a) { return numbers(a.info.shape, a.info.rank); },
            "Extent of each dimension.")
        .def_property_readonly(
            "strides", [](const ArrayObject& a) { return numbers(a.info.strides, a.info.rank); },
            "Steps between neighbours of a dimension, in elements.")
        .def_property_readonly(
            "ndim", [](const ArrayObject& a) { return a.info.rank; }, "How many dimensions.")
        .def_property_readonly(
            "size", [](const ArrayObject& a) { return a.info.elements(); }, "How many numbers.")
        .def_property_readonly(
            "dtype", [](const ArrayObject& a) { return std::string(name_of(a.info.dtype)); },
            "The type of a number: \"float32\".")
        .def_property_readonly(
            "device", [](const ArrayObject& a) { return to_string(a.info.device); }, "\"cpu\" or \"cuda:0\".")
        .def_property_readonly(
            "data_ptr", [](const ArrayObject& a) { return reinterpret_cast<uintptr_t>(a.info.data); },
            "Address of the first number.")
        .def("numpy", &numpy_of, "A numpy array of the same memory; of a GPU's a copy.")
        .def(
            "to",
            [](const ArrayObject& a, const py::object& device) {
                const Device target = device_argument(device);
                return target == a.info.device ? a : copy_to(a, target);
            },
            py::arg("device"), "On another device (\"cpu\", \"cuda:0\"): a copy, or itself when it is there already.")
        .def("__dlpack__", &share, py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
             py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
             "A DLPack capsule, of version 1 where max_version allows it.")
        .def(
            "__dlpack_device__",
            [](const ArrayObject& a) {
                const dlpack::DeviceTag tag = tag_of(a.info.device);
                return py::make_tuple(tag.kind, tag.index);
            },
            "DLPack's numbers of the device.")
        .def_property_readonly("__array_interface__",
                               [](const ArrayObject& a) {
                                   if (a.info.device.type != DeviceType::cpu)
                                       throw py::attribute_error("an array on a GPU has no __array_interface__");
                                   return interface(a, 3);
                               })
        .def_property_readonly("__cuda_array_interface__",
                               [](const ArrayObject& a) {
                                   if (a.info.device.type != DeviceType::cuda)
                                       throw py::attribute_error("an array of the CPU has no __cuda_array_interface__");
                                   py::dict made = interface(a, 3);
                                   const auto own = reinterpret_cast<uintptr_t>(a.stream.handle);
                                   made["stream"] = own == 0 ? 1 : own;
                                   return made;
                               })
        .def("__len__",
             [](const ArrayObject& a) {
                 if (a.info.rank == 0) throw py::type_error("an array without dimensions has no length");
                 return a.info.shape[0];
             })
        .def("__repr__", [](const ArrayObject& a) {
            return fmt::format("stipple.Array(shape={}, dtype={}, device={})", shape_of(a.info), name_of(a.info.dtype),
                               a.info.device);
        });

    module.def(
        "asarray",
        [](const ArrayLike& x, const py::object& dtype, const py::object& device) {
            return as_array(x, dtype, device, true);
        },
        py::arg("x"), py::arg("dtype") = py::none(), py::arg("device") = py::none(),
        "x as a stipple.Array that every function takes: contiguous, in the machine's byte order, of the given type\n"
        "and on the given device. Shares memory where nothing has to change, else copies.\n\n"
        "x       an array of any library, a list of numbers or of lists\n"
        "dtype   \"float32\" and so on; by default x's own, but float32 for float64\n"
        "device  \"cpu\", \"cuda:0\"; by default where x is");
    module.def(
        "from_dlpack", [](const ArrayLike& x) { return as_array(x, py::none(), py::none(), false); }, py::arg("x"),
        "A stipple.Array of the memory of x, any array with __dlpack__ or of numpy. Never copies.");
}

}  // namespace stipple::python
