#include "stipple/io/npz.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/world.h"
#include "stipple/io/common/zip.h"

namespace stipple::io {
namespace {

constexpr std::string_view kSuffix = ".npy", kFace = "face.", kAttribute = "attribute.";
constexpr std::string_view kPositions[] = {"positions", "points", "xyz", "pos", "data"};

NpyArray read_entry(ByteReader& reader, ZipEntry& entry, int64_t& budget) {
    if (entry.deflated) {
        InflateSource source(reader, entry, budget);
        ByteReader inner(source, reader.limits());
        NpyArray array = parse_npy_array(inner);
        finish_zip_entry(reader, entry, source.taken(), source.given(), source.crc());
        return array;
    }
    const NpyHeader header = read_npy_header(reader);
    const auto before = static_cast<int64_t>(header.raw.size());
    if (entry.sizes_known && header.bytes != entry.bytes - before)
        reader.fail(fmt::format("an array of shape {} needs {} bytes, the entry has {}",
                                shape_text(header.shape.data(), static_cast<int>(header.shape.size())), header.bytes,
                                entry.bytes - before));
    Buffer data = reader.read_buffer(header.bytes, "the array");
    const uint32_t crc = crc_of(crc_of(0, header.raw.data(), before), data.data(), header.bytes);
    finish_zip_entry(reader, entry, before + header.bytes, before + header.bytes, crc);
    return decode_npy(header, std::move(data));
}

std::string text_of(const std::vector<int64_t>& shape) {
    return shape_text(shape.data(), static_cast<int>(shape.size()));
}

const NpyArray* find_array(const NpyArrays& arrays, std::string_view name) {
    for (const auto& [key, array] : arrays)
        if (key == name) return &array;
    return nullptr;
}

size_t find_positions(const NpyArrays& arrays, const ByteReader& reader) {
    for (const std::string_view name : kPositions)
        for (size_t i = 0; i < arrays.size(); ++i)
            if (arrays[i].first == name) return i;
    std::vector<size_t> fit;
    std::string names;
    for (size_t i = 0; i < arrays.size(); ++i) {
        const NpyArray& array = arrays[i].second;
        names += (i ? ", " : "") + in_quotes(arrays[i].first) + " " + text_of(array.shape);
        if (is_float(array.dtype) && array.shape.size() == 2 && array.shape[1] >= 3) fit.push_back(i);
    }
    if (fit.size() != 1)
        reader.fail(fmt::format("no array is named positions, points, xyz, pos or data, and {} of shape [n, 3]",
                                fit.empty() ? "none is" : "several are"),
                    arrays.empty() ? "the file holds no arrays" : "it holds " + names.substr(0, 400));
    return fit[0];
}

Array<int32_t, 2> read_triangles(NpyArray& array, int64_t n, const std::string& name, const ByteReader& reader) {
    if (!is_integer(array.dtype) || array.shape.size() != 2 || array.shape[1] != 3)
        reader.fail(fmt::format("{} must be integers of shape [m, 3], got {} {}", name, name_of(array.dtype),
                                text_of(array.shape)));
    const int64_t m = array.shape[0], size = size_of(array.dtype);
    if (m > reader.limits().max_points)
        reader.fail(fmt::format("{} triangles, the limit is {}", m, reader.limits().max_points));
    const bool ready = array.dtype == DType::i32;
    Array<int32_t, 2> triangles = ready ? Array<int32_t, 2>(std::move(array.data), {m, 3}) : Array<int32_t, 2>({m, 3});
    for (int64_t i = 0; i < 3 * m; ++i) {
        const double index = ready ? triangles.data()[i] : load_as_double(array.dtype, array.data.data() + i * size);
        if (!(index >= 0 && index < static_cast<double>(n)))
            reader.fail(fmt::format("{}: face {} has index {} of {} points", name, i / 3, index, n));
        triangles.data()[i] = static_cast<int32_t>(index);
    }
    return triangles;
}

/// False when the array is not `rows` rows of values, or its name is taken.
bool add_attribute(Attributes& to, std::string name, const NpyArray& array, int64_t rows) {
    const size_t rank = array.shape.size();
    if (rank < 1 || rank > 2 || array.shape[0] != rows || (rank == 2 && array.shape[1] < 1)) return false;
    if (find(to, name)) return false;
    Attribute attribute(std::move(name), array.dtype, rows, rank == 2 ? array.shape[1] : 1);
    if (array.bytes() > 0) std::memcpy(attribute.data(), array.data.data(), static_cast<size_t>(array.bytes()));
    to.push_back(std::move(attribute));
    return true;
}

bool is_reserved(std::string_view name) {
    return name == "positions" || name == "origin" || name == "triangles" || name == "faces" ||
           name.substr(0, kFace.size()) == kFace || name.substr(0, kAttribute.size()) == kAttribute;
}

std::string without_prefix(const std::string& name, std::string_view prefix) {
    return name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : name;
}

}  // namespace

NpyArrays parse_npz_arrays(ByteReader& reader) {
    NpyArrays arrays;
    std::set<std::string> names;
    std::vector<ZipEntry> entries;
    int64_t budget = reader.limits().max_inflated;
    while (next_zip_entry(reader, entries)) {
        ZipEntry& entry = entries.back();
        if (entry.name.size() < kSuffix.size() || entry.name.substr(entry.name.size() - kSuffix.size()) != kSuffix)
            reader.fail(fmt::format("zip: {} is not an array (.npy)", in_quotes(entry.name)));
        if (!names.insert(entry.name).second) reader.fail(fmt::format("zip: {} occurs twice", in_quotes(entry.name)));
        try {
            NpyArray array = read_entry(reader, entry, budget);
            arrays.emplace_back(entry.name.substr(0, entry.name.size() - kSuffix.size()), std::move(array));
        } catch (const Error& error) {
            // An offset inside the entry means nothing to the reader of the message; the archive's does.
            if (error.code() != ErrorCode::bad_file) throw;
            reader.fail(fmt::format("{}: {}", in_quotes(entry.name), error.message()), error.hint());
        }
    }
    return arrays;
}

void write_npz_views(const std::vector<NpyView>& arrays, ByteSink& sink) {
    std::vector<ZipEntry> entries;
    std::set<std::string_view> names;
    int64_t offset = 0;
    for (const NpyView& array : arrays) {
        STIPPLE_REQUIRE(names.insert(array.name).second, "npz: two arrays are named {}", array.name);
        STIPPLE_REQUIRE(array.name.size() <= 60'000 && array.name.find('\0') == array.name.npos,
                        "npz: {} cannot name an array", in_quotes(array.name));
        int64_t bytes = size_of(array.dtype);
        for (const int64_t extent : array.shape) bytes = checked_mul(bytes, extent);
        const std::string header = npy_header(array.dtype, array.shape);
        ZipEntry entry;
        entry.name = array.name + std::string(kSuffix);
        entry.bytes = entry.stored = checked_add(bytes, static_cast<int64_t>(header.size()));
        entry.offset = offset;
        entry.crc = crc_of(crc_of(0, header.data(), static_cast<int64_t>(header.size())), array.data, bytes);
        const std::string local = local_header(entry);
        sink.write(local);
        sink.write(header);
        if (bytes) sink.write(array.data, bytes);
        offset += static_cast<int64_t>(local.size()) + entry.stored;
        entries.push_back(std::move(entry));
    }
    sink.write(central_directory(entries, offset));
}

void write_npz_arrays(const NpyArrays& arrays, ByteSink& sink) {
    std::vector<NpyView> views;
    for (const auto& [name, array] : arrays) {
        STIPPLE_REQUIRE(array.data.bytes() >= array.bytes(), "npz: {}: {} bytes for shape {}", name, array.data.bytes(),
                        text_of(array.shape));
        views.push_back({name, array.shape, array.dtype, array.data.data()});
    }
    write_npz_views(views, sink);
}

Mesh parse_npz(ByteReader& reader, const ReadOptions& options, Warnings& warnings) {
    NpyArrays arrays = parse_npz_arrays(reader);
    const size_t at = find_positions(arrays, reader);
    Mesh mesh;
    PointCloud& cloud = mesh.vertices;
    cloud = cloud_from_npy(std::move(arrays[at].second), reader, options);
    arrays.erase(arrays.begin() + static_cast<std::ptrdiff_t>(at));
    const int64_t n = cloud.size();

    const NpyArray* origin = find_array(arrays, "origin");
    if (origin) {
        if (!is_float(origin->dtype) || origin->shape != std::vector<int64_t>{3})
            reader.fail(fmt::format("origin must be floats of shape [3], got {} {}", name_of(origin->dtype),
                                    text_of(origin->shape)));
        for (int axis = 0; axis < 3; ++axis) {
            const double value = load_as_double(origin->dtype, origin->data.data() + axis * size_of(origin->dtype));
            if (!std::isfinite(value)) reader.fail("origin is not finite");
            cloud.origin[static_cast<size_t>(axis)] += value;
        }
    }
    const std::string triangles = find_array(arrays, "triangles") ? "triangles" : "faces";
    for (auto& [name, array] : arrays)
        if (name == triangles) mesh.triangles = read_triangles(array, n, name, reader);

    std::vector<std::string> unused;
    for (const auto& [name, array] : arrays) {
        if (name == "origin" || name == triangles) continue;
        const bool of_face = name.substr(0, kFace.size()) == kFace;
        if (of_face ? mesh.faces() > 0 &&
                          add_attribute(mesh.face_attributes, without_prefix(name, kFace), array, mesh.faces())
                    : add_attribute(cloud.attributes, without_prefix(name, kAttribute), array, n))
            continue;
        unused.push_back(in_quotes(name) + " " + text_of(array.shape));
    }
    if (!unused.empty()) {
        std::string list;
        for (const std::string& text : unused) list += (list.empty() ? "" : ", ") + text;
        warnings.push_back(fmt::format("arrays that are no attributes of the {} points: {}", n, list));
    }
    return mesh;
}

void write_npz(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    std::vector<NpyView> views;
    std::vector<Attribute> converted;  // bfloat16 as float32, alive until written
    converted.reserve(cloud.attributes.size() + mesh.face_attributes.size());
    views.push_back({"positions", {cloud.size(), 3}, DType::f32, cloud.positions.data()});
    if (cloud.origin != std::array<double, 3>{}) views.push_back({"origin", {3}, DType::f64, cloud.origin.data()});
    const auto add = [&](const Attribute& attribute, std::string name) {
        const Attribute* source = &attribute;
        if (attribute.dtype() == DType::bf16) {
            Attribute& wide =
                converted.emplace_back(attribute.name(), DType::f32, attribute.rows(), attribute.components());
            for (int64_t i = 0; i < attribute.rows() * attribute.components(); ++i)
                reinterpret_cast<float*>(wide.data())[i] =
                    static_cast<float>(load_as_double(DType::bf16, attribute.data() + 2 * i));
            source = &wide;
            warnings.push_back(
                fmt::format("NPZ has no bfloat16: attribute {} is written as float32", attribute.name()));
        }
        std::vector<int64_t> shape = {source->rows()};
        if (source->components() != 1) shape.push_back(source->components());
        views.push_back({std::move(name), std::move(shape), source->dtype(), source->data()});
    };
    for (const Attribute& attribute : cloud.attributes)
        add(attribute, is_reserved(attribute.name()) ? std::string(kAttribute) + attribute.name() : attribute.name());
    if (mesh.faces() > 0) {
        views.push_back({"triangles", {mesh.faces(), 3}, DType::i32, mesh.triangles.data()});
        for (const Attribute& attribute : mesh.face_attributes) add(attribute, std::string(kFace) + attribute.name());
    }
    write_npz_views(views, sink);
}

}  // namespace stipple::io
