#include "stipple/cli/common/step_words.h"

#include <algorithm>
#include <map>

namespace stipple::cli {
namespace {

/// Switches, and whether a value follows them.
void add_switches(const Arguments& arguments, std::map<std::string, bool>& switches) {
    for (const Option& option : arguments.options())
        for (const std::string& name : option.switches()) switches[name] = !option.is_flag();
}

bool has_steps(const Arguments& command) {
    for (const Option& option : command.options())
        for (const std::string& name : option.switches())
            if (name == kThen) return true;
    return false;
}

}  // namespace

std::string shell_word(const std::string& text) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
    if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> words;
    char quote = 0;
    bool is_in_word = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool is_space = c == ' ' || c == '\t' || c == '\n';
        if (quote == 0 && is_space) {
            is_in_word = false;
            continue;
        }
        if (!is_in_word) words.emplace_back();
        is_in_word = true;
        if (c == quote)
            quote = 0;
        else if (quote == 0 && (c == '\'' || c == '"'))
            quote = c;
        else if (c == '\\' && quote != '\'' && i + 1 < text.size())
            words.back() += text[++i];
        else
            words.back() += c;
    }
    STIPPLE_REQUIRE(quote == 0, "a quote {} is not closed: {}", quote, text);
    return words;
}

std::vector<std::string> with_steps_joined(const std::vector<std::string>& given, const Arguments& program) {
    std::vector<std::string> words;
    for (const std::string& word : given) {
        const bool is_joined = word.starts_with(kThen) && word.size() > kThen.size() && word[kThen.size()] == '=';
        words.push_back(is_joined ? std::string(kThen) : word);
        if (is_joined) words.push_back(word.substr(kThen.size() + 1));
    }
    const auto first = std::find(words.begin(), words.end(), kThen);
    std::map<std::string, bool> outside;
    for (const auto& command : program.commands())
        if (has_steps(*command) && std::find(words.begin(), first, command->name()) != first)
            add_switches(*command, outside);
    if (first == words.end() || outside.empty()) return given;
    add_switches(program, outside);
    outside.erase(std::string(kThen));
    std::vector<std::string> line(words.begin(), first);
    for (auto at = first; at != words.end();) {
        const auto end = std::find(at + 1, words.end(), kThen);
        std::vector<std::string> step;
        for (++at; at != end; ++at) {
            const size_t equals = at->find('=');
            const auto found = outside.find(at->substr(0, equals));
            if (found == outside.end()) {
                step.push_back(*at);
                continue;
            }
            line.push_back(*at);
            if (found->second && equals == std::string::npos && at + 1 != end) line.push_back(*++at);
        }
        std::string text(kThen);
        // In quotes of the shell a step is one word already.
        if (step.size() == 1 && step[0].find(' ') != std::string::npos) {
            text += "=" + step[0];
        } else {
            for (const std::string& word : step) text += (text.size() == kThen.size() ? "=" : " ") + shell_word(word);
        }
        line.push_back(text);
    }
    return line;
}

}  // namespace stipple::cli
