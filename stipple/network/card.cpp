#include "stipple/network/card.h"

#include "stipple/core/error.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"

namespace stipple::network {
namespace {

constexpr const char* kCard = "stipple.card";

struct CardText {
    std::string_view key;
    std::string Card::*text;
};
// Those before the seed, and those behind the metrics.
constexpr CardText kFirstTexts[] = {
    {"recipe", &Card::recipe}, {"data", &Card::data}, {"commit", &Card::commit}, {"command", &Card::command}};
constexpr CardText kLastTexts[] = {{"date", &Card::date}, {"licence", &Card::licence}};

void read_field(JsonField& field, Card& card) {
    const std::string_view key = field.word();
    for (const CardText& entry : kFirstTexts)
        if (key == entry.key) return field.take(card.*entry.text);
    for (const CardText& entry : kLastTexts)
        if (key == entry.key) return field.take(card.*entry.text);
    if (key == "seed") return field.take(card.seed.emplace());
    if (key != "metrics") field.fail("is not known");
    std::string_view before;
    const std::string_view last = field.last_word(before);
    const std::string name = before.empty() ? std::string(last) : fmt::format("{}/{}", before, last);
    if (name.empty()) field.fail("is no metric");
    field.take(card.metrics[name]);
}

}  // namespace

std::string to_json(const Card& card) {
    JsonWriter json;
    json.begin_object();
    for (const CardText& entry : kFirstTexts)
        if (!(card.*entry.text).empty()) json.field(entry.key, card.*entry.text);
    if (card.seed) json.field("seed", *card.seed);
    if (!card.metrics.empty()) {
        json.key("metrics").begin_object();
        for (const auto& [name, value] : card.metrics) {
            STIPPLE_REQUIRE(!name.empty(), "a metric of a card needs a name");
            json.field(name, value);
        }
        json.end_object();
    }
    for (const CardText& entry : kLastTexts)
        if (!(card.*entry.text).empty()) json.field(entry.key, card.*entry.text);
    return json.end_object().text();
}

Card parse_card(std::string_view json) {
    Card card;
    read_json("the card", json, [&](JsonField& field) { read_field(field, card); });
    return card;
}

std::optional<Card> card_of(const Weights& weights) {
    const auto text = weights.metadata.find(kCard);
    if (text == weights.metadata.end()) return std::nullopt;
    return parse_card(text->second);
}

void set_card(Weights& weights, const Card& card) {
    weights.metadata[kCard] = to_json(card);
}

}  // namespace stipple::network
