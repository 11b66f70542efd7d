#include "tests/support/reference_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "tests/support/reference_flow_step.h"

namespace stipple::test {

using network::Activation;
using network::ActivationKind;
using network::Kind;
using network::Layer;
using network::Level;
using network::Network;
using network::Tensor;
using network::Weights;

namespace {

double activate(const Activation& activation, double x) {
    switch (activation.kind) {
        case ActivationKind::none: return x;
        case ActivationKind::relu: return x > 0 ? x : 0;
        case ActivationKind::leaky_relu: return x > 0 ? x : activation.slope * x;
        case ActivationKind::tanh: return std::tanh(x);
        case ActivationKind::sigmoid: return 1 / (1 + std::exp(-x));
        case ActivationKind::elu: return x > 0 ? x : activation.slope * (std::exp(x) - 1);
        case ActivationKind::gelu: return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
        case ActivationKind::swish: return x / (1 + std::exp(-x));
        case ActivationKind::softplus: return std::log(1 + std::exp(x));
        case ActivationKind::log: return std::log((x > 0 ? x : 0) + double{activation.slope});
    }
    return x;
}

/// v + 2 u x (u x v + w v) of the three axes, where (w, u) is the unit quaternion.
void rotation_of(const double* q, bool inverse, double* out) {
    const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    const double w = norm > 0 ? q[0] / norm : 1;
    const double u[3] = {norm > 0 ? q[1] / norm : 0, norm > 0 ? q[2] / norm : 0, norm > 0 ? q[3] / norm : 0};
    for (int axis = 0; axis < 3; ++axis) {
        const double v[3] = {axis == 0 ? 1.0 : 0.0, axis == 1 ? 1.0 : 0.0, axis == 2 ? 1.0 : 0.0};
        double once[3];
        for (int i = 0; i < 3; ++i)
            once[i] = u[(i + 1) % 3] * v[(i + 2) % 3] - u[(i + 2) % 3] * v[(i + 1) % 3] + w * v[i];
        for (int i = 0; i < 3; ++i) {
            const double twice = u[(i + 1) % 3] * once[(i + 2) % 3] - u[(i + 2) % 3] * once[(i + 1) % 3];
            out[inverse ? 3 * axis + i : 3 * i + axis] = v[i] + 2 * twice;
        }
    }
}

class Evaluator {
public:
    Evaluator(const Network& network, const Weights& weights, std::vector<ops::Batch> batches)
        : network_(network), weights_(weights), batches_(std::move(batches)), tensors_(network.layers.size()) {
        for (const ops::Batch& batch : batches_) {
            std::vector<int64_t>& clouds = cloud_of_point_.emplace_back();
            for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
                clouds.insert(clouds.end(), static_cast<size_t>(batch.size(cloud)), cloud);
        }
    }

    void set_input(Tensor tensor, View<const float, 2> rows) {
        ReferenceTensor& out = make(tensor);
        STIPPLE_ASSERT(rows.size(0) == out.rows && rows.size(1) == out.type.channels);
        for (int64_t i = 0; i < out.rows; ++i)
            for (int64_t c = 0; c < out.type.channels; ++c) out.row(i)[c] = rows(i, c);
    }

    void evaluate(Tensor tensor);
    void forget(Tensor tensor) { std::vector<double>().swap(tensors_[static_cast<size_t>(tensor)].values); }
    std::vector<ReferenceTensor> take() { return std::move(tensors_); }

private:
    const ops::Batch& batch(int32_t set) const { return batches_[static_cast<size_t>(set)]; }
    int64_t rows_of(const network::TensorType& type) const {
        return type.level == Level::cloud ? batches_[0].clouds() : batch(type.set).rows() * type.width;
    }
    ReferenceTensor& make(Tensor tensor, double value = 0) {
        ReferenceTensor& made = tensors_[static_cast<size_t>(tensor)];
        made.type = network_[tensor].type;
        made.rows = rows_of(made.type);
        made.values.assign(static_cast<size_t>(made.rows * made.type.channels), value);
        return made;
    }
    const ReferenceTensor& in(const Layer& layer, size_t i) const {
        return tensors_[static_cast<size_t>(layer.inputs[i])];
    }
    const std::vector<float>& parameter(const Layer& layer, const char* name) const {
        return weights_.tensors.at(layer.parameters + "." + name).values;
    }
    int64_t cloud_of(const ReferenceTensor& x, int64_t row) const {
        return x.type.level == Level::cloud ? row : cloud_of_point(x.type.set, row / x.type.width);
    }
    int64_t cloud_of_point(int32_t set, int64_t point) const {
        return cloud_of_point_[static_cast<size_t>(set)][static_cast<size_t>(point)];
    }

