#pragma once
// What every subcommand shares: the options that mean the same everywhere, and the one way results are printed.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stipple/cli/common/options.h"
#include "stipple/core/atomic_file.h"
#include "stipple/core/device.h"
#include "stipple/core/json.h"
#include "stipple/core/number_text.h"
#include "stipple/core/progress.h"
#include "stipple/io/format.h"

namespace stipple::cli {

/// Raised when whoever reads our standard output has gone (`| head`): ends the program quietly.
struct ClosedPipe {};

/// Options with one meaning in all subcommands.
struct Common {
    bool json = false, overwrite = false, dry_run = false, quiet = false, verbose = false;
    std::string table, device = "auto";
    ProgressMode progress = ProgressMode::automatic;
    ColorMode color = ColorMode::automatic;
    uint64_t seed = 0;
    int threads = 0;

    Overwrite overwrite_mode() const { return overwrite ? Overwrite::allow : Overwrite::refuse; }
};
/// The words of ProgressMode and of ColorMode.
inline constexpr const char* kWhenWords[] = {"auto", "always", "never"};
const Fields& common_fields();

/// The result of a command: what --json prints, and what people read.
struct Result {
    Json fields = Json::object();  // merged into the JSON object
    std::string text;              // for people; ends with a line end unless empty
    io::Warnings warnings;
    bool stdout_taken = false;          // the command has written its data to standard output: print nothing
    std::optional<Error> failure = {};  // of a check that the user asked for: the result is printed, then this
    std::vector<Error> errors = {};     // of single inputs; the others are done. `failure` counts them
};

/// A command: its options live in the object that add_NAME makes, `run` does the work. A group of commands has no run.
struct Command {
    Arguments* arguments = nullptr;
    std::function<Result()> run;
    std::vector<Option> required = {};   // checked when the configuration file has had its say
    std::vector<Command> commands = {};  // of a group
};

ProgressMode progress_mode(const Common& common);

/// Writes to standard output; throws ClosedPipe when nobody reads, Error{cannot_write} when it cannot be written. A
/// report of an interrupt is itself not `interruptible`.
void print(std::string_view text, bool interruptible = true);

/// Standard output as a sink, for `-o -`.
class StdoutSink : public ByteSink {
public:
    using ByteSink::write;
    void write(const void* data, int64_t bytes) override;
};

/// A progress bar for each file that is read, begun with its first bytes, when their total is known.
class FileProgress {
public:
    explicit FileProgress(const Common& common) : mode_(progress_mode(common)) {}
    void show(const std::string& path, int64_t done, int64_t total);

private:
    ProgressMode mode_;
    std::string path_;
    std::optional<Progress> bar_;
    int64_t shown_ = 0;
};

/// Loads with a progress bar; `from` is the name of a format, or empty. `used` receives the format that was read.
Mesh load_with_progress(const std::string& path, const std::string& from, int64_t item, const Common& common,
                        io::Warnings& warnings, io::Format* used = nullptr);

/// Whether an error is about one input, so that the others can be done.
bool is_of_one_input(const Error& error);
/// Where result.errors has any: the failure that counts them, with the code of the first. `what` names all `inputs`:
/// "files".
void count_errors(int64_t inputs, std::string_view what, Result& result);
/// Does the work for every input, by its index. One of several that fails goes into result.errors, and the others are
/// done.
void for_each_input(size_t inputs, std::string_view what, Result& result,
                    const std::function<void(size_t index)>& work);

/// Throws Error{bad_argument} when standard input is named twice: the second would find it read.
void require_one_stdin(const std::vector<std::string>& inputs);

/// Throws Error{bad_argument} when both the data and --json want standard output.
void require_free_stdout(const std::string& output, const Common& common);

}  // namespace stipple::cli
