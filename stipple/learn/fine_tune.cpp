#include "stipple/learn/fine_tune.h"

#include "stipple/core/error.h"

namespace stipple::learn {

Recipe recipe_for(const Recipe& recipe, const network::Weights& weights) {
    const auto model = weights.metadata.find("stipple.model");
    if (model == weights.metadata.end()) throw Error(ErrorCode::bad_config, "the weights do not name their model");
    const auto is_called = [&](const char* part) { return model->second.find(part) != std::string::npos; };
    const TrainingTask task = is_called("segmenter")                          ? TrainingTask::segmentation
                              : is_called("upsampler") || is_called("puflow") ? TrainingTask::upsampling
                              : is_called("samplenet")                        ? TrainingTask::sampling
                              : is_called("gumbel-subset")                    ? TrainingTask::sampling
                              : is_called("pcrnet")                           ? TrainingTask::registration
                              : is_called("autoencoder")                      ? TrainingTask::reconstruction
                                                                              : TrainingTask::classification;
    if (task != recipe.task)
        throw Error(ErrorCode::bad_config, fmt::format("recipe {} is for {}, the weights are of {}", recipe.name,
                                                       name_of(recipe.task), model->second));
    Recipe result = recipe;
    result.model = model->second;
    result.options = network::config_of(weights);
    result.options.erase("classes");
    result.options.erase("categories");
    return result;
}

FineTuned start_from(const network::Weights& weights, const network::Network& network, uint64_t seed) {
    FineTuned result;
    result.weights = network::initial_weights(network, seed);
    for (auto& [name, tensor] : result.weights.tensors) {
        const auto found = weights.tensors.find(name);
        if (found == weights.tensors.end() || found->second.shape != tensor.shape) {
            result.fresh.push_back(name);
            continue;
        }
        tensor = found->second;
        ++result.taken;
    }
    STIPPLE_REQUIRE(result.taken > 0, "no tensor of the weights fits {}", network.name);
    return result;
}

}  // namespace stipple::learn
