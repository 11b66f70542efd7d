#include <gtest/gtest.h>

#include <cmath>

#include "stipple/tasks/registration_study/trials.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using geometry::RegistrationState;
using geometry::RigidTransform;
using study::PairTrial;
using study::parse_pairs;
using study::PosePair;

constexpr const char* kFragments =
    R"([{"scene": "room", "target": 0, "source": 3, "overlap": 0.5, "R": [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
         "t": [1, 2, 3], "more": {"any": [1, "x"]}}])";
constexpr const char* kFiles =
    R"([{"name": "street", "source": "b.xyz", "target": "a.xyz",
         "T_target_source": [[1, 0, 0, 5], [0, 1, 0, 6], [0, 0, 1, 7], [0, 0, 0, 1]]}])";

TEST(RegistrationStudy, PairsAreFragmentsOrFiles) {
    const std::vector<PosePair> fragments = parse_pairs(kFragments);
    ASSERT_EQ(fragments.size(), 1u);
    EXPECT_EQ(fragments[0].scene, "room");
    EXPECT_EQ(fragments[0].source, "cloud_bin_3");
    EXPECT_EQ(fragments[0].target, "cloud_bin_0");
    EXPECT_EQ(fragments[0].overlap, 0.5);
    EXPECT_FALSE(fragments[0].is_files);
    EXPECT_EQ(fragments[0].truth({1, 0, 0}), (geometry::Vector3{1, 3, 3}));
    const std::vector<PosePair> files = parse_pairs(kFiles);
    ASSERT_EQ(files.size(), 1u);
    EXPECT_TRUE(files[0].is_files);
    EXPECT_EQ(files[0].scene, "street");
    EXPECT_EQ(files[0].truth.translation, (geometry::Vector3{5, 6, 7}));
}

TEST(RegistrationStudy, HostilePairsAreRefusedWithTheirPlace) {
    const auto refused = [](const std::string& text) { return test::message_of([&] { parse_pairs(text); }); };
    EXPECT_TRUE(test::contains(refused("[{]"), "the pairs"));
    EXPECT_TRUE(test::contains(refused("[1, 2]"), "pairs/0"));
    EXPECT_TRUE(test::contains(refused(R"([{"scene": "a", "source": 1}])"), "pair 0 has no source and target"));
    EXPECT_TRUE(test::contains(refused(R"([{"scene": "a", "source": 1, "target": 0, "t": [1, 2, 3]}])"), "R and t"));
    EXPECT_TRUE(test::contains(refused(R"([{"source": 1, "target": 0, "R": "x"}])"), "must be a number"));
    EXPECT_TRUE(test::contains(
        refused(R"([{"source": 1, "target": 0, "t": [0, 0, 0], "R": [[2, 0, 0], [0, 1, 0], [0, 0, 1]]}])"),
        "not a rotation"));
    std::string many = R"([{"source": 1, "target": 0, "R": [0)";
    for (int i = 0; i < 40; ++i) many += ", 0";
    EXPECT_TRUE(test::contains(refused(many + "]}]"), "too many numbers"));
    const test::TemporaryFolder folder;
    EXPECT_TRUE(test::contains(test::message_of([&] { study::load_pair_sets(folder.path()); }), "no file *pairs.json"));
    test::write_file(folder / "x_pairs.json", kFiles);
    const std::vector<study::PairSet> sets = study::load_pair_sets(folder.path());
    ASSERT_EQ(sets.size(), 1u);
    EXPECT_EQ(sets[0].name, "x");
    study::PairScans scans;
    EXPECT_TRUE(test::contains(test::message_of([&] { scans.load(sets[0], sets[0].pairs[0], "b.xyz"); }), "b.xyz"));
    test::write_file(folder / "b.xyz", "1 2 3\n4 5 6\n");
    EXPECT_EQ(scans.load(sets[0], sets[0].pairs[0], "b.xyz").size(), 2);
    PosePair missing = parse_pairs(kFragments)[0];
    EXPECT_TRUE(test::contains(test::message_of([&] { scans.load(sets[0], missing, "cloud_bin_3"); }), "room.npz"));
}

PairTrial trial_of(bool is_right, double confidence, RegistrationState state) {
    PairTrial trial;
    trial.is_right = is_right;
    trial.registration.trust.confidence = confidence;
    trial.registration.verdict.state = state;
    return trial;
}

TEST(RegistrationStudy, SummariesCountBothWays) {
    std::vector<PairTrial> trials;
    trials.push_back(trial_of(true, 0.95, RegistrationState::good));
    trials.push_back(trial_of(true, 0.95, RegistrationState::doubtful));
    trials.push_back(trial_of(false, 0.95, RegistrationState::good));
    trials.push_back(trial_of(false, 0.05, RegistrationState::failed));
    trials[0].degrees = 1, trials[1].degrees = 3, trials[2].degrees = 100;
    std::vector<const PairTrial*> all;
    for (const PairTrial& trial : trials) all.push_back(&trial);
    const study::TrialSummary summary = study::summarise(all);
    EXPECT_EQ(summary.pairs, 4);
    EXPECT_EQ(summary.right, 2);
    EXPECT_EQ(summary.degrees, 2);
    EXPECT_EQ(summary.right_by_state[0], 1);
    EXPECT_EQ(summary.right_by_state[1], 1);
    EXPECT_EQ(summary.wrong_by_state[0], 1);
    EXPECT_EQ(summary.wrong_by_state[2], 1);
    // Three of the tenth from 0.9 with two right, one of the first with none.
    EXPECT_NEAR(summary.calibration_error, 0.75 * (0.95 - 2.0 / 3) + 0.25 * 0.05, 1e-12);
    EXPECT_TRUE(std::isnan(study::summarise({}).degrees));
}

TEST(RegistrationStudy, TrialsAreScoredByBothRules) {
    const PointCloud source = test::lumpy_body(3000, 1), target = test::lumpy_body(3000, 2);
    RegisterOptions options;
    options.method = RegisterMethod::icp;
    const study::PoseRules rules{.degrees = 5, .distance = 0.1, .rmse = 0.1, .near = 0.1};
    const PairTrial right = study::try_pair(source, target, {}, options, rules);
    EXPECT_TRUE(right.is_right);
    EXPECT_TRUE(right.is_right_by_rmse);
    EXPECT_LT(right.rmse, 0.05);
    // By another truth the same pose is wrong.
    const RigidTransform other = geometry::rotation_about({0, 0, 1}, 0.5);
    const PairTrial wrong = study::try_pair(source, target, other, options, rules);
    EXPECT_FALSE(wrong.is_right);
    EXPECT_NEAR(wrong.degrees, 0.5 * 180 / M_PI, 1);
    for (const uint64_t seed : {1, 2, 3, 4, 5}) {
        const RigidTransform near = study::start_near(source, other, seed),
                             far = study::start_elsewhere(source, target, other, seed);
        EXPECT_LE(pose_error(near, other, source).degrees, 10);
        EXPECT_GT(pose_error(far, other, source).rms, pose_error(near, other, source).rms);
    }
}

}  // namespace
}  // namespace stipple::tasks
