#pragma once
// The autoencoder of latent_3d_points [Achlioptas et al. 2018], which S-NET and SampleNet reconstruct clouds with.

#include <map>
#include <string>

#include "stipple/core/fields.h"
#include "stipple/network/network.h"

namespace stipple::models {

struct AutoencoderOptions {
    int64_t count = 2048;  // points that come out
    int64_t latent = 128;  // numbers that a cloud becomes
    int64_t hidden = 256;  // of the decoder
};
const Fields& autoencoder_fields();

/// Of a configuration, as weights carry it. Throws Error{bad_config} for an unknown key and a value that does not
/// parse.
AutoencoderOptions autoencoder_options(const std::map<std::string, std::string>& config);

/// points [B, N, 3], any N -> latent [B, latent]; reconstructed [B, count, 3].
///
/// Encoder conv1 .. conv5 64-128-128-256-latent, batch norm and ReLU after each, max; decoder fc1, fc2 hidden-hidden
/// with ReLU, `out` 3 count, no batch norm. Throws Error{bad_argument} for options out of range.
network::Network autoencoder(const AutoencoderOptions& options);

}  // namespace stipple::models
