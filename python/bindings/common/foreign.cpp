#include "python/bindings/common/foreign.h"

#include <fmt/format.h>

#include <algorithm>

#include "stipple/core/checked.h"
#include "stipple/core/synchronize.h"

namespace stipple::python {
namespace {

/// A type of a library that may not be imported yet; never imports it.
PyTypeObject* type_of_loaded(const char* module, const char* name) {
    PyObject* modules = PyImport_GetModuleDict();
    PyObject* found = PyDict_GetItemString(modules, module);
    if (!found) return nullptr;
    PyObject* type = PyObject_GetAttrString(found, name);  // kept: the library stays loaded
    if (!type) PyErr_Clear();
    return reinterpret_cast<PyTypeObject*>(type);
}

PyTypeObject* numpy_array_type() {
    static PyTypeObject* type = nullptr;
    if (!type) type = type_of_loaded("numpy", "ndarray");
    return type;
}

bool is_torch(py::handle object) {
    static PyTypeObject* type = nullptr;
    if (!type) type = type_of_loaded("torch", "Tensor");
    return type && PyObject_TypeCheck(object.ptr(), type);
}

bool is_masked(py::handle object) {
    static PyTypeObject* type = nullptr;
    if (!type) type = type_of_loaded("numpy.ma", "MaskedArray");
    return type && PyObject_TypeCheck(object.ptr(), type);
}

PyObject* interned(const char* text) {
    return PyUnicode_InternFromString(text);
}

[[noreturn]] void refuse_type(const char* name, const std::string& found) {
    throw py::type_error(fmt::format("{}: {}; stipple.asarray({}) converts what can be", name, found, name));
}

DType dtype_of_numpy(const py::dtype& dtype, const char* name) {
    const char kind = dtype.kind(), order = dtype.byteorder();
    const auto size = dtype.itemsize();
    const bool is_native = order == '=' || order == '|';
    if (is_native) {
        switch (kind) {
            case 'f':
                if (size == 4) return DType::f32;
                if (size == 8) return DType::f64;
                if (size == 2) return DType::f16;
                break;
            case 'i':
                if (size == 4) return DType::i32;
                if (size == 8) return DType::i64;
                if (size == 1) return DType::i8;
                if (size == 2) return DType::i16;
                break;
            case 'u':
                if (size == 1) return DType::u8;
                if (size == 4) return DType::u32;
                if (size == 2) return DType::u16;
                if (size == 8) return DType::u64;
                break;
            case 'b':
                if (size == 1) return DType::boolean;
                break;
            default: break;
        }
    }
    refuse_type(name, fmt::format("an array of {}{}", std::string(py::str(py::handle(dtype))),
                                  is_native ? ", which stipple has no type for" : ", of another byte order"));
}

Foreign describe_numpy(py::handle object, const char* name) {
    if (Py_TYPE(object.ptr()) != numpy_array_type() && is_masked(object))
        throw py::type_error(
            fmt::format("{}: a masked array; stipple knows no masks: give {}.compressed() or .filled()", name, name));
    const auto array = py::reinterpret_borrow<py::array>(object);
    Foreign found;
    ArrayInfo& info = found.info;
    info.dtype = dtype_of_numpy(array.dtype(), name);
    STIPPLE_REQUIRE(array.ndim() <= kMostDimensions, "{}: an array of {} dimensions; at most {} are taken", name,
                    array.ndim(), kMostDimensions);
    info.rank = static_cast<int>(array.ndim());
    info.data = const_cast<void*>(array.data());
    info.is_writable = array.writeable();
    const int64_t size = size_of(info.dtype);
    bool is_whole = reinterpret_cast<uintptr_t>(info.data) % static_cast<uintptr_t>(size) == 0;
    for (int i = 0; i < info.rank; ++i) {
        info.shape[i] = array.shape(i);
        info.strides[i] = array.strides(i) / size;
        is_whole &= info.shape[i] <= 1 || array.strides(i) % size == 0;
    }
    STIPPLE_REQUIRE(is_whole || info.elements() == 0,
                    "{}: numbers that are not aligned to their size, as fields of a packed struct are; "
                    "stipple.asarray({}) copies them",
                    name, name);
    return found;
}

/// Nothing to convert: aligned and contiguous, in the machine's byte order, of a type that is not float64.
bool is_ready(py::handle object) {
    constexpr int kContiguous = 0x0001, kAligned = 0x0100;
    const auto array = py::reinterpret_borrow<py::array>(object);
    if ((array.flags() & (kContiguous | kAligned)) != (kContiguous | kAligned)) return false;
    const py::dtype type = array.dtype();
    const char kind = type.kind(), order = type.byteorder();
    return (order == '=' || order == '|') && type.itemsize() <= 8 &&
           (kind == 'i' || kind == 'u' || kind == 'b' || (kind == 'f' && type.itemsize() <= 4));
}

DType dtype_of_tag(dlpack::TypeTag tag, const char* name) {
    for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
        const auto dtype = static_cast<DType>(i);
        const dlpack::TypeTag known = tag_of(dtype);
        if (known.code == tag.code && known.bits == tag.bits && tag.lanes == 1) return dtype;
    }
    refuse_type(name, fmt::format("an array of elements of {} bits that stipple has no type for", tag.bits));
}

/// The pieces of the protocol that are looked up in every call, as interned strings.
struct Names {
    PyObject* device = interned("__dlpack_device__");
    PyObject* export_ = interned("__dlpack__");
    PyObject* stream = interned("stream");
    PyObject* requires_grad = interned("requires_grad");
};
const Names& names() {
    static const Names all;
    return all;
}

/// The stream on which torch works on a device now.
void* torch_stream(int index) {
    const py::object cuda = py::module_::import("torch.cuda");
    const auto handle = cuda.attr("current_stream")(index).attr("cuda_stream").cast<uintptr_t>();
    return reinterpret_cast<void*>(handle);
}

/// A function of torch, which stays loaded.
py::handle torch_function(const char* module, const char* name) {
    return py::object(py::module_::import(module).attr(name)).release();
}

bool is_true(py::handle object, PyObject* attribute) {
    const auto value = py::reinterpret_steal<py::object>(PyObject_GetAttr(object.ptr(), attribute));
    if (!value) throw py::error_already_set();
    return value.ptr() == Py_True;
}

template <class Struct>
void fill(Foreign& found, Struct* managed, const char* name) {
    // The share is ours from here on, whatever is wrong with it.
    found.owner = std::shared_ptr<void>(managed, [](void* memory) {
        if (!Py_IsInitialized()) return;
        const py::gil_scoped_acquire held;  // deleters of Python libraries want it
        auto* tensor = static_cast<Struct*>(memory);
        if (tensor->deleter) tensor->deleter(tensor);
    });
    const dlpack::Tensor& tensor = managed->tensor;
    ArrayInfo& info = found.info;
    info.dtype = dtype_of_tag(tensor.type, name);
    STIPPLE_REQUIRE(tensor.rank >= 0 && tensor.rank <= kMostDimensions,
                    "{}: an array of {} dimensions; at most {} are taken", name, tensor.rank, kMostDimensions);
    info.rank = tensor.rank;
    const bool is_cpu = tensor.device.kind == dlpack::kCpu || tensor.device.kind == dlpack::kCudaHost;
    STIPPLE_REQUIRE(is_cpu || tensor.device.kind == dlpack::kCuda || tensor.device.kind == dlpack::kCudaManaged,
                    "{}: an array on a device of DLPack's kind {}; stipple works on CPU and CUDA", name,
                    tensor.device.kind);
    info.device = is_cpu ? Device{} : Device{DeviceType::cuda, tensor.device.index};
    int64_t step = 1;
    for (int i = info.rank - 1; i >= 0; --i) {
        info.shape[i] = tensor.shape[i];
        info.strides[i] = tensor.strides ? tensor.strides[i] : step;
        const bool fits =
            tensor.shape[i] >= 0 && !__builtin_mul_overflow(step, std::max<int64_t>(tensor.shape[i], 1), &step);
        STIPPLE_REQUIRE(fits, "{}: a DLPack tensor of shape {}", name, shape_text(tensor.shape, tensor.rank));
    }
    info.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
    const auto size = static_cast<uintptr_t>(size_of(info.dtype));
    STIPPLE_REQUIRE(info.elements() == 0 || reinterpret_cast<uintptr_t>(info.data) % size == 0,
                    "{}: numbers that are not aligned to their size; stipple.asarray({}) copies them", name, name);
}

/// The error that Python has set, as one of ours that names the argument.
[[noreturn]] void refuse_sharing(const char* name) {
    const py::error_already_set failed;
    const std::string text = py::str(failed.value());
    throw Error(ErrorCode::bad_argument, fmt::format("{}: cannot be shared by DLPack: {}", name, text));
}

void take_capsule(Foreign& found, py::handle object, const py::object& capsule, const char* name) {
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
        auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
        PyCapsule_SetName(capsule.ptr(), "used_dltensor");
        fill(found, managed, name);
    } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
        auto* managed =
            static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
        STIPPLE_REQUIRE(managed->major == 1, "{}: a DLPack tensor of version {}; 1 is known", name, managed->major);
        PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
        fill(found, managed, name);
        found.info.is_writable = (managed->flags & dlpack::kReadOnly) == 0;
    } else {
        refuse_type(name, fmt::format("{}.__dlpack__ gave no DLPack tensor", type_name(object)));
    }
}

