// Sets as text: ShapeNet's part annotation in its two forms, ModelNet40 with normals.

#include "tests/data/data_set_files.h"

namespace stipple::data {
namespace {

class PartText : public DataSetTest {
protected:
    PartText() {
        write("synsetoffset2category.txt", "Mug\t002\nCap\t001\n");
        write("train_test_split/shuffled_train_file_list.json", R"(["shape_data/002/a", "shape_data/001/b"])");
        write("train_test_split/shuffled_test_file_list.json", R"(["shape_data/002/c"])");
        write("002/points/a.pts", "0.5 1 2\n3 4 5\n6 7 8\n");
        write("002/points_label/a.seg", "1\n2\n1\n");
        write("001/points/b.pts", "1e-1 -2 +3\n\n4,5,6\r\n");
        write("001/points_label/b.seg", "2\n1");
        write("002/points/c.pts", "9 9 9\n");
        write("002/points_label/c.seg", "2\n");
    }
    const std::string list = "train_test_split/shuffled_train_file_list.json";
};

TEST_F(PartText, HasGlobalPartsOfClouds) {
    const DataSet set = load();
    EXPECT_EQ(set.layout, "part-text");
    EXPECT_EQ(set.classes, (std::vector<std::string>{"Mug", "Cap"}));
    EXPECT_EQ(set.labels, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(set.clouds.offsets, (std::vector<int64_t>{0, 3, 5}));
    EXPECT_EQ(set.clouds.common_size(), -1);
    EXPECT_EQ(set.clouds.points, (std::vector<float>{0.5, 1, 2, 3, 4, 5, 6, 7, 8, 0.1f, -2, 3, 4, 5, 6}));
    EXPECT_EQ(set.parts, (std::vector<int32_t>{36, 37, 36, 7, 6}));  // ShapeNet-part's: mugs from 36, caps from 6
    EXPECT_EQ(set.names, (std::vector<std::string>{"002/a", "001/b"}));
    EXPECT_TRUE(set.normals.empty());
    EXPECT_EQ(load({.points = 2}).parts, (std::vector<int32_t>{36, 37, 7, 6}));
    EXPECT_EQ(load({.split = "test"}).size(), 1);
    expect_in(error({.split = "val"}), "no split val; there are: train, test");
}

TEST_F(PartText, OfOtherCategoriesNeedsTheirNumbersOfParts) {
    write("synsetoffset2category.txt", "Boat\t002\nCap\t001\n");
    expect_in(error(), "names categories that ShapeNet-part has not");
    write("num_seg_classes.txt", "Cap 2\nBoat\t3\nOther 9\n");
    EXPECT_EQ(load().parts, (std::vector<int32_t>{0, 1, 0, 4, 3}));
    write("num_seg_classes.txt", "Cap 2\n");
    expect_in(error(), "does not name \"Boat\"");
    write("num_seg_classes.txt", "Cap two\n");
    expect_in(error(), "expected a name and a number of parts, found \"Cap two\"");
}

TEST_F(PartText, RefusesWhatIsWrong) {
    write("002/points_label/a.seg", "1\n3\n1\n");
    expect_in(error(), "bad_file: " + (folder / "002/points_label/a.seg") + ": part 3, Mug has parts 1 to 2");
    write("002/points_label/a.seg", "1\n0\n1\n");
    expect_in(error(), "part 0, Mug has parts 1 to 2");
    write("002/points_label/a.seg", "1\n1.5\n1\n");
    expect_in(error(), "1.5 is no number of a part");
    write("002/points_label/a.seg", "1\n2\n");
    expect_in(error(), "2 parts for 3 points");
    expect_in(error({.points = 1}), "2 parts for 3 points");
    write("002/points_label/a.seg", "1\nx\n");
    expect_in(error(), (folder / "002/points_label/a.seg") + ":2: expected 1 number, found \"x\"");
    write("002/points/a.pts", "1 2 3\n1 2\n");
    expect_in(error(), (folder / "002/points/a.pts") + ":2: expected 3 numbers");
    write("002/points/a.pts", "1 2 3 4\n");
    expect_in(error(), ":1: expected 3 columns, there are more");
    write("002/points/a.pts", "1 2 nan\n");
    expect_in(error(), ":1: a number is not finite");
    write("002/points/a.pts", "");
    expect_in(error(), "holds no rows");
    std::filesystem::remove(folder / "002/points/a.pts");
    expect_in(error(), "bad_file: " + (folder / "002/points/a.pts"));
    for (const auto& [text, message] :
         {std::pair{R"(["shape_data/003/a"])", "\"shape_data/003/a\" is no shape of a category"},
          {R"(["shape_data/002/.."])", "is no shape of a category"},
          {R"(["../../secret"])", "is no shape of a category"},
          {R"(["a"])", "expected shape_data/SYNSET/NAME"},
          {R"([1])", "must be a list of shapes"},
          {R"({"a": "b"})", "must be a list of shapes"},
          {R"(["a)", "is no JSON"},
          {"[]", "the split train has no items"}}) {
        write(list, text);
        expect_in(error(), std::string(message));
    }
    for (const auto& [text, message] : {std::pair{"Mug\n", "expected a name and a synset, found \"Mug\""},
                                        {"Mug 1 2\n", "expected a name and a synset"},
                                        {"Mug ..\n", "\"..\" is no name of a folder"},
                                        {"Mug 002\nCap 002\n", "is there twice"}}) {
        write("synsetoffset2category.txt", text);
        expect_in(error(), message);
    }
}

class PartNormalText : public DataSetTest {
protected:
    PartNormalText() {
        write("synsetoffset2category.txt", "Airplane\t002\n");
        write("train_test_split/shuffled_val_file_list.json", R"(["shape_data/002/a"])");
        write("002/a.txt", "0 1 2 0 0 1 3.000000\n3 4 5 1 0 0 0\n");
    }
};

TEST_F(PartNormalText, HasNormalsAndGlobalParts) {
    const DataSet set = load({.split = "val"});
    EXPECT_EQ(set.layout, "part-normal-text");
    EXPECT_EQ(set.clouds.points, (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(set.normals, (std::vector<float>{0, 0, 1, 1, 0, 0}));
    EXPECT_EQ(set.parts, (std::vector<int32_t>{3, 0}));
    expect_in(error(), "bad_argument: " + folder.path() + ": which split? There are: val");
}

TEST_F(PartNormalText, RefusesWhatIsWrong) {
    write("002/a.txt", "0 1 2 0 0 1 4\n");
    expect_in(error({.split = "val"}), (folder / "002/a") + ": point 0 is part 4, Airplane has parts 0 to 3");
    write("002/a.txt", "0 1 2 0 0 1 1e300\n");
    expect_in(error({.split = "val"}), "is no number of a part");
    write("002/a.txt", "0 1 2 0 0 1e300 1\n");
    expect_in(error({.split = "val"}), "normal 0 is not finite");
    write("002/a.txt", "0 1 2 0 0 1\n");
    expect_in(error({.split = "val"}), ":1: expected 7 numbers");
}

class ModelNetText : public DataSetTest {
protected:
    ModelNetText() {
        write("modelnet40_shape_names.txt", "lamp\nnight_stand\n");
        write("modelnet40_train.txt", "night_stand_0001\nlamp_0002\n");
        write("modelnet40_test.txt", "lamp_0003\n");
        write("night_stand/night_stand_0001.txt", "1,2,3,0,0,1\n4,5,6,0,1,0\n");
        write("lamp/lamp_0002.txt", "7,8,9,1,0,0\n");
        write("lamp/lamp_0003.txt", "0,0,0,1,0,0\n");
    }
};

TEST_F(ModelNetText, HasClassesByNameAndNormals) {
    const DataSet set = load();
    EXPECT_EQ(set.layout, "modelnet-text");
    EXPECT_EQ(set.labels, (std::vector<int32_t>{1, 0}));
    EXPECT_EQ(set.names, (std::vector<std::string>{"night_stand_0001", "lamp_0002"}));
    EXPECT_EQ(set.clouds.points, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(set.normals, (std::vector<float>{0, 0, 1, 0, 1, 0, 1, 0, 0}));
    EXPECT_EQ(load({.split = "test"}).size(), 1);
}

TEST_F(ModelNetText, RefusesWhatIsWrong) {
    for (const char* line : {"boat_0001", "lamp", "lamp_../../secret", "../lamp_0002"}) {
        write("modelnet40_train.txt", line);
        expect_in(error(), "bad_file: " + (folder / "modelnet40_train.txt") + ": expected CLASS_NUMBER");
    }
    write("modelnet40_train.txt", "lamp_0009");
    expect_in(error(), "bad_file: " + (folder / "lamp/lamp_0009.txt"));
    write("modelnet40_shape_names.txt", "..\n");
    write("modelnet40_train.txt", ".._0001");
    expect_in(error(), "\"..\" is no class");
}

}  // namespace
}  // namespace stipple::data
