#pragma once

#include <string_view>

#include "stipple/network/network.h"

namespace stipple::test {

/// Numbers that training changes, of the layers whose names begin so.
inline int64_t trained_parameters(const network::Network& network, std::string_view prefix = "") {
    int64_t sum = 0;
    for (const network::Parameter& parameter : parameters_of(network)) {
        if (!parameter.is_trained || !parameter.name.starts_with(prefix)) continue;
        int64_t elements = 1;
        for (const int64_t extent : parameter.shape) elements *= extent;
        sum += elements;
    }
    return sum;
}

}  // namespace stipple::test
