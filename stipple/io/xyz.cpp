#include "stipple/io/xyz.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/text_table.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words;
    std::string word;
    const auto flush = [&] {
        if (!word.empty()) words.push_back(std::exchange(word, {}));
    };
    for (char c : line) {
        if (is_blank(c) || c == ',' || c == ';')
            flush();
        else if (c != '"')
            word += c;
    }
    flush();
    return words;
}

/// Column names from a header line ("x,y,z,label", "# X Y Z R G B", "//X Y Z"); nothing when it is no such line.
std::vector<std::string> header_names(std::string_view line) {
    line = trimmed(line);
    while (!line.empty() && (line[0] == '#' || line[0] == '/')) line.remove_prefix(1);
    std::vector<std::string> names = words_of(line);
    if (names.size() < 3 || lower_case(names[0]) != "x" || lower_case(names[1]) != "y" || lower_case(names[2]) != "z")
        return {};
    for (size_t i = 0; i < names.size(); ++i) {
        const std::string lower = lower_case(names[i]);
        for (const char* known : {"x", "y", "z", "nx", "ny", "nz", "r", "g", "b", "a", "red", "green", "blue", "alpha",
                                  "intensity", "label", "time"})
            if (lower == known) names[i] = lower;
    }
    return names;
}

bool is_unit_length(const Attribute& attribute, int64_t first) {
    for (int64_t i = 0; i < attribute.rows(); ++i) {
        double sum = 0;
        for (int64_t c = first; c < first + 3; ++c) sum += attribute.value(i, c) * attribute.value(i, c);
        if (!(std::abs(sum - 1) < 0.01)) return false;
    }
    return true;
}

/// Components [first, first + count) as an attribute of their own.
Attribute columns(const Attribute& attribute, int64_t first, int64_t count, std::string name) {
    Attribute part(std::move(name), attribute.dtype(), attribute.rows(), count);
    const auto width = static_cast<size_t>(count * size_of(attribute.dtype()));
    for (int64_t i = 0; i < attribute.rows(); ++i)
        std::memcpy(part.data() + i * part.row_bytes(),
                    attribute.data() + i * attribute.row_bytes() + first * size_of(attribute.dtype()), width);
    return part;
}

/// Names for columns that have none, by their values; see the header.
Attributes judge(const Attribute& extra) {
    Attributes result;
    const int64_t count = extra.components();
    const auto add_triple = [&](int64_t first) {
        Attribute part = columns(extra, first, 3, "extra");
        if (is_unit_length(part, 0))
            part.rename("normal");
        else if (all_whole(part, 0, 255))
            part.rename("color");
        result.push_back(std::move(part));
        return result.back().name() != "extra";
    };
    if (count == 1) {
        result.push_back(columns(extra, 0, 1, "intensity"));
        return result;
    }
    if (count == 3) {
        add_triple(0);
        return result;
    }
    if (count == 4) {
        result.push_back(columns(extra, 0, 1, "intensity"));
        if (add_triple(1) && result.back().name() == "color") return result;
    }
    if (count == 6) {
        if (add_triple(0) && add_triple(3) && result[0].name() != result[1].name()) return result;
    }
    result.clear();
    result.push_back(extra.clone());
    return result;
}

/// The usual type of a column that was read as float64.
Attribute with_usual_type(Attribute attribute) {
    const std::string& name = attribute.name();
    if (attribute.dtype() != DType::f64 || name == "time") return attribute;
    if (name == "normal" || name == "intensity") return converted(attribute, DType::f32);
    if (name == "color") {
        if (all_whole(attribute, 0, 255)) return converted(attribute, DType::u8);
        if (all_whole(attribute, 0, 65535)) return converted(attribute, DType::u16);
        return converted(attribute, DType::f32);
    }
    if (all_whole(attribute, -2147483648.0, 2147483647.0)) return converted(attribute, DType::i32);
    return attribute;
}

Mesh parse_rows(ByteReader& reader, TextRows rows, std::vector<std::string> names) {
    const std::string first = peek_text_row(reader, rows);
    if (first.empty()) reader.fail_line("holds no points");
    const std::vector<std::string> words = words_of(first);
    if (std::vector<std::string> header = header_names(first); !header.empty()) {
        names = std::move(header);
        while (trimmed(*reader.line()) != first) {
        }
    } else if (names.size() != words.size()) {
        names = {"x", "y", "z"};
        if (words.size() < 3) {
            rows.fields.assign(3, {"x", DType::f64, 0});
            std::byte row[8];
            reader.count_lines(1);
            std::string failure = parse_text_row(first, rows, row);
            reader.fail_line(failure.empty() ? "expected at least 3 numbers" : failure);
        }
        if (static_cast<int64_t>(words.size()) > reader.limits().max_properties)
            reader.fail_line(fmt::format("more than {} columns", reader.limits().max_properties));
        // A single further column keeps the plain name: PointTable groups "extra_0 extra_1 ..." of two and more.
        for (size_t i = 3; i < words.size(); ++i) names.push_back(fmt::format("extra_{}", i - 3));
        if (words.size() == 4) names[3] = "extra";
    }
    for (std::string& name : names) rows.fields.push_back({std::move(name), DType::f64, 0});
    rows.row_bytes = pack_fields(rows.fields);
    PointTable table(rows.fields, rows.row_bytes, -1);
    parse_text_rows(reader, rows, table);
    if (table.rows() == 0) reader.fail_line("holds no points");
    Mesh mesh;
    mesh.vertices = table.finish();
    Attributes attributes;
    for (Attribute& attribute : mesh.vertices.attributes) {
        if (attribute.name() == "extra") {
            for (Attribute& judged : judge(attribute)) attributes.push_back(with_usual_type(std::move(judged)));
        } else {
            attributes.push_back(with_usual_type(std::move(attribute)));
        }
    }
    mesh.vertices.attributes = std::move(attributes);
    return mesh;
}

