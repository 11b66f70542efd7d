#include "stipple/io/pcd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "stipple/io/common/conversion.h"
#include "stipple/io/common/lzf.h"
#include "stipple/io/common/point_table.h"
#include "stipple/io/common/text_table.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

enum class Data { ascii, binary, compressed };

struct Header {
    std::vector<Field> fields;    // one an item: a field of COUNT 3 is three, padding included
    std::vector<int64_t> counts;  // for each of `fields`: items that it begins (its COUNT), 0 for those that follow
    int64_t row_bytes = 0, points = 0;
    std::optional<std::array<double, 7>> viewpoint;
    std::array<double, 3> origin = {};  // of a comment of ours
    Data data = Data::ascii;
};

std::optional<DType> type_of(char type, int64_t size) {
    static constexpr DType kSigned[] = {DType::i8, DType::i16, DType::i32, DType::i64};
    static constexpr DType kUnsigned[] = {DType::u8, DType::u16, DType::u32, DType::u64};
    const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
    if (log < 0) return std::nullopt;
    if (type == 'I') return kSigned[log];
    if (type == 'U') return kUnsigned[log];
    if (type == 'F' && size >= 4) return size == 4 ? DType::f32 : DType::f64;
    return std::nullopt;
}

class HeaderParser {
public:
    HeaderParser(ByteReader& reader, Warnings& warnings) : reader_(reader), warnings_(warnings) {}

    Header parse() {
        if (reader_.at_end()) reader_.fail("empty");
        for (;;) {
            const auto line = reader_.line();
            if (!line) reader_.fail_line("the file ends inside the header");
            if (reader_.offset() > reader_.limits().max_header) reader_.fail_line("header too long");
            if (line->substr(0, kPcdOrigin.size()) == kPcdOrigin) parse_origin(line->substr(kPcdOrigin.size()));
            if (*line == kPcdViewpoint) has_viewpoint_ = true;
            std::string_view text = line->substr(0, line->find('#'));
            const std::string_view key = next_word(text);
            if (key.empty()) continue;
            if (key == "DATA") {
                parse_data(next_word(text));
                break;
            }
            parse_line(key, text);
        }
        return finish();
    }

private:
    void parse_line(std::string_view key, std::string_view text) {
        if (key == "VERSION") return;
        if (key == "FIELDS" || key == "COLUMNS") {
            names_.clear();
            for (std::string_view word; !(word = next_word(text)).empty();) names_.emplace_back(word);
        } else if (key == "SIZE") {
            sizes_ = integers(text, "SIZE");
        } else if (key == "COUNT") {
            counts_ = integers(text, "COUNT");
        } else if (key == "TYPE") {
            types_.clear();
            for (std::string_view word; !(word = next_word(text)).empty();) types_.emplace_back(word);
        } else if (key == "WIDTH") {
            width_ = one_integer(text, "WIDTH");
        } else if (key == "HEIGHT") {
            height_ = one_integer(text, "HEIGHT");
        } else if (key == "POINTS") {
            points_ = one_integer(text, "POINTS");
        } else if (key == "VIEWPOINT") {
            std::string_view rest = text;
            std::array<double, 7> viewpoint;
            for (double& value : viewpoint)
                if (!parse_number(next_word(rest), value)) reader_.fail_line("expected seven numbers for VIEWPOINT");
            header_.viewpoint = viewpoint;
        } else {
            reader_.fail_line(fmt::format("expected a header keyword, found {}", in_quotes(key)));
        }
    }

    void parse_origin(std::string_view text) {
        for (double& value : header_.origin)
            if (!parse_number(next_word(text), value) || !std::isfinite(value))
                reader_.fail_line(fmt::format("expected three finite numbers behind {}", in_quotes(kPcdOrigin)));
    }

    void parse_data(std::string_view word) {
        if (word == "ascii")
            header_.data = Data::ascii;
        else if (word == "binary")
            header_.data = Data::binary;
        else if (word == "binary_compressed")
            header_.data = Data::compressed;
        else
            reader_.fail_line(fmt::format("unknown DATA {}", in_quotes(word)));
    }

    std::vector<int64_t> integers(std::string_view text, std::string_view what) {
        std::vector<int64_t> values;
        for (std::string_view word; !(word = next_word(text)).empty();) {
            values.emplace_back();
            if (!parse_number(word, values.back()))
                reader_.fail_line(fmt::format("expected an integer for {}, found {}", what, in_quotes(word)));
        }
        return values;
    }

