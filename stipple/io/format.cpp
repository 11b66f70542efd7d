#include "stipple/io/format.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/load.h"
#include "stipple/io/hdf5.h"
#include "stipple/io/kitti.h"
#include "stipple/io/las.h"
#include "stipple/io/npy.h"
#include "stipple/io/npz.h"
#include "stipple/io/obj.h"
#include "stipple/io/off.h"
#include "stipple/io/pcd.h"
#include "stipple/io/ply.h"
#include "stipple/io/stl.h"
#include "stipple/io/text.h"
#include "stipple/io/xyz.h"

namespace stipple::io {
namespace {

const FormatInfo kFormats[] = {
    {Format::ply, "ply", {"ply"}, "points, faces, attributes", "*", true, parse_ply, write_ply},
    {Format::xyz, "xyz", {"xyz", "txt", "asc"}, "points (attributes are read)", "", false, parse_xyz, write_xyz},
    {Format::xyzn, "xyzn", {"xyzn"}, "points, normal", "normal", false, parse_xyzn, write_xyzn},
    {Format::xyzrgb, "xyzrgb", {"xyzrgb"}, "points, color", "color", false, parse_xyzrgb, write_xyzrgb},
    {Format::pts, "pts", {"pts"}, "points, intensity, color", "intensity color", true, parse_pts, write_pts},
    {Format::csv, "csv", {"csv"}, "points, attributes", "*", false, parse_xyz, write_csv},
    {Format::obj, "obj", {"obj"}, "points, faces, normal, color", "normal color", false, parse_obj, write_obj},
    {Format::off,
     "off",
     {"off", "coff", "noff"},
     "points, faces, normal, color",
     "normal color",
     true,
     parse_off,
     write_off},
    {Format::stl, "stl", {"stl"}, "faces", "", true, parse_stl, write_stl},
    {Format::pcd, "pcd", {"pcd"}, "points, attributes", "*", true, parse_pcd, write_pcd},
    {Format::las, "las", {"las", "laz"}, "points, attributes", "*", true, parse_las, write_las},
    {Format::kitti, "kitti", {"bin"}, "points, intensity", "intensity", false, parse_kitti, write_kitti},
    {Format::npy, "npy", {"npy"}, "points (columns are read)", "", true, parse_npy, write_npy},
    {Format::npz, "npz", {"npz"}, "points, faces, attributes, origin", "*", true, parse_npz, write_npz},
    {Format::hdf5, "hdf5", {"h5", "hdf5"}, "sets of clouds, normal, label", "normal label", false, nullptr, nullptr},
};

struct Refusal {
    std::string_view extension, message, hint;
};

constexpr std::string_view kPickleHint = "convert it with scripts/pth_to_safetensors.py, in your own Python";

const Refusal kRefusals[] = {
    {"e57", "E57 is not read", "convert it with: pdal translate in.e57 out.las, or with CloudCompare"},
    {"pkl", "pickle files are not read: they can run code", "save it with numpy.savez"},
    {"pickle", "pickle files are not read: they can run code", "save it with numpy.savez"},
    {"pt", "pickle checkpoints are not read: they can run code", kPickleHint},
    {"pth", "pickle checkpoints are not read: they can run code", kPickleHint},
    {"ckpt", "pickle checkpoints are not read: they can run code", kPickleHint},
};

std::string extension_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return {};
    return lower_case(std::string_view(path).substr(dot + 1));
}

void refuse_extension(const std::string& path, const std::string& extension) {
    for (const Refusal& refusal : kRefusals)
        if (refusal.extension == extension)
            throw Error(ErrorCode::bad_file, Place{path}, std::string(refusal.message), std::string(refusal.hint));
}

std::string format_names() {
    std::string names;
    for (const FormatInfo& info : kFormats) names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
    return names;
}

/// The format that the first bytes tell, or null.
const FormatInfo* recognise(std::string_view head) {
    const auto begins = [&](std::string_view magic) { return head.substr(0, magic.size()) == magic; };
    if (begins("ASTM-E57"))
        throw Error(ErrorCode::bad_file, "E57 is not read",
                    "convert it with: pdal translate in.e57 out.las, or with CloudCompare");
    if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
        throw Error(ErrorCode::bad_file, "pickle files are not read: they can run code", "save it with numpy.savez");
    if (begins("ply\n") || begins("ply\r")) return &info_of(Format::ply);
    if (begins("LASF")) return &info_of(Format::las);
    if (begins("\x93NUMPY")) return &info_of(Format::npy);
    if (begins("PK\x03\x04") || begins("PK\x05\x06")) return &info_of(Format::npz);
    if (begins("\x89HDF\r\n\x1a\n")) return &info_of(Format::hdf5);
    if (begins("# .PCD") || begins("VERSION 0.7") || begins("VERSION .7")) return &info_of(Format::pcd);
    if (begins("OFF") || begins("COFF") || begins("NOFF") || begins("CNOFF") || begins("NCOFF"))
        return &info_of(Format::off);
    return nullptr;
}

/// Text of points, by its first line: three numbers or more are xyz, with commas csv, as are names of columns that
/// begin with x,y,z. Null for anything else. A line that `head` cuts off counts by what is there.
const FormatInfo* recognise_text(std::string_view head) {
    while (head.starts_with('#')) head.remove_prefix(std::min(head.find('\n'), head.size() - 1) + 1);
    const bool is_whole = head.find('\n') != std::string_view::npos;
    std::string line(head.substr(0, head.find('\n')));
    if (lower_case(line).starts_with("x,y,z")) return &info_of(Format::csv);
    const bool has_commas = line.find(',') != std::string::npos;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::string_view rest = line;
    int numbers = 0;
    double value = 0;
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest), ++numbers)
        if (!parse_number(word, value) && (is_whole || !rest.empty())) return nullptr;
    return numbers < 3 ? nullptr : &info_of(has_commas ? Format::csv : Format::xyz);
}