TextRows rows_of_numbers() {
    TextRows rows;
    rows.commas = rows.comments = true;
    return rows;
}

void append_position(std::string& text, const PointCloud& cloud, int64_t row, char separator) {
    for (int axis = 0; axis < 3; ++axis) {
        if (axis) text += separator;
        append_world(text, cloud.origin[axis], cloud.positions.data()[3 * row + axis]);
    }
}

bool keeps_nothing(const Attribute&) {
    return false;
}

/// The names in a first comment, if any.
std::vector<std::string> comment_names(ByteReader& reader) {
    if (reader.at_end()) reader.fail("empty");
    const std::string_view block = reader.lines(int64_t{64} << 10);
    const std::string first_line(block.substr(0, std::min(block.find('\n'), block.size())));
    reader.give_back(static_cast<int64_t>(block.size()));
    const std::string_view text = trimmed(first_line);
    const bool is_comment = !text.empty() && (text[0] == '#' || text.substr(0, 2) == "//");
    return is_comment ? header_names(text) : std::vector<std::string>{};
}

Mesh parse_six(ByteReader& reader, std::initializer_list<const char*> usual) {
    std::vector<std::string> names = comment_names(reader);
    if (names.empty()) names.assign(usual.begin(), usual.end());
    return parse_rows(reader, rows_of_numbers(), std::move(names));
}

/// Colours of 0 to 1 that all are whole 255th parts, as text of a few digits has them, as uint8.
void restore_bytes(Attribute& color) {
    if (color.dtype() == DType::u8 && all_whole(color, 0, 1)) {  // whole numbers, read as bytes: black and full
        for (int64_t i = 0; i < color.rows() * color.components(); ++i)
            if (color.data()[i] != std::byte{0}) color.data()[i] = std::byte{255};
        return;
    }
    if (color.dtype() != DType::f32) return;
    Attribute bytes(color.name(), DType::u8, color.rows(), color.components());
    for (int64_t i = 0; i < color.rows(); ++i)
        for (int64_t c = 0; c < color.components(); ++c) {
            const double scaled = 255 * color.value(i, c), whole = std::round(scaled);
            if (!(whole >= 0 && whole <= 255 && std::abs(scaled - whole) < 1e-3)) return;
            bytes.as<uint8_t>()(i, c) = static_cast<uint8_t>(whole);
        }
    color = std::move(bytes);
}

/// Positions, then three components of an attribute divided by `divisor`; see the header.
void write_six(const Mesh& mesh, const Attribute& attribute, std::string_view format, double divisor, ByteSink& sink) {
    const PointCloud& cloud = mesh.vertices;
    require_points(mesh, format);
    write_text_rows(sink, cloud.size(), [&](std::string& text, int64_t row) {
        append_position(text, cloud, row, ' ');
        for (int64_t c = 0; c < 3; ++c) {
            text += ' ';
            if (divisor == 1)
                append_value(text, attribute, row, c);
            else
                append_number(text, attribute.value(row, c) / divisor);
        }
        text += '\n';
    });
}

bool is_normal(const Attribute& attribute) {
    return attribute.name() == "normal" && attribute.components() == 3;
}

bool is_color(const Attribute& attribute) {
    return attribute.name() == "color" && attribute.components() >= 3;
}

void require_six(const Mesh& mesh, bool (*has)(const Attribute&), const char* name, const char* format) {
    for (const Attribute& attribute : mesh.vertices.attributes)
        if (has(attribute)) return;
    throw Error(ErrorCode::bad_argument, fmt::format("{} holds points with a {}, and the cloud has none", format, name),
                "write .xyz or .ply instead");
}

bool keeps_type_in_csv(const Attribute& attribute) {
    const std::string& name = attribute.name();
    if (name == "normal" || name == "intensity") return attribute.dtype() == DType::f32;
    if (name == "color") return attribute.dtype() == DType::u8 || attribute.dtype() == DType::u16;
    return attribute.dtype() == DType::f64 || attribute.dtype() == DType::i32;
}

}  // namespace

Mesh parse_xyz(ByteReader& reader, const ReadOptions&, Warnings&) {
    std::vector<std::string> names = comment_names(reader);
    return parse_rows(reader, rows_of_numbers(), std::move(names));
}

