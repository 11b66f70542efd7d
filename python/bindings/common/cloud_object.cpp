#include "python/bindings/common/cloud_object.h"

#include <fmt/format.h>

#include <cstring>

namespace stipple::python {
namespace {

template <class Object>
const Object& object_of(const py::object& object, const char* name, const char* wanted, const char* hint = "") {
    if (!py::isinstance<Object>(object))
        throw py::type_error(fmt::format("{}: {}; wanted is a stipple.io.{}{}", name, type_name(object), wanted, hint));
    return object.cast<const Object&>();
}

/// Rows of any strides, one after the other.
void copy_elements(const ArrayInfo& info, std::byte* to) {
    const int64_t size = size_of(info.dtype), rows = info.shape[0], columns = info.rank == 2 ? info.shape[1] : 1;
    const auto* from = static_cast<const std::byte*>(info.data);
    if (info.elements() == 0) return;
    if (info.is_contiguous()) {
        std::memmove(to, from, static_cast<size_t>(rows * columns * size));
        return;
    }
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            std::memcpy(to + (i * columns + j) * size,
                        from + (i * info.strides[0] + (info.rank == 2 ? j * info.strides[1] : 0)) * size,
                        static_cast<size_t>(size));
}

/// The memory of an array that was described, or a copy of its numbers.
Buffer memory_of(const py::object& array, const Foreign& found, Sharing sharing) {
    const ArrayInfo& info = found.info;
    const int64_t bytes = checked_mul(info.elements(), size_of(info.dtype));
    if (sharing == Sharing::allowed && bytes > 0 && info.is_writable && info.is_contiguous())
        return Buffer::borrowed(info.data, bytes, Device{}, found.owner ? found.owner : keep(array));
    Buffer copy(bytes);
    without_gil([&] { copy_elements(info, copy.data()); });
    return copy;
}

Foreign described_on_cpu(const py::object& array, const char* name) {
    Foreign found = describe(array, name);
    STIPPLE_REQUIRE(found.info.device == Device{}, "{}: on {}; clouds and meshes are on the CPU", name,
                    found.info.device);
    return found;
}

}  // namespace

void Held::require_free(const char* what) const {
    STIPPLE_REQUIRE(readers == 0, "{}: cannot be replaced while a call in another thread reads it", what);
}

CloudObject give(PointCloud&& cloud) {
    auto held = std::make_shared<Held>();
    held->mesh.vertices = std::move(cloud);
    return {std::move(held)};
}

MeshObject give(Mesh&& mesh) {
    auto held = std::make_shared<Held>();
    held->mesh = std::move(mesh);
    return {std::move(held)};
}

CloudArgument::CloudArgument(const py::object& object, const char* name)
    : reading_(object_of<CloudObject>(object, name, "PointCloud", ", which stipple.io.PointCloud(points) makes").held) {
}

MeshArgument::MeshArgument(const py::object& object, const char* name)
    : reading_(object_of<MeshObject>(object, name, "Mesh").held) {}

ShapeArgument::ShapeArgument(const py::object& object, const char* name) {
    if (py::isinstance<MeshObject>(object)) {
        reading_.emplace(object.cast<const MeshObject&>().held);
        return;
    }
    is_cloud_ = true;
    const auto& cloud = object_of<CloudObject>(object, name, "PointCloud or a Mesh");
    if (cloud.held->mesh.faces() == 0 && cloud.held->mesh.face_attributes.empty()) {
        reading_.emplace(cloud.held);
    } else {
        copy_.emplace();
        copy_->vertices = cloud.cloud().clone();
    }
}

py::object view_of(const std::shared_ptr<Held>& held, void* data, DType dtype, std::span<const int64_t> shape) {
    ArrayObject array;
    array.info.dtype = dtype;
    array.info.set_shape(shape);
    array.info.data = data;
    array.owner = std::make_shared<std::pair<std::shared_ptr<Held>, std::shared_ptr<char>>>(held, held->views);
    if (dtype == DType::bf16) return py::cast(std::move(array));
    return numpy_view(array);
}

py::object view_of(const std::shared_ptr<Held>& held, Attribute& attribute) {
    const int64_t shape[] = {attribute.rows(), attribute.components()};
    return view_of(held, attribute.data(), attribute.dtype(), {shape, attribute.components() == 1 ? size_t{1} : 2});
}

Attribute attribute_argument(const py::object& array, const std::string& name, int64_t rows, Sharing sharing) {
    const Foreign found = described_on_cpu(array, name.c_str());
    const ArrayInfo& info = found.info;
    STIPPLE_REQUIRE((info.rank == 1 || info.rank == 2) && info.shape[0] == rows,
                    "{}: an array of shape {}; wanted are {} rows, [n] or [n, c]", name, shape_of(info), rows);
    STIPPLE_REQUIRE(info.rank == 1 || info.shape[1] > 0, "{}: rows without numbers", name);
    return {name, info.dtype, rows, info.rank == 2 ? info.shape[1] : 1, memory_of(array, found, sharing)};
}

Array<float, 2> positions_argument(const py::object& array, const char* name, Sharing sharing) {
    const Foreign found = described_on_cpu(array, name);
    const ArrayInfo& info = found.info;
    if (info.dtype != DType::f32)
        throw py::type_error(
            fmt::format("{}: an array of {}; wanted is float32: stipple.asarray({}, \"float32\") "
                        "converts it, and io.cloud_from_npy({}) keeps the digits in an origin",
                        name, name_of(info.dtype), name, name));
    STIPPLE_REQUIRE(info.rank == 2 && info.shape[1] == 3, "{}: an array of shape {}; wanted is [n, 3]", name,
                    shape_of(info));
    return {memory_of(array, found, sharing), {info.shape[0], 3}};
}

Array<int32_t, 2> triangles_argument(const py::object& array, const char* name, int64_t vertices) {
    const Foreign found = described_on_cpu(array, name);
    const ArrayInfo& info = found.info;
    if (info.dtype != DType::i32 && info.dtype != DType::i64)
        throw py::type_error(fmt::format("{}: an array of {}; wanted is int32", name, name_of(info.dtype)));
    STIPPLE_REQUIRE(info.rank == 2 && info.shape[1] == 3, "{}: an array of shape {}; wanted is [m, 3]", name,
                    shape_of(info));
    const bool is_shared = info.dtype == DType::i32;
    Array<int32_t, 2> made = is_shared
                                 ? Array<int32_t, 2>(memory_of(array, found, Sharing::allowed), {info.shape[0], 3})
                                 : Array<int32_t, 2>({info.shape[0], 3});
    for (int64_t i = 0; i < info.shape[0]; ++i)
        for (int64_t j = 0; j < 3; ++j) {
            const int64_t at = i * info.strides[0] + j * info.strides[1];
            const int64_t index = info.dtype == DType::i64 ? static_cast<const int64_t*>(info.data)[at]
                                                           : static_cast<const int32_t*>(info.data)[at];
            STIPPLE_REQUIRE(index >= 0 && index < vertices, "{}: vertex {} of face {}; there are {}", name, index, i,
                            vertices);
            if (!is_shared) made.data()[3 * i + j] = static_cast<int32_t>(index);
        }
    return made;
}

}  // namespace stipple::python
