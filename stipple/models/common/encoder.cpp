#include "stipple/models/common/encoder.h"

#include <fmt/format.h>

namespace stipple::models {

using network::Initialiser;
using network::LinearOptions;
using network::Tensor;

LinearOptions encoder_layer(Norms norms) {
    return {.norm = norms != Norms::none,
            .norm_eps = norms == Norms::tf ? 1e-3f : 1e-5f,
            .activation = network::relu(),
            .weights = norms == Norms::tf ? Initialiser::xavier_normal : Initialiser::fan_in_uniform};
}

Tensor point_encoder(network::Builder& build, const std::string& prefix, Tensor points,
                     std::initializer_list<int64_t> channels, const LinearOptions& layer,
                     const std::string* parameters) {
    Tensor x = points;
    int i = 0;
    for (const int64_t width : channels) {
        const std::string name = fmt::format("conv{}", ++i);
        x = parameters ? build.linear_sharing(prefix + name, x, width, layer, *parameters + name)
                       : build.linear(prefix + name, x, width, layer);
    }
    return build.max_points(prefix + "pool", x);
}

}  // namespace stipple::models
