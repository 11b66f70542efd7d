#include "stipple/tasks/register_sequence.h"

#include <gtest/gtest.h>

#include "tests/support/lidar_drive.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

PointCloud with_times(const std::string& name, DType dtype, int64_t components = 1) {
    PointCloud cloud(3);
    std::fill_n(cloud.positions.data(), 9, 1.0f);
    Attribute times(name, dtype, 3, components);
    std::fill_n(times.data(), 3 * times.row_bytes(), std::byte{1});
    cloud.attributes.push_back(std::move(times));
    return cloud;
}

TEST(RegisterSequence, TimesHaveSeveralNames) {
    EXPECT_EQ(sweep_times(with_times("t", DType::u32)), std::vector<double>(3, 0x01010101));
    EXPECT_EQ(sweep_times(with_times("timestamp", DType::f64)).size(), 3u);
    EXPECT_EQ(sweep_times(with_times("offset_time", DType::u8)), std::vector<double>(3, 1));
    EXPECT_TRUE(sweep_times(with_times("t", DType::u32, 2)).empty());
    EXPECT_TRUE(sweep_times(with_times("tempo", DType::u32)).empty());
}

TEST(RegisterSequence, TheMapIsThinnedAndKeepsTheNumberOfTheSweep) {
    test::DriveOptions options;
    options.sweeps = 4;
    options.rings = 12;
    options.columns = 180;
    options.speed = 0;  // the second to the fourth see what the first has seen
    const test::LidarDrive drive(options);
    const auto load = [&](size_t i) { return drive.sweep(static_cast<int>(i)); };
    std::vector<int64_t> points(4);
    SequenceOptions wanted;
    wanted.map_voxel = 1;
    SequenceFiles files;
    files.load = load;
    files.map = [&](PointCloud part, double voxel) {
        EXPECT_EQ(voxel, 1);
        points[static_cast<size_t>(find(part.attributes, "scan")->value(0))] += part.size();
    };
    const RegisteredSequence found = register_sequence(4, wanted, files);
    EXPECT_EQ(found.verdict.state, geometry::RegistrationState::good);
    EXPECT_EQ(found.timed, 4);
    EXPECT_GT(points[0], 300);
    EXPECT_LT(points[3], points[0] / 4);
    for (const geometry::RigidTransform& pose : found.poses())
        EXPECT_LT(std::abs(pose.translation[0]) + std::abs(pose.translation[1]), 0.1);
}

TEST(RegisterSequence, TroubleIsNamed) {
    EXPECT_TRUE(test::contains(test::message_of([] { register_sequence(1, {}, {}); }), "two sweeps or more, not 1"));
    SequenceFiles files;
    files.name = [](size_t i) { return "sweep" + std::to_string(i) + ".bin"; };
    files.load = [](size_t) {
        PointCloud empty(5);
        std::fill_n(empty.positions.data(), 15, 0.0f);
        return empty;
    };
    const std::string message = test::message_of([&] { register_sequence(3, {}, files); });
    EXPECT_TRUE(test::contains(message, "sweep0.bin: the first sweep has no points")) << message;
    SequenceOptions known;
    known.odometry.max_range = 10;
    const RegisteredSequence found = register_sequence(5, known, files);
    EXPECT_EQ(found.verdict.state, geometry::RegistrationState::failed);
    EXPECT_EQ(found.sweeps.size(), 3u);  // lost there, and not gone on with
    EXPECT_TRUE(test::contains(found.verdict.reasons[0], "lost at sweep2.bin")) << found.verdict.reasons[0];
}

}  // namespace
}  // namespace stipple::tasks
