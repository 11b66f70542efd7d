#pragma once
// Configurations of models: the text that travels in a weights file, to and from the fields of options.

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "stipple/core/fields.h"

namespace stipple::models {

using Config = std::map<std::string, std::string>;

/// Sets the options that the configuration names. Throws Error{bad_config} that names the model and the key for one
/// that the model does not have, with the nearest one, and for a value that is none or out of its range.
void read_config(std::string_view model, const Fields& fields, void* options, const Config& config);

/// The options as text that reads back as the same. Those called `late` came after the first files of the model: they
/// are left out where they are as in `usual`, so that older programs read all files that they can.
Config config_text(const Fields& fields, const void* options, const void* usual = nullptr,
                   std::initializer_list<std::string_view> late = {});

/// Throws Error{bad_argument} that names the model for the first option out of its range.
void check_options(std::string_view model, const Fields& fields, const void* options);

}  // namespace stipple::models
