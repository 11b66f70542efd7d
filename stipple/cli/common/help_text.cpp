#include "stipple/cli/common/help_text.h"

#include <algorithm>

namespace stipple::cli {
namespace {

constexpr size_t kWords = 30;  // where CLI11 begins the words of an option

/// Where the rest of a line goes on: below its words, when they stand in a column of their own.
size_t indent_of(const std::string& line) {
    const size_t first = std::min(line.find_first_not_of(' '), line.size());
    if (first >= kWords) return first;
    if (line.size() > kWords && line[0] == ' ' && line[kWords - 1] == ' ' && line[kWords] != ' ') return kWords;
    if (const size_t colon = line.find(": "); line.rfind("Everywhere", 0) == 0) return colon + 2;
    return first == 0 && line.rfind("Usage", 0) != 0 ? 0 : first + 4;
}

size_t characters_of(const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string fold_line(std::string line, size_t columns, size_t indent, const std::string& end) {
    std::string text;
    size_t words = indent;  // where they begin: there is no cut before them
    indent = std::min(indent, columns / 2);
    while (characters_of(line) > columns) {
        const size_t first = line.find_first_not_of(' ');
        // The last blank that leaves a piece that fits, else the first behind a word that is too long.
        size_t cut = std::string::npos;
        for (size_t at = line.find(' ', first); at != std::string::npos; at = line.find(' ', at + 1)) {
            if (at < words) continue;
            if (cut != std::string::npos && characters_of(line.substr(0, at)) + end.size() > columns) break;
            cut = at;
        }
        const size_t rest = cut == std::string::npos ? cut : line.find_first_not_of(' ', cut);
        if (rest == std::string::npos) break;
        text += line.substr(0, line.find_last_not_of(' ', cut) + 1) + end + "\n";
        line = std::string(indent, ' ') + line.substr(rest);
        words = indent;
    }
    return text + line + "\n";
}

std::string fold_help(const std::string& text, int columns) {
    std::string folded;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        const bool is_call = line.rfind("  stipple", 0) == 0;
        folded += fold_line(line, static_cast<size_t>(std::max(columns, 40)), indent_of(line), is_call ? " \\" : "");
        begin = end + 1;
    }
    return folded;
}

}  // namespace stipple::cli
