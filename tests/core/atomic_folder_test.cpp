#include "stipple/core/atomic_folder.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "tests/support/temporary_folder.h"

namespace stipple {
namespace {

using Entries = std::vector<std::string>;

std::string folder_error(const std::string& path, Overwrite overwrite) {
    try {
        AtomicFolder folder(path, overwrite);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::cannot_write);
        return error.what();
    }
    return "ok";
}

TEST(AtomicFolder, AppearsWithCommitAlone) {
    const test::TemporaryFolder around;
    {
        const AtomicFolder folder(around / "set/", Overwrite::refuse);
        test::write_file(folder.make("a/b") + "/x", "1");
        EXPECT_EQ(folder.make("a/b"), folder.path() + "/a/b");
        EXPECT_FALSE(std::filesystem::exists(around / "set"));
    }
    EXPECT_TRUE(around.entries().empty());
    AtomicFolder folder(around / "set", Overwrite::refuse);
    test::write_file(folder.make("a/b") + "/x", "1");
    folder.commit();
    EXPECT_EQ(around.entries(), Entries{"set"});
    EXPECT_EQ(test::read_file(around / "set/a/b/x"), "1");
}

TEST(AtomicFolder, ReplacesWhenAllowed) {
    const test::TemporaryFolder around;
    std::filesystem::create_directories(around / "set/old");
    EXPECT_NE(folder_error(around / "set", Overwrite::refuse).find("exists"), std::string::npos);
    {
        const AtomicFolder folder(around / "set", Overwrite::allow);
        folder.make("new");
    }
    EXPECT_TRUE(std::filesystem::exists(around / "set/old"));
    AtomicFolder folder(around / "set", Overwrite::allow);
    folder.make("new");
    folder.commit();
    EXPECT_FALSE(std::filesystem::exists(around / "set/old"));
    EXPECT_TRUE(std::filesystem::exists(around / "set/new"));
    EXPECT_EQ(around.entries(), Entries{"set"});
}

TEST(AtomicFolder, WhatComesInBetweenIsNotReplaced) {
    const test::TemporaryFolder around;
    AtomicFolder folder(around / "set", Overwrite::refuse);
    folder.make("new");
    std::filesystem::create_directories(around / "set/other");
    EXPECT_THROW(folder.commit(), Error);
    EXPECT_TRUE(std::filesystem::exists(around / "set/other"));
}

TEST(AtomicFolder, RefusesFilesAndMissingFolders) {
    const test::TemporaryFolder around;
    test::write_file(around / "file", "x");
    EXPECT_NE(folder_error(around / "file", Overwrite::allow).find("no folder"), std::string::npos);
    EXPECT_NE(folder_error(around / "none/set", Overwrite::allow).find("does not exist"), std::string::npos);
    EXPECT_EQ(around.entries(), Entries{"file"});
}

}  // namespace
}  // namespace stipple
