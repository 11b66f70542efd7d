// Flow layers. In ONNX, what depends on the weights alone (exponentials, inverses, determinants) is a constant of the
// file.

#include <cmath>
#include <numbers>
#include <optional>

#include "stipple/core/checked.h"
#include "stipple/network/kinds/kind.h"
#include "stipple/network/onnx/export.h"

namespace stipple::network {

namespace {

/// A square matrix factored by Gaussian elimination with partial pivoting, in double precision.
struct Factored {
    std::vector<double> inverse;
    double log_determinant = 0;  // of its magnitude
};

/// Nothing where a pivot vanishes against the matrix's entries.
std::optional<Factored> factor(std::span<const float> matrix, size_t n) {
    std::vector<double> a(matrix.begin(), matrix.end());
    Factored result{std::vector<double>(n * n), 0};
    double largest = 0;
    for (const double value : a) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < n; ++i) result.inverse[i * n + i] = 1;
    for (size_t column = 0; column < n; ++column) {
        size_t pivot = column;
        for (size_t row = column + 1; row < n; ++row)
            if (std::fabs(a[row * n + column]) > std::fabs(a[pivot * n + column])) pivot = row;
        const double value = a[pivot * n + column];
        if (!(std::fabs(value) > 1e-12 * largest)) return std::nullopt;
        result.log_determinant += std::log(std::fabs(value));
        for (size_t i = 0; i < n; ++i) {
            std::swap(a[pivot * n + i], a[column * n + i]);
            std::swap(result.inverse[pivot * n + i], result.inverse[column * n + i]);
        }
        for (size_t i = 0; i < n; ++i) {
            a[column * n + i] /= value;
            result.inverse[column * n + i] /= value;
        }
        for (size_t row = 0; row < n; ++row) {
            const double times = a[row * n + column];
            if (row == column || times == 0) continue;
            for (size_t i = 0; i < n; ++i) {
                a[row * n + i] -= times * a[column * n + i];
                result.inverse[row * n + i] -= times * result.inverse[column * n + i];
            }
        }
    }
    return result;
}

Factored factor_weight(const OnnxExport& out, const Layer& layer, size_t channels) {
    std::optional<Factored> factored = factor(out.parameter(layer.parameters + ".weight"), channels);
    STIPPLE_REQUIRE(factored, "onnx: layer {}: the matrix {}.weight has no inverse", layer.name, layer.parameters);
    return *std::move(factored);
}

std::string actnorm_onnx(OnnxExport& out, const Layer& layer) {
    const std::string& x = out.input_of(layer, 0);
    const std::string& prefix = layer.parameters;
    const std::vector<int64_t> dims = {layer.type.channels};
    const bool is_inverse = layer.options.inverse;
    std::vector<float> factors;
    for (const float log : out.parameter(prefix + ".logs"))
        factors.push_back(static_cast<float>(std::exp(is_inverse ? -static_cast<double>(log) : log)));
    const std::string factor_name = out.floats(prefix + (is_inverse ? ".inverse_scale" : ".scale"), dims, factors);
    const std::string bias = out.floats(prefix + ".bias", dims, out.parameter(prefix + ".bias"));
    if (is_inverse) return out.node(layer, "Mul", {out.node(layer, "Sub", {x, bias}), factor_name});
    return out.node(layer, "Add", {out.node(layer, "Mul", {x, factor_name}), bias});
}

std::string mix_onnx(OnnxExport& out, const Layer& layer) {
    const size_t n = static_cast<size_t>(layer.type.channels);
    const auto weight = out.parameter(layer.parameters + ".weight");
    std::vector<double> matrix(weight.begin(), weight.end());
    if (layer.options.inverse) matrix = factor_weight(out, layer, n).inverse;
    std::vector<float> transposed(n * n);  // rows times it, instead of it times columns
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) transposed[j * n + i] = static_cast<float>(matrix[i * n + j]);
    const std::string name = layer.parameters + (layer.options.inverse ? ".inverse" : ".weight");
    return out.node(layer, "MatMul",
                    {out.input_of(layer, 0), out.floats(name, {layer.type.channels, layer.type.channels}, transposed)});
}

std::string couple_onnx(OnnxExport& out, const Layer& layer) {
    const std::string &x = out.input_of(layer, 0), &t = out.input_of(layer, 1);
    const std::string_view op = layer.options.inverse ? "Add" : "Sub";
    const int64_t begin = layer.options.begin;
    if (begin == 0) return out.node(layer, op, {x, t});
    const auto slice = [&](int64_t from, int64_t to) {
        return out.node(layer, "Slice", {x, out.integers({from}), out.integers({to}), out.integers({-1})});
    };
    const std::string kept = slice(0, begin);
    const std::string moved = out.node(layer, op, {slice(begin, layer.type.channels), t});
    return out.node(layer, "Concat", {kept, moved}, {{"axis", channel_axis(layer.type)}});
}

std::string inject_onnx(OnnxExport& out, const Layer& layer) {
    const std::string &x = out.input_of(layer, 0), &s = out.input_of(layer, 1), &b = out.input_of(layer, 2);
    if (layer.options.inverse)
        return out.node(layer, "Add", {out.node(layer, "Mul", {x, out.node(layer, "Exp", {s})}), b});
    const std::string factor_name = out.node(layer, "Exp", {out.node(layer, "Neg", {s})});
    return out.node(layer, "Mul", {out.node(layer, "Sub", {x, b}), factor_name});
}

