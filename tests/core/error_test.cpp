#include "stipple/core/error.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace stipple {
namespace {

TEST(ErrorTable, HasEachCodeOnceInTheOrderOfTheEnum) {
    const auto table = error_table();
    ASSERT_EQ(table.size(), static_cast<size_t>(ErrorCode::terminated) + 1);
    std::set<std::string_view> names;
    for (size_t i = 0; i < table.size(); ++i) {
        EXPECT_EQ(static_cast<size_t>(table[i].code), i);
        EXPECT_TRUE(names.insert(table[i].name).second) << table[i].name;
        EXPECT_FALSE(table[i].python_exception.empty());
        EXPECT_GE(table[i].http_status, 400);
        EXPECT_LT(table[i].http_status, 600);
        EXPECT_EQ(&rule_of(table[i].code), &table[i]);
    }
}

TEST(ErrorTable, HasTheDocumentedExitCodes) {
    const std::map<ErrorCode, int> expected = {
        {ErrorCode::internal, 1},     {ErrorCode::bad_argument, 2}, {ErrorCode::bad_config, 2},
        {ErrorCode::bad_file, 3},     {ErrorCode::cannot_write, 4}, {ErrorCode::out_of_memory, 5},
        {ErrorCode::no_device, 5},    {ErrorCode::cuda, 5},         {ErrorCode::not_finite, 6},
        {ErrorCode::check_failed, 7}, {ErrorCode::lost_rank, 8},    {ErrorCode::interrupted, 130},
        {ErrorCode::terminated, 143}};
    ASSERT_EQ(expected.size(), error_table().size());
    std::set<int> codes;
    for (const ErrorRule& rule : error_table()) {
        EXPECT_EQ(rule.exit_code, expected.at(rule.code)) << rule.name;
        codes.insert(rule.exit_code);
    }
    EXPECT_EQ(codes, (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8, 130, 143}));
}

TEST(ErrorText, NamesThePlace) {
    const auto what = [](Place place) { return std::string(Error(ErrorCode::bad_file, place, "boom").what()); };
    EXPECT_EQ(what({}), "boom");
    EXPECT_EQ(what({"a.off"}), "a.off: boom");
    EXPECT_EQ(what({"a.off", 7}), "a.off:7: boom");
    EXPECT_EQ(what({"a.las", {}, 96}), "a.las: byte 96: boom");
    EXPECT_EQ(what({{}, 7}), "line 7: boom");
    EXPECT_EQ(what({{}, {}, 96}), "byte 96: boom");
    EXPECT_EQ(what({"a", {}, 0}), "a: byte 0: boom");
}

TEST(ErrorText, IsOneLineWithoutControlCharacters) {
    const Error error(ErrorCode::bad_file, Place{"evil\nname"},
                      "found \"\x1b[31m\r\x7f\x01\t\" \xc2\x9b"
                      "2J \xc3\xa4");
    EXPECT_STREQ(error.what(), "evil?name: found \"?[31m????\" ??2J \xc3\xa4");
    EXPECT_EQ(error.place().path, "evil\nname");  // for machines the path is as it was
}

TEST(ErrorText, GetsAPathLater) {
    const Error parsed(ErrorCode::bad_file, Place{{}, 3}, "boom", "try again");
    const Error loaded = parsed.at_path("x.ply");
    EXPECT_STREQ(loaded.what(), "x.ply:3: boom");
    EXPECT_EQ(loaded.code(), ErrorCode::bad_file);
    EXPECT_EQ(loaded.hint(), "try again");
    EXPECT_EQ(loaded.message(), "boom");
}

TEST(ErrorMacros, RequireThrowsBadArgument) {
    try {
        STIPPLE_REQUIRE(1 > 2, "{} is not {}", 1, 2);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        EXPECT_STREQ(error.what(), "1 is not 2");
    }
}

TEST(ErrorMacrosDeathTest, AssertAbortsInEveryBuild) {
    EXPECT_DEATH(STIPPLE_ASSERT(1 == 2), "internal error: 1 == 2 does not hold");
}

}  // namespace
}  // namespace stipple
