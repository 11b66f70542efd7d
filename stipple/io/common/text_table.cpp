#include "stipple/io/common/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "stipple/core/parallel.h"
#include "stipple/io/text.h"

namespace stipple::io {
namespace {

constexpr int64_t kBlock = int64_t{4} << 20;    // bytes of text parsed at a time
constexpr int64_t kPiece = int64_t{256} << 10;  // bytes of text that one thread takes

template <class T>
bool store_integer(double value, std::byte* to) {
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
          value <= static_cast<double>(std::numeric_limits<T>::max()) &&
          value == static_cast<double>(static_cast<T>(value))))
        return false;
    const auto narrow = static_cast<T>(value);
    std::memcpy(to, &narrow, sizeof narrow);
    return true;
}

/// One number at `at` into its field; an empty text, or the complaint.
std::string store_number(const char*& at, const char* end, const Field& field, bool commas, std::byte* row) {
    const char* begin = at;
    const auto ends = [&](const char* p) { return p == end || is_blank(*p) || (commas && (*p == ',' || *p == ';')); };
    const auto token = [&] {
        const char* stop = begin;
        while (!ends(stop)) ++stop;
        return std::string_view(begin, static_cast<size_t>(stop - begin));
    };
    std::byte* to = row + field.offset;
    if (field.dtype == DType::i64 || field.dtype == DType::u64) {  // more digits than a double has
        const std::string_view text = token();
        int64_t value = 0;
        uint64_t wide = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), wide);
        if (field.dtype == DType::u64 && error == std::errc() && stop == text.data() + text.size()) {
            std::memcpy(to, &wide, sizeof wide);
        } else if (field.dtype == DType::i64 && parse_number(text, value)) {
            std::memcpy(to, &value, sizeof value);
        } else {
            return fmt::format("expected a {} for {}, found {}", name_of(field.dtype), field.name, in_quotes(text));
        }
        at = text.data() + text.size();
        return {};
    }
    double value = 0;
    if (!scan_number(at, end, value) || !ends(at)) {
        const std::string_view text = token();
        at = begin;
        return fmt::format("expected a number for {}, found {}", field.name, in_quotes(text));
    }
    bool fits = true;
    switch (field.dtype) {
        case DType::f64: std::memcpy(to, &value, sizeof value); break;
        case DType::f32: {
            const auto narrow = static_cast<float>(value);
            std::memcpy(to, &narrow, sizeof narrow);
            break;
        }
        case DType::u8: fits = store_integer<uint8_t>(value, to); break;
        case DType::i8: fits = store_integer<int8_t>(value, to); break;
        case DType::u16: fits = store_integer<uint16_t>(value, to); break;
        case DType::i16: fits = store_integer<int16_t>(value, to); break;
        case DType::u32: fits = store_integer<uint32_t>(value, to); break;
        case DType::i32: fits = store_integer<int32_t>(value, to); break;
        default: fits = false;
    }
    if (!fits) return fmt::format("{} is no {} for {}", in_quotes(token()), name_of(field.dtype), field.name);
    return {};
}

bool is_row(std::string_view line, const TextRows& rows) {
    const std::string_view text = trimmed(line);
    return !text.empty() && !(rows.comments && (text[0] == '#' || text.substr(0, 2) == "//"));
}

constexpr std::string_view kDecimalComma = "decimal commas: ";
constexpr std::string_view kDecimalCommaHint =
    "numbers here have decimal points: replace the commas, as tr , . < in.txt > out.txt does";

/// The first number with a decimal comma of a row like "1,5 2 3,25" or "1,5;2;3,25": between blanks or semicolons stand
/// whole numbers and numbers with one comma between digits, and nothing else. Empty for any other row, "1, 2, 3" and
/// "1,2,3" among them.
std::string_view decimal_comma(std::string_view line) {
    std::string_view found;
    int words = 0;
    for (size_t i = 0; i < line.size();) {
        if (is_blank(line[i]) || line[i] == ';') {
            ++i;
            continue;
        }
        const size_t begin = i;
        size_t commas = 0, comma = 0;
        for (; i < line.size() && !is_blank(line[i]) && line[i] != ';'; ++i) {
            const char c = line[i];
            const bool sign = (c == '-' || c == '+') && i == begin;
            if (c == ',') {
                comma = i;
                ++commas;
            } else if (!sign && (c < '0' || c > '9')) {
                return {};
            }
        }
        const auto is_digit = [&](size_t at) { return at >= begin && at < i && line[at] >= '0' && line[at] <= '9'; };
        if (commas > 1 || (commas == 1 && (comma == begin || !is_digit(comma - 1) || !is_digit(comma + 1)))) return {};
        if (commas == 1 && found.empty()) found = line.substr(begin, i - begin);
        ++words;
    }
    return words >= 3 ? found : std::string_view{};
}

