#pragma once
// The card of trained weights: where they come from, so that they can be made again. It travels in the metadata as
// "stipple.card", a JSON object:
//
//   {"recipe":"pointnet-cls","data":"ModelNet40, official split","commit":"4ba72bc","command":"stipple train ...",
//    "seed":0,"metrics":{"accuracy":0.905},"date":"2025-06-01","licence":"MIT"}

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "stipple/network/weights.h"

namespace stipple::network {

/// What is empty is not written.
struct Card {
    std::string recipe = {};   // its name
    std::string data = {};     // set and split
    std::string commit = {};   // of the program that trained
    std::string command = {};  // the whole line
    std::optional<int64_t> seed = {};
    std::map<std::string, double> metrics = {};  // a name may hold '/': "accuracy/128 points"
    std::string date = {};                       // YYYY-MM-DD
    std::string licence = {};                    // of the weights
    bool operator==(const Card&) const = default;
};

/// Keys in the order of the struct. Throws Error{bad_argument} for text that is not UTF-8, a metric that is not finite
/// or without a name.
std::string to_json(const Card& card);

/// Throws Error{bad_file} that names the key for what is unknown or of another type, and for no JSON object.
Card parse_card(std::string_view json);

/// None where the metadata have none. Throws as parse_card.
std::optional<Card> card_of(const Weights& weights);
void set_card(Weights& weights, const Card& card);

}  // namespace stipple::network
