#include "stipple/io/obj.h"

#include <cmath>
#include <cstring>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/point_table.h"
#include "stipple/io/common/polygons.h"
#include "stipple/io/common/text_table.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

/// The highest use of one kind of index, with its line: whether it exists is known at the end of the file.
struct HighestUse {
    int64_t index = -1, line = 0;
};

class ObjParser {
public:
    ObjParser(ByteReader& reader, Warnings& warnings) : reader_(reader), warnings_(warnings) {}

    Mesh parse() {
        if (reader_.at_end()) reader_.fail("empty");
        while (auto line = reader_.line()) {
            std::string_view text = *line;
            std::string joined;
            while (!text.empty() && text.back() == '\\') {  // continued on the next line
                joined.assign(text.substr(0, text.size() - 1));
                line = reader_.line();
                if (line) joined += std::string(" ").append(*line);
                if (static_cast<int64_t>(joined.size()) > reader_.limits().max_line) reader_.fail_line("line too long");
                text = joined;
                if (!line) break;
            }
            parse_line(text);
        }
        return finish();
    }

private:
    void parse_line(std::string_view text) {
        text = text.substr(0, text.find('#'));
        const std::string_view keyword = next_word(text);
        if (keyword == "v")
            parse_vertex(text);
        else if (keyword == "vn")
            parse_normal(text);
        else if (keyword == "vt")
            ++texture_coordinates_;
        else if (keyword == "f")
            parse_face(text);
        else if (keyword == "usemtl")
            has_materials_ = true;
        else if (!keyword.empty() && !is_known(keyword))
            reader_.fail_line(fmt::format("unknown keyword {}", in_quotes(keyword)));
    }

    static bool is_known(std::string_view keyword) {
        for (std::string_view known :
             {"vp",        "o",     "g",     "s",      "l",      "p",        "mtllib",   "mg",   "cstype",
              "deg",       "bmat",  "step",  "curv",   "curv2",  "surf",     "parm",     "trim", "hole",
              "scrv",      "sp",    "end",   "con",    "bevel",  "c_interp", "d_interp", "lod",  "shadow_obj",
              "trace_obj", "ctech", "stech", "usemap", "maplib", "call",     "csh"})
            if (keyword == known) return true;
        return false;
    }

    int64_t parse_numbers(std::string_view text, double* values, int64_t most) {
        int64_t count = 0;
        for (std::string_view word; !(word = next_word(text)).empty(); ++count) {
            if (count == most) reader_.fail_line(fmt::format("more than {} numbers", most));
            if (!parse_number(word, values[count]))
                reader_.fail_line(fmt::format("expected a number, found {}", in_quotes(word)));
        }
        return count;
    }

    void parse_vertex(std::string_view text) {
        double values[7];
        const int64_t count = parse_numbers(text, values, 7);
        if (count != 3 && count != 4 && count != 6 && count != 7)
            reader_.fail_line(fmt::format("expected 3, 4, 6 or 7 numbers in a vertex, found {}", count));
        if (positions_.size() == reader_.limits().max_points)
            reader_.fail_line(fmt::format("more than {} points", reader_.limits().max_points));
        positions_.append(values, 1);
        const double* color = values + count - 3;  // behind x y z or x y z w
        if (count >= 6)
            for (int i = 0; i < 3; ++i) colors_.push_back(static_cast<float>(color[i]));
    }

    void parse_normal(std::string_view text) {
        double values[3];
        if (parse_numbers(text, values, 3) != 3) reader_.fail_line("expected 3 numbers in a normal");
        for (double value : values) normals_.push_back(static_cast<float>(value));
    }

    /// A 1-based or negative (from the end) index, resolved to 0-based.
    int64_t resolve(std::string_view token, int64_t have, HighestUse& highest, std::string_view what) {
        int64_t index = 0;
        if (!parse_number(token, index) || index == 0)
            reader_.fail_line(fmt::format("expected the index of a {}, found {}", what, in_quotes(token)));
        const int64_t resolved = index > 0 ? index - 1 : have + index;
        if (resolved < 0) reader_.fail_line(fmt::format("{} {} of the {} before it", what, index, have));
        if (resolved > highest.index) highest = {resolved, reader_.line_number()};
        return resolved;
    }

    void parse_face(std::string_view text) {
        corners_.clear();
        for (std::string_view word; !(word = next_word(text)).empty();) {
            std::string_view parts[3] = {word, {}, {}};
            for (int i = 0; i < 2; ++i) {
                const size_t slash = parts[i].find('/');
                if (slash == std::string_view::npos) break;
                parts[i + 1] = parts[i].substr(slash + 1);
                parts[i] = parts[i].substr(0, slash);
            }
            const int64_t vertex = resolve(parts[0], positions_.size(), highest_vertex_, "vertex");
            if (!parts[1].empty()) resolve(parts[1], texture_coordinates_, highest_texture_, "texture coordinate");
            int64_t normal = -1;
            if (!parts[2].empty())
                normal = resolve(parts[2], static_cast<int64_t>(normals_.size() / 3), highest_normal_, "normal");
            normals_follow_vertices_ &= normal == vertex;
            if (vertex > reader_.limits().max_points)
                reader_.fail_line(fmt::format("vertex {} is out of range", vertex + 1));
            corners_.push_back(static_cast<int32_t>(vertex));
            if (static_cast<int64_t>(corners_.size()) > reader_.limits().max_polygon)
                reader_.fail_line("face too large");
        }
        if (corners_.size() < 3) reader_.fail_line(fmt::format("a face of {} corners", corners_.size()));
        polygons_.add(corners_);
        if (polygons_.triangles() > reader_.limits().max_points) reader_.fail_line("too many triangles");
    }

