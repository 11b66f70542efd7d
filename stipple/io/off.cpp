#include "stipple/io/off.h"

#include <fmt/format.h>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/polygons.h"
#include "stipple/io/common/text_table.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

/// The next line that is neither blank nor a comment, without a trailing comment.
std::string_view next_line(ByteReader& reader, std::string_view what) {
    while (const auto line = reader.line()) {
        const std::string_view text = trimmed(line->substr(0, line->find('#')));
        if (!text.empty()) return text;
    }
    reader.fail_line(fmt::format("the file ends before {}", what));
}

struct Header {
    bool normals = false, colors = false;
    int64_t vertices = 0, faces = 0;
};

int64_t parse_count(ByteReader& reader, std::string_view word, std::string_view what) {
    int64_t count = 0;
    if (!parse_number(word, count) || count < 0)
        reader.fail_line(fmt::format("expected the number of {}, found {}", what, in_quotes(word)));
    if (count > reader.limits().max_points)
        reader.fail_line(fmt::format("{} {}, at most {} are read", count, what, reader.limits().max_points));
    return count;
}

Header parse_header(ByteReader& reader) {
    if (reader.at_end()) reader.fail("empty");
    std::string_view text = next_line(reader, "the keyword OFF");
    const size_t at = text.find("OFF");
    if (at == std::string_view::npos) reader.fail_line(fmt::format("expected \"OFF\", found {}", in_quotes(text)));
    Header header;
    for (char c : text.substr(0, at)) {
        if (c == 'C' && !header.colors)
            header.colors = true;
        else if (c == 'N' && !header.normals)
            header.normals = true;
        else
            reader.fail_line(fmt::format("OFF variant {} is not read", in_quotes(text.substr(0, at + 3))),
                             "OFF, COFF, NOFF and CNOFF are");
    }
    text.remove_prefix(at + 3);
    text = trimmed(text);
    if (text.substr(0, 6) == "BINARY") reader.fail_line("binary OFF is not read", "convert it to text OFF or PLY");
    std::string counts(text.empty() ? next_line(reader, "the counts") : text);
    std::string_view rest = counts;
    header.vertices = parse_count(reader, next_word(rest), "vertices");
    header.faces = parse_count(reader, next_word(rest), "faces");
    next_word(rest);  // edges: often 0, never needed
    if (!trimmed(rest).empty()) reader.fail_line(fmt::format("expected three counts, found more: {}", in_quotes(rest)));
    return header;
}

int64_t count_words(std::string_view text) {
    int64_t count = 0;
    while (!next_word(text).empty()) ++count;
    return count;
}

PointCloud read_vertices(ByteReader& reader, const Header& header) {
    TextRows rows;
    rows.comments = true;
    rows.count = header.vertices;
    for (const char* name : {"x", "y", "z"}) rows.fields.push_back({name, DType::f64, 0});
    if (header.normals)
        for (const char* name : {"nx", "ny", "nz"}) rows.fields.push_back({name, DType::f32, 0});
    if (header.colors && header.vertices > 0) {
        const std::string first = peek_text_row(reader, rows);
        const int64_t plain = static_cast<int64_t>(rows.fields.size());
        const int64_t columns = count_words(std::string_view(first).substr(0, first.find('#')));
        if (columns != plain + 3 && columns != plain + 4) {
            reader.count_lines(1);
            reader.fail_line(fmt::format("expected {} or {} numbers in a vertex with color, found {}", plain + 3,
                                         plain + 4, columns));
        }
        for (const char* name : {"red", "green", "blue", "alpha"})
            if (static_cast<int64_t>(rows.fields.size()) < columns) rows.fields.push_back({name, DType::f64, 0});
    }
    rows.row_bytes = pack_fields(rows.fields);
    const auto columns = static_cast<int64_t>(rows.fields.size());
    if (header.vertices > 0)
        reader.require_remaining(header.vertices * 2 * columns - 1, fmt::format("{} vertices", header.vertices));
    PointTable table(rows.fields, rows.row_bytes, reader.remaining() ? header.vertices : -1);
    parse_text_rows(reader, rows, table);
    PointCloud cloud = table.finish();
    if (Attribute* color = find(cloud.attributes, "color"))
        *color = converted(*color, all_whole(*color, 0, 255) ? DType::u8 : DType::f32);
    return cloud;
}

