#pragma once
// Models by name: from the configuration in a weights file to the Network that it belongs to.

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "stipple/network/weights.h"

namespace stipple::models {

struct ModelEntry {
    std::string_view name;     // "pointnet-classifier"
    std::string_view summary;  // one line for people
    network::Network (*build)(const std::map<std::string, std::string>& config);
};

/// All models, by name.
std::span<const ModelEntry> model_table();

/// Throws Error{bad_config} for an unknown name (with the nearest one), an unknown key or a value that does not parse.
network::Network build_model(std::string_view name, const std::map<std::string, std::string>& config);

struct Model {
    network::Network network;
    network::Weights weights;
};

/// A weights file and the network its metadata name; the weights are checked against it. Throws Error{bad_file} that
/// says what is wrong, Error{bad_config} as above with the file's path.
///
/// overrides: options that replace those of the file, so that what training does not fix can be chosen later: the ratio
/// and the neighbours of PU-Flow. The metadata of the result say what it became; a calibration in the file is of the
/// file's own network, and goes where an override changes anything. Throws Error{bad_config} for an unknown key or
/// value as above, and when a parameter would be another: it names the first tensor that would appear, disappear or
/// change its shape.
Model load_model(const std::string& path, const std::map<std::string, std::string>& overrides = {});

}  // namespace stipple::models
