#include "stipple/models/autoencoder.h"

#include "stipple/models/common/config.h"
#include "stipple/models/common/encoder.h"

namespace stipple::models {

using network::Builder;
using network::Network;
using network::Tensor;

const Fields& autoencoder_fields() {
    using Options = AutoencoderOptions;
    static const Fields fields = {field<&Options::count>("count", "Points that come out").between(1, 65536),
                                  field<&Options::latent>("latent", "Numbers that a cloud becomes").between(1, 65536),
                                  field<&Options::hidden>("hidden", "Width of the decoder").between(1, 65536)};
    return fields;
}

AutoencoderOptions autoencoder_options(const Config& config) {
    AutoencoderOptions options;
    read_config("autoencoder", autoencoder_fields(), &options, config);
    return options;
}

Network autoencoder(const AutoencoderOptions& options) {
    check_options("autoencoder", autoencoder_fields(), &options);
    Builder build("autoencoder");
    const Tensor points = build.input("points", network::points_of(3));
    const Tensor latent =
        point_encoder(build, "", points, {64, 128, 128, 256, options.latent}, encoder_layer(Norms::torch));
    Tensor x = build.linear("fc1", latent, options.hidden, encoder_layer(Norms::none));
    x = build.linear("fc2", x, options.hidden, encoder_layer(Norms::none));
    x = build.linear("out", x, 3 * options.count);
    build.output("latent", latent);
    build.output("reconstructed", build.unflatten("reconstructed", x, 3));
    return build.finish(config_text(autoencoder_fields(), &options));
}

}  // namespace stipple::models
