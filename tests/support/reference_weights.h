#pragma once
// Weights for tests of networks that nobody has trained.

#include "stipple/network/weights.h"

namespace stipple::test {

/// initial_weights, but with something in what starts at zero or one: transforms that turn, batch norms that shift.
network::Weights random_weights(const network::Network& network, uint64_t seed);

/// As training leaves them: rows of weights whose sizes differ by factors of hundreds and batch norms that even them
/// out, some of negative weight, some of channels that died (a variance far below eps).
network::Weights trained_like_weights(const network::Network& network, uint64_t seed);

}  // namespace stipple::test
