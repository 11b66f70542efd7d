#pragma once
// `stipple study upsampling-ablation --retrain`: trains the variants of the method and stores their rows.

#include "stipple/cli/command.h"

namespace stipple::cli {

Command add_retraining(Arguments& group, Common& common);

}  // namespace stipple::cli