/// A tensor by torch's own function, which takes a tenth of the time of its __dlpack__: that would bring the stream in
/// order with ours, which is torch's own.
Foreign describe_torch(py::handle object, const char* name) {
    static const py::handle to_dlpack_of_torch = torch_function("torch.utils.dlpack", "to_dlpack");
    STIPPLE_REQUIRE(!is_true(object, names().requires_grad),
                    "{}: a tensor that requires gradients: give {}.detach(), or use the _backward functions", name,
                    name);
    Foreign found;
    found.kind = Kind::torch;
    const auto capsule = py::reinterpret_steal<py::object>(PyObject_CallOneArg(to_dlpack_of_torch.ptr(), object.ptr()));
    if (!capsule) refuse_sharing(name);
    take_capsule(found, object, capsule, name);
    if (found.info.device.type == DeviceType::cuda) found.stream.handle = torch_stream(found.info.device.index);
    return found;
}

Foreign describe_dlpack(py::handle object, const char* name) {
    Foreign found;
    found.kind = Kind::other;
    const auto device = py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object.ptr(), names().device));
    if (!device) throw py::error_already_set();
    const auto pair = device.cast<std::pair<int32_t, int32_t>>();
    py::object capsule;
    if (pair.first == dlpack::kCuda || pair.first == dlpack::kCudaManaged) {
        const auto method = py::reinterpret_steal<py::object>(PyObject_GetAttr(object.ptr(), names().export_));
        if (!method) throw py::error_already_set();
        py::dict keywords;
        keywords[py::handle(names().stream)] = py::int_(1);  // the legacy default stream, on which we work
        capsule = py::reinterpret_steal<py::object>(PyObject_Call(method.ptr(), py::tuple().ptr(), keywords.ptr()));
    } else {
        capsule = py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object.ptr(), names().export_));
    }
    if (!capsule) refuse_sharing(name);
    take_capsule(found, object, capsule, name);
    return found;
}