/// Reports the bytes as they are read.
class ProgressSource : public ByteSource {
public:
    ProgressSource(ByteSource& source, const ReadOptions& options) : source_(source), options_(options) {}
    int64_t read(std::byte* to, int64_t capacity) override {
        const int64_t count = source_.read(to, capacity);
        done_ += count;
        if (options_.on_progress) options_.on_progress(done_, source_.size().value_or(0));
        return count;
    }
    std::optional<int64_t> size() const override { return source_.size(); }

private:
    ByteSource& source_;
    const ReadOptions& options_;
    int64_t done_ = 0;
};

Mesh load_unnamed(const std::string& path, const ReadOptions& options, Warnings& warnings, const Format* format,
                  Format* used) {
    if (!format && path != "-") refuse_extension(path, extension_of(path));
    FileSource file(path);
    ProgressSource source(file, options);
    ByteReader reader(source, options.limits);
    return load_from(reader, path, options, warnings, format, used);
}

/// "PLY": as messages name a format.
std::string title_of(const FormatInfo& info) {
    std::string name(info.name);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

/// Tells of facts that no field of the format takes; LAS tells of its own.
void warn_facts(const FileFacts& facts, const FormatInfo& info, Warnings& warnings) {
    std::vector<std::string> lost;
    if (!facts.coordinate_system.empty() && info.format != Format::las) lost.push_back("the coordinate system");
    constexpr std::array<double, 7> kOrigin = {0, 0, 0, 1, 0, 0, 0};  // where readers expect it anyway
    if (facts.viewpoint && *facts.viewpoint != kOrigin && info.format != Format::pcd) lost.push_back("the viewpoint");
    warn_dropped(lost, title_of(info), "", warnings);
}

}  // namespace

std::span<const FormatInfo> formats() {
    return kFormats;
}

const FormatInfo& info_of(Format format) {
    for (const FormatInfo& info : kFormats)
        if (info.format == format) return info;
    STIPPLE_ASSERT(!"format");
}

Format format_by_name(std::string_view name) {
    for (const FormatInfo& info : kFormats)
        if (info.name == name) return info.format;
    throw Error(ErrorCode::bad_argument, fmt::format("unknown format {}", in_quotes(name)),
                "one of: " + format_names());
}

Format format_by_extension(const std::string& path) {
    const std::string extension = extension_of(path);
    refuse_extension(path, extension);
    for (const FormatInfo& info : kFormats)
        for (std::string_view known : info.extensions)
            if (known == extension) return info.format;
    throw Error(
        ErrorCode::bad_file, Place{path},
        extension.empty() ? "has no extension to tell its format" : fmt::format("unknown extension .{}", extension),
        "formats: " + format_names());
}

Format format_to_write(const std::string& path) {
    if (extension_of(path) == "laz")
        throw Error(ErrorCode::bad_file, Place{path}, "LAZ is read, not written",
                    "write .las, then compress it: laszip -i out.las -o out.laz");
    return format_by_extension(path);
}

bool can_hold(Format format, std::string_view attribute) {
    std::string_view names = info_of(format).keeps;
    if (names == "*") return true;
    for (std::string_view name; !(name = next_word(names)).empty();)
        if (name == attribute) return true;
    return false;
}

