#include "stipple/models/puflow/interpolation.h"

#include <fmt/format.h>

#include <cmath>

#include "stipple/models/puflow/features.h"

namespace stipple::models::puflow_parts {

using network::Builder;
using network::LinearOptions;
using network::Tensor;

namespace {

LinearOptions mlp_layer() {
    return {.norm = true, .activation = network::leaky_relu(0.01f)};
}

/// What a network knows of each neighbour [B, N, k, 256].
Tensor neighbour_context(Builder& build, Tensor points, Tensor near) {
    Tensor distance = build.edge_distance("interp.distance", points, near);
    const std::string encoder = "interp.knn_context.distance_encoder.mlp";
    distance = build.linear(encoder + ".0", distance, 64, mlp_layer());
    distance = build.linear(encoder + ".3", distance, 64, mlp_layer());
    distance = build.linear(encoder + ".6", distance, 128);
    const Tensor feature = edge_unit(build, "interp.knn_context.feat_conv", points, near, 128, 16);
    return build.concat("interp.context", {distance, feature});
}

Tensor learned_logits(Builder& build, Tensor points, Tensor near, int64_t ratio) {
    Tensor x = neighbour_context(build, points, near);
    x = build.linear("interp.weight_unit.mlp.0", x, 128, mlp_layer());
    x = build.linear("interp.weight_unit.mlp.3", x, 64, mlp_layer());
    x = build.linear("interp.weight_unit.mlp.6", x, kMostChildren);
    return build.slice("interp.logits", x, 0, ratio);
}

/// The same numbers for each of a point's k rows.
Tensor constant_rows(Builder& build, const std::string& name, std::vector<float> values, int64_t k) {
    const Tensor numbers = build.constant(name, std::move(values));
    const Tensor of_points = build.repeat(name + ".points", numbers);
    return build.repeat(name + ".rows", of_points, k);
}

/// Number `child` of a sequence that fills the unit cube evenly however long it is: 1/2 + child times powers of 1/g,
/// modulo 1, with g^(d+1) = g + 1 [Roberts 2018].
std::vector<float> low_discrepancy(int64_t child, int dimensions) {
    const double g = dimensions == 2 ? 1.32471795724474602596 : 1.22074408460575947536;
    std::vector<float> u;
    double step = 1;
    for (int i = 0; i < dimensions; ++i) {
        step /= g;
        u.push_back(static_cast<float>(std::fmod(0.5 + static_cast<double>(child) * step, 1)));
    }
    return u;
}

/// No batch norm behind the code: it would take out what is the same in all rows.
Tensor coded_logits(Builder& build, Tensor points, Tensor near, int64_t ratio) {
    const int64_t k = build.type(near).width;
    const Tensor context = neighbour_context(build, points, near);
    const Tensor x = build.linear("interp.coded.context", context, 128, mlp_layer());
    std::vector<Tensor> logits;
    for (int64_t r = 0; r < ratio; ++r) {
        const std::string child = fmt::format("interp.coded.child{}", r);
        const auto layer = [&](const std::string& name, Tensor input, int64_t outputs, const LinearOptions& options) {
            const std::string own = "interp.coded" + name;
            return build.linear_sharing(r == 0 ? own : child + name, input, outputs, options, own);
        };
        const Tensor code = constant_rows(build, child + ".code", low_discrepancy(r, 2), k);
        const Tensor both = build.concat(child + ".both", {x, code});
        const Tensor hidden = layer(".0", both, 64, {.activation = network::leaky_relu(0.01f)});
        logits.push_back(layer(".2", hidden, 1, {}));
    }
    return build.concat("interp.logits", logits);
}

Children of_weights(Builder& build, Tensor weights, Tensor z, Tensor near) {
    Children children;
    children.weights = weights;
    const Tensor values = build.gather("interp.neighbours", z, near);
    children.latents = build.interpolate("interp", weights, values);
    return children;
}

Children of_logits(Builder& build, Tensor logits, Tensor z, Tensor near) {
    Children children = of_weights(build, build.softmax_rows("interp.weights", logits), z, near);
    children.logits = logits;
    return children;
}

Tensor midpoint_weights(Builder& build, int64_t k, int64_t ratio) {
    std::vector<float> values(static_cast<size_t>(k * ratio));
    for (int64_t r = 0; r < ratio; ++r)
        values[static_cast<size_t>(r)] = values[static_cast<size_t>((r + 1) * ratio + r)] = 0.5f;
    const Tensor flat = build.repeat("interp.halves", build.constant("interp.half", std::move(values)));
    return build.regroup("interp.weights", flat, ratio);
}

/// u_j [B, N, k, 3]: p_j - p_i over the distance to the farthest of the k.
Tensor relative_offsets(Builder& build, Tensor points, Tensor near) {
    const int64_t k = build.type(near).width;
    const Tensor edge = build.edge_distance("interp.distance", points, near);
    const Tensor offset = build.scale("interp.offset", build.slice("interp.back", edge, 6, 9), -1);
    const Tensor radius = build.max_rows("interp.radius", build.slice("interp.length", edge, 9, 10));
    const Tensor log = build.activation("interp.log_radius", radius, network::log(1e-6f));
    const Tensor logs = build.repeat("interp.log_radii", build.concat("interp.log_radius3", {log, log, log}), k);
    const Tensor zero = constant_rows(build, "interp.zero", {0, 0, 0}, k);
    return build.inject("interp.relative", offset, logs, zero);
}

Tensor inverse_distance_weights(Builder& build, Tensor points, Tensor near, int64_t ratio) {
    const int64_t k = build.type(near).width;
    const Tensor u = relative_offsets(build, points, near);
    const std::vector<Tensor> copies(static_cast<size_t>(ratio), u);
    std::vector<float> places;
    for (int64_t r = 0; r < ratio; ++r)
        for (const float coordinate : low_discrepancy(r + 1, 3)) places.push_back(coordinate - 0.5f);
    const Tensor all = build.concat("interp.copies", copies);
    const Tensor from = constant_rows(build, "interp.place", std::move(places), k);
    const Tensor away = build.subtract("interp.away", all, from);
    const Tensor squares = build.multiply("interp.squares", away, away);
    const Tensor by_child = build.regroup("interp.by_child", squares, 3);
    const Tensor distance = build.sum_channels("interp.squared_distance", by_child);
    const Tensor rows = build.regroup("interp.squared_distances", distance, ratio);
    const Tensor log = build.activation("interp.log_distance", rows, network::log(1e-4f));
    return build.softmax_rows("interp.weights", build.scale("interp.nearness", log, -1));
}

/// ReLU of a matrix of its own for each of the k rows of x [B, N, k, d], without bias: [B, N, k, outputs]. The first
/// row is the point itself, whose differences are zero whatever the matrix: it has none.
Tensor slot_layers(Builder& build, const std::string& name, Tensor x, int64_t wide, int64_t outputs) {
    const int64_t k = build.type(x).width, d = build.type(x).channels;
    const Tensor flat = build.regroup(name + ".flat", x, k * d);
    const std::vector<float> zeros(static_cast<size_t>(outputs));
    std::vector<Tensor> slots = {build.repeat(name + ".zeros", build.constant(name + ".zero", zeros))};
    for (int64_t j = 1; j < k; ++j) {
        const std::string slot = fmt::format("{}.{}", name, j);
        const Tensor own = build.slice(slot + ".own", flat, j * d, (j + 1) * d);
        const Tensor all = build.linear(slot, own, wide, {.bias = false, .activation = network::relu()});
        slots.push_back(build.slice(slot + ".children", all, 0, outputs));
    }
    return build.regroup(name, build.concat(name + ".slots", slots), outputs);
}

Children bilateral(Builder& build, Tensor points, Tensor z, Tensor near, int64_t ratio) {
    const int64_t k = build.type(near).width, c = build.type(z).channels;
    const Tensor edge = build.edge_distance("interp.distance", points, near);
    const Tensor latent_edge = build.edge_distance("interp.latent_distance", z, near);
    const Tensor offset = build.slice("interp.offset", edge, 6, 9);
    const Tensor latent_offset = build.slice("interp.latent_offset", latent_edge, 2 * c, 3 * c);
    const Tensor theta = slot_layers(build, "interp.theta", offset, kMostChildren * c, ratio * c);
    const Tensor psi = slot_layers(build, "interp.psi", latent_offset, kMostChildren * c, ratio * c);
    const Tensor product = build.multiply("interp.product", theta, psi);
    const Tensor log = build.activation("interp.log_product", product, network::log(1e-6f));
    const Tensor weights = build.softmax_rows("interp.of_channels", log);

    Children children;
    const Tensor values = build.gather("interp.neighbours", z, near);
    const std::vector<Tensor> copies(static_cast<size_t>(ratio), values);
    const Tensor weighted = build.multiply("interp.weighted", weights, build.concat("interp.copies", copies));
    const Tensor one = constant_rows(build, "interp.one", {1}, k);
    children.latents = build.regroup("interp", build.interpolate("interp.sum", one, weighted), c);
    const Tensor by_child = build.regroup("interp.by_child", weights, c);
    const Tensor mean =
        build.scale("interp.mean", build.sum_channels("interp.sum_channels", by_child), 1 / static_cast<float>(c));
    children.weights = build.regroup("interp.weights", mean, ratio);
    return children;
}

/// Gaussians on the lattice are products of those of each coordinate; divided by their sum over the neighbours they are
/// a softmax of the sum of their exponents.
Tensor convolution_weights(Builder& build, Tensor points, Tensor near, int64_t ratio) {
    constexpr float kSpacing = 0.5f, kDeviation = kSpacing / 2;
    const int64_t k = build.type(near).width;
    const Tensor u = relative_offsets(build, points, near);
    const Tensor copies = build.concat("interp.copies", {u, u, u});
    const Tensor lattice = constant_rows(build, "interp.lattice",
                                         {-kSpacing, -kSpacing, -kSpacing, 0, 0, 0, kSpacing, kSpacing, kSpacing}, k);
    const Tensor away = build.subtract("interp.away", copies, lattice);
    const Tensor squares = build.multiply("interp.squares", away, away);
    const Tensor exponent = build.scale("interp.exponent", squares, -1 / (2 * kDeviation * kDeviation));
    Tensor parts[9];
    for (int64_t i = 0; i < 9; ++i) parts[i] = build.slice(fmt::format("interp.exponent{}", i), exponent, i, i + 1);
    Tensor sum = -1;
    constexpr int kOf[3] = {9, 3, 1};
    for (int axis = 0; axis < 3; ++axis) {
        std::vector<Tensor> of_points;
        for (int q = 0; q < 27; ++q) of_points.push_back(parts[q / kOf[axis] % 3 * 3 + axis]);
        const Tensor of_axis = build.concat(fmt::format("interp.axis{}", axis), of_points);
        sum = axis == 0 ? of_axis : build.add(fmt::format("interp.axes{}", axis), sum, of_axis);
    }
    const Tensor kernel = build.softmax_rows("interp.kernel", sum);
    const Tensor wide = build.linear("interp.convolution", kernel, kMostChildren, {.bias = false});
    const Tensor raw = build.slice("interp.raw", wide, 0, ratio);
    const float share = 1 / static_cast<float>(k);
    const Tensor uniform = constant_rows(build, "interp.share", {share}, k);
    const Tensor mean = build.repeat("interp.means", build.interpolate("interp.mean", uniform, raw), k);
    const Tensor centred = build.subtract("interp.centred", raw, mean);
    const std::vector<float> shares(static_cast<size_t>(ratio), share);
    return build.add("interp.weights", centred, constant_rows(build, "interp.shares", shares, k));
}

}  // namespace

Children interpolate_latents(Builder& build, const PuFlowOptions& options, Tensor points, Tensor z, Tensor near) {
    const int64_t ratio = options.ratio, k = build.type(near).width;
    switch (options.interpolation) {
        case Interpolation::learned: return of_logits(build, learned_logits(build, points, near, ratio), z, near);
        case Interpolation::coded: return of_logits(build, coded_logits(build, points, near, ratio), z, near);
        case Interpolation::midpoint: return of_weights(build, midpoint_weights(build, k, ratio), z, near);
        case Interpolation::inverse_distance:
            return of_weights(build, inverse_distance_weights(build, points, near, ratio), z, near);
        case Interpolation::bilateral: return bilateral(build, points, z, near, ratio);
        case Interpolation::interp_conv:
            return of_weights(build, convolution_weights(build, points, near, ratio), z, near);
    }
    return {};
}

}  // namespace stipple::models::puflow_parts
