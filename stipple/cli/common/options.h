#pragma once
// The options of the program and of its commands. CLI11 does the work and is seen by options.cpp alone: it would cost
// every file that declares an option some seconds of compilation.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/core/fields.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stipple::cli {

/// A handle of one option; as cheap to copy as a pointer. The functions above the line are for who declares it and
/// return the handle, to be chained.
class Option {
public:
    Option() = default;
    explicit Option(CLI::Option* option) : option_(option) {}

    /// Accepts these words and no others.
    Option one_of(const std::vector<std::string>& words) const;
    /// Completions and manual pages tell these words; others are accepted too.
    Option offers(const std::vector<std::string>& words) const;
    /// A whole number of this range.
    Option between(int least, int most) const;
    /// A whole number from 0; CLI11 would let -1 become 2^64 - 1.
    Option from_zero() const;
    /// What the help shows behind its name: "FILE", "md|csv|json".
    Option text(const std::string& shown) const;
    /// Replaces the words of the help.
    Option help(const std::string& words) const;
    /// What its variable holds means "not given", and is no default: the help says in words what happens then.
    Option no_default() const;
    /// Takes so many values.
    Option count(int values) const { return count(values, values); }
    Option count(int least, int most) const;
    /// Values stand in one word, with this character between them.
    Option separated_by(char separator) const;
    /// One word follows its name, not all up to the next option.
    Option one_word() const;

    // ----
    bool is_declared() const { return option_ != nullptr; }
    /// By the command line, the environment or a configuration.
    bool given() const;
    /// Without dashes; of a positional one as the help shows it.
    std::string name() const;
    /// With dashes: "-o", "--output"; none of a positional one.
    std::vector<std::string> switches() const;
    std::string description() const;
    /// Those of one_of() and offers().
    std::vector<std::string> words() const;
    bool is_positional() const;
    bool is_flag() const;
    bool is_number() const;
    /// What it expects, for a message: "a whole number".
    std::string expected() const;
    /// As they were given.
    std::vector<std::string> values() const;
    /// What the help shows; "" for none. Values of a list have blanks or their separator between them.
    std::string default_value() const;
    bool takes_many() const;
    /// As if the values stood on the command line; false when they are not accepted.
    bool set(const std::vector<std::string>& values) const;
    /// For the words of the help only: options are required when configurations have had their say.
    void mark_required() const;

private:
    CLI::Option* option_ = nullptr;
};

/// The options of the program, of a group of commands or of a command. Variables that receive values must outlive it.
class Arguments {
public:
    /// Of the program.
    Arguments(const std::string& description, const std::string& program, const std::string& version);
    ~Arguments();
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    /// A command below this one.
    Arguments& command(const std::string& name, const std::string& description);

    /// "--name", "-n,--name"; "NAME" is a positional one. Whole numbers may be written as 1e6. What the variable holds
    /// is its default, which the help shows behind an equals sign, unless it is empty, NaN or no_default().
    Option option(const std::string& name, std::string& value, const std::string& help);
    Option option(const std::string& name, int& value, const std::string& help);
    Option option(const std::string& name, int64_t& value, const std::string& help);
    Option option(const std::string& name, uint64_t& value, const std::string& help);
    Option option(const std::string& name, float& value, const std::string& help);
    Option option(const std::string& name, double& value, const std::string& help);
    Option option(const std::string& name, std::vector<std::string>& values, const std::string& help);
    Option option(const std::string& name, std::vector<int64_t>& values, const std::string& help);
    Option option(const std::string& name, std::vector<double>& values, const std::string& help);
    /// "!--no-name" makes it false.
    Option flag(const std::string& name, bool& value, const std::string& help);
    /// An option for each field of the struct and of its members' structs, or for those with these names, in this
    /// order; a flag that is true by default becomes --no-NAME. check() looks at all fields of the table. The object
    /// must outlive the arguments, the table is static.
    void add(const Fields& fields, void* object, std::initializer_list<const char*> names = {});
    /// The option of one field.
    Option add(const Fields& fields, void* object, const char* name);
    /// Throws Error{bad_argument} for a value out of the range of its field, here or in a group above: when the command
    /// line and configurations have had their say. A field without a default that was not given may hold what it wants.
    void check() const;
    /// The end of the help.
    void footer(const std::string& text);
    std::string footer() const;

    // ---- for the program
    /// How the command line ended before a command could run.
    struct End {
        std::string text;            // help or version, for standard output
        std::optional<Error> error;  // bad_argument
    };
    /// Of the program only. Nothing: go on with named(). The help marks those that are `required`.
    std::optional<End> parse(int argc, char** argv, const std::vector<Option>& required);
    /// The innermost command that the command line names; this one when it names none.
    Arguments& named();
    bool is_named() const;
    std::string help() const;

    std::string name() const;
    std::string description() const;
    /// Of the program.
    std::string version() const;
    /// The words that choose a command, below the program's own name: "mesh sample" for ' ', "mesh.sample" for '.'.
    std::string path(char separator) const;
    /// "stipple mesh sample --help"
    std::string help_call() const;
    std::vector<Option> options() const;
    const std::vector<std::unique_ptr<Arguments>>& commands() const { return commands_; }

private:
    Arguments(CLI::App* app, Arguments* parent);
    Error usage_error(const std::string& words, bool extras);
    Option bind(const Field& field, void* object);
    void watch(const Fields& fields, void* object);
    const Arguments& root() const { return parent_ ? parent_->root() : *this; }

    std::unique_ptr<CLI::App> owned_;  // of the program
    CLI::App* app_ = nullptr;
    Arguments* parent_ = nullptr;
    std::string version_;  // of the program
    std::vector<std::unique_ptr<Arguments>> commands_;
    std::vector<std::pair<const Fields*, const void*>> tables_;  // whose fields are options
    struct Bound {
        const Field* field;
        const void* object;
        Option option;
    };
    std::vector<Bound> bound_;
};

}  // namespace stipple::cli
