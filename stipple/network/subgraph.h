#pragma once
// Parts of a network, for pictures of them.

#include <functional>

#include "stipple/network/network.h"

namespace stipple::network {

/// The layers for which `is_part` says so, in their order, as a network of its own: what they read from others becomes
/// an input of that layer's name, and what others read, or nobody, an output. Layers that shared parameters with one
/// that is no part have them by their own name. `name`: of the part. Throws Error{bad_argument} where there is no such
/// layer, and as validate() does where a part is no network.
Network subgraph(const Network& network, const std::string& name,
                 const std::function<bool(const Layer& layer)>& is_part);

}  // namespace stipple::network
