#include "stipple/cli/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "stipple/cli/common/config.h"
#include "stipple/cli/common/help_text.h"
#include "stipple/cli/common/step_words.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/log.h"
#include "stipple/core/parallel.h"
#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

constexpr int kSchemaVersion = 1;

void print_error_line(const Error& error) {
    std::string line = use_color() ? fmt::format("\033[31mstipple:\033[0m {}\n", error.what())
                                   : fmt::format("stipple: {}\n", error.what());
    if (!error.hint().empty()) line += fmt::format("  hint: {}\n", error.hint());
    std::fputs(line.c_str(), stderr);
}

Json error_json(const Error& error) {
    Json body = {{"code", rule_of(error.code()).name}, {"message", error.message()}};
    if (!error.place().path.empty()) body["path"] = error.place().path;
    if (error.place().line) body["line"] = *error.place().line;
    if (error.place().offset) body["offset"] = *error.place().offset;
    if (!error.hint().empty()) body["hint"] = error.hint();
    return body;
}

void print_failure(const Error& error, const std::string& command, bool json) {
    print_error_line(error);
    if (!json) return;
    const Json object = {
        {"schema_version", kSchemaVersion}, {"ok", false}, {"command", command}, {"error", error_json(error)}};
    try {
        print(object.pretty(), false);
    } catch (const Error&) {  // standard output fails too; the failure that came first has been told
    }
}

void print_result(const Result& result, const Common& common, Device device, const std::string& command,
                  double seconds) {
    if (!common.quiet)
        for (const std::string& warning : result.warnings) log_warn("{}", warning);
    if (!result.stdout_taken && !common.json) print(result.text);
    if (!result.stdout_taken && common.json) {
        Json object = {{"schema_version", kSchemaVersion}, {"ok", !result.failure.has_value()}, {"command", command}};
        object.update(result.fields);
        object["timing"] = {{"seconds", seconds}};
        object["device"] = to_string(device);
        object["warnings"] = result.warnings;
        if (result.failure) object["error"] = error_json(*result.failure);
        for (const Error& error : result.errors) object["errors"].push_back(error_json(error));
        print(object.pretty());
    }
    for (const Error& error : result.errors) print_error_line(error);
    if (result.failure) print_error_line(*result.failure);
}

void require_all(const Command& command) {
    for (const Option& option : command.required)
        if (!option.given())
            throw Error(ErrorCode::bad_argument,
                        option.is_positional() ? fmt::format("{} is missing: which file?", option.name())
                                               : fmt::format("--{} is missing", option.name()),
                        fmt::format("see: {}", command.arguments->help_call()));
}

/// What all commands have in their help.
void complete(const Command& command) {
    command.arguments->footer(
        "Everywhere: --json --table md|csv|json --device --seed --threads --overwrite --dry-run\n"
        "            --progress --color -q -v --config FILE --print-config (stipple --help)\n\n" +
        command.arguments->footer());
    for (const Command& below : command.commands) complete(below);
}

std::vector<Option> required_of(std::span<const Command> commands) {
    std::vector<Option> required;
    for (const Command& command : commands) {
        required.insert(required.end(), command.required.begin(), command.required.end());
        const std::vector<Option> below = required_of(command.commands);
        required.insert(required.end(), below.begin(), below.end());
    }
    return required;
}

/// The innermost command that was parsed, or null.
const Command* find_parsed(std::span<const Command> commands) {
    for (const Command& command : commands) {
        if (!command.arguments->is_named()) continue;
        const Command* below = find_parsed(command.commands);
        return below ? below : &command;
    }
    return nullptr;
}

/// A standard stream that is closed is opened in a way that fails: else the next file opened would take its place, and
/// messages would go into it.
void occupy_standard_streams() {
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) ::_exit(1);
}

void print_help(const std::string& text) {
    print(fold_help(text, stdout_is_terminal() ? stdout_width() : 100));
}

/// Before options are parsed: how errors in them look.
void set_color_mode_early(int argc, char** argv) {
    constexpr std::string_view kColor = "--color";
    const auto set = [](std::string_view word) {
        for (const ColorMode mode : {ColorMode::automatic, ColorMode::always, ColorMode::never})
            if (word == kWhenWords[static_cast<size_t>(mode)]) set_color_mode(mode);
    };
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == kColor && i + 1 < argc) set(argv[i + 1]);
        if (word.starts_with(kColor) && word.size() > kColor.size() && word[kColor.size()] == '=')
            set(word.substr(kColor.size() + 1));
    }
}

