#include "stipple/models/registry.h"

#include "stipple/core/error.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"

namespace stipple::models {

Model load_model(const std::string& path) {
    Model model;
    model.weights = network::load_weights(path);
    try {
        const auto name = model.weights.metadata.find("stipple.model");
        if (name == model.weights.metadata.end())
            throw Error(ErrorCode::bad_file, "no 'stipple.model' in the metadata: weights of no known network");
        model.network = build_model(name->second, network::config_of(model.weights));
        network::check_weights(model.network, model.weights);
    } catch (const Error& error) {
        throw error.at_path(path);
    }
    return model;
}

}  // namespace stipple::models
