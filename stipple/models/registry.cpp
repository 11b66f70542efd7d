#include "stipple/models/registry.h"

#include <fmt/ranges.h>

#include <set>

#include "stipple/core/error.h"
#include "stipple/core/nearest_name.h"
#include "stipple/models/autoencoder.h"
#include "stipple/models/common/config.h"
#include "stipple/models/common/pointnet_blocks.h"
#include "stipple/models/flow_upsampler.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/pcrnet.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"
#include "stipple/models/samplenet.h"

namespace stipple::models {

using network::Network;
using network::Weights;

namespace {

Network build_autoencoder(const Config& config) {
    return autoencoder(autoencoder_options(config));
}

Network build_gumbel_subset(const Config& config) {
    return gumbel_subset(gumbel_subset_options(config));
}

Network build_pcrnet(const Config& config) {
    return pcrnet(pcrnet_options(config));
}

Network build_samplenet(const Config& config) {
    return samplenet(samplenet_options(config));
}

Network build_flow_upsampler(const Config& config) {
    return flow_upsampler(flow_upsampler_options(config));
}

Network build_classifier(const Config& config) {
    return pointnet_classifier(pointnet_options(config, PointNetModel::classifier));
}

Network build_segmenter(const Config& config) {
    return pointnet_segmenter(pointnet_options(config, PointNetModel::segmenter));
}

Network build_part_segmenter(const Config& config) {
    return pointnet_part_segmenter(pointnet_options(config, PointNetModel::part_segmenter));
}

Network build_puflow(const Config& config) {
    return puflow(puflow_options(config));
}

constexpr ModelEntry kModels[] = {
    {"autoencoder", "A cloud of its shape from few points of it", build_autoencoder},
    {"flow-upsampler", "Moves points onto the surface of a cloud with a normalizing flow", build_flow_upsampler},
    {"gumbel-subset", "Gumbel subset sampling: which points of a cloud a task needs", build_gumbel_subset},
    {"pcrnet", "PCRNet: the motion that brings a cloud onto another of its shape", build_pcrnet},
    {"pointnet-classifier", "PointNet: the class of a cloud", build_classifier},
    {"pointnet-part-segmenter", "PointNet: the part of each point, for clouds of known category", build_part_segmenter},
    {"pointnet-segmenter", "PointNet: the part of each point", build_segmenter},
    {"puflow", "PU-Flow: upsamples a patch with a normalizing flow", build_puflow},
    {"samplenet", "S-NET, SampleNet: few points in place of a cloud, for a task", build_samplenet},
};

}  // namespace

std::span<const ModelEntry> model_table() {
    return kModels;
}

Network build_model(std::string_view name, const Config& config) {
    std::vector<std::string> names;
    for (const ModelEntry& entry : kModels) {
        if (entry.name != name) {
            names.emplace_back(entry.name);
            continue;
        }
        try {
            return entry.build(config);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_argument) throw;
            // A value that parses and that the builder refuses: here it came from a configuration.
            throw Error(ErrorCode::bad_config, error.message(), error.hint());
        }
    }
    const std::string near = nearest_name(std::string(name), names);
    throw Error(
        ErrorCode::bad_config, fmt::format("there is no model {}", io::in_quotes(name)),
        near.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : fmt::format("did you mean {}?", near));
}

namespace {

/// What becomes of a network's parameters in another one: "" where they are the same, else the first difference.
std::string parameter_change(const Network& from, const Network& to) {
    std::map<std::string, std::vector<int64_t>> wanted;
    const std::vector<network::Parameter> after = network::parameters_of(to);
    for (const network::Parameter& parameter : after) wanted[parameter.name] = parameter.shape;
    std::set<std::string> there;
    for (const network::Parameter& parameter : network::parameters_of(from)) {
        there.insert(parameter.name);
        const auto found = wanted.find(parameter.name);
        if (found == wanted.end()) return fmt::format("there would be no {}", parameter.name);
        if (found->second != parameter.shape)
            return fmt::format("{} would be [{}], the file has [{}]", parameter.name, fmt::join(found->second, ", "),
                               fmt::join(parameter.shape, ", "));
    }
    for (const network::Parameter& parameter : after)
        if (!there.count(parameter.name))
            return fmt::format("{} [{}] is not in the file", parameter.name, fmt::join(parameter.shape, ", "));
    return "";
}

/// The network of a file with some options replaced; the weights' metadata follow.
Network build_with_overrides(const Network& built, Weights& weights, const Config& overrides) {
    Config config = built.config;
    std::string changes;
    for (const auto& [key, value] : overrides) {
        config[key] = value;
        changes += fmt::format("{}{} = {}", changes.empty() ? "" : ", ", key, value);
    }
    Network changed = build_model(built.name, config);
    if (const std::string change = parameter_change(built, changed); !change.empty())
        throw Error(ErrorCode::bad_config, fmt::format("{} does not fit the weights: {}", changes, change),
                    "an option can change after training when all parameters keep their names and shapes");
    if (changed.config != built.config) weights.metadata.erase("stipple.calibration");
    network::set_config(weights, changed);
    return changed;
}

}  // namespace

Model load_model(const std::string& path, const Config& overrides) {
    Weights weights = network::load_weights(path);
    try {
        const auto name = weights.metadata.find("stipple.model");
        if (name == weights.metadata.end())
            throw Error(ErrorCode::bad_file, "its metadata do not say which model these weights are of (stipple.model)",
                        "scripts/pth_to_safetensors.py writes it for the checkpoints that it knows");
        Network built = build_model(name->second, network::config_of(weights));
        network::check_weights(built, weights);
        if (!overrides.empty()) built = build_with_overrides(built, weights, overrides);
        return {std::move(built), std::move(weights)};
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

}  // namespace stipple::models
