// stipple.io: load and save, formats, limits.

#include "python/bindings/io/files.h"

#include <algorithm>
#include <optional>

#include "docstrings.h"
#include "python/bindings/common/cloud_object.h"
#include "python/bindings/module.h"

namespace stipple::python {
namespace {

struct NamedLimit {
    const char* name;
    int64_t io::Limits::*member;
};
#define LIMIT(name) \
    { #name, &io::Limits::name }
constexpr NamedLimit kLimits[] = {
    LIMIT(max_points),        LIMIT(max_token),      LIMIT(max_line),        LIMIT(max_header),
    LIMIT(max_properties),    LIMIT(max_polygon),    LIMIT(max_npy_header),  LIMIT(max_zip_entries),
    LIMIT(max_inflated),      LIMIT(max_inflation),  LIMIT(max_tensor_rank), LIMIT(max_tensors),
    LIMIT(max_tensor_header), LIMIT(max_metadata),   LIMIT(max_json_depth),  LIMIT(max_image_side),
    LIMIT(max_image_pixels),  LIMIT(max_vlrs),       LIMIT(max_las_records), LIMIT(max_record),
    LIMIT(max_features),      LIMIT(max_transforms), LIMIT(max_views),
};
#undef LIMIT

std::optional<io::Format> format_argument(const py::object& format) {
    if (format.is_none()) return {};
    return io::format_by_name(format.cast<std::string>());
}

std::optional<std::array<double, 3>> three_or_none(const NumbersLike& numbers, const char* name) {
    if (numbers.is_none()) return {};
    return numbers_of<3>(numbers, name);
}

/// A reader of `kind` with Python's options; warnings come when it is done.
template <class Read>
auto reading_file(const py::object& path_, int64_t item, const py::object& limits, const py::object& on_progress,
                  Read&& read) {
    const std::string path = path_of(path_);
    io::ReadOptions options = read_options(item, limits, on_progress);
    io::Warnings warnings;
    auto made = without_gil([&] { return read(path, options, warnings); });
    warn(warnings);
    return give(std::move(made));
}

MeshObject load(const PathLike& path_, const py::object& format_, int64_t item, const py::object& limits,
                const py::object& on_progress) {
    const std::optional<io::Format> format = format_argument(format_);
    return reading_file(path_, item, limits, on_progress,
                        [&](const std::string& path, io::ReadOptions& options, io::Warnings& warnings) {
                            options.named = format.has_value();
                            return io::load(path, options, warnings, format ? &*format : nullptr);
                        });
}

CloudObject load_cloud(const PathLike& path_, int64_t item, const py::object& limits, const py::object& on_progress) {
    return reading_file(path_, item, limits, on_progress,
                        [](const std::string& path, const io::ReadOptions& options, io::Warnings& warnings) {
                            return io::load_cloud(path, options, warnings);
                        });
}

MeshObject load_mesh(const PathLike& path_, int64_t item, const py::object& limits, const py::object& on_progress) {
    return reading_file(path_, item, limits, on_progress,
                        [](const std::string& path, const io::ReadOptions& options, io::Warnings& warnings) {
                            return io::load_mesh(path, options, warnings);
                        });
}

MeshObject parse(const py::bytes& data, const py::object& format_, int64_t item, const py::object& limits) {
    const std::optional<io::Format> given = format_argument(format_);
    const io::ReadOptions options = [&] {
        io::ReadOptions made = read_options(item, limits, py::none());
        made.named = given.has_value();
        return made;
    }();
    const std::span bytes(reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(data.ptr())),
                          static_cast<size_t>(PyBytes_GET_SIZE(data.ptr())));
    io::Warnings warnings;
    Mesh made = without_gil([&] {
        const io::FormatInfo& info =
            io::info_of(given ? *given : io::format_by_content(bytes.first(std::min<size_t>(bytes.size(), 4096))));
        STIPPLE_REQUIRE(info.parse, "format: {} is read from files alone", info.name);
        io::MemorySource source(bytes);
        io::ByteReader reader(source, options.limits);
        return info.parse(reader, options, warnings);
    });
    warn(warnings);
    return give(std::move(made));
}

void save(const PathLike& path_, const py::object& shape_, const py::object& format_, bool overwrite, bool ascii,
          bool compressed, bool keep_16_bit, const NumbersLike& scale, const NumbersLike& offset) {
    const std::string path = path_of(path_);
    const std::optional<io::Format> format = format_argument(format_);
    const ShapeArgument shape(shape_, "mesh");
    const io::WriteOptions options = write_options(ascii, compressed, keep_16_bit, scale, offset);
    io::Warnings warnings;
    without_gil(
        [&] { io::save(path, shape.mesh(), overwrite_of(overwrite), options, warnings, format ? &*format : nullptr); });
    warn(warnings);
}

py::bytes write(const py::object& shape_, const std::string& format_, bool ascii, bool compressed, bool keep_16_bit,
                const NumbersLike& scale, const NumbersLike& offset) {
    const io::Format format = io::format_by_name(format_);
    const ShapeArgument shape(shape_, "mesh");
    const io::WriteOptions options = write_options(ascii, compressed, keep_16_bit, scale, offset);
    io::Warnings warnings;
    MemorySink sink;
    without_gil([&] { io::write(shape.mesh(), sink, format, options, warnings); });
    warn(warnings);
    return bytes_of(sink);
}

py::list formats() {
    py::list all;
    for (const io::FormatInfo& info : io::formats()) {
        py::dict entry;
        py::list extensions;
        for (std::string_view extension : info.extensions) extensions.append(extension);
        entry["name"] = info.name;
        entry["extensions"] = extensions;
        entry["holds"] = info.holds;
        entry["keeps"] = info.keeps;
        all.append(entry);
    }
    return all;
}

std::string_view name_of_format(io::Format format) {
    return io::info_of(format).name;
}

}  // namespace

io::Limits limits_of(const py::object& limits) {
    io::Limits made;
    if (limits.is_none()) return made;
    for (const auto& [key_, value] : py::dict(limits)) {
        const auto key = py::cast<std::string>(key_);
        bool is_known = false;
        for (const NamedLimit& limit : kLimits)
            if (key == limit.name) {
                if (!PyLong_Check(value.ptr()))
                    throw py::type_error(fmt::format("limits: {}: {} is no whole number", key, type_name(value)));
                made.*limit.member = py::cast<int64_t>(value);
                is_known = true;
            }
        if (is_known) continue;
        std::string names;
        for (const NamedLimit& limit : kLimits) names += std::string(names.empty() ? "" : ", ") + limit.name;
        throw Error(ErrorCode::bad_argument, fmt::format("limits: no \"{}\"; there are {}", key, names));
    }
    return made;
}

io::ReadOptions read_options(int64_t item, const py::object& limits, const py::object& on_progress) {
    io::ReadOptions options;
    options.limits = limits_of(limits);
    options.item = item;
    if (!on_progress.is_none())
        options.on_progress = [kept = keep(on_progress), function = py::handle(on_progress)](int64_t done,
                                                                                             int64_t total) {
            const py::gil_scoped_acquire acquired;
            function(done, total);
        };
    return options;
}

io::WriteOptions write_options(bool ascii, bool compressed, bool keep_16_bit, const NumbersLike& scale,
                               const NumbersLike& offset) {
    io::WriteOptions options;
    options.ascii = ascii;
    options.compressed = compressed;
    options.keep_16_bit = keep_16_bit;
    options.scale = three_or_none(scale, "scale");
    options.offset = three_or_none(offset, "offset");
    return options;
}

void bind_files(py::module_& io) {
    const py::none none;
    io.def("load", &load, py::arg("path"), py::kw_only(), py::arg("format") = none, py::arg("item") = -1,
           py::arg("limits") = none, py::arg("on_progress") = none, doc::io::load);
    io.def("load_cloud", &load_cloud, py::arg("path"), py::kw_only(), py::arg("item") = -1, py::arg("limits") = none,
           py::arg("on_progress") = none, doc::io::load_cloud);
    io.def("load_mesh", &load_mesh, py::arg("path"), py::kw_only(), py::arg("item") = -1, py::arg("limits") = none,
           py::arg("on_progress") = none, doc::io::load_mesh);
    io.def(
        "parse", &parse, py::arg("data"), py::kw_only(), py::arg("format") = none, py::arg("item") = -1,
        py::arg("limits") = none,
        "A file that lies in memory as bytes: load() for what came over a network or out of an archive. The format is "
        "told by name or by the first bytes (PLY, PCD, OFF, LAS, NPY, NPZ).");
    io.def("save", &save, py::arg("path"), py::arg("mesh"), py::kw_only(), py::arg("format") = none,
           py::arg("overwrite") = false, py::arg("ascii") = false, py::arg("compressed") = false,
           py::arg("keep_16_bit") = false, py::arg("scale") = none, py::arg("offset") = none, doc::io::save);
    io.def("write", &write, py::arg("mesh"), py::arg("format"), py::kw_only(), py::arg("ascii") = false,
           py::arg("compressed") = false, py::arg("keep_16_bit") = false, py::arg("scale") = none,
           py::arg("offset") = none, doc::io::write);
    io.def("formats", &formats, "The formats of clouds and meshes as dicts: name, extensions, holds, keeps.");
    io.def(
        "format_by_extension",
        [](const PathLike& path) { return name_of_format(io::format_by_extension(path_of(path))); }, py::arg("path"),
        doc::io::format_by_extension);
    io.def(
        "format_to_write", [](const PathLike& path) { return name_of_format(io::format_to_write(path_of(path))); },
        py::arg("path"), doc::io::format_to_write);
    io.def(
        "format_by_content",
        [](const py::bytes& head) {
            return name_of_format(
                io::format_by_content({reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(head.ptr())),
                                       static_cast<size_t>(PyBytes_GET_SIZE(head.ptr()))}));
        },
        py::arg("head"), doc::io::format_by_content);
    io.def(
        "can_hold",
        [](const std::string& format, const std::string& attribute) {
            return io::can_hold(io::format_by_name(format), attribute);
        },
        py::arg("format"), py::arg("attribute"), doc::io::can_hold);
}

}  // namespace stipple::python