    int64_t one_integer(std::string_view text, std::string_view what) {
        const std::vector<int64_t> values = integers(text, what);
        if (values.size() != 1 || values[0] < 0) reader_.fail_line(fmt::format("expected one number for {}", what));
        return values[0];
    }

    Header finish() {
        // A viewpoint of nothing says as much as none.
        if (header_.viewpoint == kPcdIdentity && !has_viewpoint_) header_.viewpoint.reset();
        for (size_t axis = 0; axis < 3 && header_.viewpoint; ++axis) (*header_.viewpoint)[axis] += header_.origin[axis];
        if (names_.empty()) reader_.fail_line("the header has no FIELDS");
        if (counts_.empty()) counts_.assign(names_.size(), 1);
        if (sizes_.size() != names_.size() || types_.size() != names_.size() || counts_.size() != names_.size())
            reader_.fail_line(fmt::format("{} FIELDS, {} SIZE, {} TYPE, {} COUNT", names_.size(), sizes_.size(),
                                          types_.size(), counts_.size()));
        for (size_t i = 0; i < names_.size(); ++i) {
            const auto dtype = type_of(types_[i].size() == 1 ? types_[i][0] : '?', sizes_[i]);
            if (!dtype)
                reader_.fail_line(fmt::format("field {}: no type {} of {} bytes", in_quotes(names_[i]),
                                              in_quotes(types_[i]), sizes_[i]));
            if (counts_[i] < 1 ||
                counts_[i] > reader_.limits().max_properties - static_cast<int64_t>(header_.fields.size()))
                reader_.fail_line(fmt::format("field {}: COUNT {}", in_quotes(names_[i]), counts_[i]));
            for (int64_t c = 0; c < counts_[i]; ++c) {
                header_.fields.push_back({counts_[i] > 1 ? fmt::format("{}_{}", names_[i], c) : names_[i], *dtype, 0});
                header_.counts.push_back(c == 0 ? counts_[i] : 0);
            }
        }
        header_.row_bytes = pack_fields(header_.fields);
        header_.points = points_.value_or(-1);
        if (width_ && height_) {
            int64_t product = 0;
            if (__builtin_mul_overflow(*width_, *height_, &product) || (points_ && product != *points_))
                reader_.fail_line(
                    fmt::format("WIDTH {} x HEIGHT {} is not POINTS {}", *width_, *height_, header_.points));
            header_.points = product;
        }
        if (header_.points < 0) reader_.fail_line("the header has no POINTS");
        if (header_.points > reader_.limits().max_points)
            reader_.fail_line(
                fmt::format("{} points, at most {} are read", header_.points, reader_.limits().max_points));
        if (height_.value_or(1) > 1)
            warnings_.push_back(fmt::format("the order in {} x {} rows is not kept", *width_, *height_));
        return std::move(header_);
    }

    ByteReader& reader_;
    Warnings& warnings_;
    Header header_;
    std::vector<std::string> names_, types_;
    std::vector<int64_t> sizes_, counts_;
    std::optional<int64_t> width_, height_, points_;
    bool has_viewpoint_ = false;
};

/// Fields that are kept: padding ("_") has no name to tell apart.
std::vector<Field> kept_fields(const Header& header) {
    std::vector<Field> kept;
    for (const Field& field : header.fields)
        if (field.name != "_" && field.name.rfind("__", 0) != 0) kept.push_back(field);
    return kept;
}

void read_ascii(ByteReader& reader, const Header& header, std::optional<PointTable>& table) {
    TextRows rows;
    rows.fields = header.fields;
    rows.comments = true;
    rows.count = header.points;
    for (Field& field : rows.fields) {
        if (header.origin != std::array<double, 3>{}) break;  // what is left of float32 is float32
        // PCL writes packed colors as the decimal value of the float or of the integer; both are read as numbers.
        if (field.name == "x" || field.name == "y" || field.name == "z") field.dtype = DType::f64;
    }
    rows.row_bytes = pack_fields(rows.fields);
    const auto columns = static_cast<int64_t>(rows.fields.size());
    if (header.points > 0)
        reader.require_remaining(checked_mul(header.points, 2 * columns) - 1, fmt::format("{} points", header.points));
    Header wide = header;
    wide.fields = rows.fields;
    table.emplace(kept_fields(wide), rows.row_bytes, reader.remaining() ? header.points : -1);
    parse_text_rows(reader, rows, *table);
}

