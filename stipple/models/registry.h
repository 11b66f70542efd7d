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
Model load_model(const std::string& path);

}  // namespace stipple::models
