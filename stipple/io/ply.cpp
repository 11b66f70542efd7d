#include "stipple/io/ply.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "stipple/io/common/point_table.h"
#include "stipple/io/common/polygons.h"
#include "stipple/io/common/text_table.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

enum class Encoding { ascii, little, big };

struct Property {
    std::string name;
    DType dtype;                      // of the value, or of a list's items
    std::optional<DType> list_count;  // a list when set
};

struct Element {
    std::string name;
    int64_t count = 0;
    std::vector<Property> properties;

    bool has_lists() const {
        return std::any_of(properties.begin(), properties.end(), [](const Property& p) { return p.list_count; });
    }
    /// The least bytes that one row can take.
    int64_t min_row_bytes(Encoding encoding) const {
        int64_t bytes = 0;
        for (const Property& property : properties)
            bytes += encoding == Encoding::ascii ? 2 : size_of(property.list_count.value_or(property.dtype));
        return bytes;
    }
};

struct Header {
    Encoding encoding = Encoding::ascii;
    std::vector<Element> elements;
    std::optional<std::array<double, 3>> origin;
};

std::optional<DType> type_by_name(std::string_view name) {
    static constexpr std::pair<std::string_view, DType> kTypes[] = {
        {"char", DType::i8},   {"int8", DType::i8},     {"uchar", DType::u8},   {"uint8", DType::u8},
        {"short", DType::i16}, {"int16", DType::i16},   {"ushort", DType::u16}, {"uint16", DType::u16},
        {"int", DType::i32},   {"int32", DType::i32},   {"uint", DType::u32},   {"uint32", DType::u32},
        {"float", DType::f32}, {"float32", DType::f32}, {"double", DType::f64}, {"float64", DType::f64},
    };
    for (const auto& [text, dtype] : kTypes)
        if (text == name) return dtype;
    return std::nullopt;
}

DType parse_type(ByteReader& reader, std::string_view word) {
    const auto dtype = type_by_name(word);
    if (!dtype) reader.fail_line(fmt::format("unknown property type {}", in_quotes(word)));
    return *dtype;
}

void parse_property(ByteReader& reader, std::string_view text, Element& element) {
    Property property;
    std::string_view word = next_word(text);
    if (word == "list") {
        property.list_count = parse_type(reader, next_word(text));
        if (!is_integer(*property.list_count)) reader.fail_line("the count of a list must be an integer type");
        word = next_word(text);
    }
    property.dtype = parse_type(reader, word);
    property.name = next_word(text);
    if (property.name.empty()) reader.fail_line("property without a name");
    if (static_cast<int64_t>(property.name.size()) > reader.limits().max_token)
        reader.fail_line("property name too long");
    for (const Property& other : element.properties)
        if (other.name == property.name) reader.fail_line(fmt::format("property {} twice", in_quotes(property.name)));
    if (static_cast<int64_t>(element.properties.size()) >= reader.limits().max_properties)
        reader.fail_line(fmt::format("more than {} properties", reader.limits().max_properties));
    element.properties.push_back(std::move(property));
}

void parse_origin(std::string_view text, Header& header) {
    if (next_word(text) != "stipple" || next_word(text) != "origin") return;
    std::array<double, 3> origin;
    for (double& value : origin)
        if (!parse_number(next_word(text), value) || !(std::abs(value) < 9e15)) return;
    header.origin = origin;
}

