#include "stipple/tasks/upsampling_study/ablations.h"

#include <algorithm>

namespace stipple::tasks::study {
namespace {

constexpr Ablation kAblations[] = {
    {"no-likelihood", "does the likelihood help? Inverse flow as decoder, trained without it"},
    {"mlp-decoder", "does bijectivity help? A decoder of equal size that inverts nothing"},
    {"euclidean-interpolation", "does the latent space help? Likelihood, interpolation of coordinates"},
    {"augmented", "do wider spaces help? Coordinates and channels of noise"},
    {"sampled-latent", "is it generation? Latents sampled at a temperature above 0"},
    {"continuous", "discrete or continuous flows"},
    {"residual", "coupling or invertible residual blocks"},
    {"latent-neighbours", "neighbours in the latent space instead of those in space"},
    {"midpoint", "interpolation: halfway to a neighbour"},
    {"inverse-distance", "interpolation: weights by distance"},
    {"bilateral", "interpolation: weights by distance and features, for each channel"},
    {"interp-conv", "interpolation: kernel points"},
    {"global-max", "context: the largest features of all points"},
    {"self-attention", "context: attention of all points, added"},
    {"shape-context", "context: attention and a gate of features"},
    {"cosine-gate", "context: similar points, let in by a gate"},
    {"intra-attention", "context: attention in subspaces"},
    {"group-shuffle", "context: attention of groups of channels"},
    {"channel-graph", "context: a graph of channels"},
    {"skip-attention", "context: decoder looks at encoder"},
    {"level-attention", "context: levels weighted for each point"},
};

}  // namespace

std::span<const Ablation> ablations() {
    return kAblations;
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
