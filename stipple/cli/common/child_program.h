#pragma once
// Trainings in processes of their own, one after the other: what studies are made of.

#include <string>
#include <vector>

#include "stipple/cli/command.h"

namespace stipple::cli {

/// Runs this program with other arguments, in a process of its own: what it allocates is gone afterwards. Its output
/// goes to standard error. Returns its exit status. Interrupted, it waits for the child, which was interrupted with it
/// and saves.
int run_child(const std::vector<std::string>& arguments);

/// Begins the run in a folder by `train ARGUMENTS -o FOLDER`, goes on with it, or leaves one that is complete alone;
/// device and threads are those of this call. Returns its exit status.
int train_in(const std::string& folder, const std::vector<std::string>& arguments, const Common& common);

}  // namespace stipple::cli
