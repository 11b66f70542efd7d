#pragma once
// A picture of a network: a box for each layer with its name, kind, output type and number of parameters, coloured by
// what it does; lines from top to bottom. Layers that simply follow each other stand close together.

#include <string>

#include "stipple/network/network.h"

namespace stipple::network {

/// One SVG document, well-formed whatever the names are. Boxes do not overlap; the same network gives the same text.
/// Every box has a tooltip with the whole line of to_text(). Throws what validate() throws.
std::string to_svg(const Network& network);

}  // namespace stipple::network
