#pragma once
// The ranks of a run on one machine, started by the program itself: `stipple train ... --processes 2`.

#include "stipple/cli/command.h"

namespace stipple::cli {

/// Whether this process is one of those that run_processes() started. Such a process ends with its parent: that is
/// arranged here.
bool is_started_rank();

/// Runs this program's own command line in `count` processes that find each other by torchrun's variables, with a share
/// of the threads each unless --threads says how many. Standard output is rank 0's; the others' goes to standard error.
/// SIGINT, SIGTERM and SIGUSR1 are handed on. Waits for all; the failure of the result is that of the rank that failed
/// first. When one has failed, those that have not ended by themselves after a while are ended.
Result run_processes(int64_t count, const Common& common);

}  // namespace stipple::cli
