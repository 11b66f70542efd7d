#include "stipple/models/autoencoder.h"

#include "stipple/core/error.h"
#include "stipple/models/common/config.h"
#include "stipple/models/common/encoder.h"

namespace stipple::models {

using network::Builder;
using network::Network;
using network::Tensor;

AutoencoderOptions autoencoder_options(const Config& config) {
    AutoencoderOptions options;
    ConfigReader reader("autoencoder", config);
    reader.read("count", options.count);
    reader.read("latent", options.latent);
    reader.read("hidden", options.hidden);
    reader.finish();
    return options;
}

Network autoencoder(const AutoencoderOptions& options) {
    const auto check = [](const char* what, int64_t value) {
        STIPPLE_REQUIRE(value >= 1 && value <= 65536, "autoencoder: {} must be 1 to 65536, got {}", what, value);
    };
    check("count", options.count);
    check("latent", options.latent);
    check("hidden", options.hidden);
    Builder build("autoencoder");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor latent =
        point_encoder(build, "", points, {64, 128, 128, 256, options.latent}, encoder_layer(Norms::torch));
    Tensor x = build.linear("fc1", latent, options.hidden, encoder_layer(Norms::none));
    x = build.linear("fc2", x, options.hidden, encoder_layer(Norms::none));
    x = build.linear("out", x, 3 * options.count);
    build.output("latent", latent);
    build.output("reconstructed", build.unflatten("reconstructed", x, 3));
    return build.finish({{"count", config_text(options.count)},
                         {"latent", config_text(options.latent)},
                         {"hidden", config_text(options.hidden)}});
}

}  // namespace stipple::models
