#pragma once
// The options of training by name, as the published configuration has them: "fine.N_iters=20000".

#include "stipple/radiance/train.h"

namespace stipple::cli {

/// Changes one option by KEY=VALUE; a key without a stage is one of the whole training. Throws Error{bad_argument} for
/// keys that are not there, naming the nearest, and for values that are no such number.
void set_train_option(radiance::TrainOptions& options, const std::string& assignment);

/// All keys, for the help: a line for those of stages, one for the others.
std::string train_keys_text();

}  // namespace stipple::cli
