// Sets of clouds in HDF5: classes (ModelNet40) and parts (ShapeNet-part and its like).

#include <cmath>
#include <set>

#include "tests/data/data_set_files.h"
#include "tests/support/data_sets.h"

#ifdef STIPPLE_WITH_HDF5

namespace stipple::data {
namespace {

class ModelNetHdf5 : public DataSetTest {
protected:
    ModelNetHdf5() {
        write("shape_names.txt", "chair\nlamp\n");
        write("train_files.txt", "data/modelnet40_ply_hdf5_2048/a.h5\n../../b.h5\n");
        write("test_files.txt", "c.h5\n");
        save("a.h5", labelled({0, 1}, 0));
        save("b.h5", labelled({1}, 2));
        save("c.h5", labelled({0}, 3));
    }
    static io::CloudSet labelled(const std::vector<int64_t>& labels, int64_t first) {
        io::CloudSet set = clouds(static_cast<int64_t>(labels.size()), 4, first);
        set.labels = labels;
        return set;
    }
};

TEST_F(ModelNetHdf5, JoinsTheFilesOfASplitByTheirBaseNames) {
    std::vector<std::pair<int64_t, int64_t>> calls;
    DataSetOptions options;
    options.on_progress = [&](int64_t done, int64_t total) { calls.emplace_back(done, total); };
    const DataSet set = load(options);
    EXPECT_EQ(set.layout, "modelnet-hdf5");
    EXPECT_EQ(set.split, "train");
    EXPECT_EQ(set.classes, (std::vector<std::string>{"chair", "lamp"}));
    ASSERT_EQ(set.size(), 3);
    EXPECT_EQ(set.clouds.common_size(), 4);
    EXPECT_EQ(set.labels, (std::vector<int32_t>{0, 1, 1}));
    for (int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(set.points_of(i)(0, 0), static_cast<float>(100 * i));
        EXPECT_EQ(set.points_of(i)(3, 2), static_cast<float>(100 * i) + 3.5f);
    }
    EXPECT_TRUE(set.normals.empty() && set.parts.empty() && set.names.empty() && set.categories.empty());
    EXPECT_FALSE(set.is_pairs());
    EXPECT_EQ(calls, (std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {1, 2}, {2, 2}}));
    EXPECT_EQ(load({.split = "test"}).points_of(0)(0, 0), 300);
    const RecognisedSet found = recognise_data_set(folder.path() + "/");
    EXPECT_EQ(found.layout, "modelnet-hdf5");
    EXPECT_EQ(found.splits, (std::vector<std::string>{"train", "test"}));
}

TEST_F(ModelNetHdf5, TakesTheFirstPoints) {
    const DataSet set = load({.points = 3});
    EXPECT_EQ(set.clouds.common_size(), 3);
    EXPECT_EQ(set.points_of(2)(2, 0), 202);
    EXPECT_EQ(load({.points = 9}).clouds.common_size(), 4);
    expect_in(error({.points = -1}), "bad_argument");
}

TEST_F(ModelNetHdf5, KeepsNormalsAndNamesWhereAllFilesHaveThem) {
    io::CloudSet with = labelled({0, 1}, 0);
    with.normals = with.points.clone();
    with.names = {"x", "y"};
    save("a.h5", with);
    EXPECT_TRUE(load().normals.empty() && load().names.empty());
    ASSERT_EQ(warnings.size(), 4u);
    expect_in(warnings[0], "2 of 3 items have normals: left out");
    expect_in(warnings[1], "2 of 3 items have a name: left out");
    write("train_files.txt", "a.h5");
    const DataSet set = load({.points = 2});
    EXPECT_EQ(set.names, with.names);
    EXPECT_EQ(set.normals, set.clouds.points);
}

TEST_F(ModelNetHdf5, RefusesWhatIsWrong) {
    expect_in(error({.split = "val"}), "bad_argument: " + folder.path() + ": no split val; there are: train, test");
    expect_in(error({.layout = "modelnet"}),
              "bad_argument: modelnet: no such layout; there are auto, packed, modelnet-hdf5");
    expect_in(error({.layout = "part-hdf5"}), "looked for all_object_categories.txt");
    save("b.h5", labelled({2}, 0));
    expect_in(error(), "bad_file: " + (folder / "b.h5[0]") + ": label 2, there are 2 classes");
    save("b.h5", labelled({-1}, 0));
    expect_in(error(), "label -1");
    save("b.h5", clouds(1, 4));
    expect_in(error(), (folder / "b.h5") + ": has no dataset label");
    io::CloudSet set = labelled({0, 1}, 0);
    set.points.data()[12 + 3 * 2 + 1] = NAN;
    save("b.h5", set);
    expect_in(error(), "bad_file: " + (folder / "b.h5[1]") + ": point 2 is not finite");
    EXPECT_EQ(load({.points = 2}).size(), 4);  // what is not taken is not looked at
    write("b.h5", "text");
    expect_in(error(), "not an HDF5 file");
    write("train_files.txt", "a.h5\nelsewhere/none.h5\n");
    expect_in(error(), "bad_file: " + (folder / "train_files.txt") + ": names \"elsewhere/none.h5\"");
    write("train_files.txt", "a.h5\ndata/..\n");
    expect_in(error(), "names no file");
    write("train_files.txt", "\n");
    expect_in(error(), "the split train has no items");
    write("shape_names.txt", "");
    expect_in(error({.split = "test"}), "names no classes");
    std::filesystem::remove(folder / "shape_names.txt");
    expect_in(error({.split = "test"}), "shape_names.txt");
}

class PartHdf5 : public DataSetTest {
protected:
    PartHdf5() {
        write("all_object_categories.txt", "Cap\t001\nMug\t002\n");
        write("overallid_to_catid_partid.json", R"([["002", 1], ["002", 2], ["001", 1], ["001", 2], ["001", 3]])");
        save("ply_data_train0.h5", parts({0, 1}, {2, 3, 4, 0, 1, 0}));
        save("ply_data_val0.h5", parts({1}, {0, 1, 1}));
    }
    static io::CloudSet parts(const std::vector<int64_t>& labels, const std::vector<int32_t>& numbers) {
        const auto m = static_cast<int64_t>(labels.size());
        io::CloudSet set = clouds(m, 3);
        set.labels = labels;
        set.parts = Array<int32_t, 2>({m, 3});
        std::copy(numbers.begin(), numbers.end(), set.parts.data());
        return set;
    }
};

TEST_F(PartHdf5, HasCategoriesAndParts) {
    const DataSet set = load();
    EXPECT_EQ(set.layout, "part-hdf5");
    EXPECT_EQ(set.classes, (std::vector<std::string>{"Cap", "Mug"}));
    ASSERT_EQ(set.categories.size(), 2u);
    EXPECT_EQ(set.categories[0].name, "Cap");
    EXPECT_EQ(set.categories[0].begin, 2);
    EXPECT_EQ(set.categories[0].end, 5);
    EXPECT_EQ(set.categories[1].end, 2);
    EXPECT_EQ(set.labels, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(set.parts, (std::vector<int32_t>{2, 3, 4, 0, 1, 0}));
    EXPECT_EQ(load({.points = 2}).parts, (std::vector<int32_t>{2, 3, 0, 1}));
    EXPECT_EQ(load({.split = "val"}).size(), 1);
    EXPECT_EQ(recognise_data_set(folder.path()).splits, (std::vector<std::string>{"train", "val"}));
}

TEST_F(PartHdf5, FollowsListsAndReadsNamedParts) {
    write("train_hdf5_file_list.txt", "old/ply_data_val0.h5\n");
    std::filesystem::remove(folder / "overallid_to_catid_partid.json");
    // Ranges of ShapeNet-part, where nothing else tells.
    expect_in(error(), "Mug has parts 36 to 37");
    write("parts.json", R"({"Mug": [[0, "body"], [1, "handle"]], "Cap": [[2, "top"], [3, "peak"]]})");
    const DataSet set = load();
    EXPECT_EQ(set.size(), 1);
    EXPECT_EQ(set.part_names, (std::vector<std::string>{"body", "handle", "top", "peak"}));
    EXPECT_EQ(set.categories[0].end, 4);
}

TEST_F(PartHdf5, RefusesWhatIsWrong) {
    const auto tables = [&](const std::string& ids, const std::string& message) {
        write("overallid_to_catid_partid.json", ids);
        expect_in(error(), message);
    };
    tables(R"([["001", 1], ["002", 1], ["001", 2]])", "the parts of Cap are not consecutive");
    tables(R"([["001", 1]])", "Mug has no parts");
    tables(R"([["003", 1]])", "part 0 is of \"003\", which is no category");
    tables(R"([["001"], ["002", 1]])", "must be a list of synset and part");
    tables(R"([[1, "001"]])", "must be a list of synset and part");
    tables(R"([["001", 1])", "must be a list of synset and part");
    tables(R"([["001", 1], ["001", 2], ["002", 1], ["002", 2]])", "point 0 is part 2, Cap has parts 0 to 1");
    std::filesystem::remove(folder / "overallid_to_catid_partid.json");
    for (const auto& [text, message] : {std::pair{R"({"Mug": [[0, "a"]], "Cap": [[0, "b"]]})", "part 0 is there twice"},
                                        {R"({"Mug": [[0, "a"]], "Hat": [[1, "b"]]})", "\"Hat\" is no category"},
                                        {R"({"Mug": [[-1, "a"]]})", "part -1 is out of range"},
                                        {R"({"Mug": [[99999999, "a"]]})", "out of range"},
                                        {R"({"Mug": [0, "a"]})", "must be categories with parts"},
                                        {R"({"Mug": [[0]]})", "must be categories with parts"}}) {
        write("parts.json", text);
        expect_in(error(), message);
    }
    std::filesystem::remove(folder / "parts.json");
    write("all_object_categories.txt", "Cap\nBoat\n");
    expect_in(error(), "the parts of its categories are not known");
    write("all_object_categories.txt", "Cap\nCap\n");
    expect_in(error(), "\"Cap\" is there twice");
    write("all_object_categories.txt", "Cap 001\nMug ../..\n");
    expect_in(error(), "is no name of a folder");
    write("all_object_categories.txt", "");
    expect_in(error(), "names no categories");
    write("all_object_categories.txt", "Cap\nMug\n");
    io::CloudSet set = parts({0}, {6, 6, 6});
    set.parts = {};
    save("ply_data_train0.h5", set);
    expect_in(error(), "has no dataset pid");
}

TEST(DataSetOfModelNet40, HasTheClassesAndCountsOfItsReadme) {
    STIPPLE_NEEDS_DATA("modelnet40_hdf5_2048");
    io::Warnings warnings;
    const std::string path = *test::data_file("modelnet40_hdf5_2048");
    const DataSet set = load_data_set(path, {.split = "test", .points = 64}, warnings);
    EXPECT_EQ(set.size(), 2446);
    EXPECT_EQ(set.classes.size(), 40u);
    EXPECT_EQ(set.names.size(), 2446u);
    EXPECT_EQ(set.clouds.common_size(), 64);
    EXPECT_EQ(std::set<int32_t>(set.labels.begin(), set.labels.end()).size(), 40u);
    EXPECT_EQ(load_data_set(path, {.split = "train", .points = 1}, warnings).size(), 9724);
    EXPECT_TRUE(warnings.empty());
}

TEST(DataSetOfPsbParts, HasTheCategoriesAndCountsOfItsReadme) {
    STIPPLE_NEEDS_DATA("psb_parts_hdf5");
    io::Warnings warnings;
    const std::string path = *test::data_file("psb_parts_hdf5");
    const DataSet set = load_data_set(path, {}, warnings);
    EXPECT_EQ(set.layout, "part-hdf5");
    EXPECT_EQ(set.size(), 304);
    EXPECT_EQ(set.classes.size(), 19u);
    EXPECT_EQ(set.part_names.size(), 94u);
    EXPECT_EQ(set.part_names[4], "wing");
    EXPECT_EQ(set.parts.size(), 304u * 2048u);
    for (int32_t c = 0; c < 19; ++c) EXPECT_EQ(std::count(set.labels.begin(), set.labels.end(), c), 16) << c;
    EXPECT_EQ(load_data_set(path, {.split = "test"}, warnings).size(), 76);
}

}  // namespace
}  // namespace stipple::data

#endif
