#include <algorithm>
#include <cstring>
#include <utility>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/point_table.h"
#include "stipple/io/common/text_table.h"
#include "stipple/io/ply.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

std::string_view ply_type(DType dtype) {
    switch (dtype) {
        case DType::u8: return "uchar";
        case DType::i8: return "char";
        case DType::u16: return "ushort";
        case DType::i16: return "short";
        case DType::u32: return "uint";
        case DType::i32: return "int";
        case DType::f32: return "float";
        default: return "double";
    }
}

/// The PLY type that holds every value of the attribute; refuses when there is none.
DType stored_type(const Attribute& attribute, Warnings& warnings) {
    DType stored = attribute.dtype();
    switch (attribute.dtype()) {
        case DType::boolean: stored = DType::u8; break;
        case DType::f16:
        case DType::bf16: stored = DType::f32; break;
        case DType::i64:
        case DType::u64: {
            double low = 0, high = 0;
            for (int64_t i = 0; i < attribute.rows(); ++i)
                for (int64_t c = 0; c < attribute.components(); ++c) {
                    low = std::min(low, attribute.value(i, c));
                    high = std::max(high, attribute.value(i, c));
                }
            if (low >= -2147483648.0 && high <= 2147483647.0)  // conversions through double are exact here
                stored = DType::i32;
            else if (low >= 0 && high <= 4294967295.0)
                stored = DType::u32;
            else if (low > -9007199254740992.0 && high < 9007199254740992.0)
                stored = DType::f64;
            else
                throw Error(ErrorCode::bad_argument,
                            fmt::format("PLY has no 64-bit integers, which attribute {} needs", attribute.name()),
                            "write .npz, which holds every type");
            break;
        }
        default: return stored;
    }
    warnings.push_back(fmt::format("attribute {} ({}) is stored as {}", attribute.name(), name_of(attribute.dtype()),
                                   name_of(stored)));
    return stored;
}

/// Attributes whose types PLY has: the others are converted here, so that the writers below copy bytes.
Attributes storable(const Attributes& attributes, const WriteOptions& options, Warnings& warnings) {
    Attributes result;
    Attribute bytes;
    const bool has_bytes = !options.keep_16_bit && byte_color(attributes, bytes, "PLY", warnings) == &bytes;
    for (const Attribute& attribute : attributes) {
        if (has_bytes && attribute.name() == "color") {
            result.push_back(std::exchange(bytes, {}));
            continue;
        }
        const DType stored = stored_type(attribute, warnings);
        // An empty stand-in where nothing changes: fields_of() looks at the type alone.
        result.push_back(stored == attribute.dtype() ? Attribute(attribute.name(), stored, 0, attribute.components())
                                                     : converted(attribute, stored));
    }
    return result;
}

/// The fields of `attributes`, pointing at the converted copies where there are any.
std::vector<WrittenField> fields_of(const Attributes& attributes, const Attributes& converted) {
    std::vector<WrittenField> fields = flatten(attributes);
    for (WrittenField& field : fields) {
        const auto index = static_cast<size_t>(field.attribute - attributes.data());
        if (converted[index].dtype() != field.dtype) {
            field.attribute = &converted[index];
            field.dtype = field.attribute->dtype();
        }
        for (char& c : field.name)
            if (is_blank(c) || c == '\n') c = '_';  // a property name is one word
    }
    return fields;
}

std::string header_of(const Mesh& mesh, const std::vector<WrittenField>& fields,
                      const std::vector<WrittenField>& face_fields, bool wide, bool ascii) {
    const PointCloud& cloud = mesh.vertices;
    std::string header = fmt::format("ply\nformat {} 1.0\n", ascii ? "ascii" : "binary_little_endian");
    if (wide) {
        header += "comment stipple origin";
        for (double value : cloud.origin) append_number(header += ' ', value);
        header += '\n';
    }
    header += fmt::format("element vertex {}\n", cloud.size());
    for (const char* axis : {"x", "y", "z"}) header += fmt::format("property {} {}\n", wide ? "double" : "float", axis);
    for (const WrittenField& field : fields)
        header += fmt::format("property {} {}\n", ply_type(field.dtype), field.name);
    if (mesh.faces() > 0) {
        header += fmt::format("element face {}\nproperty list uchar int vertex_indices\n", mesh.faces());
        for (const WrittenField& field : face_fields)
            header += fmt::format("property {} {}\n", ply_type(field.dtype), field.name);
    }
    return header + "end_header\n";
}

