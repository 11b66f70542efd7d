#pragma once
// The commands of `stipple engine`.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_engine_new(CLI::App& group, Common& common);
Command add_engine_inspect(CLI::App& group, Common& common);
Command add_engine_build(CLI::App& group, Common& common);
Command add_engine_run(CLI::App& group, Common& common);
Command add_engine_bench(CLI::App& group, Common& common);
Command add_engine_export(CLI::App& group, Common& common);

}  // namespace stipple::cli
