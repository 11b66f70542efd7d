#include "stipple/models/flow_upsampler.h"

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"
#include "stipple/network/builder.h"

namespace stipple::models {

using network::Builder;
using network::leaky_relu;
using network::LinearOptions;
using network::Network;
using network::Tensor;

namespace {

constexpr int kHeads = 4;
constexpr int64_t kWeightHidden = 16;
constexpr Tensor kNoTime = -1;

void check(const FlowUpsamplerOptions& options) {
    check_options("flow-upsampler", flow_upsampler_fields(), &options);
    STIPPLE_REQUIRE(options.hidden % kHeads == 0, "flow-upsampler: hidden must be a multiple of {}, got {}", kHeads,
                    options.hidden);
}

LinearOptions without_bias() {
    return {.bias = false};
}

/// A row for each of `width` rows of a point; the point's own where there is one alone.
Tensor for_rows(Builder& build, const std::string& name, Tensor x, int64_t width) {
    return width == 1 ? x : build.repeat(name, x, width);
}

/// Features of the input points [B, N, hidden] from ever wider surroundings.
Tensor encode(Builder& build, Tensor points, const FlowUpsamplerOptions& options) {
    const Tensor near = build.knn("knn", points, options.neighbours);
    const Tensor offset = build.slice("offset", build.edge("edge", points, near), 6, 9);
    std::vector<Tensor> levels;
    for (int64_t l = 0; l < options.layers; ++l) {
        const std::string name = fmt::format("edge{}", l + 1);
        // W [f_i, f_j, x_j - x_i] by its parts: two products for each point instead of one for each edge.
        Tensor x = build.linear(name + ".offset", offset, options.width);
        if (l > 0) {
            const Tensor own = build.linear(name + ".own", levels.back(), options.width, without_bias());
            const Tensor other = build.linear(name + ".other", levels.back(), options.width, without_bias());
            x = build.add(name + ".add", x, build.gather(name + ".gather", other, near));
            x = build.add(name + ".sum", x, build.repeat(name + ".repeat", own, options.neighbours));
        }
        x = build.activation(name + ".activation", x, leaky_relu(0.1f));
        x = build.linear(name + ".linear", x, options.width, {.norm = true, .activation = leaky_relu(0.1f)});
        levels.push_back(build.max_rows(name + ".max", x));
    }
    const Tensor all = levels.size() == 1 ? levels[0] : build.concat("levels", levels);
    return build.linear("features", all, options.hidden);
}

/// The flow of one step: bijections of R^3 around each query, the same parameters for neighbours and result.
class Flow {
public:
    /// `condition` [B, M, hidden].
    Flow(Builder& build, std::string name, Tensor condition, const FlowUpsamplerOptions& options)
        : build_(build), name_(std::move(name)), options_(options) {
        for (int64_t b = 0; b < options.blocks; ++b) {
            const std::string block = block_name(b);
            Block made;
            made.hidden = build.linear(block + ".condition", condition, options.flow_hidden);
            made.scale =
                build.activation(block + ".bounded",
                                 build.linear(block + ".scale", condition, 3, {.weights = network::Initialiser::zeros}),
                                 network::tanh());
            made.bias = build.linear(block + ".bias", condition, 3, {.weights = network::Initialiser::zeros});
            blocks_.push_back(made);
        }
    }

    /// x [B, M, width, 3] to the latent space. `prefix` tells its layers from those of other calls; the first has
    /// none.
    Tensor forward(const std::string& prefix, Tensor x, int64_t width) {
        for (int64_t b = 0; b < options_.blocks; ++b) {
            const std::string block = block_name(b), name = prefix + block;
            const Tensor scale = for_rows(build_, name + ".scales", blocks_[b].scale, width);
            x = build_.inject(name + ".inject", x, scale, for_rows(build_, name + ".biases", blocks_[b].bias, width));
            x = build_.mix(name + ".mix", x, false, prefix.empty() ? "" : block + ".mix");
            x = couple(name, b, x, width, false);
        }
        return x;
    }

    Tensor inverse(const std::string& prefix, Tensor z) {
        for (int64_t b = options_.blocks - 1; b >= 0; --b) {
            const std::string block = block_name(b), name = prefix + block;
            z = couple(name, b, z, 1, true);
            z = build_.mix(name + ".mix", z, true, block + ".mix");
            z = build_.inject(name + ".inject", z, blocks_[b].scale, blocks_[b].bias, true);
        }
        return z;
    }

private:
    struct Block {
        Tensor hidden, scale, bias;
    };