    void linear(const Layer& layer, ReferenceTensor& out);
    void transform(const Layer& layer, ReferenceTensor& out);
    void knn(const Layer& layer, ReferenceTensor& out);
    void neighbours(const Layer& layer, ReferenceTensor& out);
    void softmax_rows(const Layer& layer, ReferenceTensor& out);
    void attend(const Layer& layer, ReferenceTensor& out);
    void interpolate(const Layer& layer, ReferenceTensor& out);
    void mix(const Layer& layer, ReferenceTensor& out);
    void flow_step(const Layer& layer, ReferenceTensor& out);
    double log_det_of_a_point(const Layer& layer) const;

    const Network& network_;
    const Weights& weights_;
    std::vector<ops::Batch> batches_;                   // by point set
    std::vector<std::vector<int64_t>> cloud_of_point_;  // by point set
    std::vector<ReferenceTensor> tensors_;
};

void Evaluator::linear(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor& x = in(layer, 0);
    const int64_t inputs = x.type.channels, outputs = out.type.channels;
    const std::vector<float>& stored = parameter(layer, "weight");
    // [in, out rounded up to 4]: four sums at a time keep the loop short of nothing but products.
    const int64_t padded = (outputs + 3) / 4 * 4;
    std::vector<double> weight(static_cast<size_t>(inputs * padded));
    for (int64_t o = 0; o < outputs; ++o)
        for (int64_t i = 0; i < inputs; ++i) weight[i * padded + o] = stored[o * inputs + i];
    std::vector<double> bias(static_cast<size_t>(outputs)), mean(bias), scale(bias.size(), 1), shift(bias);
    if (layer.options.bias) std::copy_n(parameter(layer, "bias").begin(), outputs, bias.begin());
    if (layer.options.norm)
        for (int64_t o = 0; o < outputs; ++o) {
            mean[o] = parameter(layer, "norm.running_mean")[o];
            scale[o] = parameter(layer, "norm.weight")[o] /
                       std::sqrt(parameter(layer, "norm.running_var")[o] + double{layer.options.norm_eps});
            shift[o] = parameter(layer, "norm.bias")[o];
        }
    parallel_for(out.rows, 64, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const double* from = x.row(r);
            for (int64_t o = 0; o < outputs; o += 4) {
                double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
                const double* w = weight.data() + o;
                for (int64_t i = 0; i < inputs; ++i, w += padded) {
                    sum0 += from[i] * w[0];
                    sum1 += from[i] * w[1];
                    sum2 += from[i] * w[2];
                    sum3 += from[i] * w[3];
                }
                const double sums[4] = {sum0, sum1, sum2, sum3};
                for (int64_t k = o; k < std::min(o + 4, outputs); ++k)
                    out.row(r)[k] =
                        activate(layer.options.activation, (sums[k - o] + bias[k] - mean[k]) * scale[k] + shift[k]);
            }
        }
    });
}

void Evaluator::transform(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor &x = in(layer, 0), &matrix = in(layer, 1);
    const int64_t k = x.type.channels;
    for (int64_t r = 0; r < out.rows; ++r) {
        const double* t = matrix.row(cloud_of(x, r));
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < k; ++j) out.row(r)[j] += x.row(r)[i] * t[i * k + j];
    }
}

void Evaluator::knn(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor &x = in(layer, 0), &y = in(layer, layer.inputs.size() - 1);
    const ops::Batch& points = batch(y.type.set);
    const int64_t k = out.type.width;
    parallel_for(x.rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t point = begin; point < end; ++point) {
            const int64_t cloud = cloud_of_point(x.type.set, point), first = points.begin(cloud);
            STIPPLE_ASSERT(k <= points.size(cloud));
            std::vector<std::pair<float, int64_t>> found;
            for (int64_t j = 0; j < points.size(cloud); ++j) {
                float sum = 0;
                for (int64_t c = 0; c < x.type.channels; ++c) {
                    const float d = static_cast<float>(x.row(point)[c]) - static_cast<float>(y.row(first + j)[c]);
                    sum += d * d;
                }
                found.emplace_back(sum, j);
            }
            std::partial_sort(found.begin(), found.begin() + k, found.end());
            for (int64_t j = 0; j < k; ++j) out.values[point * k + j] = static_cast<double>(found[j].second);
        }
    });
}

