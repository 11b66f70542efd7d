#include "stipple/tasks/weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/temporary_folder.h"

namespace stipple::tasks {
namespace {

class Weights : public testing::Test {
protected:
    void SetUp() override {
        const char* before = std::getenv("STIPPLE_WEIGHTS");
        before_ = before ? before : "";
    }
    void TearDown() override { ::setenv("STIPPLE_WEIGHTS", before_.c_str(), 1); }
    std::string before_;
    test::TemporaryFolder folder;
};

TEST_F(Weights, AreFoundByNameInTheOrderOfTheFolders) {
    for (const char* name : {"one", "two"}) std::filesystem::create_directory(folder / name);
    test::write_file(folder / "one/a.safetensors", "");
    test::write_file(folder / "two/a.safetensors", "");
    test::write_file(folder / "two/b.safetensors", "");
    test::write_file(folder / "two/c.engine", "");
    ::setenv("STIPPLE_WEIGHTS", ((folder / "none") + ":" + (folder / "one") + "::" + (folder / "two")).c_str(), 1);
    EXPECT_EQ(weights_folders()[0], folder / "none");
    EXPECT_EQ(weights_folders()[2], folder / "two");
    EXPECT_EQ(find_weights("a"), folder / "one/a.safetensors");
    EXPECT_EQ(find_weights("a.safetensors"), folder / "one/a.safetensors");
    EXPECT_EQ(find_weights("b"), folder / "two/b.safetensors");
    EXPECT_EQ(find_weights("c.engine"), folder / "two/c.engine");
    const std::vector<std::string> names = list_weights();
    EXPECT_EQ(std::count(names.begin(), names.end(), "a"), 1);
    EXPECT_EQ(std::count(names.begin(), names.end(), "c"), 0);
    EXPECT_EQ(std::count(names.begin(), names.end(), "b"), 1);
}

TEST_F(Weights, PathsAndUnknownNamesStay) {
    ::setenv("STIPPLE_WEIGHTS", folder.path().c_str(), 1);
    EXPECT_EQ(find_weights("some/where.safetensors"), "some/where.safetensors");
    EXPECT_EQ(find_weights("no-such-weights"), "no-such-weights");
    EXPECT_EQ(find_weights(""), "");
}

TEST_F(Weights, OfTheCheckoutAreFoundFromItsBuildFolder) {
    ::unsetenv("STIPPLE_WEIGHTS");
    // This test runs as CHECKOUT/build/PRESET/bin/tasks_test.
    EXPECT_EQ(std::filesystem::weakly_canonical(find_weights("pointnet-cls")),
              std::filesystem::weakly_canonical(STIPPLE_SOURCE_DIR "/weights/pointnet-cls.safetensors"));
}

}  // namespace
}  // namespace stipple::tasks
