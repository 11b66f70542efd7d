#pragma once
// Words and numbers about a network that its text and its picture share.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/network/network.h"

namespace stipple::network {

std::string_view name_of(Initialiser initialiser);  // "fan_in_uniform"

/// What a kind was asked for, without what is usual: "64, norm, relu", "k 16", "inverse". May be empty.
std::string options_text(const Layer& layer);
/// The same for inference alone, and without whose parameters they are.
std::string brief_options_text(const Layer& layer);

/// "3,471,049"
std::string grouped(int64_t number);

struct Totals {
    int64_t trained = 0;     // numbers in trained parameters
    int64_t statistics = 0;  // numbers in running statistics
};
Totals count(const std::vector<Parameter>& parameters);

/// "30 layers, 3,471,049 parameters, 439.637 MMAC for 1024 points"
std::string totals_text(const Network& network);

}  // namespace stipple::network