/// gather, edge, edge_distance: a row for each neighbour.
void Evaluator::neighbours(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor &x = in(layer, 0), &indices = in(layer, 1);
    const int64_t k = out.type.width, channels = x.type.channels;
    for (int64_t r = 0; r < out.rows; ++r) {
        const int64_t point = r / k;
        const int64_t first = batch(x.type.set).begin(cloud_of_point(out.type.set, point));
        const double* self = layer.kind == Kind::gather ? nullptr : x.row(point);
        const double* other = x.row(first + static_cast<int64_t>(indices.values[r]));
        double* to = out.row(r);
        if (layer.kind == Kind::gather) {
            std::copy_n(other, channels, to);
            continue;
        }
        double square = 0;
        for (int64_t c = 0; c < channels; ++c) {
            const double difference = self[c] - other[c];
            to[c] = self[c];
            to[channels + c] = other[c];
            to[2 * channels + c] = layer.kind == Kind::edge ? -difference : difference;
            square += difference * difference;
        }
        if (layer.kind == Kind::edge_distance) to[3 * channels] = std::sqrt(square);
    }
}

void Evaluator::softmax_rows(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor& x = in(layer, 0);
    const int64_t width = x.type.width;
    for (int64_t point = 0; point < batch(out.type.set).rows(); ++point)
        for (int64_t c = 0; c < x.type.channels; ++c) {
            double largest = -std::numeric_limits<double>::infinity(), sum = 0;
            for (int64_t w = 0; w < width; ++w) largest = std::max(largest, x.row(point * width + w)[c]);
            for (int64_t w = 0; w < width; ++w) sum += std::exp(x.row(point * width + w)[c] - largest);
            for (int64_t w = 0; w < width; ++w)
                out.row(point * width + w)[c] = std::exp(x.row(point * width + w)[c] - largest) / sum;
        }
}

void Evaluator::attend(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor &queries = in(layer, 0), &keys = in(layer, 1), &values = in(layer, 2);
    const network::LayerOptions& options = layer.options;
    const int64_t d = queries.type.channels;
    const auto dot = [&](const double* a, const double* b) { return std::inner_product(a, a + d, b, 0.0); };
    const auto length = [&](const double* a) { return std::sqrt(dot(a, a) + double{network::kUnitGuard}); };
    for (int64_t cloud = 0; cloud < batches_[0].clouds(); ++cloud) {
        const ops::Batch &of_queries = batch(queries.type.set), &of_keys = batch(keys.type.set);
        const int64_t n = of_queries.size(cloud), m = of_keys.size(cloud);
        std::vector<double> weight(static_cast<size_t>(n * m)), largest(static_cast<size_t>(n), -1e300);
        const auto is_hidden = [&](int64_t i, int64_t j) { return options.skips_self && i == j; };
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < m; ++j) {
                const double *q = queries.row(of_queries.begin(cloud) + i), *k = keys.row(of_keys.begin(cloud) + j);
                double& w = weight[i * m + j];
                w = options.factor * dot(q, k) / (options.unit ? length(q) * length(k) : 1);
                if (!is_hidden(i, j)) largest[i] = std::max(largest[i], w);
            }
        const double most = *std::max_element(largest.begin(), largest.end());
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (options.normalise == network::Normalise::row) sum = 0;
            for (int64_t j = 0; j < m; ++j) {
                double& w = weight[i * m + j];
                if (options.normalise == network::Normalise::none)
                    w /= static_cast<double>(m);
                else
                    w = std::exp(w - (options.normalise == network::Normalise::row ? largest[i] : most));
                if (is_hidden(i, j)) w = 0;
                sum += w;
            }
            if (options.normalise == network::Normalise::row)
                for (int64_t j = 0; j < m; ++j) weight[i * m + j] /= sum > 0 ? sum : 1;
        }
        const double share = options.normalise == network::Normalise::joint && sum > 0 ? 1 / sum : 1;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < m; ++j)
                for (int64_t c = 0; c < out.type.channels; ++c)
                    out.row(of_queries.begin(cloud) + i)[c] +=
                        share * weight[i * m + j] * values.row(of_keys.begin(cloud) + j)[c];
    }
}

void Evaluator::interpolate(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor &weights = in(layer, 0), &values = in(layer, 1);
    const int64_t k = weights.type.width, children = weights.type.channels;
    for (int64_t point = 0; point < batch(out.type.set).rows(); ++point)
        for (int64_t r = 0; r < children; ++r)
            for (int64_t j = 0; j < k; ++j)
                for (int64_t c = 0; c < out.type.channels; ++c)
                    out.row(point * children + r)[c] += weights.row(point * k + j)[r] * values.row(point * k + j)[c];
}

