#include "stipple/data/shape_pairs.h"

#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::data {
namespace {

class ShapePairs : public testing::Test {
protected:
    void make(const std::string& name) const {
        std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
        test::write_file(folder / name, "");
    }
    std::string message(const std::string& prediction, const std::string& truth, const std::string& mesh = "") const {
        try {
            pair_shapes(folder / prediction, folder / truth, mesh.empty() ? "" : folder / mesh);
        } catch (const Error& error) {
            return error.what();
        }
        return "no error";
    }
    test::TemporaryFolder folder;
};

TEST_F(ShapePairs, OfFoldersGoByNameWithoutExtension) {
    for (const char* name :
         {"p/b.xyz", "p/a.ply", "p/.c.ply", "p/notes.md", "t/a.xyz", "t/b.npy", "m/a.off", "m/b.obj", "m/more.off"})
        make(name);
    const std::vector<ShapePair> pairs = pair_shapes(folder / "p", folder / "t/", folder / "m");
    ASSERT_EQ(pairs.size(), 2u);
    EXPECT_EQ(pairs[0].shape, "a");
    EXPECT_EQ(pairs[0].prediction, folder / "p/a.ply");
    EXPECT_EQ(pairs[0].truth, folder / "t/a.xyz");
    EXPECT_EQ(pairs[0].mesh, folder / "m/a.off");
    EXPECT_EQ(pairs[1].shape, "b");
    EXPECT_EQ(pair_shapes(folder / "p/a.ply", folder / "t/b.npy", "")[0].mesh, "");
}

TEST_F(ShapePairs, RefusesWhatDoesNotPair) {
    for (const char* name : {"p/a.xyz", "p/b.xyz", "t/a.xyz", "m/a.off", "twice/a.xyz", "twice/a.ply", "none/x.md"})
        make(name);
    const auto contains = [](const std::string& text, const std::string& part) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    contains(message("p", "t"), "a file is missing for 1 of 2 predictions: b");
    contains(message("t", "p"), "a file is missing for 1 of 2 truths: b");
    contains(message("p", "p", "m"), "a file is missing for 1 of 2 shapes: b");
    contains(message("p", "t/a.xyz"), "give two files or two folders");
    contains(message("p", "p", "m/a.off"), "a folder is wanted");
    contains(message("p/a.xyz", "t/a.xyz", "m"), "a file is wanted");
    contains(message("twice", "p"), "would both be the shape a");
    contains(message("none", "p"), "a folder without clouds");
    contains(message("missing", "p"), "cannot open");
}

}  // namespace
}  // namespace stipple::data
