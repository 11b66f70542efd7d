#pragma once
// The command of stipple-learn.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_train(Arguments& root, Common& common);

}  // namespace stipple::cli