/// What turns an object with __dlpack__ into an array of the library that `like` is of; none when there is nothing.
py::object importer_of(py::handle like) {
    std::string module = py::str(py::type::handle_of(like).attr("__module__"));
    module = module.substr(0, module.find('.'));
    if (module == "jaxlib" || module == "jax") module = "jax.dlpack";
    const py::object library = py::module_::import(module.c_str());
    return py::getattr(library, "from_dlpack", py::none());
}

}  // namespace

std::string type_name(py::handle object) {
    const py::handle type = py::type::handle_of(object);
    const std::string module = py::str(type.attr("__module__"));
    const std::string name = py::str(type.attr("__qualname__"));
    return module == "builtins" ? name : module + "." + name;
}

std::shared_ptr<void> keep(py::object object) {
    return {object.release().ptr(), [](void* kept) {
                if (!Py_IsInitialized()) return;
                const py::gil_scoped_acquire held;
                Py_DECREF(static_cast<PyObject*>(kept));
            }};
}

Foreign describe(py::handle object, const char* name) {
    PyTypeObject* ndarray = numpy_array_type();
    if (ndarray && PyObject_TypeCheck(object.ptr(), ndarray)) return describe_numpy(object, name);
    if (py::isinstance<ArrayObject>(object)) {
        const auto& array = object.cast<const ArrayObject&>();
        return {array.info, Kind::stipple, nullptr, array.stream};
    }
    if (is_torch(object)) return describe_torch(object, name);
    if (!object.is_none() && PyObject_HasAttr(object.ptr(), names().export_) &&
        PyObject_HasAttr(object.ptr(), names().device) && !PyType_Check(object.ptr()))
        return describe_dlpack(object, name);
    throw py::type_error(
        fmt::format("{}: {} is no array; wanted is a numpy array, a torch tensor, a stipple.Array or "
                    "another object with __dlpack__; stipple.asarray({}) converts numbers in lists",
                    name, type_name(object), name));
}