Header parse_header(ByteReader& reader) {
    auto line = reader.line();
    if (!line) reader.fail("empty");
    if (trimmed(*line) != "ply") reader.fail_line(fmt::format("expected \"ply\", found {}", in_quotes(*line)));
    Header header;
    bool has_format = false;
    for (;;) {
        line = reader.line();
        if (!line) reader.fail_line("the file ends inside the header");
        if (reader.offset() > reader.limits().max_header) reader.fail_line("header too long");
        std::string_view text = *line;
        const std::string_view word = next_word(text);
        if (word == "end_header") break;
        if (word.empty() || word == "obj_info") continue;
        if (word == "comment") {
            parse_origin(text, header);
        } else if (word == "format") {
            const std::string_view name = next_word(text);
            if (name == "ascii")
                header.encoding = Encoding::ascii;
            else if (name == "binary_little_endian")
                header.encoding = Encoding::little;
            else if (name == "binary_big_endian")
                header.encoding = Encoding::big;
            else
                reader.fail_line(fmt::format("unknown format {}", in_quotes(name)));
            has_format = true;
        } else if (word == "element") {
            Element element;
            element.name = next_word(text);
            const std::string_view count = next_word(text);
            if (!parse_number(count, element.count) || element.count < 0)
                reader.fail_line(fmt::format("expected a count of elements, found {}", in_quotes(count)));
            if (element.count > reader.limits().max_points)
                reader.fail_line(
                    fmt::format("{} elements, at most {} are read", element.count, reader.limits().max_points));
            for (const Element& other : header.elements)
                if (other.name == element.name)
                    reader.fail_line(fmt::format("element {} twice", in_quotes(element.name)));
            if (header.elements.size() >= 256) reader.fail_line("more than 256 elements");
            header.elements.push_back(std::move(element));
        } else if (word == "property") {
            if (header.elements.empty()) reader.fail_line("property before any element");
            parse_property(reader, text, header.elements.back());
        } else {
            reader.fail_line(fmt::format("expected a header keyword, found {}", in_quotes(word)));
        }
    }
    if (!has_format) reader.fail_line("the header has no format line");
    return header;
}

void swap_fields(std::byte* rows, int64_t count, int64_t row_bytes, const std::vector<Field>& fields) {
    for (int64_t i = 0; i < count; ++i)
        for (const Field& field : fields) {
            std::byte* at = rows + i * row_bytes + field.offset;
            std::reverse(at, at + size_of(field.dtype));
        }
}

/// A list's count of any integer type, checked. `where` names the row in the message.
int64_t read_count(ByteReader& reader, const Property& property, bool big_endian, int64_t row) {
    std::byte bytes[8];
    const int64_t width = size_of(*property.list_count);
    reader.read_exact(bytes, width, "a list");
    if (big_endian) std::reverse(bytes, bytes + width);
    const auto count = static_cast<int64_t>(load_as_double(*property.list_count, bytes));
    if (count < 0 || count > reader.limits().max_polygon)
        reader.fail(fmt::format("list {} of row {} has {} items", property.name, row, count));
    reader.require_remaining(count * size_of(property.dtype), "the items of a list");
    return count;
}

bool is_corner_list(const Property& property) {
    return property.list_count && is_integer(property.dtype) &&
           (property.name == "vertex_indices" || property.name == "vertex_index");
}

/// Walks over one element's rows: scalars go to packed rows, the corner list (if any) to `corners`, other lists away.
class RowWalker {
public:
    RowWalker(ByteReader& reader, const Element& element, Encoding encoding)
        : reader_(reader), element_(element), encoding_(encoding) {
        for (const Property& property : element.properties)
            if (!property.list_count) fields_.push_back({property.name, property.dtype, 0});
        row_bytes_ = pack_fields(fields_);
        row_.resize(static_cast<size_t>(row_bytes_));
    }

    const std::vector<Field>& fields() const { return fields_; }
    int64_t row_bytes() const { return row_bytes_; }
    const std::byte* row() const { return row_.data(); }
    const std::vector<int32_t>& corners() const { return corners_; }

    void next(int64_t index) { encoding_ == Encoding::ascii ? next_ascii() : next_binary(index); }

private:
    void next_binary(int64_t index) {
        const bool big = encoding_ == Encoding::big;
        size_t field = 0;
        for (const Property& property : element_.properties) {
            if (!property.list_count) {
                const int64_t width = size_of(property.dtype);
                std::byte* at = row_.data() + fields_[field++].offset;
                reader_.read_exact(at, width, element_.name);
                if (big) std::reverse(at, at + width);
                continue;
            }
            const int64_t count = read_count(reader_, property, big, index), width = size_of(property.dtype);
            if (!is_corner_list(property)) {
                reader_.skip(count * width, "a list");
                continue;
            }
            corners_.clear();
            for (int64_t i = 0; i < count; ++i) {
                std::byte bytes[8];
                reader_.read_exact(bytes, width, "a face");
                if (big) std::reverse(bytes, bytes + width);
                add_corner(load_as_double(property.dtype, bytes));
            }
        }
    }

