#pragma once
// The commands of `stipple weights`.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_weights_info(Arguments& group, Common& common);
Command add_weights_convert(Arguments& group, Common& common);
Command add_weights_confidence(Arguments& group, Common& common);

}  // namespace stipple::cli
