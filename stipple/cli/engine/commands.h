#pragma once
// The commands of `stipple engine`.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_engine_new(Arguments& group, Common& common);
Command add_engine_inspect(Arguments& group, Common& common);
Command add_engine_build(Arguments& group, Common& common);
Command add_engine_run(Arguments& group, Common& common);
Command add_engine_bench(Arguments& group, Common& common);
Command add_engine_export(Arguments& group, Common& common);

}  // namespace stipple::cli
