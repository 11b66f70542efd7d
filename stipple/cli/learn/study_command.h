#pragma once
// `stipple study`: several runs of a recipe that differ in one thing, side by side.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_study(Arguments& root, Common& common);

}  // namespace stipple::cli