/// Solves for every row in the inverse; Gauss and Jordan with pivots leave [W | I] as [I | W^-1] and the determinant.
double invert(std::vector<double>& matrix, int64_t n) {
    std::vector<double> inverse(matrix.size());
    for (int64_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
    double determinant = 1;
    for (int64_t column = 0; column < n; ++column) {
        int64_t pivot = column;
        for (int64_t i = column + 1; i < n; ++i)
            if (std::abs(matrix[i * n + column]) > std::abs(matrix[pivot * n + column])) pivot = i;
        if (pivot != column) determinant = -determinant;
        for (int64_t j = 0; j < n; ++j) {
            std::swap(matrix[column * n + j], matrix[pivot * n + j]);
            std::swap(inverse[column * n + j], inverse[pivot * n + j]);
        }
        const double value = matrix[column * n + column];
        determinant *= value;
        for (int64_t j = 0; j < n; ++j) {
            matrix[column * n + j] /= value;
            inverse[column * n + j] /= value;
        }
        for (int64_t i = 0; i < n; ++i) {
            const double factor = matrix[i * n + column];
            if (i == column) continue;
            for (int64_t j = 0; j < n; ++j) {
                matrix[i * n + j] -= factor * matrix[column * n + j];
                inverse[i * n + j] -= factor * inverse[column * n + j];
            }
        }
    }
    matrix = std::move(inverse);
    return determinant;
}

void Evaluator::mix(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor& x = in(layer, 0);
    const int64_t n = x.type.channels;
    const std::vector<float>& stored = parameter(layer, "weight");
    std::vector<double> matrix(stored.begin(), stored.end());
    if (layer.options.inverse) invert(matrix, n);
    for (int64_t r = 0; r < out.rows; ++r)
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) out.row(r)[i] += matrix[i * n + j] * x.row(r)[j];
}

void Evaluator::flow_step(const Layer& layer, ReferenceTensor& out) {
    const ReferenceTensor &x = in(layer, 0), &condition = in(layer, 1);
    ReferenceFlowStep step{layer.options, x.type.channels, {}, {}};
    for (int i = 0; i < 3; ++i) {
        const std::vector<float>& weight = parameter(layer, fmt::format("{}.weight", i).c_str());
        step.weights[i].assign(weight.begin(), weight.end());
    }
    if (layer.options.steps > 0) step.time.assign(parameter(layer, "time").begin(), parameter(layer, "time").end());
    parallel_for(out.rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) step.run(x.row(r), condition.row(r), out.row(r));
    });
}

double Evaluator::log_det_of_a_point(const Layer& layer) const {
    if (weights_.tensors.contains(layer.parameters + ".logs")) {
        const std::vector<float>& logs = parameter(layer, "logs");
        return std::accumulate(logs.begin(), logs.end(), 0.0);
    }
    const std::vector<float>& stored = parameter(layer, "weight");
    std::vector<double> matrix(stored.begin(), stored.end());
    return std::log(std::abs(invert(matrix, static_cast<int64_t>(std::sqrt(static_cast<double>(stored.size()))))));
}

