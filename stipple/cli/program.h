#pragma once
// A program of commands: parses the command line, runs one of them, prints its result or its one error. `stipple` is
// one; others share options, configuration, output and exit codes.

#include <span>
#include <string>

#include "stipple/cli/command.h"

namespace stipple::cli {

using AddCommand = Command (*)(Arguments& root, Common& common);

struct Program {
    std::string name, version, description, footer;
    std::span<const AddCommand> commands;  // in the order of the help
};

/// The program's main(): returns its exit code.
int run_program(int argc, char** argv, const Program& program);

}  // namespace stipple::cli
