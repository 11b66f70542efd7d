#include "stipple/models/puflow/context.h"

#include <fmt/format.h>

#include <cmath>

namespace stipple::models::puflow_parts {

using network::Builder;
using network::Initialiser;
using network::Normalise;
using network::Tensor;

namespace {

// A bias of keys adds the same to all logits of a query, which a softmax does not see: linear keys have none.

int64_t channels_of(const Builder& build, Tensor x) {
    return build.type(x).channels;
}

/// Every row times its cloud's number [B, 1].
Tensor times(Builder& build, const std::string& name, Tensor number, Tensor x) {
    const Tensor of_points = build.repeat(name + ".points", number);
    return build.interpolate(name, of_points, x);  // one row, one weight
}

Tensor global_max(Builder& build, Tensor f) {
    const int64_t c = channels_of(build, f);
    const Tensor most = build.repeat("context.most", build.max_points("context.max", f));
    const Tensor both = build.concat("context.both", {f, most});
    const Tensor hidden = build.linear("context.0", both, c, {.activation = network::relu()});
    return build.linear("context.2", hidden, c);
}

/// W^T z: row i is the sum over j of W_ji z_j. `row` makes the weights of each sum 1, `joint` those of all together, as
/// printed.
Tensor self_attention(Builder& build, Normalise normalise, Tensor f) {
    const int64_t c = channels_of(build, f);
    const Tensor x = build.linear("context.x", f, c / 4);
    const Tensor y = build.linear("context.y", f, c / 4, {.bias = false});
    const Tensor z = build.linear("context.z", f, c);
    const Tensor mixed = build.attend("context.attend", x, y, z, {.normalise = normalise});
    const Tensor mu = build.learned("context.mu", 1, Initialiser::zeros);
    const Tensor added = times(build, "context.added", mu, mixed);
    return build.add("context", f, added);
}

Tensor shape_context(Builder& build, Tensor f) {
    const int64_t c = channels_of(build, f), d = c / 4;
    const Tensor q = build.linear("context.q", f, d, {.activation = network::relu()});
    const Tensor k = build.linear("context.k", f, d, {.activation = network::relu()});
    const Tensor v = build.linear("context.v", f, c, {.activation = network::relu()});
    const float factor = 1 / std::sqrt(static_cast<float>(d));
    const Tensor mixed = build.attend("context.attend", q, k, v, {.factor = factor});
    const Tensor h = build.linear("context.mlp", mixed, c, {.activation = network::relu()});
    const Tensor gate = build.linear("context.gate", h, c, {.activation = network::sigmoid()});
    return build.multiply("context", gate, h);
}

Tensor cosine_gate(Builder& build, Tensor f) {
    const int64_t c = channels_of(build, f);
    // Over N: a sum would grow with the patch.
    const Tensor mixed =
        build.attend("context.cosine", f, f, f, {.normalise = Normalise::none, .unit = true, .skips_self = true});
    // Beside these weights a bias starts at zero: with the constant it starts at -4.
    const Tensor linear = build.linear("context.gate", mixed, c, {.weights = Initialiser::xavier_normal});
    const Tensor start = build.constant("context.gate.start", std::vector<float>(static_cast<size_t>(c), -4.0f));
    const Tensor shut = build.add("context.gate.shut", linear, build.repeat("context.gate.starts", start));
    const Tensor gate = build.activation("context.gate.open", shut, network::sigmoid());
    const Tensor change = build.subtract("context.change", mixed, f);
    return build.add("context", f, build.multiply("context.let_in", gate, change));
}

Tensor intra_attention(Builder& build, Tensor f) {
    const int64_t c = channels_of(build, f);
    const Tensor s = build.linear("context.s", f, c / 4, {.bias = false});
    const Tensor m = build.linear("context.m", f, c / 4);
    const Tensor h = build.linear("context.h", f, c);
    const Tensor mixed = build.attend("context.attend", m, s, h);
    // A weight that starts within 1, of a tenth.
    const Tensor mu = build.linear("context.mu", build.constant("context.tenth", {0.1f}), 1, {.bias = false});
    const Tensor added = times(build, "context.added", mu, mixed);
    return build.add("context", f, added);
}

/// [c, c] row-major: x T has the channels of all groups by turns.
std::vector<float> shuffle_matrix(int64_t c, int64_t groups) {
    std::vector<float> matrix(static_cast<size_t>(c * c));
    const int64_t size = c / groups;
    for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < size; ++i) matrix[static_cast<size_t>((g * size + i) * c + i * groups + g)] = 1;
    return matrix;
}

Tensor group_shuffle(Builder& build, Tensor f) {
    constexpr int64_t kGroups = 4;
    const int64_t c = channels_of(build, f), size = c / kGroups;
    std::vector<Tensor> mixed, normal;
    for (int64_t g = 0; g < kGroups; ++g) {
        const std::string name = fmt::format("context.groups.{}", g);
        const Tensor own = build.slice(name + ".own", f, g * size, (g + 1) * size);
        const Tensor x =
            build.linear(name + ".x", own, size, {.bias = false});  // query, key and value are one, as published
        const Tensor value = build.activation(name + ".elu", x, network::elu());
        mixed.push_back(build.attend(name, x, x, value, {.factor = 1 / std::sqrt(static_cast<float>(size))}));
    }
    const Tensor joined = build.concat("context.joined", mixed);
    const Tensor order = build.constant("context.order", shuffle_matrix(c, kGroups));
    const Tensor shuffled = build.transform("context.shuffled", joined, order);
    const Tensor sum = build.add("context.sum", f, shuffled);
    for (int64_t g = 0; g < kGroups; ++g) {
        // Over the channels of a group at each point: then a row does not depend on how many others there are.
        const std::string name = fmt::format("context.norm.{}", g);
        const Tensor part = build.slice(name + ".part", sum, g * size, (g + 1) * size);
        normal.push_back(build.layer_norm(name, part));
    }
    return build.concat("context", normal);
}

Tensor channel_graph(Builder& build, Tensor f) {
    const int64_t c = channels_of(build, f), d = c / 4;
    std::vector<float> identity(static_cast<size_t>(c * c));
    for (int64_t i = 0; i < c; ++i) identity[static_cast<size_t>(i * c + i)] = 1;
    const Tensor ones = build.unflatten("context.channels", build.constant("context.identity", identity), c);
    const Tensor phi = build.linear("context.phi", f, c);
    const Tensor s = build.linear("context.s", f, d);
    // Channels are points of a set of their own: attention with their unit vectors is phi^T s / N.
    const Tensor nodes = build.attend("context.nodes", ones, phi, s, {.normalise = Normalise::none});
    const Tensor near = build.attend("context.graph", nodes, nodes, nodes);
    const Tensor reasoned = build.linear("context.w", near, d, {.bias = false, .activation = network::relu()});
    const Tensor back = build.attend("context.back", s, reasoned, ones,
                                     {.normalise = Normalise::none, .factor = static_cast<float>(c)});
    const Tensor added = build.linear("context.out", back, c, {.weights = Initialiser::zeros});
    return build.add("context", f, added);
}

}  // namespace

