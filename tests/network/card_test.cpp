#include "stipple/network/card.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

Card whole_card() {
    Card card;
    card.recipe = "pointnet-cls";
    card.data = "ModelNet40, \"official\" split";
    card.commit = "4ba72bc";
    card.command = "stipple train pointnet-cls --data modelnet40";
    card.seed = 0;
    card.metrics = {{"accuracy", 0.9}, {"accuracy/128 points", 0.875}, {"epochs", 200}};
    card.date = "2025-06-01";
    card.licence = "MIT";
    return card;
}

TEST(NetworkCard, IsOneLineOfJsonAndComesBack) {
    const Card card = whole_card();
    EXPECT_EQ(to_json(card), R"({"recipe":"pointnet-cls","data":"ModelNet40, \"official\" split","commit":"4ba72bc",)"
                             R"("command":"stipple train pointnet-cls --data modelnet40","seed":0,)"
                             R"("metrics":{"accuracy":0.9,"accuracy/128 points":0.875,"epochs":200.0},)"
                             R"("date":"2025-06-01","licence":"MIT"})");
    EXPECT_EQ(parse_card(to_json(card)), card);
    EXPECT_EQ(to_json({}), "{}");
    EXPECT_EQ(parse_card("{}"), Card{});
    Weights weights;
    EXPECT_FALSE(card_of(weights).has_value());
    set_card(weights, card);
    EXPECT_EQ(card_of(weights), card);
    EXPECT_EQ(weights.metadata.at("stipple.card"), to_json(card));
}

TEST(NetworkCard, OfAnotherFormIsRefused) {
    EXPECT_ERROR(parse_card(""), bad_file, "the card");
    EXPECT_ERROR(parse_card("[]"), bad_file, "the card");
    EXPECT_ERROR(parse_card(R"({"recipe":1})"), bad_file, "the card: \"recipe\" must be text");
    EXPECT_ERROR(parse_card(R"({"recipe":{"name":"a"}})"), bad_file, "recipe");
    EXPECT_ERROR(parse_card(R"({"seed":"0"})"), bad_file, "\"seed\" must be a whole number");
    EXPECT_ERROR(parse_card(R"({"seed":0.5})"), bad_file, "\"seed\" must be a whole number");
    EXPECT_ERROR(parse_card(R"({"metrics":{"a":"0.9"}})"), bad_file, "metrics/a");
    EXPECT_ERROR(parse_card(R"({"metrics":1})"), bad_file, "metrics");
    EXPECT_ERROR(parse_card(R"({"author":"me"})"), bad_file, "\"author\" is not known");
    Card card;
    card.metrics["accuracy"] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_ERROR(to_json(card), bad_argument, "");
    card.metrics = {{"", 1}};
    EXPECT_ERROR(to_json(card), bad_argument, "needs a name");
    card.metrics.clear();
    card.data = "\xff";
    EXPECT_ERROR(to_json(card), bad_argument, "UTF-8");
}

}  // namespace
}  // namespace stipple::test
