// stipple.io: clouds in chunks, and what LAS files say.

#include "docstrings.h"
#include "python/bindings/common/cloud_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/io/files.h"
#include "python/bindings/module.h"
#include "stipple/io/cloud_stream.h"
#include "stipple/io/las_summary.h"

namespace stipple::python {
namespace {

struct SummaryResult {
    static constexpr auto name = py::detail::const_name("LasSummary");
    static constexpr const char* fields[] = {
        "minor",    "point_format", "system",           "software",          "year",
        "day",      "scale",        "offset",           "coordinate_system", "epsg",
        "has_time", "records",      "extended_records", "returns",           "classes"};
};

/// A reader, and what must live as long.
struct ReaderObject {
    io::StreamOptions options;
    io::Format format = io::Format::ply;
    io::Warnings warnings;
    std::unique_ptr<io::CloudReader> reader;
    bool is_busy = false;

    io::CloudReader& open() {
        STIPPLE_REQUIRE(reader, "the reader is closed");
        STIPPLE_REQUIRE(!is_busy, "another thread reads from it");
        return *reader;
    }
    void tell() {
        io::Warnings told;
        told.swap(warnings);
        warn(told);
    }
};

struct WriterObject {
    io::Warnings warnings;
    std::unique_ptr<io::CloudWriter> writer;
    bool is_busy = false;

