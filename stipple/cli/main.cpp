// stipple: parses the command line, runs one subcommand, prints its result or its one error.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>

#include "stipple/cli/command.h"
#include "stipple/cli/config.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/log.h"
#include "stipple/core/parallel.h"

namespace stipple::cli {
namespace {

constexpr int kSchemaVersion = 1;

void add_common_options(CLI::App& app, Common& common) {
    app.add_flag("--json", common.json, "Print one JSON object instead of text");
    app.add_option("--table", common.table, "Print a table instead of text")
        ->check(CLI::IsMember({"md", "csv", "json"}))
        ->option_text("md|csv|json");
    app.add_option("--device", common.device, "auto: a GPU if there is one")
        ->capture_default_str()
        ->option_text("cpu|cuda[:N]|auto");
    app.add_option("--seed", common.seed, "Seed of all random numbers")->check(from_zero())->capture_default_str();
    app.add_option("--threads", common.threads, "CPU threads; 0 takes all cores")->capture_default_str();
    app.add_flag("--overwrite", common.overwrite, "Replace an output that exists");
    app.add_flag("--dry-run", common.dry_run, "Check inputs and outputs, write nothing");
    app.add_option("--progress", common.progress, "auto: for jobs that take a while")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->capture_default_str()
        ->option_text("auto|always|never");
    app.add_option("--color", common.color, "auto: on a terminal, unless NO_COLOR is set")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->capture_default_str()
        ->option_text("auto|always|never");
    app.add_flag("-q,--quiet", common.quiet, "No warnings");
    app.add_flag("-v,--verbose", common.verbose, "More messages");
}

void print_error_line(const Error& error) {
    std::string line = fmt::format("stipple: {}\n", error.what());
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

std::string json_text(const Json& object) {
    return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_failure(const Error& error, const std::string& command, bool json) {
    print_error_line(error);
    if (!json) return;
    const Json object = {
        {"schema_version", kSchemaVersion}, {"ok", false}, {"command", command}, {"error", error_json(error)}};
    try {
        print(json_text(object), false);
    } catch (const Error&) {  // standard output fails too; the failure that came first has been told
    }
}

void print_result(const Result& result, const Common& common, Device device, const std::string& command,
                  double seconds) {
    if (!common.quiet)
        for (const std::string& warning : result.warnings) log_warn("{}", warning);
    if (!result.stdout_taken && !common.json) print(result.text);
    if (!result.stdout_taken && common.json) {
        Json object = {{"schema_version", kSchemaVersion}, {"ok", !result.failure}, {"command", command}};
        object.update(result.fields);
        object["timing"] = {{"seconds", seconds}};
        object["device"] = to_string(device);
        object["warnings"] = result.warnings;
        if (result.failure) object["error"] = error_json(*result.failure);
        print(json_text(object));
    }
    if (result.failure) print_error_line(*result.failure);
}

/// The innermost command that the command line names; the program itself when it names none.
CLI::App& named_app(CLI::App& app) {
    return app.get_subcommands().empty() ? app : named_app(*app.get_subcommands()[0]);
}

std::string help_call(const CLI::App& app) {
    return fmt::format("stipple{}{} --help", app.get_parent() ? " " : "", path_of(app, ' '));
}

/// CLI11's words, made to name what was meant.
Error usage_error(const CLI::ParseError& error, CLI::App& app) {
    CLI::App& command = named_app(app);
    const std::vector<CLI::App*> below = command.get_subcommands([](const CLI::App*) { return true; });
    std::string message = error.what(), near;
    const std::vector<std::string> rest = app.remaining(true);
    if (dynamic_cast<const CLI::ExtrasError*>(&error) && !rest.empty()) {
        std::vector<std::string> names;
        if (rest[0].size() > 1 && rest[0][0] == '-') {
            message = fmt::format("unknown option {}", rest[0].substr(0, rest[0].find('=')));
            for (const CLI::App* section = &command; section; section = section->get_parent())
                for (const CLI::Option* option : section->get_options())
                    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        } else if (!below.empty()) {
            message = fmt::format("unknown {} command {}", path_of(command, ' '), rest[0]);
            if (&command == &app) message = fmt::format("unknown command {}", rest[0]);
            for (const CLI::App* known : below) names.push_back(known->get_name());
        } else {
            message = fmt::format("unexpected argument {}", rest[0]);
        }
        near = nearest_name(rest[0].substr(0, rest[0].find('=')), names);
    }
    if (constexpr std::string_view kWords = "Could not convert: "; message.rfind(kWords, 0) == 0)
        message = message.substr(kWords.size()) + ": not a valid value";
    if (const size_t at = message.find(" required "); at != std::string::npos && message.find(" missing") > at)
        message = message.substr(0, message.find(':')) + ": a value is missing";
    return Error(ErrorCode::bad_argument, message,
                 near.empty() ? fmt::format("see: {}", help_call(command))
                              : fmt::format("did you mean {}? See: {}", near, help_call(command)));
}

std::string help_of(const CLI::App& app) {
    const std::string above = app.get_parent() ? path_of(*app.get_parent(), ' ') : "";
    std::string text = app.help(!app.get_parent() ? "" : above.empty() ? "stipple" : "stipple " + above);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text + "\n";
}

void require_all(const Command& command) {
    for (const CLI::Option* option : command.required)
        if (option->count() == 0)
            throw Error(ErrorCode::bad_argument,
                        option->get_positional() ? fmt::format("{} is missing: which file?", option->get_name())
                                                 : fmt::format("--{} is missing", option->get_lnames()[0]),
                        fmt::format("see: {}", help_call(*command.app)));
}

/// What all commands have in their help, and that common options may follow them.
void complete(const Command& command) {
    command.app->fallthrough();
    command.app->footer(
        "Everywhere: --json --table md|csv|json --device --seed --threads --overwrite --dry-run\n"
        "            --progress --color -q -v --config FILE --print-config (stipple --help)\n\n" +
        command.app->get_footer());
    if (!command.commands.empty()) command.app->require_subcommand(0, 1);
    for (const Command& below : command.commands) complete(below);
}

/// For the words of the help only: require_all does the checking.
void mark_required(const Command& command) {
    for (CLI::Option* option : command.required) option->required();
    for (const Command& below : command.commands) mark_required(below);
}

/// The innermost command that was parsed, or null.
const Command* find_parsed(std::span<const Command> commands) {
    for (const Command& command : commands) {
        if (!command.app->parsed()) continue;
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

/// Before options are parsed: whether an error should be JSON too.
bool wants_json(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::strcmp(argv[i], "--json") == 0) return true;
    return false;
}

int run(int argc, char** argv) {
    CLI::App app("Learns on 3D points: reads, converts, samples, draws and recognises point clouds and meshes.",
                 "stipple");
    Common common;
    std::string config_path;
    bool print_config = false;
    add_common_options(app, common);
    app.add_option("--config", config_path, "TOML with options; one table for each command")->option_text("FILE");
    app.add_flag("--print-config", print_config, "Print the resolved options and stop");
    app.set_version_flag("--version", "stipple " STIPPLE_VERSION);
    app.require_subcommand(0, 1);
    app.fallthrough();
    app.footer("Example:\n  stipple info scan.ply\n  stipple convert scan.las -o scan.ply\n  stipple COMMAND --help");
    // clang-format off
    const Command commands[] = {  // in the order of the help
        add_info(app, common),
        add_convert(app, common),
        add_sample(app, common),
        add_normals(app, common),
        add_clean(app, common),
        add_mesh(app, common),
        add_metrics(app, common),
        add_picture(app, common),
        add_register(app, common),
        add_classify(app, common),
        add_segment(app, common),
        add_engine(app, common),
        add_bench(app, common),
    };
    // clang-format on
    for (const Command& command : commands) complete(command);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            std::string text;
            if (error.get_name() == "CallForVersion") {
                text = std::string(error.what()) + "\n";
            } else {
                for (const Command& command : commands) mark_required(command);
                text = help_of(named_app(app));
            }
            print(text);
            return 0;
        }
        print_failure(usage_error(error, app), path_of(named_app(app), ' '), wants_json(argc, argv));
        return rule_of(ErrorCode::bad_argument).exit_code;
    }

    const Command* chosen = find_parsed(commands);
    if (!chosen || !chosen->run) {
        CLI::App& asked = named_app(app);
        if (!print_config) {
            print(help_of(asked));
            return 0;
        }
        const std::string hint = chosen ? "see: " + help_call(asked) : "stipple convert --print-config";
        print_failure(Error(ErrorCode::bad_argument, "--print-config needs a command", hint), path_of(asked, ' '),
                      common.json);
        return rule_of(ErrorCode::bad_argument).exit_code;
    }
    const std::string& name = chosen->name;
    try {
        apply_config(app, *chosen->app, config_path);
        if (print_config) {
            print(resolved_config(app, *chosen->app));
            return 0;
        }
        require_all(*chosen);
        set_color_mode(common.color == "always"  ? ColorMode::always
                       : common.color == "never" ? ColorMode::never
                                                 : ColorMode::automatic);
        set_log_level(common.quiet ? LogLevel::error : common.verbose ? LogLevel::debug : LogLevel::info);
        set_threads(common.threads);
        const Device device = parse_device(common.device);  // one that is not there is an error before any work
        const auto begin = std::chrono::steady_clock::now();
        const Result result = chosen->run();
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
        print_result(result, common, device, name, elapsed.count());
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
}  // namespace stipple::cli

int main(int argc, char** argv) {
    stipple::cli::occupy_standard_streams();
    stipple::install_signal_handlers();
    try {
        return stipple::cli::run(argc, argv);
    } catch (const stipple::cli::ClosedPipe&) {
        return 141;  // as a shell reports a program that a closed pipe ended; nothing is wrong and nothing is said
    } catch (const stipple::Error& error) {  // standard output itself failed
        std::fprintf(stderr, "stipple: %s\n", error.what());
        return stipple::rule_of(error.code()).exit_code;
    }
}
