#include "stipple/core/json_walk.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "tests/support/allocation.h"

namespace stipple {
namespace {

std::string walked(std::string_view text) {
    std::string result;
    const bool valid = walk_json(text, [&](std::string_view path, const JsonValue& value) {
        result += std::string(path) + "=";
        switch (value.kind) {
            case JsonValue::Kind::null: result += "null"; break;
            case JsonValue::Kind::boolean: result += value.integer ? "true" : "false"; break;
            case JsonValue::Kind::integer: result += std::to_string(value.integer); break;
            case JsonValue::Kind::number: result += fmt::format("{}f", value.number); break;
            case JsonValue::Kind::string: result += value.text; break;
        }
        result += " ";
    });
    return valid ? result : "invalid";
}

TEST(JsonWalk, VisitsEveryValue) {
    EXPECT_EQ(walked("{}"), "");
    EXPECT_EQ(walked(R"({"a":1,"b":{"c":[true,null,{"d":"x"},[]],"e":-2.5},"f":18446744073709551615})"),
              "a=1 b/c/0=true b/c/1=null b/c/2/d=x b/e=-2.5f f=1.8446744073709552e+19f ");
    EXPECT_EQ(walked(R"({"a":[[1,2],[3]],"b":"\u00e4"})"), "a/0/0=1 a/0/1=2 a/1/0=3 b=\xc3\xa4 ");
}

TEST(JsonWalk, RefusesWhatIsNotOneObject) {
    using namespace std::string_view_literals;
    for (std::string_view text : {""sv, "1"sv, "[]"sv, "null"sv, "{"sv, "{}{}"sv, "{\"a\"}"sv, "{\"a\":1e400}"sv,
                                  "{}\0"sv, "{\"a\":\"\xff\"}"sv, "{\"a\":\"\\ud800\"}"sv, "{\"a\":nan}"sv})
        EXPECT_FALSE(is_json_object(text)) << text;
    EXPECT_TRUE(is_json_object(" {} \n"));
}

TEST(JsonWalk, DepthIsBounded) {
    const auto nested = [](size_t depth) {
        return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
    };
    EXPECT_TRUE(is_json_object(nested(32)));
    EXPECT_FALSE(is_json_object(nested(33)));
    EXPECT_FALSE(is_json_object("{\"a\":" + std::string(1'000'000, '[')));
}

TEST(JsonWalk, Strings) {
    EXPECT_EQ(json_string("a\"b\n\xc3\xa4"), "\"a\\\"b\\n\xc3\xa4\"");
    EXPECT_THROW(json_string("\xff"), Error);
}

TEST(JsonWalk, SurvivesAllocationFailures) {
    const std::string text =
        R"({"a long key that needs memory":{"another long key, and deeper":["a long string in a list"]}})";
    EXPECT_GT(test::for_each_allocation_failure([&] { walked(text); }), test::can_fail_allocations() ? 5 : -1);
}

}  // namespace
}  // namespace stipple
