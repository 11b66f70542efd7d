#include "stipple/models/gumbel_subset.h"

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"
#include "stipple/models/common/encoder.h"

namespace stipple::models {

using network::Builder;
using network::Network;
using network::Tensor;

GumbelSubsetOptions gumbel_subset_options(const Config& config) {
    GumbelSubsetOptions options;
    ConfigReader reader("gumbel-subset", config);
    reader.read("count", options.count);
    reader.read("points", options.points);
    reader.read("progressive", options.progressive);
    reader.finish();
    return options;
}

Network gumbel_subset(const GumbelSubsetOptions& options) {
    STIPPLE_REQUIRE(options.count >= 1 && options.count <= 65536, "gumbel-subset: count must be 1 to 65536, got {}",
                    options.count);
    STIPPLE_REQUIRE(options.points >= 1 && options.points <= int64_t{1} << 30,
                    "gumbel-subset: points must be 1 to {}, got {}", int64_t{1} << 30, options.points);
    const network::LinearOptions layer = encoder_layer(Norms::torch);
    Builder build("gumbel-subset");
    const Tensor points = build.input("points", network::points_of(3));
    Tensor x = build.linear("conv1", points, 64, layer);
    const Tensor local = build.linear("conv2", x, 64, layer);
    x = build.linear("conv3", local, 64, layer);
    x = build.linear("conv4", x, 128, layer);
    x = build.linear("conv5", x, 128, layer);
    const Tensor global = build.repeat("global", build.max_points("pool", x));
    x = build.linear("mix", build.concat("mix.input", {global, local}), 128, layer);
    build.output("scores", build.linear("scores", x, options.count, {.bias = false}));
    return build.finish({{"count", config_text(options.count)},
                         {"points", config_text(options.points)},
                         {"progressive", config_text(options.progressive)}});
}

}  // namespace stipple::models