py::object give_as(ArrayObject array, Kind kind, py::handle like) {
    switch (kind) {
        case Kind::numpy: return numpy_view(array);
        case Kind::torch: {
            static PyObject* from_dlpack = nullptr;  // torch stays loaded
            if (!from_dlpack)
                from_dlpack = py::object(py::module_::import("torch").attr("from_dlpack")).release().ptr();
            if (array.info.dtype != DType::boolean) return py::handle(from_dlpack)(to_dlpack(array, false));
            array.info.dtype = DType::u8;  // torch 1.13 knows no booleans in DLPack
            const py::object bytes = py::handle(from_dlpack)(to_dlpack(array, false));
            return bytes.attr("view")(py::module_::import("torch").attr("bool"));
        }
        case Kind::other: {
            const py::object importer = importer_of(like);
            if (!importer.is_none()) return importer(py::cast(std::move(array)));
            break;
        }
        case Kind::stipple: break;
    }
    return py::cast(std::move(array));
}

namespace {

/// What torch calls a type, None for what it has none of. Kept: torch stays loaded.
py::handle torch_dtype(DType dtype) {
    static PyObject* known[static_cast<int>(DType::boolean) + 1] = {};
    PyObject*& slot = known[static_cast<int>(dtype)];
    if (!slot)
        slot = py::object(py::getattr(py::module_::import("torch"), std::string(name_of(dtype)).c_str(), py::none()))
                   .release()
                   .ptr();
    return slot;
}

py::tuple shape_tuple(std::span<const int64_t> shape) {
    py::tuple made(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) made[i] = shape[i];
    return made;
}

bool has_shape(py::handle tensor, const py::tuple& shape) {
    const int same = PyObject_RichCompareBool(tensor.attr("shape").ptr(), shape.ptr(), Py_EQ);
    if (same < 0) throw py::error_already_set();
    return same == 1;
}

}  // namespace

py::object empty_tensor(DType dtype, std::span<const int64_t> shape, Device device) {
    static const py::handle empty = torch_function("torch", "empty");
    const py::handle type = torch_dtype(dtype);
    if (type.is_none()) return py::none();
    if (device.type == DeviceType::cpu) return empty(shape_tuple(shape), py::arg("dtype") = type);
    return empty(shape_tuple(shape), py::arg("dtype") = type, py::arg("device") = fmt::format("{}", device));
}

