#include <cmath>

#include "stipple/core/error.h"
#include "stipple/network/check_layer.h"

namespace stipple::network {
namespace {

// Far above any use; products of two of them fit in 64 bits.
constexpr int64_t kMaxExtent = int64_t{1} << 24;

// One layer under inspection: its inputs and the words for what is wrong with them.
class Rules {
public:
    Rules(const Network& network, const Layer& layer) : layer_(layer) {
        for (size_t i = 0; i < layer.inputs.size(); ++i) {
            const Tensor tensor = layer.inputs[i];
            if (tensor < 0 || static_cast<size_t>(tensor) >= network.layers.size())
                fail("input {} is layer {} of {}", i, tensor, network.layers.size());
            inputs_.push_back(&network[tensor]);
        }
    }

    template <class... Args>
    [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
        throw Error(ErrorCode::bad_argument,
                    label_of(layer_) + ": " + fmt::format(format, std::forward<Args>(args)...));
    }

    void need_inputs(size_t count) const {
        if (inputs_.size() != count) fail("needs {} input{}, got {}", count, count == 1 ? "" : "s", inputs_.size());
    }

    const TensorType& type(size_t i) const { return inputs_[i]->type; }

    // "'pool' is [B, 1024]"
    std::string got(size_t i) const { return fmt::format("'{}' is {}", inputs_[i]->name, to_string(inputs_[i]->type)); }

    const TensorType& numbers(size_t i) const {
        if (type(i).is_index) fail("needs numbers, {}", got(i));
        return type(i);
    }

    /// [B, N, w, c]
    const TensorType& rows(size_t i) const {
        if (numbers(i).level != Level::point) fail("needs rows of points [B, N, c], {}", got(i));
        return type(i);
    }

    /// [B, N, c]: one row a point.
    const TensorType& points(size_t i) const {
        if (rows(i).width != 1) fail("needs one row a point [B, N, c], {}", got(i));
        return type(i);
    }

    const TensorType& clouds(size_t i) const {
        if (numbers(i).level != Level::cloud) fail("needs one row a cloud [B, c], {}", got(i));
        return type(i);
    }

    const TensorType& indices(size_t i) const {
        if (!type(i).is_index) fail("needs indices [B, N, k] int32, {}", got(i));
        return type(i);
    }

    void same_rows(size_t a, size_t b) const {
        if (numbers(a).level != numbers(b).level || type(a).width != type(b).width)
            fail("needs inputs with the same rows, {} and {}", got(a), got(b));
    }

    void same_types(size_t a, size_t b) const {
        if (numbers(a) != numbers(b)) fail("needs inputs of one type, {} and {}", got(a), got(b));
    }

    void extent(const char* what, int64_t value) const {
        if (value < 1 || value > kMaxExtent) fail("{} is {}, must be 1 to {}", what, value, kMaxExtent);
    }

    void activation(const Activation& activation) const {
        if (activation.kind == ActivationKind::leaky_relu && !(activation.slope > 0 && activation.slope < 1))
            fail("slope of leaky_relu is {}, must be between 0 and 1", activation.slope);
    }

private:
    const Layer& layer_;
    std::vector<const Layer*> inputs_;
};

TensorType with_channels(TensorType type, int64_t channels) {
    type.channels = channels;
    return type;
}

TensorType infer_input(const Rules& rules, const TensorType& type) {
    rules.need_inputs(0);
    rules.extent("channels", type.channels);
    rules.extent("width", type.width);
    if (type.level == Level::cloud && (type.width != 1 || type.is_index))
        rules.fail("a cloud has one row of numbers, not {} rows{}", type.width, type.is_index ? " of indices" : "");
    if (type.is_index && type.channels != 1) rules.fail("indices have one channel, not {}", type.channels);
    return type;
}

TensorType infer_linear(const Rules& rules, const LayerOptions& options) {
    rules.need_inputs(1);
    rules.extent("channels", options.channels);
    rules.activation(options.activation);
    if (options.norm && !(options.norm_eps > 0 && std::isfinite(options.norm_eps)))
        rules.fail("norm_eps is {}, must be positive", options.norm_eps);
    if (options.norm && !(options.norm_momentum > 0 && options.norm_momentum <= 1))
        rules.fail("norm_momentum is {}, must be above 0 and at most 1", options.norm_momentum);
    return with_channels(rules.numbers(0), options.channels);
}

TensorType infer_transform(const Rules& rules) {
    rules.need_inputs(2);
    const int64_t k = rules.numbers(0).channels;
    if (rules.clouds(1).channels != k * k)
        rules.fail("needs a matrix [B, {}] for {} channels, {}", k * k, k, rules.got(1));
    return rules.type(0);
}

TensorType infer_add_identity(const Rules& rules) {
    rules.need_inputs(1);
    const int64_t count = rules.clouds(0).channels;
    const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(count))));
    if (k * k != count) rules.fail("needs a square matrix [B, k*k], {}", rules.got(0));
    return rules.type(0);
}

TensorType infer_concat(const Rules& rules, size_t inputs) {
    if (inputs == 0) rules.fail("needs at least one input");
    TensorType type = rules.numbers(0);
    for (size_t i = 1; i < inputs; ++i) {
        rules.same_rows(0, i);
        type.channels += rules.type(i).channels;
    }
    return type;
}

TensorType infer_slice(const Rules& rules, int64_t begin, int64_t end) {
    rules.need_inputs(1);
    const TensorType& type = rules.numbers(0);
    if (begin < 0 || begin >= end || end > type.channels)
        rules.fail("cannot take channels {} to {}, {}", begin, end, rules.got(0));
    return with_channels(type, end - begin);
}

