#include "stipple/models/samplenet.h"

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"
#include "stipple/models/common/encoder.h"
#include "stipple/network/builder.h"

namespace stipple::models {

using network::Builder;
using network::LinearOptions;
using network::Network;
using network::Tensor;

namespace {

/// What follows the max.
Tensor simplified_points(Builder& build, Tensor feature, const SampleNetOptions& options) {
    const LinearOptions layer = encoder_layer(options.shape == SamplerShape::classification ? Norms::tf : Norms::torch);
    const bool has_norms = options.shape != SamplerShape::reconstruction;
    LinearOptions hidden = layer, last = layer;
    hidden.norm = has_norms;
    last.norm = options.shape == SamplerShape::classification;
    last.activation = {};
    Tensor x = feature;
    for (int i = 1; i <= (has_norms ? 3 : 2); ++i) x = build.linear(fmt::format("fc{}", i), x, 256, hidden);
    x = build.linear("out", x, 3 * options.count, last);
    return build.unflatten("simplified", x, 3);
}

/// t^2 above the floor, [B, 1]: both sigma and its logarithm are made of it.
struct Sigma {
    Tensor above = -1, floor = -1;
    float least = 0;
};

Sigma sigma_of(Builder& build, Tensor temperature, float least) {
    const Tensor squared = build.multiply("temperature.squared", temperature, temperature);
    const Tensor floor = build.constant("sigma.floor", {least});
    return {build.subtract("sigma.above", squared, floor), floor, least};
}

/// max(t^2, least) = max(t^2 - least, 0) + least.
Tensor sigma_itself(Builder& build, const Sigma& sigma) {
    const Tensor positive = build.activation("sigma.positive", sigma.above, network::relu());
    return build.add("sigma", positive, sigma.floor);
}

/// Its logarithm; one without a floor gets a tiny one, at which the projection is the nearest neighbour.
Tensor log_sigma(Builder& build, const Sigma& sigma) {
    constexpr float kTiny = 1e-12f;
    return build.activation("sigma.log", sigma.above, network::log(std::max(sigma.least, kTiny)));
}

/// sum of w p over the nearest points, w = softmax(-|p - q|^2 / sigma).
Tensor projection(Builder& build, Tensor queries, Tensor points, Tensor log_sigma, int64_t k) {
    const Tensor neighbours = build.knn("projected.neighbours", queries, points, k);
    const Tensor near = build.gather("projected.near", points, neighbours);
    const Tensor query = build.repeat("projected.query", queries, k);
    const Tensor offset = build.subtract("projected.offset", near, query);
    const Tensor squares = build.multiply("projected.squares", offset, offset);
    const Tensor distance = build.sum_channels("projected.distance", squares);
    const Tensor of_set = build.repeat_for_set("projected.sigma", log_sigma, build.type(queries).set);
    const Tensor scale = build.repeat("projected.scale", of_set, k);
    const Tensor nothing = build.subtract("projected.nothing", scale, scale);
    const Tensor over_sigma = build.inject("projected.over_sigma", distance, scale, nothing);
    const Tensor logits = build.scale("projected.logits", over_sigma, -1);
    const Tensor weights = build.softmax_rows("projected.weights", logits);
    return build.interpolate("projected", weights, near);
}

}  // namespace

const Fields& samplenet_fields() {
    using Options = SampleNetOptions;
    static const Fields fields = {
        field<&Options::shape>("shape", "The published network for a task, whose other options it presets")
            .words(kSamplerShapeWords),
        field<&Options::count>("count", "Points that come out").between(1, 65536),
        field<&Options::points>("points", "Points of a cloud while training; larger ones are thinned to them")
            .between(1, 1 << 30),
        field<&Options::progressive>("progressive", "The first of the points that come out alone serve too"),
        field<&Options::neighbours>("neighbours", "Neighbours of the soft projection; 0: S-NET, which has none")
            .between(0, 128),
        field<&Options::min_sigma>("min_sigma", "The least width of the soft projection").from(0),
        field<&Options::projected>("projected", "The soft projection is an output too")};
    return fields;
}

SampleNetOptions published_sampler(SamplerShape shape) {
    switch (shape) {
        case SamplerShape::classification: break;
        case SamplerShape::registration: return {.shape = shape, .count = 64, .neighbours = 8, .min_sigma = 1e-2f};
        case SamplerShape::reconstruction:
            return {.shape = shape, .count = 64, .points = 2048, .neighbours = 16, .min_sigma = 1e-4f};
    }
    return {};
}

SampleNetOptions samplenet_options(const Config& config) {
    SampleNetOptions options;
    if (const auto shape = config.find("shape"); shape != config.end())
        read_config("samplenet", samplenet_fields(), &options, {*shape});
    options = published_sampler(options.shape);
    read_config("samplenet", samplenet_fields(), &options, config);
    return options;
}

Network samplenet(const SampleNetOptions& options) {
    check_options("samplenet", samplenet_fields(), &options);
    STIPPLE_REQUIRE(options.neighbours > 0 || !options.projected,
                    "samplenet: projected needs neighbours: without them it is S-NET, which has no projection");
    Builder build("samplenet");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor feature =
        options.shape == SamplerShape::reconstruction
            ? point_encoder(build, "", points, {64, 128, 128, 256, 128}, encoder_layer(Norms::torch))
            : point_encoder(build, "", points, {64, 64, 64, 128, 128},
                            encoder_layer(options.shape == SamplerShape::classification ? Norms::tf : Norms::torch));
    const Tensor simplified = simplified_points(build, feature, options);
    build.output("simplified", simplified);
    if (options.neighbours > 0) {
        const Sigma sigma = sigma_of(build, build.learned("temperature"), options.min_sigma);
        build.output("sigma", sigma_itself(build, sigma));
        if (options.projected) {
            const Tensor log = log_sigma(build, sigma);
            build.output("projected", projection(build, simplified, points, log, options.neighbours));
        }
    }
    const SampleNetOptions usual;
    return build.finish(config_text(samplenet_fields(), &options, &usual, {"projected"}));
}

}  // namespace stipple::models