    void next_ascii() {
        std::optional<std::string_view> line;
        do {
            line = reader_.line();
            if (!line) reader_.fail_line(fmt::format("the file ends inside element {}", in_quotes(element_.name)));
        } while (trimmed(*line).empty());
        std::string_view text = *line;
        size_t field = 0;
        for (const Property& property : element_.properties) {
            if (!property.list_count) {
                TextRows one;
                one.fields = {fields_[field++]};
                const std::string failure = parse_text_row(next_word(text), one, row_.data());
                if (!failure.empty()) reader_.fail_line(failure);
                continue;
            }
            int64_t count = 0;
            const std::string_view word = next_word(text);
            if (!parse_number(word, count) || count < 0 || count > reader_.limits().max_polygon)
                reader_.fail_line(
                    fmt::format("expected the count of list {}, found {}", property.name, in_quotes(word)));
            const bool is_corners = is_corner_list(property);
            if (is_corners) corners_.clear();
            for (int64_t i = 0; i < count; ++i) {
                const std::string_view item = next_word(text);
                double value = 0;
                if (!parse_number(item, value))
                    reader_.fail_line(fmt::format("list {} has {} of {} items", property.name, i, count));
                if (is_corners) add_corner(value);
            }
        }
        if (const std::string_view rest = trimmed(text); !rest.empty())
            reader_.fail_line(fmt::format("more values than properties: {}", in_quotes(rest)));
    }

    void add_corner(double value) {
        // Out of range becomes -1, which PolygonCollector::finish refuses with the vertex count at hand.
        const bool fits =
            value >= 0 && value <= 2147483647.0 && value == static_cast<double>(static_cast<int32_t>(value));
        corners_.push_back(fits ? static_cast<int32_t>(value) : -1);
    }

    ByteReader& reader_;
    const Element& element_;
    Encoding encoding_;
    std::vector<Field> fields_;
    int64_t row_bytes_ = 0;
    std::vector<std::byte> row_;
    std::vector<int32_t> corners_;
};

void require_room(ByteReader& reader, const Element& element, Encoding encoding) {
    int64_t bytes = checked_mul(element.count, element.min_row_bytes(encoding));
    if (encoding == Encoding::ascii && bytes > 0) --bytes;  // the last line may lack its end
    reader.require_remaining(bytes, fmt::format("{} rows of element {}", element.count, in_quotes(element.name)));
}

PointCloud read_vertices(ByteReader& reader, const Element& element, const Header& header, Warnings& warnings) {
    RowWalker walker(reader, element, header.encoding);
    if (header.encoding == Encoding::ascii) {
        TextRows rows;
        rows.fields = walker.fields();
        for (Field& field : rows.fields)  // digits beyond float32 are worth keeping until the origin is known
            if (field.name == "x" || field.name == "y" || field.name == "z") field.dtype = DType::f64;
        rows.row_bytes = pack_fields(rows.fields);
        rows.count = element.count;
        if (!element.has_lists()) {
            PointTable table(rows.fields, rows.row_bytes, reader.remaining() ? element.count : -1);
            if (header.origin) table.set_origin(*header.origin);
            parse_text_rows(reader, rows, table);
            return table.finish();
        }
    }
    PointTable table(walker.fields(), walker.row_bytes(), reader.remaining() ? element.count : -1);
    if (header.origin) table.set_origin(*header.origin);
    if (element.has_lists()) {
        warnings.push_back("list properties of vertices were skipped");
        for (int64_t i = 0; i < element.count; ++i) {
            walker.next(i);
            table.append(walker.row(), 1);
        }
        return table.finish();
    }
    std::function<void(std::byte*, int64_t)> to_host;
    if (header.encoding == Encoding::big)
        to_host = [&](std::byte* rows, int64_t count) {
            swap_fields(rows, count, walker.row_bytes(), walker.fields());
        };
    read_rows(reader, table, element.count, "the vertices", to_host);
    return table.finish();
}

