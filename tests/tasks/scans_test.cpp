// The shipped classifier on scans that are nothing it knows, and on clouds that are.

#include <gtest/gtest.h>

#include "stipple/tasks/classify.h"
#include "stipple/tasks/weights.h"
#include "tests/support/data_sets.h"

namespace stipple::tasks {
namespace {

using test::data_file;

class ShippedClassifier : public testing::Test {
protected:
    void SetUp() override {
        const std::string path = std::string(STIPPLE_SOURCE_DIR) + "/weights/" + kClassifierWeights + ".safetensors";
        classifier.emplace(load_model_or_engine(path), RunnerOptions{.device = "cpu"});
        ASSERT_TRUE(classifier->confidence()) << path << " has no stipple.confidence";
    }
    std::vector<Classified> answers(const std::vector<data::CloudEntry>& entries, const CloudOptions& options) {
        io::Warnings warnings;
        return classify(*classifier, entries, options, {}, warnings);
    }
    std::optional<Classifier> classifier;
};

TEST_F(ShippedClassifier, LidarIsUnlikeAnything) {
    STIPPLE_NEEDS_DATA("scans");
    std::vector<std::string> inputs;
    for (const char* name : {"kitti", "las", "lidar_pair/source.ply", "lidar_pair/target.ply"})
        inputs.push_back(*data_file(std::string("scans/") + name));
    const std::vector<data::CloudEntry> entries = data::list_clouds(inputs);
    EXPECT_EQ(entries.size(), 7u);
    for (const uint64_t seed : {0, 1}) {
        const std::vector<Classified> found = answers(entries, {.seed = seed});
        for (size_t i = 0; i < entries.size(); ++i)
            EXPECT_TRUE(found[i].is_unlike()) << entries[i].name() << ": distance " << *found[i].distance;
    }
}

#ifdef STIPPLE_WITH_HDF5
TEST_F(ShippedClassifier, FewTestCloudsAreUnlikeAnything) {
    STIPPLE_NEEDS_DATA("modelnet40_hdf5_2048");
    const std::string folder = *data_file("modelnet40_hdf5_2048");
    const std::vector<data::CloudEntry> all =
        data::list_clouds({folder + "/ply_data_test0.h5", folder + "/ply_data_test1.h5"});
    std::vector<data::CloudEntry> some;  // for the time that it takes; the share of all is in docs/engine.md
    for (size_t i = 0; i < all.size(); i += 4) some.push_back(all[i]);
    int64_t unlike = 0;
    for (const Classified& answer : answers(some, {.sample = "first"})) unlike += answer.is_unlike();
    EXPECT_LE(unlike, static_cast<int64_t>(some.size()) * 5 / 100) << "of " << some.size();
}
#endif

}  // namespace
}  // namespace stipple::tasks
