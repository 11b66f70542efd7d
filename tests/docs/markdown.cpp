#include "tests/docs/markdown.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    std::istringstream in(line);
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

/// A heading as links name it: small letters, hyphens for spaces, no other punctuation.
std::string anchor_of(const std::string& heading) {
    std::string anchor;
    for (const char c : heading) {
        if (std::isalnum(static_cast<unsigned char>(c))) anchor += static_cast<char>(std::tolower(c));
        if (c == ' ' || c == '-') anchor += '-';
        if (c == '_') anchor += '_';
    }
    return anchor;
}

/// The digits behind the point, or -1 where the word is no number with a point. `value` is the number.
int decimals_of(const std::string& word, double& value) {
    const char* end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, value);
    const size_t point = word.find('.');
    if (error != std::errc() || rest != end || point == std::string::npos) return -1;
    return static_cast<int>(std::find_if_not(word.begin() + static_cast<long>(point) + 1, word.end(),
                                             [](unsigned char c) { return std::isdigit(c); }) -
                            word.begin()) -
           static_cast<int>(point) - 1;
}

/// Punctuation around a number is part of the word: "(0.06," and "0.06)" are compared by their middle.
std::string without_punctuation(const std::string& word, std::string& around) {
    const auto is_part = [](unsigned char c) { return std::isdigit(c) || c == '.' || c == '-' || c == 'e'; };
    const auto first =
        std::find_if(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) || c == '-'; });
    const auto last = std::find_if_not(first, word.end(), is_part);
    around = std::string(word.begin(), first) + "#" + std::string(last, word.end());
    return {first, last};
}

bool same_word(const std::string& shown, const std::string& printed) {
    if (const size_t at = shown.find("..."); at != std::string::npos) {
        const std::string head = shown.substr(0, at), tail = shown.substr(at + 3);
        return printed.size() >= head.size() + tail.size() && printed.compare(0, head.size(), head) == 0 &&
               printed.compare(printed.size() - tail.size(), tail.size(), tail) == 0;
    }
    if (shown == printed) return true;
    std::string around_a, around_b;
    double a = 0, b = 0;
    const int decimals = decimals_of(without_punctuation(shown, around_a), a);
    if (decimals_of(without_punctuation(printed, around_b), b) < 0 || decimals < 0 || around_a != around_b)
        return false;
    const bool has_exponent = shown.find('e') != std::string::npos;
    return std::abs(a - b) <= std::max(0.01 * std::abs(a), has_exponent ? 0.0 : 2.001 * std::pow(10.0, -decimals));
}

/// "..." as a word of its own stands for any words, none too.
bool same_words(const std::vector<std::string>& shown, size_t i, const std::vector<std::string>& printed, size_t j) {
    if (i == shown.size()) return j == printed.size();
    if (shown[i] == "...") {
        for (size_t next = j; next <= printed.size(); ++next)
            if (same_words(shown, i + 1, printed, next)) return true;
        return false;
    }
    return j < printed.size() && same_word(shown[i], printed[j]) && same_words(shown, i + 1, printed, j + 1);
}

bool same_lines(const std::vector<std::string>& shown, size_t i, const std::vector<std::string>& printed, size_t j,
                std::pair<size_t, size_t>& farthest) {
    farthest = std::max(farthest, {i, j});
    if (i == shown.size()) return j == printed.size();
    if (words_of(shown[i]) == std::vector<std::string>{"..."}) {
        for (size_t next = j; next <= printed.size(); ++next)
            if (same_lines(shown, i + 1, printed, next, farthest)) return true;
        return false;
    }
    return j < printed.size() && same_words(words_of(shown[i]), 0, words_of(printed[j]), 0) &&
           same_lines(shown, i + 1, printed, j + 1, farthest);
}

}  // namespace

int Block::exit_status() const {
    int status = 0;
    if (mark.rfind("run: exit ", 0) == 0) std::from_chars(mark.data() + 10, mark.data() + mark.size(), status);
    return status;
}

std::vector<const Block*> Page::command_blocks() const {
    std::vector<const Block*> found;
    for (const Block& block : blocks) {
        const bool is_bare = block.language.empty() && block.mark != "output";
        if (block.language == "sh" ||
            (is_bare && (block.text.rfind("stipple ", 0) == 0 || block.text.rfind("$ stipple ", 0) == 0)))
            found.push_back(&block);
    }
    return found;
}

Page parse_page(const std::string& path, const std::string& text) {
    static const std::regex mark(R"(<!-- (run|run: exit \d+|not run: .+|output) -->)");
    static const std::regex code("`([^`]+)`"), link(R"(\]\(([^)\s]+)\))");
    Page page{.path = path, .blocks = {}, .commands = {}, .links = {}, .anchors = {}};
    std::string prose, previous;
    Block* open = nullptr;
    int number = 0;
    for (const std::string& line : lines_of(text)) {
        ++number;
        if (line.rfind("```", 0) == 0) {
            if (open) {
                open = nullptr;
                previous.clear();
                continue;
            }
            std::smatch found;
            page.blocks.push_back(
                {line.substr(3), std::regex_match(previous, found, mark) ? found[1].str() : "", "", number});
            open = &page.blocks.back();
        } else if (open) {
            open->text += line + "\n";
        } else {
            if (const size_t level = line.find_first_not_of('#');
                level != 0 && level != std::string::npos && line[level] == ' ')
                page.anchors.push_back(anchor_of(line.substr(level + 1)));
            prose += line + "\n";
            previous = line;
        }
    }
    for (std::sregex_iterator at(prose.begin(), prose.end(), code), end; at != end; ++at)
        if ((*at)[1].str().rfind("stipple ", 0) == 0) page.commands.push_back((*at)[1]);
    prose = std::regex_replace(prose, code, "");
    for (std::sregex_iterator at(prose.begin(), prose.end(), link), end; at != end; ++at)
        page.links.push_back((*at)[1]);
    return page;
}

const std::vector<Page>& pages() {
    static const std::vector<Page> all = [] {
        const std::filesystem::path root = STIPPLE_SOURCE_DIR;
        std::vector<std::string> paths = {"README.md", "CONTRIBUTING.md"};
        for (const auto& entry : std::filesystem::directory_iterator(root / "docs"))
            if (entry.path().extension() == ".md") paths.push_back("docs/" + entry.path().filename().string());
        std::sort(paths.begin(), paths.end());
        std::vector<Page> found;
        for (const std::string& path : paths) found.push_back(parse_page(path, read_file((root / path).string())));
        return found;
    }();
    return all;
}

bool shows(const std::string& page, const std::string& printed, std::string& difference) {
    const std::vector<std::string> a = lines_of(page), b = lines_of(printed);
    std::pair<size_t, size_t> farthest{0, 0};
    if (same_lines(a, 0, b, 0, farthest)) return true;
    const auto line = [](const std::vector<std::string>& lines, size_t i) {
        return i < lines.size() ? '"' + lines[i] + '"' : std::string("the end");
    };
    difference = "the page shows " + line(a, farthest.first) + ", the program prints " + line(b, farthest.second);
    return false;
}

}  // namespace stipple::test