/// Little-endian rows of one byte count and three int32: nearly every mesh. Stops at the first row that is no triangle.
int64_t read_plain_triangles(ByteReader& reader, int64_t count, PolygonCollector& polygons) {
    constexpr int64_t kRow = 13, kRows = 65536 / kRow;
    int64_t done = 0;
    while (done < count) {
        const auto block = reader.peek(kRow * std::min(kRows, count - done));
        const int64_t rows = static_cast<int64_t>(block.size()) / kRow;
        int64_t i = 0;
        for (; i < rows && block[kRow * i] == std::byte{3}; ++i) {
            int32_t corners[3];
            std::memcpy(corners, block.data() + kRow * i + 1, sizeof corners);
            polygons.add(corners);
        }
        reader.skip(kRow * i, "the faces");
        done += i;
        if (i < rows || rows == 0) break;
    }
    return done;
}

void read_faces(ByteReader& reader, const Element& element, const Header& header, PolygonCollector& polygons,
                Attributes& attributes, Warnings& warnings) {
    RowWalker walker(reader, element, header.encoding);
    int64_t lists = 0;
    bool has_corners = false;
    for (const Property& property : element.properties) {
        lists += property.list_count.has_value();
        if (is_corner_list(property) && has_corners) reader.fail("two lists of vertex indices");
        has_corners |= is_corner_list(property);
    }
    if (lists > has_corners) warnings.push_back("list properties of faces other than vertex indices were skipped");
    if (!has_corners) {
        if (element.count > 0) warnings.push_back("faces without vertex indices were skipped");
        for (int64_t i = 0; i < element.count && !element.properties.empty(); ++i) walker.next(i);
        return;
    }
    const Property& only = element.properties[0];
    const bool plain = element.properties.size() == 1 && header.encoding == Encoding::little &&
                       size_of(*only.list_count) == 1 && size_of(only.dtype) == 4;
    if (reader.remaining() && size_of(only.dtype) * 3 * element.count <= *reader.remaining())
        polygons.reserve(element.count);
    int64_t row = plain ? read_plain_triangles(reader, element.count, polygons) : 0;
    std::vector<GrowingBuffer> columns(walker.fields().size());
    for (; row < element.count; ++row) {
        walker.next(row);
        polygons.add(walker.corners());
        if (polygons.triangles() > reader.limits().max_points) reader.fail("too many triangles");
        for (size_t i = 0; i < columns.size(); ++i) {
            const Field& field = walker.fields()[i];
            const int64_t width = size_of(field.dtype);
            columns[i].reserve((row + 1) * width);
            std::memcpy(columns[i].data() + row * width, walker.row() + field.offset, static_cast<size_t>(width));
        }
    }
    for (size_t i = 0; i < columns.size() && element.count > 0; ++i)
        attributes.push_back(polygons.per_triangle(
            Attribute(walker.fields()[i].name, walker.fields()[i].dtype, element.count, 1, columns[i].release())));
}

void skip_element(ByteReader& reader, const Element& element, Encoding encoding) {
    if (element.properties.empty()) return;
    if (encoding != Encoding::ascii && !element.has_lists())
        return reader.skip(checked_mul(element.count, element.min_row_bytes(encoding)), element.name);
    RowWalker walker(reader, element, encoding);
    for (int64_t i = 0; i < element.count; ++i) walker.next(i);
}

}  // namespace

Mesh parse_ply(ByteReader& reader, const ReadOptions&, Warnings& warnings) {
    const Header header = parse_header(reader);
    Mesh mesh;
    PolygonCollector polygons;
    bool has_vertices = false;
    for (const Element& element : header.elements) {
        require_room(reader, element, header.encoding);
        if (element.name == "vertex") {
            mesh.vertices = read_vertices(reader, element, header, warnings);
            has_vertices = true;
        } else if (element.name == "face") {
            read_faces(reader, element, header, polygons, mesh.face_attributes, warnings);
        } else {
            skip_element(reader, element, header.encoding);
        }
    }
    if (!has_vertices) reader.fail("the header has no element vertex");
    mesh.triangles = polygons.finish(mesh.vertices.size(), warnings);
    return mesh;
}

}  // namespace stipple::io
