#pragma once
// Networks that nobody wrote.

#include "stipple/network/network.h"

namespace stipple::test {

/// Layers of random kinds on random tensors. Inputs: cloud [B, 4], points [B, N, 3] and rows [B, N, 3, 2], N >= 3. The
/// last four tensors are outputs.
network::Network random_network(uint64_t seed, int layers);

}  // namespace stipple::test
