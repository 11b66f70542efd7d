#include "stipple/cli/config.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "stipple/core/error.h"

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

int64_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<int64_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
    for (size_t i = 1; i <= a.size(); ++i) {
        int64_t diagonal = row[0];
        row[0] = static_cast<int64_t>(i);
        for (size_t j = 1; j <= b.size(); ++j) {
            const int64_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
        }
    }
    return row[b.size()];
}

/// Gives an option its values as if they stood on the command line.
void set_option(CLI::Option& option, const std::vector<std::string>& values, const std::string& where) {
    const std::string& name = option.get_lnames()[0];
    try {
        for (const std::string& value : values)
            option.add_result(option.get_expected_min() == 0 && option.get_expected_max() == 0
                                  ? option.get_flag_value(name, value)
                                  : value);
        option.run_callback();
    } catch (const CLI::Error& error) {
        throw Error(ErrorCode::bad_config, fmt::format("{}: {}: {}", where, name, error.what()));
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
        if (value && *value && option->count() == 0) set_option(*option, {value}, name);
    }
}

std::string quoted_toml(const std::string& value) {
    std::string text = "\"";
    for (char c : value) text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return text + "\"";
}

std::string config_value(const CLI::Option& option) {
    std::vector<std::string> values = option.count() ? option.results() : std::vector<std::string>{};
    if (values.empty() && !option.get_default_str().empty()) values = {option.get_default_str()};
    const bool is_flag = option.get_expected_max() == 0;
    if (is_flag) return option.count() && values.front() != "false" ? "true" : "false";
    if (values.empty()) return "";
    const auto format_one = [](const std::string& value) {
        const bool is_number = !value.empty() && value.find_first_not_of("0123456789.-+e") == std::string::npos &&
                               value.find_first_of("0123456789") != std::string::npos;
        return is_number ? value : quoted_toml(value);
    };
    if (values.size() == 1) return format_one(values[0]);
    std::string text = "[";
    for (const std::string& value : values) text += (text.size() > 1 ? ", " : "") + format_one(value);
    return text + "]";
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

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
    std::string best;
    int64_t best_distance = 1 + static_cast<int64_t>(word.size()) / 2;
    for (const std::string& name : names) {
        const int64_t distance = edit_distance(word, name);
        if (distance < best_distance) {
            best = name;
            best_distance = distance;
        }
    }
    return best;
}

void apply_config(CLI::App& root, CLI::App& command, const std::string& path) {
    apply_environment(root);
    apply_environment(command);
    if (path.empty()) return;
    std::ifstream file(path);
    if (!file) throw Error(ErrorCode::bad_config, Place{path}, "cannot be opened");
    std::vector<CLI::ConfigItem> items;
    try {
        items = CLI::ConfigTOML().from_config(file);
    } catch (const CLI::Error& error) {
        throw Error(ErrorCode::bad_config, Place{path}, error.what());
    }
    std::set<std::string> seen;
    for (const CLI::ConfigItem& item : items) {
        if (item.name == "++" || item.name == "--") continue;  // where CLI11 marks the begin and end of a table
        const std::string key = item.fullname();
        if (!seen.insert(key).second) throw Error(ErrorCode::bad_config, Place{path}, fmt::format("key {} twice", key));
        CLI::App* section = &root;
        if (!item.parents.empty()) {
            section = nullptr;
            std::vector<std::string> tables;
            for (CLI::App* known : root.get_subcommands([](CLI::App*) { return true; })) {
                tables.push_back(known->get_name());
                if (tables.back() == item.parents[0]) section = known;
            }
            if (!section || item.parents.size() > 1) {
                const std::string near = nearest_name(item.parents[0], tables);
                throw Error(ErrorCode::bad_config, Place{path}, fmt::format("unknown table [{}]", item.parents[0]),
                            near.empty() ? "" : fmt::format("did you mean [{}]?", near));
            }
        }
        const std::vector<CLI::Option*> options = configurable(*section);
        const auto found = std::find_if(options.begin(), options.end(), [&](const CLI::Option* option) {
            return option->get_lnames()[0] == item.name;
        });
        if (found == options.end()) {
            const std::string near = nearest_name(item.name, names_of(options));
            throw Error(ErrorCode::bad_config, Place{path}, fmt::format("unknown key {}", key),
                        near.empty() ? "" : fmt::format("did you mean {}?", near));
        }
        if (section != &root && section != &command) continue;  // another command's table
        if ((*found)->count() == 0) set_option(**found, item.inputs, path);
    }
}

std::string resolved_config(const CLI::App& root, const CLI::App& command) {
    return section_of(const_cast<CLI::App&>(root)) + fmt::format("\n[{}]\n", command.get_name()) +
           section_of(const_cast<CLI::App&>(command));
}

}  // namespace stipple::cli