struct Piece {
    std::string_view text;
    std::vector<std::byte> bytes;  // rows
    int64_t rows = 0, lines = 0;   // lines up to the failed one, or all
    std::string failure;
};

/// The common row: numbers with single or several blanks between and nothing else on the line. Moves `at` behind the
/// line's end; false, unmoved, for any other row, which parse_text_row then reads or refuses.
bool parse_plain_row(const char*& at, const char* end, const TextRows& rows, std::byte* row) {
    const char* p = at;
    for (const Field& field : rows.fields) {
        while (p < end && *p == ' ') ++p;
        double value;
        if (!scan_number(p, end, value)) return false;
        if (field.dtype == DType::f64) {
            std::memcpy(row + field.offset, &value, sizeof value);
        } else if (field.dtype == DType::f32) {
            const auto narrow = static_cast<float>(value);
            std::memcpy(row + field.offset, &narrow, sizeof narrow);
        } else if (field.dtype != DType::u8 || !store_integer<uint8_t>(value, row + field.offset)) {
            return false;
        }
        if (p == end || (*p != ' ' && *p != '\n')) return false;
    }
    if (*p != '\n') return false;
    at = p + 1;
    return true;
}

void parse_piece(const TextRows& rows, const Limits& limits, Piece& piece) {
    std::string_view text = piece.text;
    while (!text.empty()) {
        const auto width = static_cast<size_t>(rows.row_bytes);
        const char* at = text.data();
        const char* stop = at + text.size();
        size_t used = piece.bytes.size();
        const size_t first = used;
        while (piece.bytes.capacity() - used >= width) {
            if (used == piece.bytes.size()) piece.bytes.resize(piece.bytes.capacity() / width * width);
            if (at == stop || !parse_plain_row(at, stop, rows, piece.bytes.data() + used)) break;
            used += width;
        }
        piece.bytes.resize(used);
        const auto plain = static_cast<int64_t>((used - first) / width);
        piece.rows += plain;
        piece.lines += plain;
        text.remove_prefix(static_cast<size_t>(at - text.data()));
        if (text.empty()) return;
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++piece.lines;
        if (static_cast<int64_t>(line.size()) > limits.max_line) {
            piece.failure = fmt::format("line longer than {} bytes", limits.max_line);
            return;
        }
        if (!is_row(line, rows)) continue;
        const size_t have = piece.bytes.size();
        if (piece.bytes.capacity() - have < static_cast<size_t>(rows.row_bytes)) {
            // Guess the rest from this line's length, so that a piece is allocated once or twice.
            const size_t guess = text.size() / (line.size() + 1) + 1;
            piece.bytes.reserve(have + (guess + guess / 4 + 1) * static_cast<size_t>(rows.row_bytes));
        }
        piece.bytes.resize(have + static_cast<size_t>(rows.row_bytes));
        piece.failure = parse_text_row(line, rows, piece.bytes.data() + have);
        if (!piece.failure.empty()) return;
        ++piece.rows;
    }
}

/// Bytes of `text` that hold the first `wanted` rows, and their lines.
std::pair<int64_t, int64_t> extent_of_rows(std::string_view text, const TextRows& rows, int64_t wanted) {
    const size_t whole = text.size();
    int64_t lines = 0;
    while (wanted > 0 && !text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        wanted -= is_row(text.substr(0, end), rows);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++lines;
    }
    return {static_cast<int64_t>(whole - text.size()), lines};
}

std::vector<Piece> cut(std::string_view block) {
    std::vector<Piece> pieces;
    while (!block.empty()) {
        size_t end = std::min<size_t>(kPiece, block.size());
        end = std::min(block.find('\n', end - 1), block.size() - 1) + 1;
        pieces.push_back({block.substr(0, end), {}, 0, 0, {}});
        block.remove_prefix(end);
    }
    return pieces;
}

}  // namespace

