#include <cstring>

#include "stipple/core/checked.h"
#include "stipple/io/common/conversion.h"
#include "stipple/io/common/lzf.h"
#include "stipple/io/common/point_table.h"
#include "stipple/io/common/text_table.h"
#include "stipple/io/pcd.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

/// One FIELDS entry: an attribute as PCD stores it.
struct Column {
    std::string name;
    Attribute values;  // of a type that PCD has
};

bool is_packable_color(const Attribute& attribute) {
    return attribute.name() == "color" && attribute.dtype() == DType::u8 &&
           (attribute.components() == 3 || attribute.components() == 4);
}

/// uint8 colors packed as 0xAARRGGBB; without alpha as the float of those bits, as PCL does.
Column packed_color(const Attribute& color) {
    const bool alpha = color.components() == 4;
    Attribute packed(alpha ? "rgba" : "rgb", alpha ? DType::u32 : DType::f32, color.rows(), 1);
    for (int64_t i = 0; i < color.rows(); ++i) {
        const auto* c = reinterpret_cast<const uint8_t*>(color.data()) + i * color.components();
        const uint32_t bits = uint32_t{c[0]} << 16 | uint32_t{c[1]} << 8 | c[2] | (alpha ? uint32_t{c[3]} << 24 : 0);
        std::memcpy(packed.data() + 4 * i, &bits, 4);
    }
    return {packed.name(), std::move(packed)};
}

std::vector<Column> columns_of(const Attributes& attributes, const WriteOptions& options, Warnings& warnings) {
    std::vector<Column> columns;
    Attribute bytes;
    const Attribute* color = options.keep_16_bit ? nullptr : byte_color(attributes, bytes, "PCD", warnings);
    for (const Attribute& attribute : attributes) {
        const Attribute& shown = color && attribute.name() == "color" ? *color : attribute;
        if (is_packable_color(shown)) {
            columns.push_back(packed_color(shown));
            continue;
        }
        std::string name = attribute.name();
        for (char& c : name)
            if (is_blank(c) || c == '\n' || c == '#') c = '_';
        DType stored = attribute.dtype();
        if (stored == DType::boolean) stored = DType::u8;
        if (stored == DType::f16 || stored == DType::bf16) stored = DType::f32;
        if (stored != attribute.dtype())
            warnings.push_back(
                fmt::format("attribute {} ({}) is stored as {}", name, name_of(attribute.dtype()), name_of(stored)));
        columns.push_back({name, stored == attribute.dtype() ? attribute.clone() : converted(attribute, stored)});
    }
    return columns;
}

char type_letter(DType dtype) {
    if (is_float(dtype)) return 'F';
    return name_of(dtype)[0] == 'u' ? 'U' : 'I';
}

bool is_normal(const Column& column) {
    return column.name == "normal" && column.values.components() == 3;
}

/// Our comments: the origin, and that the viewpoint is one even where it reads as none.
std::string comments_of(const PointCloud& cloud) {
    if (cloud.origin == std::array<double, 3>{}) return {};
    std::string text(kPcdOrigin);
    for (const double value : cloud.origin) append_world(text += ' ', value, 0);
    text += '\n';
    if (cloud.facts.viewpoint) text += fmt::format("{}\n", kPcdViewpoint);
    return text;
}

std::string header_of(const PointCloud& cloud, const std::vector<Column>& columns, std::string_view data) {
    std::string fields = "x y z", sizes = "4 4 4", types = "F F F", counts = "1 1 1";
    const auto add = [&](std::string_view name, DType dtype, int64_t count) {
        fields += fmt::format(" {}", name);
        sizes += fmt::format(" {}", size_of(dtype));
        types += fmt::format(" {}", type_letter(dtype));
        counts += fmt::format(" {}", count);
    };
    for (const Column& column : columns) {
        if (is_normal(column))
            for (const char* name : {"normal_x", "normal_y", "normal_z"}) add(name, column.values.dtype(), 1);
        else
            add(column.name, column.values.dtype(), column.values.components());
    }
    // In the coordinates of the file, as others expect it.
    std::array<double, 7> seen_from = cloud.facts.viewpoint.value_or(kPcdIdentity);
    for (size_t axis = 0; axis < 3 && cloud.facts.viewpoint; ++axis) seen_from[axis] -= cloud.origin[axis];
    std::string viewpoint;
    for (const double value : seen_from) viewpoint += fmt::format(" {}", value);
    return fmt::format(
        "# .PCD v0.7 - Point Cloud Data file format\n{}VERSION 0.7\nFIELDS {}\nSIZE {}\nTYPE {}\nCOUNT {}\n"
        "WIDTH {}\nHEIGHT 1\nVIEWPOINT{}\nPOINTS {}\nDATA {}\n",
        comments_of(cloud), fields, sizes, types, counts, cloud.size(), viewpoint, cloud.size(), data);
}

