#pragma once
// stipple.network.Network and Weights, which other folders take and make too.

#include <memory>

#include "docstrings.h"
#include "python/bindings/common/record.h"
#include "python/bindings/common/small_values.h"
#include "python/bindings/module.h"
#include "stipple/network/weights.h"

namespace stipple::python {

struct NetworkObject {
    std::shared_ptr<const network::Network> network;
};

/// Tensors are never replaced, so that views stay right: a name keeps its shape.
struct WeightsObject {
    std::shared_ptr<network::Weights> weights;
};

inline NetworkObject give(network::Network&& network) {
    return {std::make_shared<const network::Network>(std::move(network))};
}
inline WeightsObject give(network::Weights&& weights) {
    return {std::make_shared<network::Weights>(std::move(weights))};
}

struct ModelRecord {
    static constexpr auto name = py::detail::const_name("Model");
    static constexpr const char* fields[] = {"network", "weights"};
};

inline py::bytes bytes_of(const std::vector<std::byte>& data) {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace stipple::python
