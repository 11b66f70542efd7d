#include "stipple/core/failpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "stipple/core/error.h"
#include "tests/support/process.h"

namespace stipple {
namespace {

class Failpoints : public ::testing::Test {
protected:
    void TearDown() override { set_failpoints(""); }
};

ErrorCode code_at(const char* name) {
    try {
        failpoint(name);
    } catch (const Error& error) {
        return error.code();
    }
    ADD_FAILURE() << name << " did nothing";
    return ErrorCode::bad_argument;
}

TEST_F(Failpoints, DoNothingUnlessNamed) {
    EXPECT_NO_THROW(failpoint("a"));
    set_failpoints("b:error,c:error");
    EXPECT_NO_THROW(failpoint("a"));
    EXPECT_NO_THROW(failpoint(""));
    EXPECT_NO_THROW(failpoint("bb"));  // not the beginning of a name, nor a part of it
    EXPECT_THROW(failpoint("c"), Error);
    set_failpoints("");
    EXPECT_NO_THROW(failpoint("b"));
    EXPECT_NO_THROW(failpoint("c"));
}

TEST_F(Failpoints, Throw) {
    set_failpoints("a:error,b:enospc");
    EXPECT_EQ(code_at("a"), ErrorCode::internal);
    EXPECT_EQ(code_at("a"), ErrorCode::internal);  // every time
    EXPECT_EQ(code_at("b"), ErrorCode::cannot_write);
    try {
        failpoint("b");
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos);
        EXPECT_FALSE(error.hint().empty());
    }
}

TEST_F(Failpoints, OnlyTheNthTime) {
    set_failpoints("a:error:3");
    failpoint("a");
    failpoint("a");
    EXPECT_EQ(code_at("a"), ErrorCode::internal);
    failpoint("a");
}

TEST_F(Failpoints, Kill) {
    const auto result = test::run_in_child([] {
        set_failpoints("a:kill");
        failpoint("b");
        failpoint("a");
        return 0;
    });
    EXPECT_EQ(result.signal, SIGKILL);
}

// Passes unless the next test runs it with the variable set.
TEST_F(Failpoints, ProbeOfTheEnvironment) {
    failpoint("probe");
}

TEST_F(Failpoints, ComeFromTheEnvironment) {
    const auto probe = [](const char* variable) {
        return test::run_in_child([=] {
            ::setenv("STIPPLE_FAILPOINT", variable, 1);
            ::execl("/proc/self/exe", "core_test", "--gtest_filter=Failpoints.ProbeOfTheEnvironment", nullptr);
            return 127;
        });
    };
    EXPECT_EQ(probe("probe:kill").signal, SIGKILL);
    EXPECT_EQ(probe("other:kill").exit_code, 0);
    EXPECT_EQ(probe("probe:error").exit_code, 1);
    EXPECT_EQ(probe("nonsense").exit_code, 1);  // loud, not ignored
}

TEST_F(Failpoints, RefuseWhatTheyDoNotUnderstand) {
    for (const char* text : {"a", ":kill", "a:explode", "a:kill:", "a:kill:0", "a:kill:-1", "a:kill:1x", "a:kill,,"})
        EXPECT_THROW(set_failpoints(text), Error) << text;
}

}  // namespace
}  // namespace stipple
