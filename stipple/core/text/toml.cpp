#include "stipple/core/toml.h"

#include <algorithm>
#include <charconv>

#include "stipple/core/error.h"
#include "stipple/core/terminal.h"

namespace stipple {
namespace {

bool is_number(std::string_view word) {
    if (!word.empty() && word[0] == '+') {
        word.remove_prefix(1);
        if (!word.empty() && (word[0] == '+' || word[0] == '-')) return false;
    }
    double number = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && stop == word.data() + word.size();
}

bool is_key_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// UTF-8 of the code point that \uXXXX and \UXXXXXXXX name.
std::string utf8(uint32_t code) {
    std::string text;
    if (code < 0x80) return {static_cast<char>(code)};
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
    text += static_cast<char>(kLead[more] | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
    return text;
}

class TomlParser {
public:
    explicit TomlParser(std::string_view text) : text_(text) {}

    std::vector<TomlItem> parse() {
        std::string table;
        for (skip_empty(); at_ < text_.size(); skip_empty()) {
            TomlItem item;
            item.line = line_;
            if (peek() == '[') {
                ++at_;
                table = item.table = read_table();
                expect(']', "after the table's name");
            } else {
                item.table = table;
                item.key = read_key("=");
                if (peek() == '.') fail(fmt::format("{}.: keys with dots are not used here", item.key));
                expect('=', "after the key");
                read_value(item.values);
            }
            end_line();
            for (const TomlItem& before : items_)
                if (before.table == item.table && before.key == item.key)
                    fail(item.line, item.key.empty()
                                        ? fmt::format("table [{}] twice, first in line {}", table, before.line)
                                        : fmt::format("key {} twice, first in line {}", item.key, before.line));
            items_.push_back(std::move(item));
        }
        return std::move(items_);
    }

private:
    [[noreturn]] static void fail(int64_t line, std::string message) {
        throw Error(ErrorCode::bad_config, Place{{}, line, {}}, std::move(message));
    }
    [[noreturn]] void fail(std::string message) const { fail(line_, std::move(message)); }

    char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }

    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    }

    /// Spaces, comments and line ends.
    void skip_empty() {
        for (;;) {
            skip_space();
            if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
            if (at_ >= text_.size() || text_[at_] != '\n') return;
            ++at_;
            ++line_;
        }
    }

    void expect(char c, const char* where) {
        skip_space();
        if (peek() != c) fail(fmt::format("expected {} {}, found {}", c, where, rest()));
        ++at_;
    }

    void end_line() {
        skip_space();
        if (peek() != '\n' && peek() != '#') fail(fmt::format("expected the end of the line, found {}", rest()));
    }

    /// What stands here, for messages.
    std::string rest() const {
        const std::string_view line = text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
        constexpr size_t kMost = 40;
        if (line.empty()) return "the end of the line";
        return fmt::format("\"{}{}\"", printable(line.substr(0, kMost)), line.size() > kMost ? "..." : "");
    }

    std::string read_key(const char* follows) {
        skip_space();
        std::string key;
        if (peek() == '"' || peek() == '\'') {
            key = read_string();
        } else {
            while (is_key_character(peek())) key += text_[at_++];
        }
        if (key.empty()) fail(fmt::format("expected a name and {}, found {}", follows, rest()));
        return key;
    }

    /// "mesh.sample"
    std::string read_table() {
        std::string table = read_key("]");
        for (skip_space(); peek() == '.'; skip_space()) {
            ++at_;
            table += '.' + read_key("]");
        }
        return table;
    }

    void read_value(std::vector<std::string>& values) {
        skip_space();
        if (peek() != '[') return values.push_back(read_scalar());
        ++at_;
        for (skip_empty(); peek() != ']' || at_ >= text_.size(); skip_empty()) {
            if (at_ >= text_.size()) fail("the array has no ]");
            values.push_back(read_scalar());
            skip_empty();
            if (at_ < text_.size() && peek() != ']') expect(',', "between the values of an array");
        }
        ++at_;
    }

    std::string read_scalar() {
        if (peek() == '"' || peek() == '\'') return read_string();
        const size_t begin = at_;
        while (is_key_character(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
        std::string word(text_.substr(begin, at_ - begin));
        if (word == "true" || word == "false") return word;
        word.erase(std::remove(word.begin(), word.end(), '_'), word.end());  // 1_000_000
        if (!is_number(word)) {
            at_ = begin;
            fail(fmt::format("expected a value, found {}; text needs quotes", rest()));
        }
        return word;
    }

    std::string read_string() {
        const char quote = text_[at_++];
        if (text_.substr(at_, 2) == std::string(2, quote)) fail("strings over several lines are not used here");
        std::string value;
        while (peek() != quote) {
            if (peek() == '\n') fail(fmt::format("the string has no closing {}", quote));
            if (peek() == '\\' && quote == '"')
                value += read_escape();
            else
                value += text_[at_++];
        }
        ++at_;
        return value;
    }

    std::string read_escape() {
        ++at_;
        const char c = peek();
        ++at_;
        constexpr std::string_view kNames = "btnfre\"\\", kValues = "\b\t\n\f\r\033\"\\";
        if (const size_t known = kNames.find(c); known != std::string_view::npos) return {kValues[known]};
        const size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
        uint32_t code = 0;
        for (size_t i = 0; i < digits; ++i, ++at_) {
            const size_t digit = std::string_view("0123456789abcdef").find(peek() | (peek() > '9' ? 0x20 : 0));
            if (digit == std::string_view::npos) fail("the string has an escape that is no code point");
            code = code << 4 | static_cast<uint32_t>(digit);
        }
        if (digits == 0) fail(fmt::format("the string has an unknown escape \\{}", c));
        if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            fail("the string has an escape that is no code point");
        return utf8(code);
    }

    std::string_view text_;
    size_t at_ = 0;
    int64_t line_ = 1;
    std::vector<TomlItem> items_;
};

}  // namespace

std::vector<TomlItem> parse_toml(std::string_view text) {
    if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
    return TomlParser(text).parse();
}

std::string toml_string(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            result += {'\\', c};
        else if (byte < 0x20 || byte == 0x7f)
            result += fmt::format("\\u{:04x}", byte);
        else
            result += c;
    }
    return result + "\"";
}

}  // namespace stipple