void Evaluator::evaluate(Tensor tensor) {
    const Layer& layer = network_[tensor];
    const network::LayerOptions& options = layer.options;
    const double infinity = std::numeric_limits<double>::infinity();
    const bool is_max = layer.kind == Kind::max_points || layer.kind == Kind::max_rows;
    ReferenceTensor& out = make(tensor, is_max ? -infinity : 0);
    const ReferenceTensor& x = layer.inputs.empty() ? out : in(layer, 0);
    const int64_t channels = out.type.channels;
    const auto each = [&](const auto& f) {  // f(row, channel) of the output
        for (int64_t r = 0; r < out.rows; ++r)
            for (int64_t c = 0; c < channels; ++c) out.row(r)[c] = f(r, c);
    };
    switch (layer.kind) {
        case Kind::input: break;
        case Kind::learned: each([&](int64_t, int64_t c) { return parameter(layer, "value")[c]; }); break;
        case Kind::constant: each([&](int64_t, int64_t c) { return options.values[c]; }); break;
        case Kind::linear: linear(layer, out); break;
        case Kind::activation:
            each([&](int64_t r, int64_t c) { return activate(options.activation, x.row(r)[c]); });
            break;
        case Kind::dropout: out.values = x.values; break;
        case Kind::transform: transform(layer, out); break;
        case Kind::add_identity: {
            const int64_t k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(channels))));
            each([&](int64_t r, int64_t c) { return x.row(r)[c] + (c / k == c % k ? 1 : 0); });
            break;
        }
        case Kind::rotation:
            for (int64_t r = 0; r < out.rows; ++r) rotation_of(x.row(r), options.inverse, out.row(r));
            break;
        case Kind::max_points:
        case Kind::sum_points:
            for (int64_t r = 0; r < x.rows; ++r)
                for (int64_t c = 0; c < channels; ++c) {
                    double& to = out.row(cloud_of(x, r))[c];
                    to = is_max ? std::max(to, x.row(r)[c]) : to + x.row(r)[c];
                }
            break;
        case Kind::max_rows:
            for (int64_t r = 0; r < x.rows; ++r)
                for (int64_t c = 0; c < channels; ++c) {
                    double& to = out.row(r / x.type.width)[c];
                    to = std::max(to, x.row(r)[c]);
                }
            break;
        case Kind::sum_channels:
            for (int64_t r = 0; r < x.rows; ++r)
                out.values[r] = std::accumulate(x.row(r), x.row(r) + x.type.channels, 0.0);
            break;
        case Kind::concat:
            for (int64_t r = 0; r < out.rows; ++r) {
                double* to = out.row(r);
                for (size_t i = 0; i < layer.inputs.size(); ++i)
                    to = std::copy_n(in(layer, i).row(r), in(layer, i).type.channels, to);
            }
            break;
        case Kind::slice: each([&](int64_t r, int64_t c) { return x.row(r)[options.begin + c]; }); break;
        case Kind::reverse: each([&](int64_t r, int64_t c) { return x.row(r)[channels - 1 - c]; }); break;
        case Kind::repeat:
            each([&](int64_t r, int64_t c) {
                return x.row(x.type.level == Level::cloud ? cloud_of(out, r) : r / out.type.width)[c];
            });
            break;
        case Kind::unflatten:
        case Kind::regroup: out.values = x.values; break;
        case Kind::knn: knn(layer, out); break;
        case Kind::gather:
        case Kind::edge:
        case Kind::edge_distance: neighbours(layer, out); break;
        case Kind::softmax_rows: softmax_rows(layer, out); break;
        case Kind::attend: attend(layer, out); break;
        case Kind::interpolate: interpolate(layer, out); break;
        case Kind::layer_norm:
            for (int64_t r = 0; r < out.rows; ++r) {
                const double count = static_cast<double>(channels);
                const double mean = std::accumulate(x.row(r), x.row(r) + channels, 0.0) / count;
                double variance = 0;
                for (int64_t c = 0; c < channels; ++c) variance += std::pow(x.row(r)[c] - mean, 2) / count;
                for (int64_t c = 0; c < channels; ++c)
                    out.row(r)[c] = (x.row(r)[c] - mean) / std::sqrt(variance + double{options.norm_eps}) *
                                        parameter(layer, "weight")[c] +
                                    parameter(layer, "bias")[c];
            }
            break;
        case Kind::log_softmax:
            for (int64_t r = 0; r < out.rows; ++r) {
                const double largest = *std::max_element(x.row(r), x.row(r) + channels);
                double sum = 0;
                for (int64_t c = 0; c < channels; ++c) sum += std::exp(x.row(r)[c] - largest);
                for (int64_t c = 0; c < channels; ++c) out.row(r)[c] = x.row(r)[c] - largest - std::log(sum);
            }
            break;
        case Kind::add: each([&](int64_t r, int64_t c) { return x.row(r)[c] + in(layer, 1).row(r)[c]; }); break;
        case Kind::subtract: each([&](int64_t r, int64_t c) { return x.row(r)[c] - in(layer, 1).row(r)[c]; }); break;
        case Kind::multiply: each([&](int64_t r, int64_t c) { return x.row(r)[c] * in(layer, 1).row(r)[c]; }); break;
        case Kind::scale: each([&](int64_t r, int64_t c) { return options.factor * x.row(r)[c]; }); break;
        case Kind::actnorm: {
            const std::vector<float>&logs = parameter(layer, "logs"), &bias = parameter(layer, "bias");
            each([&](int64_t r, int64_t c) {
                const double factor = std::exp(double{logs[c]});
                return options.inverse ? (x.row(r)[c] - bias[c]) / factor : x.row(r)[c] * factor + bias[c];
            });
            break;
        }
        case Kind::mix: mix(layer, out); break;
        case Kind::couple:
            each([&](int64_t r, int64_t c) {
                if (c < options.begin) return x.row(r)[c];
                const double t = in(layer, 1).row(r)[c - options.begin];
                return options.inverse ? x.row(r)[c] + t : x.row(r)[c] - t;
            });
            break;
        case Kind::inject:
            each([&](int64_t r, int64_t c) {
                const double s = in(layer, 1).row(r)[c], b = in(layer, 2).row(r)[c];
                return options.inverse ? x.row(r)[c] * std::exp(s) + b : (x.row(r)[c] - b) * std::exp(-s);
            });
            break;
        case Kind::flow_step: flow_step(layer, out); break;
        case Kind::flow_log_det:
            each([&](int64_t r, int64_t) {
                return log_det_of_a_point(layer) * static_cast<double>(batch(x.type.set).size(r));
            });
            break;
        case Kind::gaussian_log_density:
            for (int64_t r = 0; r < x.rows; ++r)
                for (int64_t c = 0; c < x.type.channels; ++c)
                    out.values[cloud_of(x, r)] -= (x.row(r)[c] * x.row(r)[c] + std::log(2 * std::numbers::pi)) / 2;
            break;
    }
}

}  // namespace

