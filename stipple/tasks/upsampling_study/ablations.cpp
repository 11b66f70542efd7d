#include "stipple/tasks/upsampling_study/ablations.h"

#include <algorithm>

#include "stipple/core/error.h"

namespace stipple::tasks::study {
namespace {

constexpr Ablation kAblations[] = {
    {"coupling", "what the others are compared with: the method as published", ""},
    {"no-likelihood", "does the likelihood help? Inverse flow as decoder, trained without it", "loss.nll_weight=0"},
    {"mlp-decoder", "does bijectivity help? A decoder of equal size that inverts nothing", "model.family=mlp"},
    {"euclidean-interpolation", "does the latent space help? Likelihood, interpolation of coordinates",
     "model.interpolated=coordinates"},
    {"augmented", "do wider spaces help? Coordinates and channels of noise", "model.family=augmented"},
    {"sampled-latent", "is it generation? Latents sampled at a temperature above 0", "", "coupling", "noise=true", 0.7},
    {"continuous", "discrete or continuous flows", "model.family=continuous"},
    {"residual", "coupling or invertible residual blocks", "model.family=residual"},
    {"latent-neighbours", "neighbours in the latent space instead of those in space", "model.neighbourhood=latent"},
    {"midpoint", "interpolation: halfway to a neighbour", "model.interpolation=midpoint"},
    {"inverse-distance", "interpolation: weights by distance", "model.interpolation=inverse-distance"},
    {"bilateral", "interpolation: weights by distance and features, for each channel", "model.interpolation=bilateral"},
    {"interp-conv", "interpolation: kernel points", "model.interpolation=interp-conv"},
    {"global-max", "context: the largest features of all points", "model.context=global-max"},
    {"self-attention", "context: attention of all points, added", "model.context=self-attention"},
    {"shape-context", "context: attention and a gate of features", "model.context=shape-context"},
    {"cosine-gate", "context: similar points, let in by a gate", "model.context=cosine-gate"},
    {"intra-attention", "context: attention in subspaces", "model.context=intra-attention"},
    {"group-shuffle", "context: attention of groups of channels", "model.context=group-shuffle"},
    {"channel-graph", "context: a graph of channels", "model.context=channel-graph"},
    {"skip-attention", "context: decoder looks at encoder", "model.context=skip-attention"},
    {"level-attention", "context: levels weighted for each point", "model.context=level-attention"},
};

}  // namespace

std::span<const Ablation> ablations() {
    return kAblations;
}

const Ablation& find_ablation(std::string_view name) {
    for (const Ablation& ablation : kAblations)
        if (ablation.name == name) return ablation;
    throw Error(ErrorCode::bad_argument, fmt::format("there is no variant {}", name));
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        if (end > 0) words.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

std::string missing_ablations(const std::vector<Mean>& means) {
    std::string missing;
    for (const Ablation& ablation : kAblations) {
        const bool is_there = std::any_of(means.begin(), means.end(), [&](const Mean& mean) {
            return mean.method == ablation.name && mean.source != "published";
        });
        if (!is_there) missing += (missing.empty() ? "" : ", ") + std::string(ablation.name);
    }
    return missing;
}

}  // namespace stipple::tasks::study