std::string parse_text_row(std::string_view line, const TextRows& rows, std::byte* row) {
    if (line.find(',') != line.npos)
        if (const std::string_view number = decimal_comma(line); !number.empty())
            return fmt::format("{}{}", kDecimalComma, in_quotes(number));
    const char* at = line.data();
    const char* end = at + line.size();
    size_t column = 0;
    for (;;) {
        while (at < end && is_blank(*at)) ++at;
        if (rows.commas && column > 0 && at < end && (*at == ',' || *at == ';')) {
            ++at;
            while (at < end && is_blank(*at)) ++at;
        }
        if (rows.comments && at < end && *at == '#') at = end;
        if (column == rows.fields.size() || at == end) break;
        std::string failure = store_number(at, end, rows.fields[column], rows.commas, row);
        if (!failure.empty()) return failure;
        ++column;
    }
    if (column < rows.fields.size()) return fmt::format("expected {} numbers, found {}", rows.fields.size(), column);
    if (at < end && !rows.extra_columns) {
        const std::string_view rest(at, static_cast<size_t>(end - at));
        return fmt::format("expected {} numbers, found more: {}", rows.fields.size(), in_quotes(rest));
    }
    return {};
}

std::string peek_text_row(ByteReader& reader, const TextRows& rows) {
    const std::string_view block = reader.lines(int64_t{64} << 10);
    reader.give_back(static_cast<int64_t>(block.size()));
    std::string_view text = block;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        if (is_row(line, rows)) return std::string(trimmed(line));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return {};
}

void parse_text_rows(ByteReader& reader, const TextRows& rows, PointTable& table) {
    int64_t wanted = rows.count;
    while (wanted != 0) {
        const std::string_view block = reader.lines(kBlock);
        if (block.empty()) {
            if (wanted > 0)
                reader.fail_line(fmt::format("the file ends after {} of {} rows", rows.count - wanted, rows.count));
            return;
        }
        std::vector<Piece> pieces = cut(block);
        parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) parse_piece(rows, reader.limits(), pieces[i]);
        });
        int64_t used = 0;  // bytes of the block
        for (Piece& piece : pieces) {
            if (wanted >= 0 && piece.rows >= wanted) {  // the rest is not ours
                const auto [bytes, lines] = extent_of_rows(piece.text, rows, wanted);
                table.append(piece.bytes.data(), wanted);
                reader.count_lines(lines);
                reader.give_back(static_cast<int64_t>(block.size()) - used - bytes);
                return;
            }
            reader.count_lines(piece.lines);
            if (!piece.failure.empty()) {
                const bool commas = piece.failure.substr(0, kDecimalComma.size()) == kDecimalComma;
                reader.fail_line(piece.failure, std::string(commas ? kDecimalCommaHint : ""));
            }
            table.append(piece.bytes.data(), piece.rows);
            if (table.rows() > reader.limits().max_points)
                reader.fail_line(fmt::format("more than {} points", reader.limits().max_points));
            used += static_cast<int64_t>(piece.text.size());
            if (wanted > 0) wanted -= piece.rows;
            piece.bytes = {};
        }
    }
}

void write_text_rows(ByteSink& sink, int64_t count,
                     const std::function<void(std::string& text, int64_t row)>& format_row) {
    constexpr int64_t kRows = 8192, kPieces = 16;  // 16 pieces of about 256 KiB at a time
    std::vector<std::string> texts(kPieces);
    for (int64_t begin = 0; begin < count; begin += kRows * kPieces) {
        const int64_t pieces = std::min(kPieces, (count - begin + kRows - 1) / kRows);
        parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
            for (int64_t piece = first; piece < last; ++piece) {
                texts[piece].clear();
                const int64_t end = std::min(count, begin + (piece + 1) * kRows);
                for (int64_t row = begin + piece * kRows; row < end; ++row) format_row(texts[piece], row);
            }
        });
        for (int64_t piece = 0; piece < pieces; ++piece) sink.write(texts[piece]);
    }
}

void append_value(std::string& text, const Attribute& attribute, int64_t row, int64_t component) {
    const std::byte* at = attribute.data() + row * attribute.row_bytes() + component * size_of(attribute.dtype());
    switch (attribute.dtype()) {
        case DType::f32: {
            float value;
            std::memcpy(&value, at, sizeof value);
            return append_number(text, value);
        }
        case DType::u64: {
            uint64_t value;
            std::memcpy(&value, at, sizeof value);
            text += fmt::format_int(value).c_str();
            return;
        }
        case DType::i64: {
            int64_t value;
            std::memcpy(&value, at, sizeof value);
            return append_number(text, value);
        }
        case DType::f16:
        case DType::bf16:
        case DType::f64: return append_number(text, load_as_double(attribute.dtype(), at));
        default: return append_number(text, static_cast<int64_t>(load_as_double(attribute.dtype(), at)));
    }
}

}  // namespace stipple::io