TensorType infer_repeat(const Rules& rules, int64_t width) {
    rules.need_inputs(1);
    rules.extent("width", width);
    const TensorType& type = rules.numbers(0);
    if (type.level == Level::point) return rows_of(width, rules.points(0).channels);
    if (width != 1) rules.fail("repeats a cloud's row for every point with width 1, not {}; {}", width, rules.got(0));
    return points_of(type.channels);
}

TensorType infer_knn(const Rules& rules, int64_t k) {
    rules.need_inputs(1);
    rules.points(0);
    rules.extent("k", k);
    return {Level::point, k, 1, true};
}

// gather, edge, edge_distance: `channels` of each of a point's neighbours.
TensorType infer_neighbours(const Rules& rules, int64_t factor, int64_t more) {
    rules.need_inputs(2);
    const int64_t channels = rules.points(0).channels;
    return rows_of(rules.indices(1).width, factor * channels + more);
}

TensorType infer_interpolate(const Rules& rules) {
    rules.need_inputs(2);
    if (rules.rows(0).width != rules.rows(1).width)
        rules.fail("needs weights and values of the same rows, {} and {}", rules.got(0), rules.got(1));
    return rows_of(rules.type(0).channels, rules.type(1).channels);
}

TensorType infer_couple(const Rules& rules, int64_t begin) {
    rules.need_inputs(2);
    rules.same_rows(0, 1);
    const int64_t channels = rules.type(0).channels;
    if (begin < 0 || begin >= channels) rules.fail("begin is {}, must be inside the channels; {}", begin, rules.got(0));
    if (rules.type(1).channels != channels - begin)
        rules.fail("needs {} channels to add from channel {} on, {}", channels - begin, begin, rules.got(1));
    return rules.type(0);
}

TensorType infer_inject(const Rules& rules) {
    rules.need_inputs(3);
    rules.same_types(0, 1);
    rules.same_types(0, 2);
    return rules.type(0);
}

TensorType infer_flow_log_det(const Rules& rules, const Network& network, const Layer& layer) {
    rules.need_inputs(1);
    rules.points(0);
    const Layer* owner = owner_of(network, layer.parameters);
    if (!owner || (owner->kind != Kind::actnorm && owner->kind != Kind::mix))
        rules.fail("needs the name of an actnorm or mix, got '{}'", layer.parameters);
    if (owner->type.channels != rules.type(0).channels)
        rules.fail("{} has {} channels, {}", label_of(*owner), owner->type.channels, rules.got(0));
    return clouds_of(1);
}

TensorType infer(const Rules& rules, const Network& network, const Layer& layer) {
    const LayerOptions& options = layer.options;
    switch (layer.kind) {
        case Kind::input: return infer_input(rules, options.type);
        case Kind::linear: return infer_linear(rules, options);
        case Kind::activation:
            rules.need_inputs(1);
            rules.activation(options.activation);
            if (options.activation.kind == ActivationKind::none) rules.fail("names no activation");
            return rules.numbers(0);
        case Kind::dropout:
            rules.need_inputs(1);
            if (!(options.rate >= 0 && options.rate < 1))
                rules.fail("rate is {}, must be at least 0 and below 1", options.rate);
            return rules.numbers(0);
        case Kind::transform: return infer_transform(rules);
        case Kind::add_identity: return infer_add_identity(rules);
        case Kind::max_points:
        case Kind::sum_points: rules.need_inputs(1); return clouds_of(rules.rows(0).channels);
        case Kind::max_rows: rules.need_inputs(1); return points_of(rules.rows(0).channels);
        case Kind::sum_channels: rules.need_inputs(1); return with_channels(rules.numbers(0), 1);
        case Kind::concat: return infer_concat(rules, layer.inputs.size());
        case Kind::slice: return infer_slice(rules, options.begin, options.end);
        case Kind::repeat: return infer_repeat(rules, options.width);
        case Kind::knn: return infer_knn(rules, options.width);
        case Kind::gather: return infer_neighbours(rules, 1, 0);
        case Kind::edge: return infer_neighbours(rules, 3, 0);
        case Kind::edge_distance: return infer_neighbours(rules, 3, 1);
        case Kind::softmax_rows: rules.need_inputs(1); return rules.rows(0);
        case Kind::interpolate: return infer_interpolate(rules);
        case Kind::reverse:
        case Kind::log_softmax:
        case Kind::actnorm:
        case Kind::mix: rules.need_inputs(1); return rules.numbers(0);
        case Kind::add:
        case Kind::subtract:
            rules.need_inputs(2);
            rules.same_types(0, 1);
            return rules.type(0);
        case Kind::scale:
            rules.need_inputs(1);
            if (!std::isfinite(options.factor)) rules.fail("factor is not finite");
            return rules.numbers(0);
        case Kind::couple: return infer_couple(rules, options.begin);
        case Kind::inject: return infer_inject(rules);
        case Kind::flow_log_det: return infer_flow_log_det(rules, network, layer);
        case Kind::gaussian_log_density:
            rules.need_inputs(1);
            rules.points(0);
            return clouds_of(1);
    }
    rules.fail("unknown kind {}", static_cast<int>(layer.kind));
}

}  // namespace

TensorType infer_type(const Network& network, const Layer& layer) {
    const Rules rules(network, layer);
    const TensorType type = infer(rules, network, layer);
    rules.extent("channels of the output", type.channels);
    rules.extent("rows of a point", type.width);
    return type;
}

}  // namespace stipple::network
