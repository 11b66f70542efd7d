#include "tests/support/reference_weights.h"

#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/network/network.h"

namespace stipple::test {

using network::Layer;
using network::Network;
using network::Weights;

namespace {

enum Stream : uint64_t { weight_stream, gain_stream, shift_stream, mean_stream, variance_stream, size_stream };

/// Numbers for one purpose in one layer.
Rng rng_of(uint64_t seed, const std::string& layer, Stream stream) {
    uint64_t hash = 14695981039346656037u;
    for (const char c : layer) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return Rng(seed, hash * 8 + stream);
}

template <class F>
void for_each_parameter(const Network& network, const F& f) {
    for (const Layer& layer : network.layers)
        if (layer.parameters == layer.name) f(layer);
}

std::vector<float>& values_of(Weights& weights, const Layer& layer, const char* name) {
    return weights.tensors.at(layer.name + "." + name).values;
}

}  // namespace

Weights random_weights(const Network& network, uint64_t seed) {
    Weights weights = initial_weights(network, seed);
    for_each_parameter(network, [&](const Layer& layer) {
        if (layer.kind == network::Kind::actnorm) {
            const Rng logs = rng_of(seed, layer.name, gain_stream), bias = rng_of(seed, layer.name, shift_stream);
            for (size_t i = 0; i < values_of(weights, layer, "logs").size(); ++i) {
                values_of(weights, layer, "logs")[i] = 0.2f * logs.normal(i);
                values_of(weights, layer, "bias")[i] = 0.1f * bias.normal(i);
            }
        }
        if (layer.kind == network::Kind::flow_step) {
            // The first two have norm 1: with a last one of norm 1/2 or less a residual step has an inverse.
            std::vector<float>& last = values_of(weights, layer, "2.weight");
            const double hidden = static_cast<double>(layer.options.channels), channels = last.size() / hidden;
            const Rng rng = rng_of(seed, layer.name, weight_stream), time = rng_of(seed, layer.name, shift_stream);
            for (size_t i = 0; i < last.size(); ++i)
                last[i] = static_cast<float>(0.4 / (std::sqrt(hidden) + std::sqrt(channels))) * rng.normal(i);
            if (layer.options.steps == 0) return;
            std::vector<float>& growth = values_of(weights, layer, "time");
            for (size_t i = 0; i < growth.size(); ++i) growth[i] = 0.3f * time.normal(i);
        }
        if (layer.kind != network::Kind::linear) return;
        if (layer.options.weights == network::Initialiser::zeros) {
            const Rng rng = rng_of(seed, layer.name, weight_stream);
            std::vector<float>& weight = values_of(weights, layer, "weight");
            for (size_t i = 0; i < weight.size(); ++i) weight[i] = 0.01f * rng.normal(i);
        }
        if (!layer.options.norm) return;
        const Rng gain = rng_of(seed, layer.name, gain_stream), shift = rng_of(seed, layer.name, shift_stream);
        const Rng mean = rng_of(seed, layer.name, mean_stream), variance = rng_of(seed, layer.name, variance_stream);
        for (size_t i = 0; i < static_cast<size_t>(layer.options.channels); ++i) {
            values_of(weights, layer, "norm.weight")[i] = 0.5f + gain.uniform(i);
            values_of(weights, layer, "norm.bias")[i] = 0.2f * shift.normal(i);
            values_of(weights, layer, "norm.running_mean")[i] = 0.1f * mean.normal(i);
            values_of(weights, layer, "norm.running_var")[i] = 0.05f + 0.3f * variance.uniform(i);
        }
    });
    return weights;
}

Weights trained_like_weights(const Network& network, uint64_t seed) {
    Weights weights = random_weights(network, seed);
    for_each_parameter(network, [&](const Layer& layer) {
        if (layer.kind != network::Kind::linear || !layer.options.norm) return;
        std::vector<float>& weight = values_of(weights, layer, "weight");
        const Rng sizes = rng_of(seed, layer.name, size_stream);
        const size_t outputs = static_cast<size_t>(layer.options.channels), inputs = weight.size() / outputs;
        for (size_t o = 0; o < outputs; ++o) {
            const float draw = sizes.uniform(2 * o);
            const bool is_dead = draw < 0.02f, is_negative = sizes.uniform(2 * o + 1) < 0.1f;
            const float size = is_dead ? 1e-4f : std::exp2(8 * draw - 4);
            for (size_t i = 0; i < inputs; ++i) weight[o * inputs + i] *= size;
            if (layer.options.bias) values_of(weights, layer, "bias")[o] *= size;
            values_of(weights, layer, "norm.running_mean")[o] *= 3 * size;
            values_of(weights, layer, "norm.running_var")[o] *= size * size;
            if (is_negative) values_of(weights, layer, "norm.weight")[o] *= -1;
        }
    });
    return weights;
}

}  // namespace stipple::test
