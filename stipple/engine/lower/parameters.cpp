#include "stipple/engine/lower/parameters.h"

#include <cmath>

namespace stipple::engine::lowering {
namespace {

using network::Kind;
using network::Layer;
using network::Weights;

const std::vector<float>& values_of(const Layer& layer, const Weights& weights, const char* name) {
    return weights.tensors.at(layer.parameters + name).values;
}

/// The inverse of [n, n] by Gauss-Jordan with row pivots, and ln |det|. False when it is singular.
bool invert(std::vector<double> a, size_t n, std::vector<double>& inverse, double& log_det) {
    inverse.assign(n * n, 0.0);
    for (size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
    log_det = 0;
    for (size_t column = 0; column < n; ++column) {
        size_t pivot = column;
        for (size_t row = column + 1; row < n; ++row)
            if (std::abs(a[row * n + column]) > std::abs(a[pivot * n + column])) pivot = row;
        const double value = a[pivot * n + column];
        if (value == 0 || !std::isfinite(1 / value)) return false;
        log_det += std::log(std::abs(value));
        for (size_t j = 0; j < n; ++j) {
            std::swap(a[pivot * n + j], a[column * n + j]);
            std::swap(inverse[pivot * n + j], inverse[column * n + j]);
        }
        for (size_t j = 0; j < n; ++j) {
            a[column * n + j] /= value;
            inverse[column * n + j] /= value;
        }
        for (size_t row = 0; row < n; ++row) {
            const double factor = a[row * n + column];
            if (row == column || factor == 0) continue;
            for (size_t j = 0; j < n; ++j) {
                a[row * n + j] -= factor * a[column * n + j];
                inverse[row * n + j] -= factor * inverse[column * n + j];
            }
        }
    }
    return true;
}

Affine linear_of(const Layer& layer, const Weights& weights, int64_t inputs) {
    const auto out = static_cast<size_t>(layer.options.channels), in = static_cast<size_t>(inputs);
    const std::vector<float>& weight = values_of(layer, weights, ".weight");
    std::vector<double> values(weight.begin(), weight.end()), bias(out, 0.0);
    if (layer.options.bias) {
        const std::vector<float>& b = values_of(layer, weights, ".bias");
        bias.assign(b.begin(), b.end());
    }
    if (layer.options.norm) {
        const std::vector<float>& gain = values_of(layer, weights, ".norm.weight");
        const std::vector<float>& shift = values_of(layer, weights, ".norm.bias");
        const std::vector<float>& mean = values_of(layer, weights, ".norm.running_mean");
        const std::vector<float>& variance = values_of(layer, weights, ".norm.running_var");
        for (size_t o = 0; o < out; ++o) {
            const double factor =
                gain[o] / std::sqrt(static_cast<double>(variance[o]) + static_cast<double>(layer.options.norm_eps));
            for (size_t i = 0; i < in; ++i) values[o * in + i] *= factor;
            bias[o] = (bias[o] - mean[o]) * factor + shift[o];
        }
    }
    return {dense_map(layer.options.channels, inputs, std::move(values)), std::move(bias)};
}

Affine actnorm_of(const Layer& layer, const Weights& weights) {
    const std::vector<float>& logs = values_of(layer, weights, ".logs");
    const std::vector<float>& shift = values_of(layer, weights, ".bias");
    const auto channels = static_cast<int64_t>(logs.size());
    Affine affine{identity(channels), std::vector<double>(logs.size())};
    for (size_t i = 0; i < logs.size(); ++i) {
        const double s = logs[i], b = shift[i];
        affine.map.values[i] = layer.options.inverse ? std::exp(-s) : std::exp(s);
        affine.bias[i] = layer.options.inverse ? -b * std::exp(-s) : b;
    }
    return affine;
}

Affine mix_of(const Layer& layer, const Weights& weights) {
    const std::vector<float>& weight = values_of(layer, weights, ".weight");
    const int64_t n = layer.type.channels;
    std::vector<double> values(weight.begin(), weight.end());
    if (layer.options.inverse) {
        std::vector<double> inverse;
        double log_det = 0;
        if (!invert(values, static_cast<size_t>(n), inverse, log_det))
            throw Error(ErrorCode::bad_file,
                        fmt::format("layer '{}': the matrix '{}.weight' has no inverse", layer.name, layer.parameters));
        values = std::move(inverse);
    }
    return {dense_map(n, n, std::move(values)), std::vector<double>(static_cast<size_t>(n), 0.0)};
}

}  // namespace

Affine affine_of(const Layer& layer, const Weights& weights, int64_t inputs) {
    switch (layer.kind) {
        case Kind::linear: return linear_of(layer, weights, inputs);
        case Kind::actnorm: return actnorm_of(layer, weights);
        case Kind::mix: return mix_of(layer, weights);
        default: STIPPLE_ASSERT(false);
    }
    return {};
}

double log_det_of(const Layer& layer, const Weights& weights) {
    if (weights.tensors.count(layer.parameters + ".logs") != 0) {
        double sum = 0;
        for (const float value : values_of(layer, weights, ".logs")) sum += value;
        return sum;
    }
    const std::vector<float>& weight = values_of(layer, weights, ".weight");
    const auto n = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(weight.size()))));
    std::vector<double> inverse;
    double log_det = 0;
    if (!invert({weight.begin(), weight.end()}, n, inverse, log_det))
        throw Error(ErrorCode::bad_file,
                    fmt::format("layer '{}': the matrix '{}.weight' has no inverse", layer.name, layer.parameters));
    return log_det;
}

}  // namespace stipple::engine::lowering
