#include "stipple/core/toml.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"

namespace stipple {
namespace {

using Values = std::vector<std::string>;

std::string message_of(std::string_view text) {
    try {
        parse_toml(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_config);
        return error.what();
    }
    return "no error";
}

TEST(CoreToml, KeysTablesAndValues) {
    const std::vector<TomlItem> items = parse_toml(
        "\xef\xbb\xbf# a comment\n"
        "seed = 1_000  # and another\n"
        "name = \"a # b\\t\\u00e9\"\r\n"
        "path = 'C:\\temp'\n"
        "[mesh.sample]\n"
        "sizes = [1, 2.5e3,\n  -inf, # in an array\n ]\n"
        "on = true\n"
        "[ \"quoted key\" ]\n");
    ASSERT_EQ(items.size(), 7u);
    EXPECT_EQ(items[0].key, "seed");
    EXPECT_EQ(items[0].table, "");
    EXPECT_EQ(items[0].line, 2);
    EXPECT_EQ(items[0].values, Values{"1000"});
    EXPECT_EQ(items[1].values, Values{"a # b\t\xc3\xa9"});
    EXPECT_EQ(items[2].values, Values{"C:\\temp"});
    EXPECT_EQ(items[3].table, "mesh.sample");
    EXPECT_EQ(items[3].key, "");
    EXPECT_EQ(items[4].values, (Values{"1", "2.5e3", "-inf"}));
    EXPECT_EQ(items[5].values, Values{"true"});
    EXPECT_EQ(items[6].table, "quoted key");
    EXPECT_TRUE(parse_toml("").empty());
    EXPECT_TRUE(parse_toml("\n  # nothing").empty());
}

TEST(CoreToml, RefusesWithTheLine) {
    const auto fails = [](std::string_view text, const std::string& part) {
        EXPECT_NE(message_of(text).find(part), std::string::npos) << message_of(text);
    };
    fails("a = 1\na = 2\n", "key a twice");
    fails("[a]\n[b]\n[a]\n", "table [a] twice");
    fails("a = word\n", "text needs quotes");
    fails("a = 1.2.3\n", "text needs quotes");
    fails("a = +-1\n", "text needs quotes");
    fails("a = \"b\n", "no closing");
    fails("a = [1, 2\n", "the array has no ]");
    fails("a = \"\\q\"\n", "unknown escape");
    fails("a = \"\\ud800\"\n", "no code point");
    fails("a = \"\"\"b\"\"\"\n", "several lines");
    fails("a 1\n", "expected =");
    fails("a = 1 b = 2\n", "the end of the line");
    fails("= 2\n", "expected a name and =");
    fails("a = \x01\n", "found \"?\"");
}

TEST(CoreToml, ErrorsTellTheLine) {
    try {
        parse_toml("a = 1\n\nb = [1,\n  x]\n");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.place().line, 4);
    }
}

TEST(CoreToml, StringsComeBack) {
    const std::string all = "a \"b\" \\ \n\t\x7f \xc3\xa9 # '";
    const std::vector<TomlItem> items = parse_toml("x = " + toml_string(all) + "\n");
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0].values, Values{all});
}

}  // namespace
}  // namespace stipple