/// Field after field, each with all its points, compressed as a whole.
void write_compressed(const PointCloud& cloud, const std::vector<Column>& columns, int64_t row_bytes, ByteSink& sink) {
    const int64_t n = cloud.size(), size = checked_mul(n, row_bytes);
    STIPPLE_REQUIRE(size <= int64_t{0xffffffff}, "binary_compressed PCD holds up to 4 GiB, these points need {} bytes",
                    size);
    Buffer fields(size);
    std::byte* to = fields.data();
    const auto put = [&](const void* from, int64_t bytes) {
        if (bytes == 0) return;  // an empty column has no address
        std::memcpy(to, from, static_cast<size_t>(bytes));
        to += bytes;
    };
    for (int axis = 0; axis < 3; ++axis)
        for (int64_t i = 0; i < n; ++i) put(cloud.positions.data() + 3 * i + axis, 4);
    for (const Column& column : columns) {
        if (!is_normal(column)) {
            put(column.values.data(), n * column.values.row_bytes());
            continue;
        }
        const int64_t width = size_of(column.values.dtype());  // three fields of one number each
        for (int64_t c = 0; c < 3; ++c)
            for (int64_t i = 0; i < n; ++i) put(column.values.data() + (3 * i + c) * width, width);
    }
    const std::vector<std::byte> packed = lzf_compress({fields.data(), static_cast<size_t>(size)});
    STIPPLE_REQUIRE(packed.size() <= 0xffffffffu, "the compressed points exceed 4 GiB");
    const uint32_t sizes[2] = {static_cast<uint32_t>(packed.size()), static_cast<uint32_t>(size)};
    sink.write(sizes, sizeof sizes);
    sink.write(packed.data(), static_cast<int64_t>(packed.size()));
}

}  // namespace

void write_pcd(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    if (mesh.faces() > 0) warn_dropped({"faces"}, "PCD", "", warnings);
    const std::vector<Column> columns = columns_of(cloud.attributes, options, warnings);
    if (cloud.origin != std::array<double, 3>{}) {
        std::string origin;
        for (const double value : cloud.origin) append_world(origin += ' ', value, 0);
        warnings.push_back(
            fmt::format("PCD: coordinates are float32 about{}, which a comment keeps for stipple; other "
                        "programs see them without it",
                        origin));
    }
    sink.write(header_of(cloud, columns,
                         options.ascii        ? "ascii"
                         : options.compressed ? "binary_compressed"
                                              : "binary"));
    if (options.ascii) {
        write_text_rows(sink, cloud.size(), [&](std::string& text, int64_t row) {
            for (int axis = 0; axis < 3; ++axis) {
                if (axis) text += ' ';
                append_number(text, cloud.positions.data()[3 * row + axis]);
            }
            for (const Column& column : columns)
                for (int64_t c = 0; c < column.values.components(); ++c)
                    append_value(text += ' ', column.values, row, c);
            text += '\n';
        });
        return;
    }
    int64_t row_bytes = 12;
    for (const Column& column : columns) row_bytes += column.values.row_bytes();
    if (options.compressed) return write_compressed(cloud, columns, row_bytes, sink);
    if (columns.empty()) return sink.write(cloud.positions.data(), 12 * cloud.size());
    write_rows(sink, cloud.size(), row_bytes, [&](std::byte* to, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::memcpy(to, cloud.positions.data() + 3 * i, 12);
            to += 12;
            for (const Column& column : columns) {
                const auto width = static_cast<size_t>(column.values.row_bytes());
                std::memcpy(to, column.values.data() + i * column.values.row_bytes(), width);
                to += width;
            }
        }
    });
}

}  // namespace stipple::io
