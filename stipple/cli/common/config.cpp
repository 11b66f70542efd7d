#include "stipple/cli/common/config.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "stipple/core/error.h"
#include "stipple/core/nearest_name.h"
#include "stipple/core/toml.h"
#include "stipple/io/byte_source.h"

namespace stipple::cli {
namespace {

bool is_configurable(const Option& option) {
    if (option.is_positional()) return false;
    const std::string name = option.name();
    return name != "help" && name != "version" && name != "config" && name != "print-config";
}

std::vector<Option> configurable(const Arguments& arguments) {
    std::vector<Option> options;
    for (const Option& option : arguments.options())
        if (is_configurable(option)) options.push_back(option);
    return options;
}

std::vector<std::string> names_of(const std::vector<Option>& options) {
    std::vector<std::string> names;
    for (const Option& option : options) names.push_back(option.name());
    return names;
}

/// Gives an option its values as if they stood on the command line.
void set_option(const Option& option, const std::vector<std::string>& values, const Place& place) {
    if (option.set(values)) return;
    std::string given;
    for (const std::string& value : values) given += (given.empty() ? "" : ", ") + io::in_quotes(value);
    throw Error(
        ErrorCode::bad_config, place,
        fmt::format("{} = {}: expected {}", option.name(), given.empty() ? "nothing" : given, option.expected()));
}

std::string environment_name(const std::string& option) {
    std::string name = "STIPPLE_";
    for (char c : option) name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return name;
}

void apply_environment(const Arguments& arguments) {
    for (const Option& option : configurable(arguments)) {
        const std::string name = environment_name(option.name());
        const char* value = std::getenv(name.c_str());
        if (value && *value && !option.given()) set_option(option, {value}, Place{name});
    }
}

std::string config_value(const Option& option) {
    std::vector<std::string> values = option.values();
    if (option.is_flag()) return values.empty() ? "false" : values.back();
    if (values.empty()) {
        std::string all = option.default_value();
        if (!option.takes_many() && !all.empty()) values = {all};
        std::replace(all.begin(), all.end(), ',', ' ');
        std::istringstream words(all);
        for (std::string word; option.takes_many() && words >> word;) values.push_back(word);
    }
    if (values.empty()) return "";
    std::string text;
    for (const std::string& value : values)
        text += (text.empty() ? "" : ", ") + (option.is_number() ? value : toml_string(value));
    return values.size() == 1 && !option.takes_many() ? text : "[" + text + "]";
}

std::string read_text(const std::string& path) {
    io::FileSource source(path);
    std::string text;
    std::byte block[4096];
    while (const int64_t count = source.read(block, sizeof block)) {
        text.append(reinterpret_cast<const char*>(block), static_cast<size_t>(count));
        if (text.size() > size_t{1} << 20)
            throw Error(ErrorCode::bad_config, Place{path}, "is too large for a configuration");
    }
    return text;
}

std::string suggestion(std::string_view before, const std::string& word, const std::vector<std::string>& names,
                       std::string_view after) {
    const std::string near = nearest_name(word, names);
    return near.empty() ? "" : fmt::format("did you mean {}{}{}?", before, near, after);
}

/// Every command and group below, with the name of its table: "mesh", "mesh.sample".
void collect_tables(const Arguments& arguments, std::vector<std::pair<std::string, const Arguments*>>& tables) {
    for (const auto& known : arguments.commands()) {
        tables.emplace_back(known->path('.'), known.get());
        collect_tables(*known, tables);
    }
}

std::string section_of(const Arguments& arguments) {
    std::string text;
    for (const Option& option : configurable(arguments)) {
        const std::string value = config_value(option);
        if (!value.empty()) text += fmt::format("{} = {}\n", option.name(), value);
    }
    return text;
}

}  // namespace

void apply_config(const Arguments& root, const Arguments& command, const std::string& path) {
    apply_environment(root);
    apply_environment(command);
    if (path.empty()) return;
    std::vector<TomlItem> items;
    try {
        items = parse_toml(read_text(path));
    } catch (const Error& error) {
        if (error.code() == ErrorCode::interrupted || error.code() == ErrorCode::terminated) throw;
        throw Error(ErrorCode::bad_config, error.place(), error.message(), error.hint()).at_path(path);
    }
    std::vector<std::pair<std::string, const Arguments*>> tables = {{"", &root}};
    collect_tables(root, tables);
    for (const TomlItem& item : items) {
        const Place place{path, item.line, {}};
        const Arguments* section = nullptr;
        std::vector<std::string> names;
        for (const auto& [name, arguments] : tables) {
            names.push_back(name);
            if (name == item.table) section = arguments;
        }
        if (!section)
            throw Error(ErrorCode::bad_config, place, fmt::format("unknown table [{}]", item.table),
                        suggestion("[", item.table, names, "]"));
        if (item.key.empty()) continue;
        const std::vector<Option> options = configurable(*section);
        const auto found = std::find_if(options.begin(), options.end(),
                                        [&](const Option& option) { return option.name() == item.key; });
        if (found == options.end()) {
            const std::string where = item.table.empty() ? "" : fmt::format(" in [{}]", item.table);
            throw Error(ErrorCode::bad_config, place, fmt::format("unknown key {}{}", item.key, where),
                        suggestion("", item.key, names_of(options), ""));
        }
        if (section != &root && section != &command) continue;  // another command's table
        if (!found->given()) set_option(*found, item.values, place);
    }
}

std::string resolved_config(const Arguments& root, const Arguments& command) {
    return section_of(root) + fmt::format("\n[{}]\n", command.path('.')) + section_of(command);
}

}  // namespace stipple::cli