const ReferenceTensor& ReferenceRun::layer(std::string_view name) const {
    for (size_t i = 0; i < tensors.size(); ++i)
        if (network->layers[i].name == name) return tensors[i];
    throw Error(ErrorCode::internal, fmt::format("no layer {}", name));
}

const ReferenceTensor& ReferenceRun::output(std::string_view name) const {
    for (const network::Output& output : network->outputs)
        if (output.name == name) return tensors[static_cast<size_t>(output.tensor)];
    throw Error(ErrorCode::internal, fmt::format("no output {}", name));
}

std::vector<ops::Batch> batches_of(const Network& network, const std::vector<ops::Batch>& given) {
    std::vector<int64_t> points(1);  // by set: 0 for those of the caller
    std::vector<char> is_there(1);
    for (const Layer& layer : network.layers) {
        if (layer.type.level != Level::point) continue;
        const auto set = static_cast<size_t>(layer.type.set);
        points.resize(std::max(points.size(), set + 1));
        is_there.resize(points.size());
        points[set] = layer.type.points;
        is_there[set] = 1;
    }
    std::vector<ops::Batch> batches;
    size_t next = 0;
    for (size_t set = 0; set < points.size(); ++set)
        batches.push_back(points[set] > 0 || !is_there[set] ? ops::Batch::dense(given[0].clouds(), points[set])
                                                            : given.at(next++));
    return batches;
}

ReferenceRun run_reference(const Network& network, const Weights& weights, const ops::Batch& batch,
                           const std::vector<ReferenceInput>& inputs, Keep keep) {
    return run_reference(network, weights, std::vector<ops::Batch>{batch}, inputs, keep);
}

ReferenceRun run_reference(const Network& network, const Weights& weights, const std::vector<ops::Batch>& given,
                           const std::vector<ReferenceInput>& inputs, Keep keep) {
    std::vector<Tensor> last_use(network.layers.size(), -1);
    for (size_t i = 0; i < network.layers.size(); ++i)
        for (const Tensor input : network.layers[i].inputs)
            last_use[static_cast<size_t>(input)] = static_cast<Tensor>(i);
    for (const network::Output& output : network.outputs)
        last_use[static_cast<size_t>(output.tensor)] = std::numeric_limits<Tensor>::max();

    Evaluator evaluator(network, weights, batches_of(network, given));
    for (size_t i = 0; i < network.layers.size(); ++i) {
        const Tensor tensor = static_cast<Tensor>(i);
        const Layer& layer = network.layers[i];
        if (layer.kind == Kind::input) {
            const auto input = std::find_if(inputs.begin(), inputs.end(),
                                            [&](const ReferenceInput& other) { return other.name == layer.name; });
            if (input == inputs.end()) throw Error(ErrorCode::internal, fmt::format("no input {}", layer.name));
            evaluator.set_input(tensor, input->rows);
        } else {
            evaluator.evaluate(tensor);
        }
        for (const Tensor used : layer.inputs)
            if (keep == Keep::outputs && last_use[static_cast<size_t>(used)] == tensor) evaluator.forget(used);
    }
    ReferenceRun run;
    run.network = &network;
    run.tensors = evaluator.take();
    return run;
}

}  // namespace stipple::test