bool keeps(const Attribute& attribute) {
    if (attribute.name() == "normal") return attribute.dtype() == DType::f32 && attribute.components() == 3;
    return attribute.name() == "color" && (attribute.dtype() == DType::u8 || attribute.dtype() == DType::u16) &&
           (attribute.components() == 3 || attribute.components() == 4);
}

}  // namespace

Mesh parse_off(ByteReader& reader, const ReadOptions&, Warnings& warnings) {
    const Header header = parse_header(reader);
    Mesh mesh;
    mesh.vertices = read_vertices(reader, header);
    PolygonCollector polygons;
    std::vector<int32_t> corners;
    bool has_face_colors = false;
    // "3 0 0 0": no face is shorter than its count, a blank and an index.
    if (header.faces > 0) reader.require_remaining(header.faces * 2 - 1, fmt::format("{} faces", header.faces));
    for (int64_t face = 0; face < header.faces; ++face) {
        std::string_view text = next_line(reader, fmt::format("face {} of {}", face, header.faces));
        int64_t count = 0;
        const std::string_view word = next_word(text);
        if (!parse_number(word, count) || count < 0 || count > reader.limits().max_polygon)
            reader.fail_line(fmt::format("expected the number of corners, found {}", in_quotes(word)));
        corners.clear();
        for (int64_t i = 0; i < count; ++i) {
            const std::string_view item = next_word(text);
            int64_t index = 0;
            if (!parse_number(item, index))
                reader.fail_line(fmt::format("expected {} vertex indices, found {}", count,
                                             item.empty() ? std::to_string(i) : in_quotes(item)));
            if (index < 0 || index >= mesh.vertices.size())
                reader.fail_line(
                    fmt::format("vertex {} of {} (0 to {})", index, mesh.vertices.size(), mesh.vertices.size() - 1));
            corners.push_back(static_cast<int32_t>(index));
        }
        has_face_colors |= !trimmed(text).empty();
        polygons.add(corners);
        if (polygons.triangles() > reader.limits().max_points) reader.fail_line("too many triangles");
    }
    if (has_face_colors) warnings.push_back("colors of faces were left out");
    mesh.triangles = polygons.finish(mesh.vertices.size(), warnings);
    return mesh;
}

void write_off(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    const PointCloud& cloud = mesh.vertices;
    warn_left_out(mesh, "OFF", true, keeps, warnings);
    const Attribute* normal = find(cloud.attributes, "normal");
    Attribute bytes;
    const Attribute* color = byte_color(cloud.attributes, bytes, "OFF", warnings);
    if (normal && !keeps(*normal)) normal = nullptr;
    if (color && !keeps(*color)) color = nullptr;
    sink.write(fmt::format("{}{}OFF\n{} {} 0\n", color ? "C" : "", normal ? "N" : "", cloud.size(), mesh.faces()));
    write_text_rows(sink, cloud.size(), [&](std::string& text, int64_t row) {
        for (int axis = 0; axis < 3; ++axis) {
            if (axis) text += ' ';
            append_world(text, cloud.origin[axis], cloud.positions.data()[3 * row + axis]);
        }
        for (const Attribute* attribute : {normal, color})
            for (int64_t c = 0; attribute && c < attribute->components(); ++c)
                append_value(text += ' ', *attribute, row, c);
        text += '\n';
    });
    write_text_rows(sink, mesh.faces(), [&](std::string& text, int64_t row) {
        text += '3';
        for (int corner = 0; corner < 3; ++corner)
            append_number(text += ' ', int64_t{mesh.triangles.data()[3 * row + corner]});
        text += '\n';
    });
}

}  // namespace stipple::io
