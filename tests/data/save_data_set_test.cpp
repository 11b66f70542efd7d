#include "stipple/data/save_data_set.h"

#include <gtest/gtest.h>

#include "tests/data/data_set_files.h"

namespace stipple::data {
namespace {

/// Items of two classes in turn, with normals, parts and names.
DataSet writable_set(const std::string& split, int64_t items, int64_t n) {
    DataSet set;
    set.layout = "made-up";
    set.split = split;
    set.classes = {"Cup", "Lamp"};
    set.categories = {{"Cup", 0, 2}, {"Lamp", 2, 5}};
    set.part_names = {"body", "handle", "base", "bulb", "canopy"};
    for (int64_t item = 0; item < items; ++item) {
        for (int64_t i = 0; i < n; ++i) {
            for (int axis = 0; axis < 3; ++axis) {
                set.clouds.points.push_back(static_cast<float>(item) + 0.25f * static_cast<float>(i * (axis + 1)));
                set.normals.push_back(axis == i % 3 ? 1.0f : 0.0f);
            }
            set.parts.push_back(static_cast<int32_t>(item % 2 == 0 ? i % 2 : 2 + i % 3));
        }
        set.clouds.offsets.push_back(set.clouds.offsets.back() + n);
        set.labels.push_back(static_cast<int32_t>(item % 2));
        set.names.push_back(fmt::format("{}_{}", split, item));
    }
    return set;
}

/// The same items, whatever their order.
void expect_same_items(const DataSet& set, const DataSet& again, bool with_parts) {
    ASSERT_EQ(again.size(), set.size());
    EXPECT_EQ(again.classes, set.classes);
    EXPECT_EQ(again.normals.size(), set.normals.size());
    EXPECT_EQ(again.parts.empty(), !with_parts);
    if (with_parts) {
        EXPECT_EQ(again.part_names, set.part_names);
    }
    for (int64_t i = 0; i < set.size(); ++i) {
        int64_t found = -1;
        for (int64_t j = 0; j < again.size(); ++j) {
            const std::string& name = again.names[static_cast<size_t>(j)];
            if (name.substr(name.rfind('/') + 1) == set.names[static_cast<size_t>(i)]) found = j;
        }
        ASSERT_GE(found, 0) << set.names[static_cast<size_t>(i)];
        EXPECT_EQ(again.labels[static_cast<size_t>(found)], set.labels[static_cast<size_t>(i)]);
        ASSERT_EQ(again.clouds.size_of(found), set.clouds.size_of(i));
        const int64_t from = set.clouds.offsets[static_cast<size_t>(i)],
                      to = again.clouds.offsets[static_cast<size_t>(found)];
        for (int64_t p = 0; p < set.clouds.size_of(i); ++p) {
            for (int axis = 0; axis < 3; ++axis) {
                EXPECT_EQ(again.points_of(found)(p, axis), set.points_of(i)(p, axis));
                EXPECT_EQ(again.normals[static_cast<size_t>(3 * (to + p) + axis)],
                          set.normals[static_cast<size_t>(3 * (from + p) + axis)]);
            }
            if (with_parts) {
                EXPECT_EQ(again.parts[static_cast<size_t>(to + p)], set.parts[static_cast<size_t>(from + p)]);
            }
        }
    }
}

class SaveDataSet : public DataSetTest {
protected:
    std::string save_error(std::span<const DataSet> splits, const std::string& layout, SaveOptions how = {}) {
        try {
            save_data_set(folder / "out", splits, layout, how, warnings);
        } catch (const Error& failure) {
            return std::string(rule_of(failure.code()).name) + ": " + failure.what();
        }
        return "ok";
    }
};

TEST_F(SaveDataSet, EveryLayoutReadsBack) {
    const DataSet splits[] = {writable_set("train", 5, 7), writable_set("test", 2, 7)};
    for (const std::string layout : kWritableLayouts) {
#ifndef STIPPLE_WITH_HDF5
        if (layout.ends_with("hdf5")) continue;
#endif
        const std::string place = folder / std::string(layout);
        int64_t done = 0;
        save_data_set(place, splits, std::string(layout), {.on_progress = [&](int64_t at, int64_t) { done = at; }},
                      warnings);
        EXPECT_EQ(done, 7);
        const RecognisedSet found = recognise_data_set(place);
        EXPECT_EQ(found.layout, layout);
        EXPECT_EQ(found.splits, (std::vector<std::string>{"train", "test"}));
        for (const DataSet& set : splits)
            expect_same_items(set, load_data_set(place, {.split = set.split}, warnings), layout.starts_with("part"));
    }
    EXPECT_TRUE(warnings.empty()) << warnings[0];
    for (const std::string& entry : folder.entries()) EXPECT_NE(entry[0], '.') << entry;
}

TEST_F(SaveDataSet, FoldersHoldCloudsOfAnySize) {
    DataSet set = writable_set("all", 3, 4);
    set.clouds.points.resize(3 * 10);
    set.normals.resize(3 * 10);
    set.parts.resize(10);
    set.clouds.offsets = {0, 4, 8, 10};
    set.names = {"a/../x", "..", "x"};  // names of files are made of them, or numbers
    save_data_set(folder / "out", {&set, 1}, "part-folders", {}, warnings);
    const DataSet again = load_data_set(folder / "out", {}, warnings);
    EXPECT_EQ(again.split, "all");
    EXPECT_EQ(again.names, (std::vector<std::string>{"Cup/000002", "Cup/x", "Lamp/000001"}));
    EXPECT_EQ(again.clouds.offsets, (std::vector<int64_t>{0, 2, 6, 10}));
    expect_in(save_error({&set, 1}, "modelnet-hdf5", {.overwrite = Overwrite::allow}), "those of the split all differ");
    EXPECT_EQ(load_data_set(folder / "out", {}, warnings).layout, "part-folders") << "the old one is untouched";
}

TEST_F(SaveDataSet, ReplacesOnlyItsOwn) {
    const DataSet set = writable_set("train", 2, 4);
    EXPECT_EQ(save_error({&set, 1}, "class-folders"), "ok");
    expect_in(save_error({&set, 1}, "class-folders"), "cannot_write: " + (folder / "out") + ": exists");
    EXPECT_EQ(save_error({&set, 1}, "part-folders", {.overwrite = Overwrite::allow}), "ok");
    EXPECT_EQ(recognise_data_set(folder / "out").layout, "part-folders");
    std::filesystem::remove(folder / "out/converted.json");
    expect_in(save_error({&set, 1}, "class-folders", {.overwrite = Overwrite::allow}),
              "was not written by a conversion");
    EXPECT_EQ(folder.entries(), (std::vector<std::string>{"out"}));
}

TEST_F(SaveDataSet, RefusesWhatALayoutCannotHold) {
    const DataSet good = writable_set("train", 2, 4);
    const auto refused = [&](const std::string& layout, const std::function<void(DataSet&)>& change) {
        DataSet set = good;
        change(set);
        return save_error({&set, 1}, layout);
    };
    expect_in(refused("heap", [](DataSet&) {}),
              "bad_argument: heap: cannot be written; these can: modelnet-hdf5, part");
    expect_in(refused("part-folders", [](DataSet& set) { set.parts.clear(); }), "needs parts");
    expect_in(refused("class-folders", [](DataSet& set) { set.labels.clear(); }), "needs classes");
    expect_in(refused("class-folders", [](DataSet& set) { set.classes[0] = "../up"; }), "cannot be a folder");
    expect_in(refused("class-folders", [](DataSet& set) { set.targets = set.clouds; }), "pairs");
    expect_in(refused("part-hdf5", [](DataSet& set) { set.classes[0] = "two words"; }), "cannot be a word");
    expect_in(refused("modelnet-hdf5", [](DataSet& set) { set.classes[0] = " x"; }), "cannot be a line");
    EXPECT_TRUE(folder.entries().empty());
}

TEST_F(SaveDataSet, LabelledCloudsNeedLabels) {
    write("Cup/a.xyz", "1 2 3\n4 5 6\n");
    write("parts.json", R"({"Cup": [[0, "body"], [1, "handle"]]})");
    EXPECT_EQ(recognise_data_set(folder.path()).layout, "part-folders");
    expect_in(error(), "its points have no label");
    EXPECT_EQ(load({.layout = "class-folders"}).size(), 1);
    const std::string header =
        "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n";
    std::filesystem::remove(folder / "Cup/a.xyz");
    write("Cup/a.ply", header + "property int label\nend_header\n0 0 0 1\n1 0 0 0\n");
    EXPECT_EQ(load().parts, (std::vector<int32_t>{1, 0}));
    write("Cup/a.ply", header + "property int label\nend_header\n0 0 0 1\n1 0 0 2\n");
    expect_in(error(), "point 1 is part 2, Cup has parts 0 to 1");
    write("Cup/a.ply", header + "property float label\nend_header\n0 0 0 1\n1 0 0 0.5\n");
    expect_in(error(), "its points have no label");
}

}  // namespace
}  // namespace stipple::data