std::string flow_log_det_onnx(OnnxExport& out, const Layer& layer) {
    const std::string& x = out.input_of(layer, 0);
    const TensorType& type = out.type_of_input(layer, 0);
    double of_a_row = 0;
    if (out.weights.tensors.contains(layer.parameters + ".logs"))
        for (const float log : out.parameter(layer.parameters + ".logs")) of_a_row += log;
    else
        of_a_row = factor_weight(out, layer, static_cast<size_t>(type.channels)).log_determinant;
    // [N] times the constant, spread over [B, 1].
    const std::string count =
        out.node(layer, "Cast", {out.node(layer, "Shape", {x}, {{"start", int64_t{1}}, {"end", int64_t{2}}})},
                 {{"to", static_cast<int64_t>(OnnxType::float32)}});
    const std::string sum =
        out.node(layer, "Mul", {count, out.number(static_cast<float>(of_a_row * static_cast<double>(type.width)))});
    const std::string batch = out.node(layer, "Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    const std::string shape = out.node(layer, "Concat", {batch, out.integers({1})}, {{"axis", int64_t{0}}});
    return out.node(layer, "Expand", {sum, shape});
}

std::string gaussian_log_density_onnx(OnnxExport& out, const Layer& layer) {
    const std::string& z = out.input_of(layer, 0);
    const float log_two_pi = static_cast<float>(std::log(2 * std::numbers::pi));
    const std::string squares = out.node(layer, "Mul", {z, z});
    const std::string terms = out.node(layer, "Add", {squares, out.number(log_two_pi)});
    std::vector<int64_t> rows = {1};
    if (out.type_of_input(layer, 0).width > 1) rows.push_back(2);
    const std::string by_channel =
        out.node(layer, "ReduceSum", {terms, out.integers(rows)}, {{"keepdims", int64_t{0}}});
    const std::string sum = out.node(layer, "ReduceSum", {by_channel, out.integers({1})}, {{"keepdims", int64_t{1}}});
    return out.node(layer, "Mul", {sum, out.number(-0.5f)});
}

// === Types and parameters

TensorType type_of_couple(const Rules& rules) {
    rules.same_rows(0, 1);
    const int64_t channels = rules.type(0).channels, begin = rules.layer.options.begin;
    if (begin < 0 || begin >= channels) rules.fail("begin is {}, must be inside the channels; {}", begin, rules.got(0));
    if (rules.type(1).channels != channels - begin)
        rules.fail("needs {} channels to add from channel {} on, {}", channels - begin, begin, rules.got(1));
    return rules.type(0);
}

TensorType type_of_inject(const Rules& rules) {
    rules.same_types(0, 1);
    rules.same_types(0, 2);
    return rules.type(0);
}

TensorType type_of_flow_log_det(const Rules& rules) {
    rules.points(0);
    const Layer* owner = owner_of(rules.network, rules.layer.parameters);
    if (!owner || (owner->kind != Kind::actnorm && owner->kind != Kind::mix))
        rules.fail("needs the name of an actnorm or mix, got '{}'", rules.layer.parameters);
    if (owner->type.channels != rules.type(0).channels)
        rules.fail("{} has {} channels, {}", label_of(*owner), owner->type.channels, rules.got(0));
    return clouds_of(1);
}

TensorType type_of_gaussian_log_density(const Rules& rules) {
    rules.points(0);
    return clouds_of(1);
}

std::vector<Parameter> actnorm_parameters(const Network& network, const Layer& layer) {
    const int64_t c = input_channels(network, layer);
    return {{layer.parameters + ".logs", {c}, Initialiser::zeros, true, layer.name},
            {layer.parameters + ".bias", {c}, Initialiser::zeros, true, layer.name}};
}

std::vector<Parameter> mix_parameters(const Network& network, const Layer& layer) {
    const int64_t c = input_channels(network, layer);
    return {{layer.parameters + ".weight", {c, c}, layer.options.weights, true, layer.name}};
}

std::vector<Parameter> flow_log_det_parameters(const Network& network, const Layer& layer) {
    const Layer* owner = owner_of(network, layer.parameters);
    STIPPLE_REQUIRE(owner, "{}: no layer is named '{}'", label_of(layer), layer.parameters);
    return parameters_of(network, *owner);
}

int64_t mix_multiply_adds(const Network&, const Layer& layer, int64_t) {
    return checked_mul(layer.type.channels, layer.type.channels);
}

constexpr LayerKind kFlowKinds[] = {
    {.kind = Kind::actnorm,
     .name = "actnorm",
     .group = KindGroup::flows,
     .type = type_of_numbers,
     .onnx = actnorm_onnx,
     .parameters = actnorm_parameters},
    {.kind = Kind::mix,
     .name = "mix",
     .group = KindGroup::flows,
     .type = type_of_numbers,
     .onnx = mix_onnx,
     .parameters = mix_parameters,
     .multiply_adds = mix_multiply_adds},
    {.kind = Kind::couple,
     .name = "couple",
     .inputs = 2,
     .group = KindGroup::flows,
     .type = type_of_couple,
     .onnx = couple_onnx,
     .text = [](const LayerOptions& options) { return fmt::format("from channel {}", options.begin); }},
    {.kind = Kind::inject,
     .name = "inject",
     .inputs = 3,
     .group = KindGroup::flows,
     .type = type_of_inject,
     .onnx = inject_onnx},
    {.kind = Kind::flow_log_det,
     .name = "flow_log_det",
     .group = KindGroup::flows,
     .type = type_of_flow_log_det,
     .onnx = flow_log_det_onnx,
     .parameters = flow_log_det_parameters,
     .owns_parameters = false},
    {.kind = Kind::gaussian_log_density,
     .name = "gaussian_log_density",
     .group = KindGroup::flows,
     .type = type_of_gaussian_log_density,
     .onnx = gaussian_log_density_onnx},
};

}  // namespace

std::span<const LayerKind> flow_kinds() {
    return kFlowKinds;
}

}  // namespace stipple::network
