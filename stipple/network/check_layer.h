#pragma once
// What builder and validate() both ask of a layer.

#include <string>

#include "stipple/network/network.h"

namespace stipple::network {

/// "linear 'stn.conv1'": how every message about a layer begins.
std::string label_of(const Layer& layer);

/// Everything that validate() promises of a layer that stands, or will stand, at `position`, with what stands before
/// it. Returns its type. Throws Error{bad_argument} that names it.
TensorType check_layer(const Network& network, size_t position, const Layer& layer);

/// Throws Error{bad_argument}, which begins with `owner`, unless the name is made of [a-z0-9_.-] and not empty.
void check_name(const std::string& owner, const std::string& name);

/// The layer that owns a prefix of parameters: the first one with parameters under its own name. Null when there is
/// none.
const Layer* owner_of(const Network& network, const std::string& parameters);

}  // namespace stipple::network