/// Columns one after the other, compressed as a whole.
void read_compressed(ByteReader& reader, const Header& header, PointTable& table) {
    const int64_t stored = reader.read_number<uint32_t>("the compressed size");
    const int64_t size = reader.read_number<uint32_t>("the uncompressed size");
    const int64_t expected = header.points * header.row_bytes;
    if (size != expected)
        reader.fail(fmt::format("uncompressed size {}, {} points need {}", size, header.points, expected));
    if (size > stored * kLzfMaxRatio || size > reader.limits().max_inflated)
        reader.fail(fmt::format("{} compressed bytes cannot hold {}", stored, size));
    const Buffer packed = reader.read_buffer(stored, "the compressed points");
    Buffer columns(size);
    if (!lzf_decompress({packed.data(), static_cast<size_t>(stored)}, {columns.data(), static_cast<size_t>(size)}))
        reader.fail("the compressed points are damaged");
    const int64_t chunk_rows = std::max<int64_t>(1, std::min(header.points, (int64_t{1} << 20) / header.row_bytes));
    std::vector<std::byte> chunk(static_cast<size_t>(chunk_rows * header.row_bytes));
    for (int64_t begin = 0; begin < header.points; begin += chunk_rows) {
        const int64_t rows = std::min(chunk_rows, header.points - begin);
        for (size_t i = 0; i < header.fields.size(); ++i) {
            if (header.counts[i] == 0) continue;  // travels with the first item of its field
            const Field& field = header.fields[i];
            const int64_t width = header.counts[i] * size_of(field.dtype);
            const std::byte* from = columns.data() + field.offset * header.points + begin * width;
            for (int64_t row = 0; row < rows; ++row)
                std::memcpy(chunk.data() + row * header.row_bytes + field.offset, from + row * width,
                            static_cast<size_t>(width));
        }
        table.append(chunk.data(), rows);
    }
}

/// rgb and rgba, packed as 0xAARRGGBB, into a color attribute.
void unpack_color(PointCloud& cloud) {
    for (Attribute& attribute : cloud.attributes) {
        const bool alpha = attribute.name() == "rgba";
        if ((attribute.name() != "rgb" && !alpha) || attribute.components() != 1 || size_of(attribute.dtype()) != 4 ||
            find(cloud.attributes, "color"))
            continue;
        Attribute color("color", DType::u8, attribute.rows(), alpha ? 4 : 3);
        for (int64_t i = 0; i < attribute.rows(); ++i) {
            uint32_t packed;
            std::memcpy(&packed, attribute.data() + 4 * i, 4);
            auto* to = reinterpret_cast<uint8_t*>(color.data() + i * color.components());
            to[0] = static_cast<uint8_t>(packed >> 16);
            to[1] = static_cast<uint8_t>(packed >> 8);
            to[2] = static_cast<uint8_t>(packed);
            if (alpha) to[3] = static_cast<uint8_t>(packed >> 24);
        }
        attribute = std::move(color);
    }
}

}  // namespace

Mesh parse_pcd(ByteReader& reader, const ReadOptions&, Warnings& warnings) {
    const Header header = HeaderParser(reader, warnings).parse();
    std::optional<PointTable> table;
    if (header.data == Data::ascii) {
        read_ascii(reader, header, table);
    } else {
        const int64_t bytes = checked_mul(header.points, header.row_bytes);
        if (header.data == Data::binary) {
            reader.require_remaining(bytes, fmt::format("{} points", header.points));
        } else if (const auto left = reader.remaining()) {
            if (bytes / kLzfMaxRatio > *left)
                reader.fail(fmt::format("{} bytes cannot hold {} points", *left, header.points));
        }
        // Compressed points are allocated when their size is known to be backed by the file.
        const bool known = header.data == Data::binary && reader.remaining();
        table.emplace(kept_fields(header), header.row_bytes, known ? header.points : -1);
        if (header.data == Data::binary)
            read_rows(reader, *table, header.points, "the points");
        else if (header.points > 0)
            read_compressed(reader, header, *table);
    }
    Mesh mesh;
    mesh.vertices = table->finish();
    for (size_t axis = 0; axis < 3; ++axis) mesh.vertices.origin[axis] += header.origin[axis];
    unpack_color(mesh.vertices);
    mesh.vertices.facts.viewpoint = header.viewpoint;
    return mesh;
}

}  // namespace stipple::io
