#include <array>

#include "stipple/network/network.h"

namespace stipple::network {

std::string_view name_of(Kind kind) {
    // In the order of the enum.
    static constexpr std::array<std::string_view, 30> kNames = {
        "input",        "linear",      "activation",  "dropout",      "transform",    "add_identity",
        "max_points",   "sum_points",  "max_rows",    "sum_channels", "concat",       "slice",
        "reverse",      "repeat",      "knn",         "gather",       "edge",         "edge_distance",
        "softmax_rows", "interpolate", "log_softmax", "add",          "subtract",     "scale",
        "actnorm",      "mix",         "couple",      "inject",       "flow_log_det", "gaussian_log_density",
    };
    const auto index = static_cast<size_t>(kind);
    return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace stipple::network
