#include "stipple/network/weights.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/core/error.h"
#include "stipple/core/rng.h"
#include "stipple/core/view.h"
#include "stipple/network/kinds/kind.h"

namespace stipple::network {
namespace {

class Fnv1a {
public:
    void add(const void* data, size_t bytes) {
        const auto* byte = static_cast<const unsigned char*>(data);
        for (size_t i = 0; i < bytes; ++i) hash_ = (hash_ ^ byte[i]) * 0x100000001b3u;
    }
    // Lengths go in before contents: no two lists are the same bytes.
    void add(const std::string& text) {
        add_number(text.size());
        add(text.data(), text.size());
    }
    void add_number(uint64_t number) { add(&number, sizeof number); }
    uint64_t value() const { return hash_; }

private:
    uint64_t hash_ = 0xcbf29ce484222325u;
};

std::string shape_of(const std::vector<int64_t>& shape) {
    return shape_text(shape.data(), static_cast<int>(shape.size()));
}

size_t elements(const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    return count;
}

// === Initialisers

void fill_uniform(const Rng& rng, float bound, std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = bound * (2 * rng.uniform(i) - 1);
}

void fill_normal(const Rng& rng, double deviation, std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(deviation * rng.normal(i));
}

// Gram-Schmidt, each vector twice, on normal numbers: orthonormal rows, or columns where there are more rows. Without
// a preferred direction, so for a square matrix uniform over the orthogonal ones.
void fill_orthogonal(const Rng& rng, int64_t rows, int64_t columns, std::vector<float>& values) {
    const bool is_tall = rows > columns;
    const int64_t count = is_tall ? columns : rows, length = is_tall ? rows : columns;
    std::vector<double> vectors(static_cast<size_t>(count * length));
    for (size_t i = 0; i < vectors.size(); ++i) vectors[i] = rng.normal(i);
    const auto dot = [&](const double* a, const double* b) {
        double sum = 0;
        for (int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
        return sum;
    };
    for (int64_t v = 0; v < count; ++v) {
        double* vector = vectors.data() + v * length;
        for (int pass = 0; pass < 2; ++pass) {
            for (int64_t u = 0; u < v; ++u) {
                const double* other = vectors.data() + u * length;
                const double along = dot(vector, other);
                for (int64_t i = 0; i < length; ++i) vector[i] -= along * other[i];
            }
            const double norm = std::sqrt(dot(vector, vector));
            for (int64_t i = 0; i < length; ++i) vector[i] /= norm;
        }
        for (int64_t i = 0; i < length; ++i)
            values[static_cast<size_t>(is_tall ? i * columns + v : v * columns + i)] = static_cast<float>(vector[i]);
    }
}

// fan_in: numbers of a row that the layer takes.
WeightTensor initial(const Parameter& parameter, int64_t fan_in, uint64_t seed) {
    WeightTensor tensor{parameter.shape, std::vector<float>(elements(parameter.shape))};
    Fnv1a name;
    name.add(parameter.name);
    const Rng rng(seed, name.value());
    const int64_t rows = parameter.shape[0], columns = parameter.shape.size() > 1 ? parameter.shape[1] : 1;
    switch (parameter.initialiser) {
        case Initialiser::zeros: break;
        case Initialiser::ones: std::fill(tensor.values.begin(), tensor.values.end(), 1.0f); break;
        case Initialiser::fan_in_uniform:
            fill_uniform(rng, static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in))), tensor.values);
            break;
        case Initialiser::xavier_normal:
            fill_normal(rng, std::sqrt(2.0 / static_cast<double>(rows + columns)), tensor.values);
            break;
        case Initialiser::random_orthogonal: fill_orthogonal(rng, rows, columns, tensor.values); break;
    }
    return tensor;
}

// === Checks

[[noreturn]] void refuse(std::string message) {
    throw Error(ErrorCode::bad_file, std::move(message));
}

std::string label_of(const Network& network, const Parameter& parameter) {
    for (const Layer& layer : network.layers)
        if (layer.name == parameter.layer) return label_of(layer);
    return parameter.layer;
}

void check_names(const Network& network, const std::vector<Parameter>& parameters, const Weights& weights) {
    std::vector<const Parameter*> missing;
    for (const Parameter& parameter : parameters)
        if (!weights.tensors.count(parameter.name)) missing.push_back(&parameter);
    if (!missing.empty()) {
        std::string names;
        for (size_t i = 0; i < std::min<size_t>(missing.size(), 3); ++i)
            names += fmt::format("{}'{}'", i == 0 ? "" : ", ", missing[i]->name);
        if (missing.size() > 3) names += fmt::format(" and {} more", missing.size() - 3);
        refuse(fmt::format("{}: the weights lack {}", label_of(network, *missing[0]), names));
    }
    if (weights.tensors.size() == parameters.size()) return;
    std::set<std::string_view> names;
    for (const Parameter& parameter : parameters) names.insert(parameter.name);
    for (const auto& [name, tensor] : weights.tensors)
        if (!names.count(name))
            refuse(fmt::format("tensor {} of shape {} belongs to no layer of '{}'", io::in_quotes(name),
                               shape_of(tensor.shape), network.name));
}

}  // namespace

Weights initial_weights(const Network& network, uint64_t seed) {
    Weights weights;
    for (const Layer& layer : network.layers) {
        if (!kind_of(layer).owns_parameters) continue;  // has those of another layer
        const int64_t fan_in = layer.inputs.empty() ? 1 : network[layer.inputs[0]].type.channels;
        const std::vector<Parameter> parameters = parameters_of(network, layer);
        for (const Parameter& parameter : parameters)
            if (!weights.tensors.count(parameter.name))
                weights.tensors[parameter.name] = initial(parameter, fan_in, seed);
    }
    set_config(weights, network);
    return weights;
}

void check_weights(const Network& network, const Weights& weights) {
    const std::vector<Parameter> parameters = parameters_of(network);
    check_names(network, parameters, weights);
    for (const Parameter& parameter : parameters) {
        const WeightTensor& tensor = weights.tensors.at(parameter.name);
        if (tensor.shape != parameter.shape)
            refuse(fmt::format("{}: tensor '{}' should be {}, found {}", label_of(network, parameter), parameter.name,
                               shape_of(parameter.shape), shape_of(tensor.shape)));
        if (tensor.values.size() != elements(tensor.shape))
            refuse(fmt::format("{}: tensor '{}' of shape {} has {} values", label_of(network, parameter),
                               parameter.name, shape_of(tensor.shape), tensor.values.size()));
        const auto bad =
            std::find_if(tensor.values.begin(), tensor.values.end(), [](float value) { return !std::isfinite(value); });
        if (bad != tensor.values.end())
            refuse(fmt::format("{}: tensor '{}' has a value that is not finite at {}", label_of(network, parameter),
                               parameter.name, bad - tensor.values.begin()));
    }
}

uint64_t checksum(const Weights& weights) {
    Fnv1a hash;
    hash.add_number(weights.tensors.size());
    for (const auto& [name, tensor] : weights.tensors) {
        hash.add(name);
        hash.add_number(tensor.shape.size());
        for (int64_t extent : tensor.shape) hash.add_number(static_cast<uint64_t>(extent));
        hash.add(tensor.values.data(), tensor.values.size() * sizeof(float));
    }
    return hash.value();
}

}  // namespace stipple::network