void append_cells(std::string& text, const std::vector<WrittenField>& fields, int64_t row) {
    for (const WrittenField& field : fields) append_value(text += ' ', *field.attribute, row, field.component);
}

int64_t bytes_of(const std::vector<WrittenField>& fields) {
    int64_t bytes = 0;
    for (const WrittenField& field : fields) bytes += size_of(field.dtype);
    return bytes;
}

void copy_fields(const std::vector<WrittenField>& fields, std::byte* to, int64_t row_bytes, int64_t begin,
                 int64_t end) {
    for (const WrittenField& field : fields) {
        const int64_t width = size_of(field.dtype), stride = field.attribute->row_bytes();
        const std::byte* from = field.attribute->data() + begin * stride + field.component * width;
        for (int64_t i = 0; i < end - begin; ++i)
            std::memcpy(to + i * row_bytes, from + i * stride, static_cast<size_t>(width));
        to += width;
    }
}

void write_vertices(const PointCloud& cloud, const std::vector<WrittenField>& fields, bool wide, ByteSink& sink) {
    if (!wide && fields.empty()) return sink.write(cloud.positions.data(), 12 * cloud.size());
    const int64_t xyz_bytes = wide ? 24 : 12, row_bytes = xyz_bytes + bytes_of(fields);
    write_rows(sink, cloud.size(), row_bytes, [&](std::byte* to, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::byte* row = to + (i - begin) * row_bytes;
            if (wide) {
                const double world[3] = {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)};
                std::memcpy(row, world, sizeof world);
            } else {
                std::memcpy(row, cloud.positions.data() + 3 * i, 12);
            }
        }
        copy_fields(fields, to + xyz_bytes, row_bytes, begin, end);
    });
}

}  // namespace

void write_ply(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    const bool wide = cloud.origin != std::array<double, 3>{};
    const Attributes converted = storable(cloud.attributes, options, warnings);
    const Attributes face_converted = storable(mesh.face_attributes, options, warnings);
    const std::vector<WrittenField> fields = fields_of(cloud.attributes, converted);
    const std::vector<WrittenField> face_fields = fields_of(mesh.face_attributes, face_converted);
    sink.write(header_of(mesh, fields, face_fields, wide, options.ascii));
    if (options.ascii) {
        write_text_rows(sink, cloud.size(), [&](std::string& text, int64_t row) {
            for (int axis = 0; axis < 3; ++axis) {
                if (axis) text += ' ';
                append_world(text, cloud.origin[axis], cloud.positions.data()[3 * row + axis]);
            }
            append_cells(text, fields, row);
            text += '\n';
        });
        write_text_rows(sink, mesh.faces(), [&](std::string& text, int64_t row) {
            text += '3';
            for (int corner = 0; corner < 3; ++corner)
                append_number(text += ' ', int64_t{mesh.triangles.data()[3 * row + corner]});
            append_cells(text, face_fields, row);
            text += '\n';
        });
        return;
    }
    write_vertices(cloud, fields, wide, sink);
    if (mesh.faces() == 0) return;
    const int64_t row_bytes = 13 + bytes_of(face_fields);
    write_rows(sink, mesh.faces(), row_bytes, [&](std::byte* to, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::byte* row = to + (i - begin) * row_bytes;
            row[0] = std::byte{3};
            std::memcpy(row + 1, mesh.triangles.data() + 3 * i, 12);
        }
        copy_fields(face_fields, to + 13, row_bytes, begin, end);
    });
}

}  // namespace stipple::io