    void check(const HighestUse& use, int64_t have, std::string_view what) const {
        if (use.index >= have)
            throw Error(ErrorCode::bad_file, Place{{}, use.line, {}},
                        fmt::format("{} {} is used, the file has {}", what, use.index + 1, have));
    }

    Mesh finish() {
        const int64_t n = positions_.size();
        check(highest_vertex_, n, "vertex");
        check(highest_texture_, texture_coordinates_, "texture coordinate");
        check(highest_normal_, static_cast<int64_t>(normals_.size() / 3), "normal");
        if (n == 0) reader_.fail_line("holds no points");
        Mesh mesh;
        positions_.finish(mesh.vertices);
        mesh.triangles = polygons_.finish(n, warnings_);
        if (!normals_.empty() && normals_follow_vertices_ && static_cast<int64_t>(normals_.size()) == 3 * n) {
            Attribute normal("normal", DType::f32, n, 3);
            std::memcpy(normal.data(), normals_.data(), normals_.size() * sizeof(float));
            mesh.vertices.attributes.push_back(std::move(normal));
        } else if (!normals_.empty()) {
            warnings_.push_back("normals that differ between the corners of a vertex were left out");
        }
        if (static_cast<int64_t>(colors_.size()) == 3 * n)
            mesh.vertices.attributes.push_back(colors());
        else if (!colors_.empty())
            warnings_.push_back("colors were left out: only some vertices have them");
        if (texture_coordinates_) warnings_.push_back("texture coordinates were left out");
        if (has_materials_) warnings_.push_back("materials were left out");
        return mesh;
    }

    Attribute colors() const {
        const auto n = static_cast<int64_t>(colors_.size() / 3);
        bool is_byte = true;
        for (float value : colors_) {
            const float scaled = value * 255.0f;
            is_byte &= scaled >= 0 && scaled <= 255 && std::abs(scaled - std::round(scaled)) < 1e-3f;
        }
        Attribute color("color", is_byte ? DType::u8 : DType::f32, n, 3);
        for (int64_t i = 0; i < 3 * n; ++i) {
            if (is_byte)
                color.as<uint8_t>().data()[i] = static_cast<uint8_t>(std::lround(colors_[i] * 255.0f));
            else
                color.as<float>().data()[i] = colors_[i];
        }
        return color;
    }

    ByteReader& reader_;
    Warnings& warnings_;
    PositionBuilder positions_;
    PolygonCollector polygons_;
    std::vector<float> colors_, normals_;
    std::vector<int32_t> corners_;
    int64_t texture_coordinates_ = 0;
    HighestUse highest_vertex_, highest_texture_, highest_normal_;
    bool normals_follow_vertices_ = true, has_materials_ = false;
};

bool keeps(const Attribute& attribute) {
    if (attribute.components() != 3) return false;
    if (attribute.name() == "normal") return attribute.dtype() == DType::f32;
    return attribute.name() == "color" &&
           (attribute.dtype() == DType::u8 || attribute.dtype() == DType::u16 || attribute.dtype() == DType::f32);
}

}  // namespace

Mesh parse_obj(ByteReader& reader, const ReadOptions&, Warnings& warnings) {
    return ObjParser(reader, warnings).parse();
}

void write_obj(const Mesh& mesh, ByteSink& sink, const WriteOptions&, Warnings& warnings) {
    require_points(mesh, "OBJ");
    const PointCloud& cloud = mesh.vertices;
    warn_left_out(mesh, "OBJ", true, keeps, warnings);
    const Attribute* normal = find(cloud.attributes, "normal");
    Attribute bytes;
    const Attribute* color = byte_color(cloud.attributes, bytes, "OBJ", warnings);
    if (normal && !keeps(*normal)) normal = nullptr;
    if (color && !keeps(*color)) color = nullptr;
    const double scale = color && color->dtype() == DType::u8 ? 1.0 / 255 : 1.0;
    write_text_rows(sink, cloud.size(), [&](std::string& text, int64_t row) {
        text += 'v';
        for (int axis = 0; axis < 3; ++axis)
            append_world(text += ' ', cloud.origin[axis], cloud.positions.data()[3 * row + axis]);
        for (int64_t c = 0; color && c < 3; ++c)
            append_number(text += ' ', static_cast<float>(color->value(row, c) * scale));
        text += '\n';
    });
    write_text_rows(sink, normal ? cloud.size() : 0, [&](std::string& text, int64_t row) {
        text += "vn";
        for (int64_t c = 0; c < 3; ++c) append_value(text += ' ', *normal, row, c);
        text += '\n';
    });
    write_text_rows(sink, mesh.faces(), [&](std::string& text, int64_t row) {
        text += 'f';
        for (int corner = 0; corner < 3; ++corner) {
            const int64_t index = int64_t{mesh.triangles.data()[3 * row + corner]} + 1;
            append_number(text += ' ', index);
            if (normal) append_number(text += "//", index);
        }
        text += '\n';
    });
}

}  // namespace stipple::io
