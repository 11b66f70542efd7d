#include "stipple/models/gumbel_subset.h"

#include "stipple/models/common/config.h"
#include "stipple/models/common/encoder.h"

namespace stipple::models {

using network::Builder;
using network::Network;
using network::Tensor;

const Fields& gumbel_subset_fields() {
    using Options = GumbelSubsetOptions;
    static const Fields fields = {
        field<&Options::count>("count", "Points that are chosen").between(1, 65536),
        field<&Options::points>("points", "Points of a cloud while training; larger ones are thinned to them")
            .between(1, 1 << 30),
        field<&Options::progressive>("progressive", "The first of the chosen points alone serve too")};
    return fields;
}

GumbelSubsetOptions gumbel_subset_options(const Config& config) {
    GumbelSubsetOptions options;
    read_config("gumbel-subset", gumbel_subset_fields(), &options, config);
    return options;
}

Network gumbel_subset(const GumbelSubsetOptions& options) {
    check_options("gumbel-subset", gumbel_subset_fields(), &options);
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
    return build.finish(config_text(gumbel_subset_fields(), &options));
}

}  // namespace stipple::models
