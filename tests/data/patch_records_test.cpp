// Patches in TFRecord files, as PUGeo has them.

#include <cmath>

#include "tests/data/data_set_files.h"
#include "tests/support/tfrecord_files.h"

namespace stipple::data {
namespace {

class PatchRecords : public DataSetTest {
protected:
    /// n points of patch `number`, each with a normal where there are six columns.
    static std::vector<float> patch(int number, int n, int columns) {
        std::vector<float> values;
        for (int i = 0; i < n; ++i) {
            for (int a = 0; a < 3; ++a)
                values.push_back(static_cast<float>(10 * number + i) + 0.25f * static_cast<float>(a));
            const float normal[] = {0.6f, 0, -0.8f};
            if (columns == 6) values.insert(values.end(), normal, normal + 3);
        }
        return values;
    }
    static std::string record(int number, int columns = 6, int sparse = 2, int dense = 8) {
        return test::tfrecord(test::example_message(
            {{"res_5000", patch(number, sparse, columns)}, {"res_20000", patch(number + 100, dense, columns)}}));
    }
};

TEST_F(PatchRecords, AreReadFromAllFilesOfAFolder) {
    write("b_shard1.tfrecord", record(2));
    write("a_shard0.tfrecord", record(0) + record(1));
    write("notes.txt", "no patches");
    const DataSet set = load();
    EXPECT_EQ(set.layout, "patches-tfrecord");
    EXPECT_EQ(set.split, "all");
    ASSERT_EQ(set.size(), 3);
    ASSERT_TRUE(set.is_pairs());
    EXPECT_EQ(set.clouds.common_size(), 2);
    EXPECT_EQ(set.targets.common_size(), 8);
    EXPECT_EQ(set.clouds.of(2)(1, 2), 21.5f);
    EXPECT_EQ(set.targets.of(1)(7, 1), 1017.25f);
    EXPECT_EQ(load({.ratio = 4}).size(), 3);
    EXPECT_EQ(load_data_set(folder / "b_shard1.tfrecord", {}, warnings).size(), 1);
    expect_in(error({.ratio = 16}), "has no patches 16 times as dense: 2 and 8 points");
    expect_in(error({.points = 2}), "pairs are read whole");
}

TEST_F(PatchRecords, MayHaveNoNormals) {
    write("x.tfrecord", record(4, 3) + record(5, 3));
    const DataSet set = load();
    EXPECT_EQ(set.clouds.common_size(), 2);
    EXPECT_EQ(set.targets.of(0)(3, 0), 1043.0f);
}

TEST_F(PatchRecords, AreRefusedWhereTheyDoNotFit) {
    const auto refused = [&](const std::string& content, const std::string& message) {
        write("x.tfrecord", content);
        const std::string text = error();
        expect_in(text, "bad_file: ");
        expect_in(text, "x.tfrecord");
        expect_in(text, message);
    };
    const std::string good = record(0);
    refused(good.substr(0, good.size() - 1), "byte 0: the file ends within a record");
    refused(good + record(1, 6, 3, 8),
            fmt::format("byte {}: \"res_5000\": 18 numbers, the first record has 12", good.size()));
    refused(good + record(1, 3, 2, 16), "the first record has 12");
    refused(good + test::tfrecord(test::example_message({{"res_20000", patch(0, 8, 6)}})),
            "\"res_5000\": 0 numbers, the first record has 12");
    refused(test::tfrecord(test::example_message({{"a", {1, 2, 3}}})), "1 lists of floats, two are wanted");
    refused(test::tfrecord(test::example_message({{"a", {1, 2, 3}}, {"b", {1, 2, 3, 4}}})),
            "\"b\": 4 numbers are no points");
    refused(test::tfrecord(test::example_message({{"a", {}}, {"b", {1, 2, 3}}})), "\"a\": 0 numbers are no points");
    refused(test::tfrecord(test::example_message({{"a", {1, 2, 3}}, {"b", {1, 2, 3}}})), "two patches of 1 points");
    refused(test::tfrecord(test::example_message({{"a", {1, NAN, 3}}, {"b", {1, 2, 3, 4, 5, 6}}})),
            "x.tfrecord: record 0: point 0 is not finite");
    refused("a text\n", "the file ends within a record");
    write("x.tfrecord", "");
    expect_in(error(), "has no items");
}

}  // namespace
}  // namespace stipple::data