    std::string block_name(int64_t b) const { return fmt::format("{}.flow{}", name_, b + 1); }

    /// Two channels stay and the third moves, then one stays: the first is a height above a plane.
    Tensor couple(const std::string& name, int64_t b, Tensor x, int64_t width, bool inverse) {
        const int64_t kept = b % 2 == 0 ? 2 : 1;
        const std::string parameters = block_name(b);
        Tensor t = build_.linear_sharing(name + ".kept", build_.slice(name + ".slice", x, 0, kept),
                                         options_.flow_hidden, without_bias(), parameters + ".kept");
        t = build_.add(name + ".sum", t, for_rows(build_, name + ".conditions", blocks_[b].hidden, width));
        t = build_.activation(name + ".activation", t, leaky_relu(0.1f));
        t = build_.linear_sharing(name + ".linear", t, options_.flow_hidden, {.activation = leaky_relu(0.1f)},
                                  parameters + ".linear");
        t = build_.linear_sharing(name + ".move", t, 3 - kept, {.weights = network::Initialiser::zeros},
                                  parameters + ".move");
        return build_.couple(name + ".couple", x, t, kept, inverse);
    }

    Builder& build_;
    std::string name_;
    const FlowUpsamplerOptions& options_;
    std::vector<Block> blocks_;
};

/// Where the k input points nearest to each query lie.
struct Surroundings {
    Tensor neighbours;  // indices [B, M, k]
    Tensor offsets;     // [B, M, k, 3] from the query
    Tensor places;      // [B, M, k, 4] offsets and squared distances
};

Surroundings look_around(Builder& build, const std::string& name, Tensor points, Tensor queries, int64_t k) {
    Surroundings around;
    around.neighbours = build.knn(name + ".knn", queries, points, k);
    const Tensor there = build.gather(name + ".neighbours", points, around.neighbours);
    const Tensor here = for_rows(build, name + ".centres", queries, k);
    around.offsets = build.subtract(name + ".offset", there, here);
    const Tensor square = build.multiply(name + ".square", around.offsets, around.offsets);
    around.places = build.concat(name + ".places", {around.offsets, build.sum_channels(name + ".distance", square)});
    return around;
}

/// What a query sees [B, M, hidden]: its neighbours' features and where they lie, by attention and maximum, and the
/// time [B, M, 1], if any.
Tensor see(Builder& build, const std::string& name, Tensor features, const Surroundings& around, Tensor time,
           const FlowUpsamplerOptions& options) {
    const Tensor place = build.linear(name + ".place", around.places, options.hidden);
    const Tensor own = build.linear(name + ".features", features, options.hidden, without_bias());
    Tensor x = build.add(name + ".add", place, build.gather(name + ".gather", own, around.neighbours));
    x = build.activation(name + ".activation", x, leaky_relu(0.1f));
    x = build.linear(name + ".edge", x, options.hidden, {.activation = leaky_relu(0.1f)});
    const Tensor attention = build.softmax_rows(name + ".attention", build.linear(name + ".logits", x, kHeads));
    std::vector<Tensor> seen = {build.max_rows(name + ".max", x)};
    const int64_t part = options.hidden / kHeads;
    for (int64_t head = 0; head < kHeads; ++head) {
        const std::string suffix = fmt::format("{}", head + 1);
        const Tensor weights = build.slice(name + ".weights" + suffix, attention, head, head + 1);
        const Tensor values = build.slice(name + ".values" + suffix, x, head * part, (head + 1) * part);
        seen.push_back(build.interpolate(name + ".head" + suffix, weights, values));
    }
    if (time != kNoTime) seen.push_back(time);
    x = build.linear(name + ".context", build.concat(name + ".seen", seen), options.hidden,
                     {.activation = leaky_relu(0.1f)});
    return build.linear(name + ".condition", x, options.hidden, {.activation = leaky_relu(0.1f)});
}

/// Of the neighbours in the interpolation [B, M, k, 1].
Tensor interpolation_weights(Builder& build, const std::string& name, Tensor context, const Surroundings& around,
                             int64_t k) {
    const Tensor place = build.linear(name + ".place", around.places, kWeightHidden);
    const Tensor own = build.linear(name + ".context", context, kWeightHidden, without_bias());
    Tensor x = build.add(name + ".add", place, for_rows(build, name + ".contexts", own, k));
    x = build.activation(name + ".activation", x, leaky_relu(0.1f));
    return build.softmax_rows(name + ".weights", build.linear(name + ".logits", x, 1));
}

/// Where a query is to go.
struct Direction {
    Tensor context;              // [B, M, hidden] what it sees
    Tensor offset;               // [B, M, 3]
    Tensor weights, neighbours;  // of the interpolation
};

/// Of queries [B, M, 3]: in the latent space of each, from its own place towards the interpolated neighbours, and a
/// learned offset.
Direction direction_of(Builder& build, const std::string& name, Tensor points, Tensor features, Tensor queries,
                       Tensor time, const FlowUpsamplerOptions& options) {
    Direction to;
    to.context =
        see(build, name, features, look_around(build, name, points, queries, options.query_neighbours), time, options);
    const std::string near = name + ".near";
    const Surroundings around = look_around(build, near, points, queries, options.flow_neighbours);
    to.neighbours = around.neighbours;
    to.weights = interpolation_weights(build, near, to.context, around, options.flow_neighbours);
    Flow flow(build, name, to.context, options);
    const Tensor latents = flow.forward("", around.offsets, options.flow_neighbours);
    const Tensor own_latent = flow.forward("query.", build.scale(name + ".origin", queries, 0), 1);
    const Tensor mean = build.interpolate(name + ".interpolate", to.weights, latents);
    const Tensor towards = build.subtract(name + ".towards", mean, own_latent);
    const Tensor share = build.linear(name + ".share", to.context, 3, {.activation = network::sigmoid()});
    Tensor z = build.add(name + ".blend", own_latent, build.multiply(name + ".part", share, towards));
    z = build.add(name + ".shift", z,
                  build.linear(name + ".latent_offset", to.context, 3, {.weights = network::Initialiser::zeros}));
    to.offset = flow.inverse("decode.", z);
    return to;
}

std::string step_name(int64_t step) {
    return fmt::format("step{}", step);
}

/// A distance to the surface [B, M, 1].
Tensor distance_from(Builder& build, const std::string& name, Tensor context) {
    return build.linear(name, context, 1, {.activation = network::softplus()});
}

void output_moved(Builder& build, Tensor moved, Tensor uncertainty, const Direction& last) {
    build.output("upsampled", moved);
    build.output("uncertainty", uncertainty);
    build.output("weights", last.weights);
    build.output("neighbours", last.neighbours);
}

void add_projection(Builder& build, Tensor points, Tensor features, Tensor queries,
                    const FlowUpsamplerOptions& options) {
    Direction to;
    Tensor moved = queries, uncertainty = -1;
    for (int64_t step = 1; step <= options.steps; ++step) {
        const std::string name = step_name(step);
        to = direction_of(build, name, points, features, moved, kNoTime, options);
        moved = build.add(name + ".moved", moved, to.offset);
        if (step == options.steps) uncertainty = distance_from(build, name + ".uncertainty", to.context);
        build.output(fmt::format("moved_{}", step), moved);
    }
    output_moved(build, moved, uncertainty, to);
}

/// Euler steps of equal length. Parameters still have the names of their steps.
void add_matching(Builder& build, Tensor points, Tensor features, Tensor queries, const FlowUpsamplerOptions& options) {
    Direction to;
    Tensor moved = queries;
    const float length = 1 / static_cast<float>(options.steps);
    for (int64_t step = 1; step <= options.steps; ++step) {
        const std::string name = step_name(step);
        const Tensor now = build.constant(name + ".now", {static_cast<float>(step - 1) * length});
        const Tensor time = build.repeat_for_set(name + ".time", now, 1);
        to = direction_of(build, name, points, features, moved, time, options);
        moved = build.add(name + ".moved", moved, build.scale(name + ".length", to.offset, length));
        build.output(fmt::format("moved_{}", step), moved);
    }
    const Tensor uncertainty = distance_from(build, "uncertainty", to.context);
    output_moved(build, moved, uncertainty, to);
}

void add_distance(Builder& build, Tensor points, Tensor features, Tensor queries, const FlowUpsamplerOptions& options) {
    const Surroundings around = look_around(build, "query", points, queries, options.query_neighbours);
    const Tensor context = see(build, "query", features, around, kNoTime, options);
    build.output("distance", distance_from(build, "distance", context));
}

/// All steps with the parameters of the first.
void share_steps(Network& network) {
    for (network::Layer& layer : network.layers) {
        if (!layer.parameters.starts_with("step") || network::parameters_of(network, layer).empty()) continue;
        layer.parameters = step_name(1) + layer.parameters.substr(layer.parameters.find('.'));
    }
    network::validate(network);
}

void add_decoder(Builder& build, Tensor points, Tensor features, Tensor queries, const FlowUpsamplerOptions& options) {
    switch (options.refinement) {
        case Refinement::projection: add_projection(build, points, features, queries, options); break;
        case Refinement::matching: add_matching(build, points, features, queries, options); break;
        case Refinement::descent: add_distance(build, points, features, queries, options); break;
    }
}

Config config_of(const FlowUpsamplerOptions& options) {
    const FlowUpsamplerOptions usual;
    return config_text(flow_upsampler_fields(), &options, &usual, {"refinement"});
}

Network finished(Builder& build, const FlowUpsamplerOptions& options) {
    Network network = build.finish(config_of(options));
    if (options.refinement == Refinement::matching) share_steps(network);
    return network;
}

}  // namespace

const Fields& flow_upsampler_fields() {
    using Options = FlowUpsamplerOptions;
    static const Fields fields = {
        field<&Options::neighbours>("neighbours", "Neighbours of an input point, itself included").between(2, 128),
        field<&Options::layers>("layers", "Edge convolutions").between(1, 8),
        field<&Options::width>("width", "Channels of the edge convolutions").between(8, 512),
        field<&Options::query_neighbours>("query_neighbours", "Input points that a query sees").between(1, 128),
        field<&Options::flow_neighbours>("flow_neighbours", "Those of them between which it is interpolated")
            .between(1, 128),
        field<&Options::hidden>("hidden", "Channels of a query, a multiple of 4").between(8, 512),
        field<&Options::blocks>("blocks", "Blocks of the flow; 0: interpolation in Euclidean space").between(0, 16),
        field<&Options::flow_hidden>("flow_hidden", "Channels inside a coupling").between(4, 256),
        field<&Options::steps>("steps", "Times that a query is moved").between(1, 8),
        field<&Options::refinement>("refinement", "How queries get to the surface").words(kRefinementWords)};
    return fields;
}

FlowUpsamplerOptions flow_upsampler_options(const Config& config) {
    FlowUpsamplerOptions options;
    read_config("flow-upsampler", flow_upsampler_fields(), &options, config);
    return options;
}

Network flow_upsampler(const FlowUpsamplerOptions& options) {
    check(options);
    Builder build("flow-upsampler");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor queries = build.input("queries", network::points_of(3, 1));
    add_decoder(build, points, encode(build, points, options), queries, options);
    return finished(build, options);
}

Network flow_upsampler_encoder(const FlowUpsamplerOptions& options) {
    check(options);
    Builder build("flow-upsampler");
    const Tensor points = build.input("points", network::points_of(3));
    build.output("features", encode(build, points, options));
    return build.finish(config_of(options));
}

Network flow_upsampler_decoder(const FlowUpsamplerOptions& options) {
    check(options);
    Builder build("flow-upsampler");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor features = build.input("features", network::points_of(options.hidden));
    const Tensor queries = build.input("queries", network::points_of(3, 1));
    add_decoder(build, points, features, queries, options);
    return finished(build, options);
}

Network flow_upsampler_first_step(const FlowUpsamplerOptions& options) {
    check(options);
    STIPPLE_REQUIRE(options.refinement == Refinement::projection, "flow-upsampler: {} has no first step of its own",
                    kRefinementWords[static_cast<size_t>(options.refinement)]);
    Builder build("flow-upsampler");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor features = build.input("features", network::points_of(options.hidden));
    const Tensor queries = build.input("queries", network::points_of(3, 1));
    const Direction to = direction_of(build, step_name(1), points, features, queries, kNoTime, options);
    build.output("upsampled", build.add(step_name(1) + ".moved", queries, to.offset));
    build.output("weights", to.weights);
    build.output("neighbours", to.neighbours);
    return build.finish(config_of(options));
}

Network flow_upsampler_velocity(const FlowUpsamplerOptions& options) {
    check(options);
    STIPPLE_REQUIRE(options.refinement == Refinement::matching, "flow-upsampler: matching has a velocity, {} has none",
                    kRefinementWords[static_cast<size_t>(options.refinement)]);
    Builder build("flow-upsampler");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor queries = build.input("queries", network::points_of(3, 1));
    const Tensor time = build.input("time", network::points_of(1, 1));
    const Tensor features = encode(build, points, options);
    const Direction to = direction_of(build, step_name(1), points, features, queries, time, options);
    build.output("velocity", to.offset);
    build.output("uncertainty", distance_from(build, "uncertainty", to.context));
    return build.finish(config_of(options));
}

}  // namespace stipple::models