void* tensor_data(py::handle tensor) {
    return reinterpret_cast<void*>(tensor.attr("data_ptr")().cast<uintptr_t>());
}

py::object tensor_as(const py::object& tensor, DType dtype, std::span<const int64_t> shape) {
    py::object made = tensor;
    const py::handle type = torch_dtype(dtype);
    if (!py::object(made.attr("dtype")).is(type)) made = made.attr("view")(type);
    const py::tuple wanted = shape_tuple(shape);
    return has_shape(made, wanted) ? made : made.attr("view")(wanted);
}

py::object numpy_asarray(py::handle object) {
    return py::module_::import("numpy").attr("asarray")(object);
}

ArrayObject as_array(py::handle object, py::handle dtype, py::handle device, bool may_copy) {
    constexpr const char* kName = "x";
    const bool is_known =
        py::isinstance<ArrayObject>(object) || is_torch(object) || PyObject_HasAttr(object.ptr(), names().export_);
    py::object source = py::reinterpret_borrow<py::object>(object);
    PyTypeObject* ndarray = numpy_array_type();
    const bool is_numpy = ndarray && PyObject_TypeCheck(object.ptr(), ndarray);
    if (may_copy && is_numpy && dtype.is_none() && device.is_none() && Py_TYPE(object.ptr()) == ndarray &&
        is_ready(object)) {
        const Foreign found = describe_numpy(object, kName);
        return {found.info, keep(source), {}};
    }
    if (may_copy && !is_known && !is_numpy) source = numpy_asarray(object);
    if (may_copy && (is_numpy || !is_known) && !is_masked(source)) {
        // The conversions that numpy knows: byte order, strides, alignment, and types.
        py::object wanted = py::reinterpret_borrow<py::object>(dtype);
        const py::object kind = source.attr("dtype");
        if (dtype.is_none()) {
            const bool is_double =
                kind.attr("kind").cast<std::string>() == "f" && kind.attr("itemsize").cast<int>() > 4;
            wanted = is_double ? py::object(py::str("float32")) : kind.attr("newbyteorder")("=");
        } else {
            const DType target = dtype_argument(dtype, "dtype");
            wanted = numpy_dtype(target);
        }
        const std::string letter = kind.attr("kind").cast<std::string>();
        if (std::string("fiub").find(letter) == std::string::npos) describe(source, kName);  // throws by name
        source = py::module_::import("numpy").attr("require")(source, wanted, py::str("CA"));
    }
    const Foreign found = describe(source, kName);
    ArrayObject array{found.info, found.owner ? found.owner : keep(source), found.stream};
    const DType wanted =
        dtype.is_none()
            ? (found.info.dtype == DType::f64 && may_copy && !is_numpy && is_known ? DType::f32 : found.info.dtype)
            : dtype_argument(dtype, "dtype");
    const bool is_same = wanted == found.info.dtype && found.info.is_contiguous();
    if (may_copy && !is_same) {
        // By way of numpy, on the CPU. Strided memory of a GPU has no copy of ours; its library has one.
        const Device home = found.info.device;
        const ArrayObject host = home.type == DeviceType::cpu ? array : copy_to(array, {});
        const py::object view = numpy_view(host);
        const py::object converted =
            py::module_::import("numpy").attr("require")(view, numpy_dtype(wanted), py::str("CA"));
        const Foreign again = describe(converted, kName);
        array = {again.info, keep(converted), {}};
        if (home.type != DeviceType::cpu && device.is_none()) array = copy_to(array, home);
    }
    if (!device.is_none()) {
        const Device target = device_argument(device);
        if (!(target == array.info.device)) array = copy_to(array, target);
    }
    return array;
}

}  // namespace stipple::python