Mesh parse_xyzn(ByteReader& reader, const ReadOptions&, Warnings&) {
    return parse_six(reader, {"x", "y", "z", "nx", "ny", "nz"});
}

Mesh parse_xyzrgb(ByteReader& reader, const ReadOptions&, Warnings&) {
    Mesh mesh = parse_six(reader, {"x", "y", "z", "red", "green", "blue"});
    if (Attribute* color = find(mesh.vertices.attributes, "color")) restore_bytes(*color);
    return mesh;
}

Mesh parse_pts(ByteReader& reader, const ReadOptions&, Warnings&) {
    if (reader.at_end()) reader.fail("empty");
    TextRows rows = rows_of_numbers();
    const auto line = reader.line();
    if (!parse_number(trimmed(*line), rows.count) || rows.count < 0)
        reader.fail_line(fmt::format("expected the number of points, found {}", in_quotes(*line)),
                         "a file without it is an .xyz");
    if (rows.count > reader.limits().max_points)
        reader.fail_line(fmt::format("more than {} points", reader.limits().max_points));
    if (rows.count > 0) reader.require_remaining(6 * rows.count - 1, fmt::format("{} points", rows.count));
    const int64_t count = rows.count;
    Mesh mesh;
    if (count > 0)
        mesh = parse_rows(reader, std::move(rows), {});
    else
        mesh.vertices = PointCloud(0);
    while (const auto rest = reader.line())
        if (!trimmed(*rest).empty()) reader.fail_line(fmt::format("more rows than the {} announced", count));
    return mesh;
}

void write_xyzn(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    require_six(mesh, is_normal, "normal", "XYZN");
    warn_left_out(mesh, "XYZN", false, is_normal, warnings);
    write_six(mesh, *find(mesh.vertices.attributes, "normal"), "XYZN", 1, sink);
}

void write_xyzrgb(const Mesh& mesh, ByteSink& sink, const WriteOptions& options, Warnings& warnings) {
    require_six(mesh, is_color, "color", "XYZRGB");
    warn_left_out(mesh, "XYZRGB", false, is_color, warnings);
    Attribute bytes;
    const Attribute& color = options.keep_16_bit ? *find(mesh.vertices.attributes, "color")
                                                 : *byte_color(mesh.vertices.attributes, bytes, "XYZRGB", warnings);
    if (color.components() > 3) warn_dropped({"alpha"}, "XYZRGB", "", warnings);
    write_six(mesh, color, "XYZRGB", color_maximum(color), sink);
}

void write_xyz(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    require_points(mesh, "XYZ");
    warn_left_out(mesh, "XYZ", false, keeps_nothing, warnings);
    write_text_rows(sink, mesh.vertices.size(), [&](std::string& text, int64_t row) {
        append_position(text, mesh.vertices, row, ' ');
        text += '\n';
    });
}

void write_pts(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    Attribute bytes;
    const Attribute* color = byte_color(mesh.vertices.attributes, bytes, "PTS", warnings);
    const Attribute* intensity = find(mesh.vertices.attributes, "intensity");
    if (color && (color->dtype() != DType::u8 || color->components() != 3)) color = nullptr;
    if (intensity && (intensity->components() != 1)) intensity = nullptr;
    warn_left_out(
        mesh, "PTS", false,
        [](const Attribute& a) {
            return (a.name() == "color" && (a.dtype() == DType::u8 || a.dtype() == DType::u16) &&
                    a.components() == 3) ||
                   (a.name() == "intensity" && a.components() == 1);
        },
        warnings);
    sink.write(fmt::format("{}\n", mesh.vertices.size()));
    write_text_rows(sink, mesh.vertices.size(), [&](std::string& text, int64_t row) {
        append_position(text, mesh.vertices, row, ' ');
        if (intensity) append_value(text += ' ', *intensity, row, 0);
        for (int64_t c = 0; color && c < 3; ++c) append_value(text += ' ', *color, row, c);
        text += '\n';
    });
}

void write_csv(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    require_points(mesh, "CSV");
    const PointCloud& cloud = mesh.vertices;
    if (mesh.faces() > 0) warn_dropped({"faces"}, "CSV", "", warnings);
    std::string changed;
    for (const Attribute& attribute : cloud.attributes)
        if (!keeps_type_in_csv(attribute))
            changed +=
                fmt::format("{}{} ({})", changed.empty() ? "" : ", ", attribute.name(), name_of(attribute.dtype()));
    if (!changed.empty()) warnings.push_back("CSV keeps the values but not the element type of: " + changed);
    const std::vector<WrittenField> fields = flatten(cloud.attributes);
    std::string header = "x,y,z";
    for (const WrittenField& field : fields) {
        header += ',';
        for (char c : field.name) header += c == ',' || c == ';' || c == '"' || c == '\n' || is_blank(c) ? '_' : c;
    }
    sink.write(header + "\n");
    write_text_rows(sink, cloud.size(), [&](std::string& text, int64_t row) {
        append_position(text, cloud, row, ',');
        for (const WrittenField& field : fields) append_value(text += ',', *field.attribute, row, field.component);
        text += '\n';
    });
}

}  // namespace stipple::io