Tensor context_features(Builder& build, Context context, Normalise normalise, Tensor features) {
    switch (context) {
        case Context::none:
        case Context::skip_attention:
        case Context::level_attention: return features;
        case Context::global_max: return global_max(build, features);
        case Context::self_attention: return self_attention(build, normalise, features);
        case Context::shape_context: return shape_context(build, features);
        case Context::cosine_gate: return cosine_gate(build, features);
        case Context::intra_attention: return intra_attention(build, features);
        case Context::group_shuffle: return group_shuffle(build, features);
        case Context::channel_graph: return channel_graph(build, features);
    }
    return features;
}

Tensor skip_attention(Builder& build, int block, Tensor condition, Tensor features) {
    const std::string name = fmt::format("context.{}", block);
    const int64_t d = channels_of(build, features) / 4;
    const Tensor q = build.linear(name + ".q", condition, d);
    const Tensor k = build.linear(name + ".k", features, d, {.bias = false});
    const Tensor found = build.attend(name + ".attend", q, k, features);
    return build.concat(name, {condition, found});
}

Tensor level_attention(Builder& build, const std::vector<Tensor>& levels) {
    constexpr int64_t kWidth = 128;
    const auto count = static_cast<int64_t>(levels.size());
    std::vector<Tensor> mapped;
    for (size_t l = 0; l < levels.size(); ++l)
        mapped.push_back(build.linear(fmt::format("context.levels.{}", l), levels[l], kWidth));
    const Tensor all = build.concat("context.all", mapped);
    const Tensor scores = build.linear("context.scores", all, count, {.weights = Initialiser::zeros});
    const Tensor score_rows = build.regroup("context.score_rows", scores, 1);
    const Tensor weights = build.softmax_rows("context.weights", score_rows);
    const Tensor rows = build.regroup("context.rows", all, kWidth);
    return build.interpolate("context", weights, rows);
}

}  // namespace stipple::models::puflow_parts
