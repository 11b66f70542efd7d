#pragma once
// Small networks with random weights, and clouds in files, for tests of tasks.

#include <functional>
#include <string>

#include "stipple/models/registry.h"
#include "tests/support/clouds.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {

/// Writes a model without the feature transform, which is large; returns the path.
inline std::string save_model(const std::string& path, const std::string& name, int64_t classes,
                              std::map<std::string, std::string> metadata = {}) {
    const network::Network net =
        models::build_model(name, {{"classes", std::to_string(classes)}, {"feature_transform", "false"}});
    network::Weights weights = network::initial_weights(net, 3);
    weights.metadata.insert(metadata.begin(), metadata.end());
    network::save_weights(path, weights, network::WeightStorage::f32, Overwrite::refuse);
    return path;
}

inline std::string save_cloud(const std::string& path, const Mesh& mesh) {
    io::Warnings warnings;
    io::save(path, mesh, Overwrite::refuse, {}, warnings);
    return path;
}

/// "" when nothing is thrown.
inline std::string message_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace stipple::test
