// stipple.io: arrays by name in files (NPY, NPZ, safetensors, HDF5).

#include <map>

#include "docstrings.h"
#include "python/bindings/common/cloud_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/io/files.h"
#include "python/bindings/module.h"
#include "stipple/io/hdf5.h"
#include "stipple/io/npz.h"
#include "stipple/io/safetensors.h"

namespace stipple::python {
namespace {

struct TensorFileResult {
    static constexpr auto name = py::detail::const_name("TensorFile");
    static constexpr const char* fields[] = {"tensors", "metadata"};
};
struct CloudSetResult {
    static constexpr auto name = py::detail::const_name("CloudSet");
    static constexpr const char* fields[] = {"points", "labels", "parts", "normals", "names"};
};

/// Numbers of a file as a numpy array that owns them; bfloat16 as stipple.Array.
py::object given(Buffer&& data, DType dtype, const std::vector<int64_t>& shape) {
    ArrayObject array = make_array(std::move(data), dtype, shape);
    if (dtype == DType::bf16) return py::cast(std::move(array));
    return numpy_view(array);
}

/// Any contiguous array, described and, for files, never copied.
ArrayInfo described(Call& call, py::handle object, const char* name) {
    const ArrayInfo info = call.any(py::reinterpret_borrow<py::object>(object), name);
    STIPPLE_REQUIRE(info.device == Device{}, "{}: on {}; files are written from the CPU", name, info.device);
    return info;
}

Buffer copied_buffer(const ArrayInfo& info) {
    const int64_t bytes = info.elements() * size_of(info.dtype);
    Buffer made(bytes);
    copy_bytes(made.data(), {}, info.data, {}, bytes);
    return made;
}

py::object load_npy(const PathLike& path_, const py::object& limits_) {
    const std::string path = path_of(path_);
    const io::Limits limits = limits_of(limits_);
    io::NpyArray found = without_gil([&] {
        io::FileSource source(path);
        io::ByteReader reader(source, limits);
        return io::parse_npy_array(reader);
    });
    return given(std::move(found.data), found.dtype, found.shape);
}

py::dict load_npz(const PathLike& path_, const py::object& limits_) {
    const std::string path = path_of(path_);
    const io::Limits limits = limits_of(limits_);
    io::NpyArrays found = without_gil([&] {
        io::FileSource source(path);
        io::ByteReader reader(source, limits);
        return io::parse_npz_arrays(reader);
    });
    py::dict made;
    for (auto& [name, array] : found) made[py::str(name)] = given(std::move(array.data), array.dtype, array.shape);
    return made;
}

void save_npz(const PathLike& path_, const py::dict& arrays, bool overwrite) {
    const std::string path = path_of(path_);
    Call call;
    std::vector<io::NpyView> views;
    for (const auto& [name_, array] : arrays) {
        const auto name = py::cast<std::string>(name_);
        const ArrayInfo info = described(call, array, name.c_str());
        views.push_back({name, {info.shape, info.shape + info.rank}, info.dtype, info.data});
    }
    without_gil([&] {
        AtomicFile file(path, overwrite_of(overwrite));
        io::write_npz_views(views, file);
        file.commit();
    });
}

CloudObject cloud_from_npy(const ArrayLike& array_, int64_t item) {
    Call call;
    const ArrayInfo info = described(call, array_, "array");
    io::ReadOptions options;
    options.item = item;
    return give(without_gil([&] {
        io::NpyArray array;
        array.shape.assign(info.shape, info.shape + info.rank);
        array.dtype = info.dtype;
        array.data = copied_buffer(info);
        io::MemorySource source({});
        const io::ByteReader reader(source);
        return io::cloud_from_npy(std::move(array), reader, options);
    }));
}

Record<TensorFileResult> load_safetensors(const PathLike& path_, const py::object& limits_) {
    const std::string path = path_of(path_);
    const io::Limits limits = limits_of(limits_);
    io::TensorFile found = without_gil([&] { return io::load_safetensors(path, limits); });
    py::dict tensors, metadata;
    for (io::Tensor& tensor : found.tensors)
        tensors[py::str(tensor.name)] = given(std::move(tensor.data), tensor.dtype, tensor.shape);
    for (const auto& [key, value] : found.metadata) metadata[py::str(key)] = value;
    return record<TensorFileResult>(tensors, metadata);
}

void save_safetensors(const PathLike& path_, const py::dict& tensors, const py::object& metadata, bool overwrite) {
    const std::string path = path_of(path_);
    io::TensorFile file;
    Call call;
    for (const auto& [name_, array] : tensors) {
        const auto name = py::cast<std::string>(name_);
        const ArrayInfo info = described(call, array, name.c_str());
        file.tensors.push_back({name, info.dtype, {info.shape, info.shape + info.rank}, copied_buffer(info)});
    }
    if (!metadata.is_none())
        for (const auto& [key, value] : py::dict(metadata))
            file.metadata[py::cast<std::string>(key)] = py::cast<std::string>(value);
    without_gil([&] { io::save_safetensors(path, file, overwrite_of(overwrite)); });
}

py::list list_hdf5(const PathLike& path_) {
    const std::string path = path_of(path_);
    py::list made;
    for (const std::string& name : without_gil([&] { return io::list_hdf5(path); })) made.append(name);
    return made;
}

Record<CloudSetResult> load_hdf5(const PathLike& path_, const py::object& limits_) {
    const std::string path = path_of(path_);
    const io::Limits limits = limits_of(limits_);
    io::CloudSet found = without_gil([&] { return io::load_hdf5(path, limits); });
    py::list names;
    for (const std::string& name : found.names) names.append(name);
    const auto or_none = [](bool is_there, auto&& make) { return is_there ? make() : py::object(py::none()); };
    return record<CloudSetResult>(
        numpy_of(std::move(found.points)),
        or_none(!found.labels.empty(), [&] { return numpy_of(std::move(found.labels)); }),
        or_none(found.parts.elements() > 0, [&] { return numpy_of(std::move(found.parts)); }),
        or_none(found.normals.elements() > 0, [&] { return numpy_of(std::move(found.normals)); }), names);
}

py::object load_hdf5_array(const PathLike& path_, const std::string& name, const py::object& limits_) {
    const std::string path = path_of(path_);
    const io::Limits limits = limits_of(limits_);
    return numpy_of(without_gil([&] { return io::load_hdf5_array(path, name, limits); }));
}

void save_hdf5_arrays(const PathLike& path_, const py::dict& arrays_, bool overwrite) {
    const std::string path = path_of(path_);
    Call call;
    std::vector<io::NamedArray> arrays;
    for (const auto& [name_, array] : arrays_) {
        const auto name = py::cast<std::string>(name_);
        const auto view = call.array<float, 3>(py::reinterpret_borrow<py::object>(array), name.c_str());
        Array<float, 3> made({view.size(0), view.size(1), view.size(2)});
        std::copy_n(view.data(), view.elements(), made.data());
        arrays.push_back({name, std::move(made)});
    }
    without_gil([&] { io::save_hdf5_arrays(path, arrays, overwrite_of(overwrite)); });
}

}  // namespace

void bind_arrays(py::module_& io) {
    add_record<TensorFileResult>(io);
    add_record<CloudSetResult>(io);
    const py::none none;
    io.def(
        "load_npy", &load_npy, py::arg("path"), py::kw_only(), py::arg("limits") = none,
        "The array of a .npy file, which the numpy array owns: parse_npy_array. Nothing is evaluated, and a header is "
        "checked before anything is allocated.");
    io.def("load_npz", &load_npz, py::arg("path"), py::kw_only(), py::arg("limits") = none,
           "The arrays of a .npz file by name: parse_npz_arrays, with its checks of sizes and checksums.");
    io.def("save_npz", &save_npz, py::arg("path"), py::arg("arrays"), py::kw_only(), py::arg("overwrite") = false,
           "Writes arrays by name, stored, atomically: write_npz_views. numpy.load reads it.");
    io.def("cloud_from_npy", &cloud_from_npy, py::arg("array"), py::kw_only(), py::arg("item") = -1,
           doc::io::cloud_from_npy);
    io.def("load_safetensors", &load_safetensors, py::arg("path"), py::kw_only(), py::arg("limits") = none,
           doc::io::load_safetensors);
    io.def("save_safetensors", &save_safetensors, py::arg("path"), py::arg("tensors"), py::arg("metadata") = none,
           py::kw_only(), py::arg("overwrite") = false,
           "Writes tensors by name, a dict of arrays, with metadata, a dict of texts, atomically: write_safetensors.");
    io.def("list_hdf5", &list_hdf5, py::arg("path"), doc::io::list_hdf5);
    io.def("load_hdf5", &load_hdf5, py::arg("path"), py::kw_only(), py::arg("limits") = none, doc::io::load_hdf5);
    io.def("load_hdf5_array", &load_hdf5_array, py::arg("path"), py::arg("name"), py::kw_only(),
           py::arg("limits") = none, doc::io::load_hdf5_array);
    io.def("save_hdf5_arrays", &save_hdf5_arrays, py::arg("path"), py::arg("arrays"), py::kw_only(),
           py::arg("overwrite") = false, doc::io::save_hdf5_arrays);
}

}  // namespace stipple::python
