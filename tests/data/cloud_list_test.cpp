#include "stipple/data/cloud_list.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/io/hdf5.h"
#include "tests/support/clouds.h"
#include "tests/support/temporary_folder.h"

namespace stipple::data {
namespace {

using test::random_cloud;
using test::TemporaryFolder;
using test::write_file;

ErrorCode code_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.code();
    }
    return ErrorCode::internal;
}

void save(const std::string& path, const Mesh& mesh) {
    io::Warnings warnings;
    io::save(path, mesh, Overwrite::refuse, {}, warnings);
}

TEST(CloudList, NamesFilesAndFoldersInOrder) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "clouds");
    std::filesystem::create_directory(folder / "clouds/deeper.ply");
    for (const char* name : {"clouds/b.ply", "clouds/a.xyz", "clouds/.hidden.ply", "clouds/notes.md"})
        write_file(folder / name, "");
    const std::string last = folder / "anything";  // a file is taken at its word
    std::vector<std::string> names;
    for (const CloudEntry& entry : list_clouds({folder / "clouds", last})) {
        EXPECT_FALSE(entry.error);
        EXPECT_FALSE(entry.label());
        names.push_back(entry.name());
    }
    EXPECT_EQ(names, (std::vector<std::string>{folder / "clouds/a.xyz", folder / "clouds/b.ply", last}));
    EXPECT_EQ(list_clouds({}).size(), 0u);
    std::filesystem::create_directory(folder / "none");
    EXPECT_EQ(code_of([&] { list_clouds({folder / "none"}); }), ErrorCode::bad_argument);
}

TEST(CloudList, LoadsAllPointsAndPassesWarningsOn) {
    const TemporaryFolder folder;
    Mesh mesh = random_cloud(20);
    mesh.vertices.positions.data()[7] = NAN;
    save(folder / "a.ply", mesh);
    int64_t calls = 0;
    ReadClouds how;
    how.on_progress = [&](const std::string& path, int64_t, int64_t) {
        EXPECT_EQ(path, folder / "a.ply");
        ++calls;
    };
    io::Warnings warnings;
    EXPECT_EQ(test::difference(load_entry({folder / "a.ply"}, how, warnings), mesh), "");
    EXPECT_GT(calls, 0);
    // Text that only its format tells.
    write_file(folder / "b.dat", "1 2 3\n4 5 6\n");
    EXPECT_EQ(code_of([&] { load_entry({folder / "b.dat"}, {}, warnings); }), ErrorCode::bad_file);
    EXPECT_EQ(load_entry({folder / "b.dat"}, {"xyz", {}}, warnings).vertices.size(), 2);
    EXPECT_EQ(code_of([&] { load_entry({folder / "none.ply"}, {}, warnings); }), ErrorCode::bad_file);
}

TEST(CloudList, OfDataSetsInFolders) {
    const TemporaryFolder folder;
    for (const char* name :
         {"set/chair/train", "set/chair/test", "set/desk/test", "plain/lamp", "plain/vase", "none/deep/er"})
        std::filesystem::create_directories(folder / name);
    for (const char* name : {"set/chair/train/a.ply", "set/chair/test/c.ply", "set/chair/test/b.off",
                             "set/desk/test/d.xyz", "plain/vase/e.ply", "plain/lamp/f.ply"})
        write_file(folder / name, "");
    const auto names = [](const std::vector<CloudEntry>& entries) {
        std::vector<std::string> found;
        for (const CloudEntry& entry : entries) found.push_back(entry.class_name() + " " + entry.name());
        return found;
    };
    EXPECT_EQ(names(list_clouds({folder / "set"})),
              (std::vector<std::string>{"chair " + (folder / "set/chair/test/b.off"),
                                        "chair " + (folder / "set/chair/test/c.ply"),
                                        "desk " + (folder / "set/desk/test/d.xyz")}));
    EXPECT_EQ(
        names(list_clouds({(folder / "plain") + "//"})),
        (std::vector<std::string>{"lamp " + (folder / "plain/lamp/f.ply"), "vase " + (folder / "plain/vase/e.ply")}));
    EXPECT_EQ(names(list_clouds({folder / "plain/vase"})),
              (std::vector<std::string>{"vase " + (folder / "plain/vase/e.ply")}));
    EXPECT_EQ(code_of([&] { list_clouds({folder / "none"}); }), ErrorCode::bad_argument);
    EXPECT_EQ(CloudEntry{"a.ply"}.class_name(), "");
    EXPECT_EQ(CloudEntry{"test/a.ply"}.class_name(), "");
    EXPECT_EQ(CloudEntry{"/a.ply"}.class_name(), "");
}

#ifdef STIPPLE_WITH_HDF5
TEST(CloudList, SetsGiveOneEntryForEachCloud) {
    const TemporaryFolder folder;
    io::CloudSet set;
    set.points = Array<float, 3>({3, 5, 3});
    for (int64_t i = 0; i < set.points.elements(); ++i) set.points.data()[i] = static_cast<float>(i);
    set.labels = {4, 0, 2};
    io::save_hdf5(folder / "set.h5", set, Overwrite::refuse);
    write_file(folder / "bad.h5", "no HDF5");
    const std::vector<CloudEntry> entries = list_clouds({folder / "set.h5", folder / "bad.h5"});
    ASSERT_EQ(entries.size(), 4u);
    io::Warnings warnings;
    for (int64_t i = 0; i < 3; ++i) {
        const CloudEntry& entry = entries[static_cast<size_t>(i)];
        EXPECT_EQ(entry.name(), (folder / "set.h5") + "[" + std::to_string(i) + "]");
        EXPECT_EQ(entry.label(), set.labels[static_cast<size_t>(i)]);
        const Mesh mesh = load_entry(entry, {}, warnings);
        ASSERT_EQ(mesh.vertices.size(), 5);
        EXPECT_EQ(mesh.vertices.positions.data()[0], static_cast<float>(15 * i));
    }
    ASSERT_TRUE(entries[3].error);
    EXPECT_EQ(code_of([&] { load_entry(entries[3], {}, warnings); }), ErrorCode::bad_file);
}
#endif

}  // namespace
}  // namespace stipple::data
