#pragma once
// The formats of clouds and meshes: one table, one way to load and to save any of them.
//
// Each format has a file of its own with parse_X(ByteReader&, ...) -> Mesh, which is pure, and write_X(Mesh,
// ByteSink&). A cloud is a Mesh without triangles. Readers throw Error{bad_file}. A file whose header counts no points
// is an empty cloud; one that has no such count (XYZ, CSV, OBJ, KITTI) and no points is refused, as is one that was cut
// off.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/atomic_file.h"
#include "stipple/core/point_cloud.h"
#include "stipple/io/byte_source.h"

namespace stipple::io {

enum class Format { ply, xyz, xyzn, xyzrgb, pts, csv, obj, off, stl, pcd, las, kitti, npy, npz, hdf5 };

/// What was dropped, rounded or guessed, one sentence each.
using Warnings = std::vector<std::string>;

struct ReadOptions {
    Limits limits = {};
    std::function<void(int64_t done, int64_t total)> on_progress = {};  // bytes; total 0 when unknown
    bool named =
        false;          // the format was named by the user: formats without a mark of their own (KITTI) do not doubt it
    int64_t item = -1;  // which cloud of a file that holds many (HDF5, NPY of rank 3); -1: the file must hold one
};

struct WriteOptions {
    bool ascii = false;       // PLY, PCD, STL: text instead of binary
    bool compressed = false;  // PCD: binary_compressed; other formats ignore it
    /// PLY, PCD, XYZRGB: colors of 16 bits stay what they are. Else these formats, OBJ, OFF and PTS write 8 bits, as
    /// others expect: the high bytes, or the values where none exceeds 255 (color_maximum()).
    bool keep_16_bit = false;
    /// LAS: coordinate = integer * scale + offset; those of the file that the points come from, or chosen.
    std::optional<std::array<double, 3>> scale = {}, offset = {};
};

struct FormatInfo {
    Format format;
    std::string_view name;                     // for --format
    std::vector<std::string_view> extensions;  // lower case, without the dot; the first is the usual one
    std::string_view holds;                    // for people: "points, faces, attributes"
    std::string_view keeps;                    // names of the attributes that it can hold, by blanks; "*": any
    bool counts = false;                       // its header counts points, so that it can hold a cloud of none
    Mesh (*parse)(ByteReader&, const ReadOptions&, Warnings&) = nullptr;  // null: needs a path (HDF5)
    void (*write)(const Mesh&, ByteSink&, const WriteOptions&, Warnings&) = nullptr;
};

std::span<const FormatInfo> formats();
const FormatInfo& info_of(Format format);

/// By name ("ply"); throws Error{bad_argument} that lists the names.
Format format_by_name(std::string_view name);

/// By extension; throws Error{bad_file}, with a converter named for E57 and pickle files.
Format format_by_extension(const std::string& path);

/// The same for a file that shall be written; throws also for .laz, which is read alone.
Format format_to_write(const std::string& path);

/// Whether the format can hold an attribute of this name.
bool can_hold(Format format, std::string_view attribute);

/// Throws Error{bad_argument} that names the formats that can, unless the format can hold the attribute: for a product
/// that must not be lost.
void require_can_hold(Format format, std::string_view attribute);

/// By the first bytes: PLY, PCD, OFF, LAS, NPY, NPZ, HDF5. Throws Error{bad_file} when they do not tell, and for files
/// whose content is known and not read (E57, pickle).
Format format_by_content(std::span<const std::byte> head);

/// Reads any supported file; "-" is standard input. The format is `format` if given, else the content's, else the
/// extension's; `used` receives it. Errors name the path.
Mesh load(const std::string& path, const ReadOptions& options, Warnings& warnings, const Format* format = nullptr,
          Format* used = nullptr);

/// The points alone; faces are not wanted and not missed.
PointCloud load_cloud(const std::string& path, const ReadOptions& options, Warnings& warnings);

/// Throws Error{bad_file} when the file has no faces.
Mesh load_mesh(const std::string& path, const ReadOptions& options, Warnings& warnings);

/// Writes a cloud or mesh as `format` (not HDF5, which needs a path). What the format cannot hold is told in warnings,
/// the facts of the file that it was read from among them (coordinate system, viewpoint).
void write(const Mesh& mesh, ByteSink& sink, Format format, const WriteOptions& options, Warnings& warnings);

/// Writes any supported file, atomically; the format is `format` if given, else the extension's.
void save(const std::string& path, const Mesh& mesh, Overwrite overwrite, const WriteOptions& options,
          Warnings& warnings, const Format* format = nullptr);

}  // namespace stipple::io
