#include "stipple/cli/common/shell_files.h"

#include <algorithm>

#include "stipple/cli/common/step_words.h"

namespace stipple::cli {
namespace {

/// Each command with the options that it takes, those of the program included.
struct Entry {
    const Arguments* command;
    std::string path;  // "mesh sample"; "" is the program
};

void add_entries(const Arguments& command, std::vector<Entry>& entries) {
    entries.push_back({&command, command.path(' ')});
    for (const auto& below : command.commands()) add_entries(*below, entries);
}

std::vector<Entry> entries_of(const Arguments& program) {
    std::vector<Entry> entries;
    add_entries(program, entries);
    return entries;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

std::vector<std::string> names_below(const Arguments& command) {
    std::vector<std::string> names;
    for (const auto& below : command.commands()) names.push_back(below->name());
    return names;
}

/// Commands below it, and the words of a positional argument.
std::vector<std::string> first_words(const Arguments& command) {
    std::vector<std::string> words = names_below(command);
    for (const Option& option : command.options())
        if (option.is_positional())
            for (const std::string& word : option.words()) words.push_back(word);
    return words;
}

/// Its own options and those of the program, each once.
std::vector<std::string> switches_of(const Arguments& command, const Arguments& program) {
    std::vector<std::string> names;
    for (const Arguments* of : {&command, &program})
        for (const Option& option : of->options())
            for (const std::string& name : option.switches())
                if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    return names;
}

/// Options of the program and its commands that take one of some words: the same name means the same words mostly.
std::vector<std::pair<std::string, std::vector<std::string>>> options_with_words(const Entry& entry) {
    std::vector<std::pair<std::string, std::vector<std::string>>> found;
    for (const Option& option : entry.command->options())
        if (!option.words().empty())
            for (const std::string& name : option.switches()) found.emplace_back(name, option.words());
    return found;
}

std::string bash_script(const Arguments& program) {
    const std::vector<Entry> entries = entries_of(program);
    const std::string name = program.name();
    std::string text = fmt::format(
        "# bash completion of {0}: source it, or keep it as share/bash-completion/completions/{0}\n"
        "_{0}() {{\n"
        "    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path= i commands options\n"
        "    for ((i = 1; i < COMP_CWORD; ++i)); do\n"
        "        case \"${{path:+$path }}${{COMP_WORDS[i]}}\" in\n",
        name);
    std::string paths;
    for (const Entry& entry : entries)
        if (!entry.path.empty()) paths += (paths.empty() ? "" : "|") + shell_word(entry.path);
    text += fmt::format("            {}) path=\"${{path:+$path }}${{COMP_WORDS[i]}}\" ;;\n", paths);
    text += "        esac\n    done\n    case \"$path $before\" in\n";
    for (const Entry& entry : entries)
        for (const auto& [option, words] : options_with_words(entry))
            text +=
                fmt::format("        {}) COMPREPLY=($(compgen -W {} -- \"$word\")); return ;;\n",
                            entry.path.empty() ? "*" + shell_word(" " + option) : shell_word(entry.path + " " + option),
                            shell_word(joined(words)));
    text += "    esac\n    case \"$path\" in\n";
    for (const Entry& entry : entries)
        text += fmt::format("        {}) commands={} options={} ;;\n", shell_word(entry.path),
                            shell_word(joined(first_words(*entry.command))),
                            shell_word(joined(switches_of(*entry.command, program))));
    text +=
        "    esac\n"
        "    if [[ $word == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
        "    elif [[ -n $commands ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
        "    else\n"
        "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "    fi\n"
        "}\n";
    return text + fmt::format("complete -o filenames -F _{0} {0}\n", name);
}

std::string zsh_script(const Arguments& program) {
    // zsh runs completions of bash; a list of its own would say the same twice.
    return fmt::format(
        "#compdef {0}\n"
        "# zsh completion of {0}: keep it as _{0} in a folder of $fpath\n"
        "autoload -U +X bashcompinit && bashcompinit\n{1}",
        program.name(), bash_script(program));
}

std::string fish_script(const Arguments& program) {
    const std::string name = program.name();
    std::string text = fmt::format("# fish completion of {0}: keep it as fish/vendor_completions.d/{0}.fish\n", name);
    for (const Entry& entry : entries_of(program)) {
        std::vector<std::string> words;
        for (size_t at = 0; at < entry.path.size();) {
            const size_t end = std::min(entry.path.find(' ', at), entry.path.size());
            words.push_back(entry.path.substr(at, end - at));
            at = end + 1;
        }
        // All words of the path are there, and none of the commands below has been named.
        std::string when;
        for (const std::string& word : words)
            when += (when.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
        const std::vector<std::string> below = names_below(*entry.command);
        const std::string none = below.empty() ? "" : "not __fish_seen_subcommand_from " + joined(below);
        const std::string here = when.empty() ? none : none.empty() ? when : when + "; and " + none;
        for (const auto& command : entry.command->commands())
            text += fmt::format("complete -c {} -f -n {} -a {} -d {}\n", name, shell_word(here), command->name(),
                                shell_word(command->description()));
        for (const Option& option : entry.command->options()) {
            std::string line = fmt::format("complete -c {}", name);
            if (!when.empty()) line += " -n " + shell_word(when);
            for (const std::string& one : option.switches())
                line += one.starts_with("--") ? " -l " + one.substr(2) : " -s " + one.substr(1);
            if (option.switches().empty()) continue;
            if (!option.words().empty())
                line += " -x -a " + shell_word(joined(option.words()));
            else if (!option.is_flag())
                line += " -r";
            text += line + " -d " + shell_word(option.description()) + "\n";
        }
    }
    return text;
}

/// Text of a page: a dash is one, and no line begins with a macro.
std::string roff(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            out += "\\e";
        } else if (text[i] == '-') {
            out += "\\-";
        } else {
            if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
            out += text[i];
        }
    }
    return out;
}

std::string page_of(const Entry& entry, const Arguments& program, const std::string& version) {
    const Arguments& command = *entry.command;
    std::string name = program.name(), call = name;
    if (!entry.path.empty()) {
        call += " " + entry.path;
        name += "-" + command.path('-');
    }
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    std::string page = fmt::format(".TH {} 1 \"\" \"{} {}\"\n.SH NAME\n{} \\- {}\n", upper, program.name(), version,
                                   roff(name), roff(command.description()));
    page += fmt::format(".SH SYNOPSIS\n.B {}\n[options]", roff(call));
    if (!command.commands().empty()) page += " command";
    for (const Option& option : command.options())
        if (option.is_positional()) page += fmt::format(" {}{}", option.name(), option.takes_many() ? "..." : "");
    page += "\n";
    if (!command.commands().empty()) {
        page += ".SH COMMANDS\n";
        for (const auto& below : command.commands())
            page += fmt::format(".TP\n.B {}\n{}\n", roff(below->name()), roff(below->description()));
    }
    page += ".SH OPTIONS\n";
    for (const Option& option : command.options()) {
        std::string names;
        for (const std::string& one : option.switches()) names += (names.empty() ? "" : ", ") + one;
        if (names.empty()) names = option.name();
        page += fmt::format(".TP\n.B {}\n{}", roff(names), roff(option.description()));
        if (!option.words().empty()) page += roff(" (" + joined(option.words()) + ")");
        if (!option.default_value().empty()) page += roff(" [" + option.default_value() + "]");
        page += "\n";
    }
    if (!command.footer().empty()) page += ".SH NOTES\n.nf\n" + roff(command.footer()) + "\n.fi\n";
    if (!entry.path.empty()) page += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", roff(program.name()));
    return page;
}

}  // namespace

std::string completion_script(const Arguments& program, const std::string& shell) {
    if (shell == "bash") return bash_script(program);
    if (shell == "zsh") return zsh_script(program);
    STIPPLE_REQUIRE(shell == "fish", "completions are for bash, zsh and fish, not for {}", shell);
    return fish_script(program);
}

std::vector<std::pair<std::string, std::string>> manual_pages(const Arguments& program, const std::string& version) {
    std::vector<std::pair<std::string, std::string>> pages;
    for (const Entry& entry : entries_of(program)) {
        std::string name = program.name();
        if (!entry.path.empty()) name += "-" + entry.command->path('-');
        pages.emplace_back(name + ".1", page_of(entry, program, version));
    }
    return pages;
}

}  // namespace stipple::cli