void require_can_hold(Format format, std::string_view attribute) {
    if (can_hold(format, attribute)) return;
    std::string others;
    for (const FormatInfo& info : kFormats)
        if (can_hold(info.format, attribute))
            others += fmt::format("{}.{}", others.empty() ? "" : ", ", info.extensions[0]);
    throw Error(ErrorCode::bad_argument,
                fmt::format("{} cannot hold the attribute {}", title_of(info_of(format)), attribute),
                "formats that can: " + others);
}

Format format_by_content(std::span<const std::byte> head) {
    const FormatInfo* info = recognise({reinterpret_cast<const char*>(head.data()), head.size()});
    if (!info) throw Error(ErrorCode::bad_file, "the content does not tell its format");
    return info->format;
}

Mesh load_from(ByteReader& reader, const std::string& path, const ReadOptions& options, Warnings& warnings,
               const Format* format, Format* used) {
    if (reader.at_end()) throw Error(ErrorCode::bad_file, "empty");
    const FormatInfo* info = nullptr;
    if (format) {
        info = &info_of(*format);
    } else {
        const auto head = reader.peek(64);
        info = recognise({reinterpret_cast<const char*>(head.data()), head.size()});
        if (!info && path == "-") info = recognise_text({reinterpret_cast<const char*>(head.data()), head.size()});
        if (!info && path == "-")
            throw Error(ErrorCode::bad_file, "the format of standard input cannot be told", "name it with --from");
        if (!info) info = &info_of(format_by_extension(path));
    }
    if (used) *used = info->format;
    if (options.item > 0 && info->format != Format::npy && info->format != Format::hdf5)
        throw Error(ErrorCode::bad_file, fmt::format("item {} of a file that holds 1 cloud", options.item));
    if (info->parse) {
        ReadOptions told = options;
        told.named = options.named || format;
        return info->parse(reader, told, warnings);
    }
    if (path == "-") throw Error(ErrorCode::bad_file, "HDF5 cannot be read from standard input", "give its path");
    return load_hdf5_cloud(path, options, warnings);
}

void rethrow_for(const std::string& path) {
    try {
        throw;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::interrupted || error.code() == ErrorCode::terminated) throw;
        // A size in a header that overflows is the file's fault here, not the caller's.
        if (error.code() == ErrorCode::bad_argument && error.place().path.empty())
            throw Error(ErrorCode::bad_file, Place{path}, error.message(), error.hint());
        throw error.at_path(path);
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::out_of_memory, Place{path}, "out of memory while reading");
    } catch (const std::length_error&) {
        throw Error(ErrorCode::out_of_memory, Place{path}, "out of memory while reading");
    }
}

Mesh load(const std::string& path, const ReadOptions& options, Warnings& warnings, const Format* format, Format* used) {
    try {
        return load_unnamed(path, options, warnings, format, used);
    } catch (...) {
        rethrow_for(path);
    }
}

PointCloud load_cloud(const std::string& path, const ReadOptions& options, Warnings& warnings) {
    return std::move(load(path, options, warnings).vertices);
}

Mesh load_mesh(const std::string& path, const ReadOptions& options, Warnings& warnings) {
    Mesh mesh = load(path, options, warnings);
    if (mesh.faces() == 0) throw Error(ErrorCode::bad_file, Place{path}, "has no faces", "a mesh is needed here");
    return mesh;
}

void write(const Mesh& mesh, ByteSink& sink, Format format, const WriteOptions& options, Warnings& warnings) {
    const FormatInfo& info = info_of(format);
    STIPPLE_REQUIRE(info.write, "{} is written to a path alone", info.name);
    if (format != Format::las && find(mesh.vertices.attributes, kLasRecord)) {
        Mesh others = mesh.clone();
        std::erase_if(others.vertices.attributes, [](const Attribute& a) { return a.name() == kLasRecord; });
        return write(others, sink, format, options, warnings);
    }
    info.write(mesh, sink, options, warnings);
    warn_facts(mesh.vertices.facts, info, warnings);
}

void save(const std::string& path, const Mesh& mesh, Overwrite overwrite, const WriteOptions& options,
          Warnings& warnings, const Format* format) {
    const FormatInfo& info = info_of(format ? *format : format_to_write(path));
    if (!info.write) {
        save_hdf5_cloud(path, mesh, overwrite, warnings);
        return warn_facts(mesh.vertices.facts, info, warnings);
    }
    AtomicFile file(path, overwrite);
    write(mesh, file, info.format, options, warnings);
    file.commit();
}

}  // namespace stipple::io
