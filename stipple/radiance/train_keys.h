#pragma once
// The options of training by name, as the published configuration has them: "fine.N_iters". One list of keys for the
// command line and for the configuration of a run.

#include <string>
#include <string_view>

#include "stipple/radiance/train.h"

namespace stipple::radiance {

/// Changes one option; a key without a stage is one of the whole training. Lists are texts with commas. Not background,
/// seed and deterministic, which are of a run. Throws Error{bad_argument} as set_by_key() does.
void set_train_option(TrainOptions& options, const std::string& key, const std::string& value);

/// All keys, for the help: a line for those of stages, one for the others.
std::string train_keys_text();

/// All fields of the options as TOML: [train], [coarse] and [fine]. Numbers read back as the same bits.
std::string to_toml(const TrainOptions& options);

/// What to_toml wrote, in a file that may have other tables too: every key of the three must be there. Throws
/// Error{bad_config} with the line.
TrainOptions train_options_from_toml(std::string_view text);

}  // namespace stipple::radiance