/// Before options are parsed: whether an error should be JSON too.
bool wants_json(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::strcmp(argv[i], "--json") == 0) return true;
    return false;
}

int run(int argc, char** argv, const Program& program) {
    Arguments root(program.description, program.name, program.version);
    Common common;
    std::string config_path;
    bool print_config = false;
    root.add(common_fields(), &common);
    root.option("--config", config_path, "TOML with options; one table for each command").text("FILE");
    root.flag("--print-config", print_config, "Print the resolved options and stop");
    root.footer(program.footer);
    std::vector<Command> commands;
    for (const AddCommand add : program.commands) commands.push_back(add(root, common));
    for (const Command& command : commands) complete(command);

    set_color_mode_early(argc, argv);
    std::vector<std::string> line = with_steps_joined({argv, argv + argc}, root);
    std::vector<char*> words;
    for (std::string& word : line) words.push_back(word.data());
    if (const auto end = root.parse(static_cast<int>(words.size()), words.data(), required_of(commands))) {
        if (end->error) {
            print_failure(*end->error, root.named().path(' '), wants_json(argc, argv));
            return rule_of(end->error->code()).exit_code;
        }
        print_help(end->text);
        return 0;
    }
    const Command* chosen = find_parsed(commands);
    if (!chosen || !chosen->run) {
        const Arguments& asked = root.named();
        if (!print_config) {
            print_help(asked.help());
            return 0;
        }
        const std::string hint = chosen ? "see: " + asked.help_call() : "stipple convert --print-config";
        print_failure(Error(ErrorCode::bad_argument, "--print-config needs a command", hint), asked.path(' '),
                      common.json);
        return rule_of(ErrorCode::bad_argument).exit_code;
    }
    const std::string name = chosen->arguments->path(' ');
    try {
        apply_config(root, *chosen->arguments, config_path);
        if (print_config) {
            print(resolved_config(root, *chosen->arguments));
            return 0;
        }
        require_all(*chosen);
        chosen->arguments->check();
        set_color_mode(common.color);
        set_log_level(common.quiet ? LogLevel::error : common.verbose ? LogLevel::debug : LogLevel::info);
        set_threads(common.threads);
        const Device device = parse_device(common.device);  // one that is not there is an error before any work
        const auto begin = std::chrono::steady_clock::now();
        const Result result = chosen->run();
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
        print_result(result, common, device, name, elapsed.count());
        // Where progress is shown, so is what it came to.
        if (elapsed.count() >= 1 && !common.json && progress_mode(common) != ProgressMode::never)
            std::fprintf(stderr, "%s took %.1f s\n", name.c_str(), elapsed.count());
        return result.failure ? rule_of(result.failure->code()).exit_code : 0;
    } catch (const Error& error) {
        print_failure(error, name, common.json);
        return rule_of(error.code()).exit_code;
    } catch (const std::bad_alloc&) {
        const Error error(ErrorCode::out_of_memory, "out of memory");
        print_failure(error, name, common.json);
        return rule_of(error.code()).exit_code;
    } catch (const std::exception& exception) {
        const Error error(ErrorCode::internal, fmt::format("internal error: {}", exception.what()));
        print_failure(error, name, common.json);
        return rule_of(error.code()).exit_code;
    }
}

}  // namespace

int run_program(int argc, char** argv, const Program& program) {
    occupy_standard_streams();
    install_signal_handlers();
    // `stipple help mesh sample` is `stipple mesh sample --help`.
    std::vector<char*> words(argv, argv + argc);
    std::string help = "--help";
    if (argc > 1 && std::strcmp(argv[1], "help") == 0) {
        words.erase(words.begin() + 1);
        words.push_back(help.data());
    }
    try {
        return run(static_cast<int>(words.size()), words.data(), program);
    } catch (const ClosedPipe&) {
        return 141;  // as a shell reports a program that a closed pipe ended; nothing is wrong and nothing is said
    } catch (const Error& error) {  // standard output itself failed
        std::fprintf(stderr, "%s: %s\n", program.name.c_str(), error.what());
        return rule_of(error.code()).exit_code;
    }
}

}  // namespace stipple::cli
