#include "stipple/cli/config.h"

#include <algorithm>
#include <cstdlib>

#include "stipple/cli/toml.h"
#include "stipple/core/error.h"
#include "stipple/io/byte_source.h"

namespace stipple::cli {
namespace {

bool is_configurable(const CLI::Option& option) {
    if (option.get_lnames().empty() || option.get_positional()) return false;
    const std::string& name = option.get_lnames()[0];
    return name != "help" && name != "version" && name != "config" && name != "print-config";
}

std::vector<CLI::Option*> configurable(CLI::App& app) {
    std::vector<CLI::Option*> options;
    for (CLI::Option* option : app.get_options())
        if (is_configurable(*option)) options.push_back(option);
    return options;
}

std::vector<std::string> names_of(const std::vector<CLI::Option*>& options) {
    std::vector<std::string> names;
    for (const CLI::Option* option : options) names.push_back(option->get_lnames()[0]);
    return names;
}

bool is_flag(const CLI::Option& option) {
    return option.get_expected_max() == 0;
}

/// Gives an option its values as if they stood on the command line.
void set_option(CLI::Option& option, const std::vector<std::string>& values, const Place& place) {
    try {
        for (const std::string& value : values) option.add_result(value);
        option.run_callback();
    } catch (const CLI::Error&) {  // CLI11's own words speak of command lines
        std::string given;
        for (const std::string& value : values) given += (given.empty() ? "" : ", ") + io::quoted(value);
        std::string wanted = option.get_type_name();
        if (is_flag(option)) wanted = "true or false";
        if (wanted == "INT" || wanted == "UINT") wanted = wanted == "INT" ? "a whole number" : "a whole number from 0";
        if (wanted == "FLOAT") wanted = "a number";
        if (option.get_expected_min() > 1)
            wanted = fmt::format("{} values, each {}", option.get_expected_min(), wanted);
        throw Error(ErrorCode::bad_config, place,
                    fmt::format("{} = {}: expected {}", option.get_lnames()[0], given.empty() ? "nothing" : given,
                                wanted == "TEXT" ? "one value" : wanted));
    }
}

std::string environment_name(const std::string& option) {
    std::string name = "STIPPLE_";
    for (char c : option) name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return name;
}

void apply_environment(CLI::App& app) {
    for (CLI::Option* option : configurable(app)) {
        const std::string name = environment_name(option->get_lnames()[0]);
        const char* value = std::getenv(name.c_str());
        if (value && *value && option->count() == 0) set_option(*option, {value}, Place{name});
    }
}

std::string config_value(const CLI::Option& option) {
    std::vector<std::string> values = option.count() ? option.results() : std::vector<std::string>{};
    if (is_flag(option)) return values.empty() ? "false" : values.back();
    if (values.empty() && !option.get_default_str().empty()) values = {option.get_default_str()};
    if (values.empty()) return "";
    const bool is_number =
        option.get_type_name() == "INT" || option.get_type_name() == "UINT" || option.get_type_name() == "FLOAT";
    std::string text;
    for (const std::string& value : values)
        text += (text.empty() ? "" : ", ") + (is_number ? value : toml_string(value));
    return values.size() == 1 && option.get_expected_max() == 1 ? text : "[" + text + "]";
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
void collect_tables(CLI::App& app, std::vector<std::pair<std::string, CLI::App*>>& tables) {
    for (CLI::App* known : app.get_subcommands([](CLI::App*) { return true; })) {
        tables.emplace_back(path_of(*known, '.'), known);
        collect_tables(*known, tables);
    }
}

std::string section_of(CLI::App& app) {
    std::string text;
    for (const CLI::Option* option : configurable(app)) {
        const std::string value = config_value(*option);
        if (!value.empty()) text += fmt::format("{} = {}\n", option->get_lnames()[0], value);
    }
    return text;
}

}  // namespace

std::string path_of(const CLI::App& app, char separator) {
    if (!app.get_parent()) return "";
    const std::string above = path_of(*app.get_parent(), separator);
    return above.empty() ? app.get_name() : above + separator + app.get_name();
}

void apply_config(CLI::App& root, CLI::App& command, const std::string& path) {
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
    std::vector<std::pair<std::string, CLI::App*>> tables = {{"", &root}};
    collect_tables(root, tables);
    for (const TomlItem& item : items) {
        const Place place{path, item.line, {}};
        CLI::App* section = nullptr;
        std::vector<std::string> names;
        for (const auto& [name, app] : tables) {
            names.push_back(name);
            if (name == item.table) section = app;
        }
        if (!section)
            throw Error(ErrorCode::bad_config, place, fmt::format("unknown table [{}]", item.table),
                        suggestion("[", item.table, names, "]"));
        if (item.key.empty()) continue;
        const std::vector<CLI::Option*> options = configurable(*section);
        const auto found = std::find_if(options.begin(), options.end(),
                                        [&](const CLI::Option* option) { return option->get_lnames()[0] == item.key; });
        if (found == options.end()) {
            const std::string where = item.table.empty() ? "" : fmt::format(" in [{}]", item.table);
            throw Error(ErrorCode::bad_config, place, fmt::format("unknown key {}{}", item.key, where),
                        suggestion("", item.key, names_of(options), ""));
        }
        if (section != &root && section != &command) continue;  // another command's table
        if ((*found)->count() == 0) set_option(**found, item.values, place);
    }
}

std::string resolved_config(CLI::App& root, CLI::App& command) {
    return section_of(root) + fmt::format("\n[{}]\n", path_of(command, '.')) + section_of(command);
}

}  // namespace stipple::cli
