#include "python/bindings/common/array_object.h"

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "python/bindings/common/foreign.h"
#include "stipple/core/checked.h"
#include "stipple/core/synchronize.h"

namespace stipple::python {
namespace {

constexpr DType kTypes[] = {DType::u8,  DType::i8,  DType::u16, DType::i16,  DType::u32, DType::i32,    DType::u64,
                            DType::i64, DType::f16, DType::f32, DType::bf16, DType::f64, DType::boolean};

/// What a capsule holds: the struct, its shape, and a share of the numbers.
template <class Struct>
struct Exported {
    Struct managed{};
    std::array<int64_t, 2 * kMostDimensions> extents{};
    std::shared_ptr<void> owner;
};

template <class Struct>
Exported<Struct>* exported(const ArrayObject& array) {
    auto* held = new Exported<Struct>;
    held->owner = array.owner;
    dlpack::Tensor& tensor = held->managed.tensor;
    tensor.data = array.info.data;
    tensor.device = tag_of(array.info.device);
    tensor.rank = array.info.rank;
    tensor.type = tag_of(array.info.dtype);
    for (int i = 0; i < array.info.rank; ++i) {
        held->extents[i] = array.info.shape[i];
        held->extents[kMostDimensions + i] = array.info.strides[i];
    }
    tensor.shape = held->extents.data();
    tensor.strides = held->extents.data() + kMostDimensions;
    held->managed.context = held;
    held->managed.deleter = [](Struct* managed) { delete static_cast<Exported<Struct>*>(managed->context); };
    return held;
}

/// A capsule that nobody took frees its tensor; one that was taken has another name.
template <class Struct>
void free_capsule(PyObject* capsule, const char* name) {
    if (!PyCapsule_IsValid(capsule, name)) return;
    auto* managed = static_cast<Struct*>(PyCapsule_GetPointer(capsule, name));
    if (managed->deleter) managed->deleter(managed);
}

template <class Struct>
py::capsule capsule_of(Struct* managed, const char* name, PyCapsule_Destructor destructor) {
    PyObject* capsule = PyCapsule_New(managed, name, destructor);
    if (!capsule) {
        managed->deleter(managed);
        throw py::error_already_set();
    }
    return py::reinterpret_steal<py::capsule>(capsule);
}

}  // namespace

int64_t ArrayInfo::elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= shape[i];
    return product;
}

bool ArrayInfo::is_contiguous() const {
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
        if (shape[i] > 1 && strides[i] != step) return elements() == 0;
        step *= shape[i];
    }
    return true;
}

void ArrayInfo::set_shape(std::span<const int64_t> extents) {
    STIPPLE_REQUIRE(extents.size() <= static_cast<size_t>(kMostDimensions), "more than {} dimensions", kMostDimensions);
    rank = static_cast<int>(extents.size());
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
        shape[i] = extents[static_cast<size_t>(i)];
        strides[i] = step;
        step = checked_mul(step, shape[i] == 0 ? 1 : shape[i]);
    }
}

std::string shape_of(const ArrayInfo& info) {
    return shape_text(info.shape, info.rank);
}

ArrayObject make_array(Buffer buffer, DType dtype, std::span<const int64_t> shape, Stream stream) {
    ArrayObject array;
    array.info.dtype = dtype;
    array.info.device = buffer.device();
    array.info.set_shape(shape);
    array.info.data = buffer.data();
    array.owner = std::make_shared<Buffer>(std::move(buffer));
    array.stream = stream;
    return array;
}

ArrayObject copy_to(const ArrayObject& array, Device device) {
    STIPPLE_REQUIRE(array.info.is_contiguous(), "an array of strides cannot be copied to {}", device);
    const int64_t bytes = checked_mul(array.info.elements(), size_of(array.info.dtype));
    return without_gil([&] {
        synchronize(array.info.device, array.stream);
        Buffer buffer(bytes, device);
        copy_bytes(buffer.data(), device, array.info.data, array.info.device, bytes);
        return make_array(std::move(buffer), array.info.dtype,
                          {array.info.shape, static_cast<size_t>(array.info.rank)});
    });
}

const py::dtype& numpy_dtype(DType dtype) {
    static py::dtype* made[sizeof(kTypes) / sizeof(kTypes[0])] = {};  // never freed: numpy may be gone before us
    py::dtype*& slot = made[static_cast<int>(dtype)];
    if (!slot) {
        if (dtype == DType::bf16) throw py::type_error("numpy has no bfloat16; take the array by its __dlpack__");
        slot = new py::dtype(std::string(name_of(dtype)));
    }
    return *slot;
}

DType dtype_argument(py::handle dtype, const char* name) {
    std::string text;
    if (py::isinstance<py::str>(dtype)) {
        text = dtype.cast<std::string>();
    } else if (!dtype.is_none()) {
        // numpy.float32, numpy.dtype, torch.float32
        text = py::str(py::isinstance<py::type>(dtype) ? dtype.attr("__name__") : dtype);
        if (text.rfind("torch.", 0) == 0) text = text.substr(6);
    }
    for (DType known : kTypes)
        if (name_of(known) == text) return known;
    throw py::type_error(
        fmt::format("{}: no type \"{}\"; there are uint8 to int64, float16, bfloat16, float32, "
                    "float64 and bool",
                    name, text));
}

Device device_argument(py::handle device) {
    if (device.is_none()) return {};
    return parse_device(std::string(py::str(device)));
}

py::object numpy_view(const ArrayObject& array) {
    const ArrayInfo& info = array.info;
    py::capsule base(new std::shared_ptr<void>(array.owner),
                     [](void* owner) { delete static_cast<std::shared_ptr<void>*>(owner); });
    const int64_t size = size_of(info.dtype);
    std::vector<py::ssize_t> shape(info.shape, info.shape + info.rank), strides(info.strides, info.strides + info.rank);
    for (py::ssize_t& stride : strides) stride *= size;
    // An empty buffer has no address, and to numpy no address means "allocate".
    static std::byte nothing[8];
    py::array view(numpy_dtype(info.dtype), std::move(shape), std::move(strides), info.data ? info.data : nothing,
                   base);
    if (!info.is_writable) view.attr("setflags")(py::arg("write") = false);
    return view;
}

dlpack::TypeTag tag_of(DType dtype) {
    const auto bits = static_cast<uint8_t>(8 * size_of(dtype));
    if (dtype == DType::boolean) return {dlpack::kBool, bits, 1};
    if (dtype == DType::bf16) return {dlpack::kBfloat, bits, 1};
    if (is_float(dtype)) return {dlpack::kFloat, bits, 1};
    const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
    return {is_signed ? dlpack::kInt : dlpack::kUInt, bits, 1};
}

dlpack::DeviceTag tag_of(Device device) {
    return {device.type == DeviceType::cpu ? dlpack::kCpu : dlpack::kCuda, device.index};
}

py::capsule to_dlpack(const ArrayObject& array, bool is_versioned) {
    if (is_versioned) {
        auto* held = exported<dlpack::ManagedVersioned>(array);
        held->managed.major = 1;
        held->managed.minor = 0;
        held->managed.flags = array.info.is_writable ? 0 : dlpack::kReadOnly;
        return capsule_of(&held->managed, "dltensor_versioned", [](PyObject* capsule) {
            free_capsule<dlpack::ManagedVersioned>(capsule, "dltensor_versioned");
        });
    }
    auto* held = exported<dlpack::Managed>(array);
    return capsule_of(&held->managed, "dltensor",
                      [](PyObject* capsule) { free_capsule<dlpack::Managed>(capsule, "dltensor"); });
}

}  // namespace stipple::python