    io::CloudWriter& open() {
        STIPPLE_REQUIRE(writer, "the writer is closed");
        STIPPLE_REQUIRE(!is_busy, "another thread writes to it");
        return *writer;
    }
    void tell() {
        io::Warnings told;
        told.swap(warnings);
        warn(told);
    }
};

/// Marks a stream as in use while the GIL is released.
class Busy {
public:
    explicit Busy(bool& flag) : flag_(flag) { flag_ = true; }
    ~Busy() { flag_ = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

private:
    bool& flag_;
};

std::unique_ptr<ReaderObject> open_reader(const PathLike& path_, const py::object& format, int64_t chunk_points,
                                          bool attributes, const py::object& only, bool las_records, int64_t item,
                                          const py::object& limits) {
    const std::string path = path_of(path_);
    auto made = std::make_unique<ReaderObject>();
    made->options.reading = read_options(item, limits, py::none());
    made->options.chunk_points = chunk_points;
    made->options.attributes = attributes;
    if (!only.is_none()) made->options.only = texts_of(only, "only");
    made->options.las_records = las_records;
    if (!format.is_none()) {
        made->format = io::format_by_name(format.cast<std::string>());
        made->options.format = &made->format;
        made->options.reading.named = true;
    }
    without_gil([&] { made->reader = io::CloudReader::open(path, made->options, made->warnings); });
    made->tell();
    return made;
}

CloudObject next_chunk(ReaderObject& o) {
    io::CloudReader& reader = o.open();
    PointCloud chunk;
    bool has_more = false;
    {
        const Busy busy(o.is_busy);
        has_more = without_gil([&] { return reader.next(chunk); });
    }
    o.tell();
    if (!has_more) throw py::stop_iteration();
    return give(std::move(chunk));
}

std::unique_ptr<WriterObject> open_writer(const PathLike& path_, const py::object& format_, bool overwrite, bool ascii,
                                          bool compressed, bool keep_16_bit, const NumbersLike& scale,
                                          const NumbersLike& offset) {
    const std::string path = path_of(path_);
    const io::WriteOptions options = write_options(ascii, compressed, keep_16_bit, scale, offset);
    auto made = std::make_unique<WriterObject>();
    std::optional<io::Format> format;
    if (!format_.is_none()) format = io::format_by_name(format_.cast<std::string>());
    without_gil([&] {
        made->writer =
            io::CloudWriter::open(path, overwrite_of(overwrite), options, made->warnings, format ? &*format : nullptr);
    });
    return made;
}

void write_chunk(WriterObject& o, const CloudLike& chunk_) {
    io::CloudWriter& writer = o.open();
    const CloudArgument chunk(chunk_, "chunk");
    const Busy busy(o.is_busy);
    without_gil([&] { writer.write(chunk.cloud().clone()); });
}

int64_t finish(WriterObject& o) {
    io::CloudWriter& writer = o.open();
    int64_t points = 0;
    {
        const Busy busy(o.is_busy);
        points = without_gil([&] { return writer.finish(); });
    }
    o.writer.reset();
    o.tell();
    return points;
}

int64_t copy_cloud(ReaderObject& reader, WriterObject& writer) {
    io::CloudReader& from = reader.open();
    io::CloudWriter& to = writer.open();
    int64_t points = 0;
    {
        const Busy reads(reader.is_busy), writes(writer.is_busy);
        points = without_gil([&] { return io::copy_cloud(from, to); });
    }
    writer.writer.reset();  // it has finished
    reader.tell();
    writer.tell();
    return points;
}

py::dict counts_of(const std::map<int, int64_t>& counts) {
    py::dict made;
    for (const auto& [key, count] : counts) made[py::int_(key)] = count;
    return made;
}

py::object summarise_las(const CloudLike& cloud_) {
    const CloudArgument cloud(cloud_, "cloud");
    const auto found = without_gil([&] { return io::summarise_las(cloud.cloud()); });
    if (!found) return py::none();
    return record<SummaryResult>(
        py::int_(found->minor), py::int_(found->point_format), py::str(found->system), py::str(found->software),
        py::int_(found->year), py::int_(found->day), tuple_of(found->scale), tuple_of(found->offset),
        py::str(found->coordinate_system), found->epsg ? py::object(py::int_(*found->epsg)) : py::none(),
        py::bool_(found->has_time), py::int_(found->records), py::int_(found->extended_records),
        counts_of(found->returns), counts_of(found->classes));
}

}  // namespace

void bind_streams(py::module_& io) {
    add_record<SummaryResult>(io);
    const py::none none;
    py::class_<ReaderObject>(io, "CloudReader",
                             "A cloud in chunks, for files larger than the memory: an iterator of PointCloud.\n\n"
                             "LAS and LAZ are read in chunks; every other format is read whole and handed out in them. "
                             "All chunks have the same origin, attributes and facts. A context manager.")
        .def(py::init(&open_reader), py::arg("path"), py::kw_only(), py::arg("format") = none,
             py::arg("chunk_points") = 1 << 16, py::arg("attributes") = true, py::arg("only") = none,
             py::arg("las_records") = false, py::arg("item") = -1, py::arg("limits") = none,
             "Reads the header. LAS: attributes=False leaves all but positions out, only=[...] all but those of these "
             "names; las_records adds the records as they stand, for a CloudWriter of points that were not moved.")
        .def_property_readonly(
            "format", [](ReaderObject& o) { return io::info_of(o.open().format()).name; }, "Its name.")
        .def_property_readonly(
            "points", [](ReaderObject& o) { return o.open().points(); }, "Of the whole file.")
        .def("__iter__", [](const py::object& o) { return o; })
        .def("__next__", &next_chunk)
        .def("__len__", [](ReaderObject& o) { return o.open().points(); })
        .def(
            "close",
            [](ReaderObject& o) {
                STIPPLE_REQUIRE(!o.is_busy, "another thread reads from it");
                o.reader.reset();
            },
            "Closes the file.")
        .def("__enter__", [](const py::object& o) { return o; })
        .def("__exit__", [](ReaderObject& o, const py::args&) { o.reader.reset(); });
    py::class_<WriterObject>(
        io, "CloudWriter",
        "Writes a cloud chunk by chunk. Nothing appears at the path before finish().\n\nAs a "
        "context manager it finishes at the end of the block, and leaves nothing after an exception.")
        .def(py::init(&open_writer), py::arg("path"), py::kw_only(), py::arg("format") = none,
             py::arg("overwrite") = false, py::arg("ascii") = false, py::arg("compressed") = false,
             py::arg("keep_16_bit") = false, py::arg("scale") = none, py::arg("offset") = none, "Options as of save.")
        .def("write", &write_chunk, py::arg("chunk"), "A chunk; the first tells attributes, origin and facts.")
        .def("finish", &finish, "Completes the file and makes it appear. Returns the points written.")
        .def("__enter__", [](const py::object& o) { return o; })
        .def("__exit__", [](WriterObject& o, const py::object& type, const py::object&, const py::object&) {
            if (type.is_none() && o.writer) finish(o);
            o.writer.reset();
        });
    io.def("copy_cloud", &copy_cloud, py::arg("reader"), py::arg("writer"), doc::io::copy_cloud);
    io.def(
        "is_las", [](const PathLike& path, const std::string& from) { return io::is_las(path_of(path), from); },
        py::arg("path"), py::arg("from_format") = "", doc::io::is_las);
    io.def("summarise_las", &summarise_las, py::arg("cloud"), doc::io::summarise_las);
    io.def("las_class_name", &io::las_class_name, py::arg("number"), doc::io::las_class_name);
}

}  // namespace stipple::python
