#include "stipple/engine/time_engine.h"

#include <gtest/gtest.h>

#include "stipple/core/array.h"
#include "stipple/models/pointnet.h"
#include "stipple/network/builder.h"
#include "tests/support/devices.h"

namespace stipple::engine {
namespace {

TEST(EngineTimeStatistics, AreThoseOfTheTimes) {
    std::vector<double> times;
    for (int i = 200; i >= 1; --i) times.push_back(i);
    const TimeStatistics found = statistics_of(times);
    EXPECT_EQ(found.min, 1);
    EXPECT_EQ(found.max, 200);
    EXPECT_NEAR(found.mean, 100.5, 1e-9);
    EXPECT_EQ(found.median, 100.5);
    EXPECT_EQ(found.p99, 198);
    EXPECT_NEAR(found.variation, 57.7343 / 100.5, 1e-4);
    const TimeStatistics one = statistics_of({2});
    EXPECT_EQ(one.median, 2);
    EXPECT_EQ(one.p99, 2);
    EXPECT_EQ(one.variation, 0);
    EXPECT_NE(test::bad_argument_of([] { statistics_of({}); }), "");
}

class EngineTimesOn : public test::OnDevice {};
STIPPLE_ON_EVERY_DEVICE(EngineTimesOn);

TEST_P(EngineTimesOn, PartsAddUp) {
    const network::Network net = models::pointnet_classifier({.classes = 5, .feature_transform = false});
    Options options;
    options.device = device();
    options.max_batch = 2;
    options.max_points = 32;
    const Engine engine = compile(net, network::initial_weights(net, 1), options);
    Array<float, 2> points({64, 3});
    for (int64_t i = 0; i < 192; ++i) points.data()[i] = static_cast<float>(i % 7) / 7;
    const ops::Batch batch = ops::Batch::dense(2, 32);
    const EngineTimes times = time_engine(engine, batch, {{"points", points.view()}}, {0, 12, 0.01});
    EXPECT_GE(times.runs, 12);
    EXPECT_GT(times.clouds_per_second, 0);
    EXPECT_GE(times.wall_seconds, 0.01);
    EXPECT_LE(times.latency.mean * static_cast<double>(times.runs), times.wall_seconds * 1.0001);
    EXPECT_GE(times.latency.mean, 0.999 * times.compute.mean);
    if (device().type == DeviceType::cpu) {
        EXPECT_EQ(times.host_to_device.max, 0);
        EXPECT_EQ(times.device_seconds, 0);
    } else {
        EXPECT_GT(times.host_to_device.min, 0);
        EXPECT_GT(times.device_to_host.min, 0);
        EXPECT_GT(times.enqueue.min, 0);
        EXPECT_GT(times.device_seconds, 0);
    }
}

TEST_P(EngineTimesOn, OutputsMayBeIndices) {
    network::Builder build("near");
    build.output("near", build.knn("k", build.input("points", network::points_of(3)), 4));
    const Engine engine = compile(build.finish(), {}, {.device = device(), .max_batch = 2, .max_points = 32});
    Array<float, 2> points({64, 3});
    for (int64_t i = 0; i < 192; ++i) points.data()[i] = static_cast<float>(i % 7) / 7;
    EXPECT_GE(time_engine(engine, ops::Batch::dense(2, 32), {{"points", points.view()}}, {0, 3, 0.001}).runs, 3);
}

TEST(EngineGemmPeak, IsOfAGpuAlone) {
    try {
        gemm_peak(Device{}, Precision::fp32);
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_device);
    }
}

}  // namespace
}  // namespace stipple::engine
