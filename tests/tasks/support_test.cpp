// Where a scan supports points, and that upsampling keeps to it.

#include "stipple/tasks/upsample/support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/weights.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::message_of;

Upsampler shipped() {
    ModelOrEngine source;
    source.path = std::string(STIPPLE_SOURCE_DIR) + "/weights/" + kUpsamplerWeights + ".safetensors";
    source.model = models::load_model(source.path);
    return Upsampler(std::move(source), {.device = "cpu"});
}

PointCloud cloud_of(const std::vector<std::array<float, 3>>& points) {
    PointCloud cloud(static_cast<int64_t>(points.size()));
    for (size_t i = 0; i < points.size(); ++i) std::copy_n(points[i].data(), 3, cloud.positions.data() + 3 * i);
    return cloud;
}

/// A square of the plane z = 0 from 0 to n, a point in every unit at random within `shift` of its middle; none within
/// `hole` of the square's middle.
PointCloud sheet(int n, float shift, float hole, uint64_t seed = 1) {
    const Rng rng(seed);
    std::vector<std::array<float, 3>> points;
    for (int i = 0; i < n * n; ++i) {
        const auto at = static_cast<uint64_t>(2 * i);
        const float x = static_cast<float>(i % n) + 0.5f + shift * (2 * rng.uniform(at) - 1),
                    y = static_cast<float>(i / n) + 0.5f + shift * (2 * rng.uniform(at + 1) - 1);
        if (std::hypot(x - 0.5f * static_cast<float>(n), y - 0.5f * static_cast<float>(n)) >= hole)
            points.push_back({x, y, 0});
    }
    return cloud_of(points);
}

SupportGrade grade_at(const Support& support, float x, float y, float z) {
    const float place[3] = {x, y, z};
    return support.of({place, {1, 3}})[0];
}

TEST(UpsampleSupport, InsideButNotBeyondTheRim) {
    const PointCloud cloud = sheet(20, 0, 0);
    const CloudSearch index(cloud.positions.view());
    const Support support(index, {});
    EXPECT_EQ(grade_at(support, 10, 10, 0), SupportGrade::between);
    EXPECT_EQ(grade_at(support, 10.25f, 10.4f, 0.05f), SupportGrade::between);
    EXPECT_EQ(grade_at(support, 0.6f, 10, 0), SupportGrade::between);
    EXPECT_EQ(grade_at(support, 0.5f, 10.2f, 0), SupportGrade::between);  // on the line of the outermost points
    EXPECT_EQ(grade_at(support, 0.2f, 10, 0), SupportGrade::beyond);
    EXPECT_EQ(grade_at(support, 0, 0, 0), SupportGrade::beyond);
    EXPECT_EQ(grade_at(support, -3, 10, 0), SupportGrade::far);
    EXPECT_EQ(grade_at(support, 10, 10, 3), SupportGrade::far);  // between two sheets, say
    EXPECT_EQ(grade_at(support, NAN, 10, 0), SupportGrade::far);
}

TEST(UpsampleSupport, HolesWiderThanTwoSpacingsStayOpen) {
    const PointCloud narrow = sheet(21, 0, 0.8f), wide = sheet(20, 0, 3);  // of one point, and of 32
    const CloudSearch of_narrow(narrow.positions.view()), of_wide(wide.positions.view());
    EXPECT_EQ(narrow.size(), 440);
    EXPECT_EQ(wide.size(), 368);
    EXPECT_EQ(grade_at(Support(of_narrow, {}), 10.6f, 10.6f, 0), SupportGrade::between);
    EXPECT_EQ(grade_at(Support(of_wide, {}), 10, 10, 0), SupportGrade::far);
    UpsampleOptions filled;
    filled.holes = Holes::fill;
    EXPECT_EQ(grade_at(Support(of_wide, filled), 10, 10, 0), SupportGrade::between);
    EXPECT_EQ(grade_at(Support(of_wide, filled), -3, 10, 0), SupportGrade::between);
    EXPECT_EQ(grade_at(Support(of_wide, filled), -30, 10, 0), SupportGrade::far);
    filled.hole_size = 4;
    EXPECT_EQ(grade_at(Support(of_wide, filled), 10, 10, 0), SupportGrade::far);
    filled.hole_size = 8;
    EXPECT_EQ(grade_at(Support(of_wide, filled), 10, 10, 0), SupportGrade::between);
    EXPECT_EQ(grade_at(Support(of_wide, filled), -2, 10, 0), SupportGrade::beyond);
}

TEST(UpsampleSupport, WiresAndScatteredDensitiesAreSupported) {
    std::vector<std::array<float, 3>> wire;
    for (int i = 0; i < 100; ++i) {
        const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(i) / 100;
        wire.push_back({std::cos(angle), std::sin(angle), 0.3f * std::sin(3 * angle)});
    }
    const PointCloud cloud = cloud_of(wire);
    const CloudSearch index(cloud.positions.view());
    const Support support(index, {});
    for (int i = 0; i < 100; ++i) {
        const auto &a = wire[static_cast<size_t>(i)], &b = wire[static_cast<size_t>((i + 1) % 100)];
        EXPECT_EQ(grade_at(support, 0.5f * (a[0] + b[0]), 0.5f * (a[1] + b[1]), 0.5f * (a[2] + b[2])),
                  SupportGrade::between)
            << i;
    }
    // Of points at random about one place in forty has none near it or all to one side.
    const PointCloud random = sheet(40, 3, 0);
    const CloudSearch of_random(random.positions.view());
    const Support among(of_random, {});
    int supported = 0;
    for (int i = 0; i < 400; ++i)
        supported += grade_at(among, 10 + static_cast<float>(i % 20), 10 + static_cast<float>(i / 20), 0) ==
                     SupportGrade::between;
    EXPECT_GT(supported, 340);
}

double farthest_from(const PointCloud& input, const PointCloud& made) {
    Array<int32_t, 2> near({made.size(), 1});
    Array<float, 2> squares({made.size(), 1});
    ops::knn(ops::PointIndex(input.positions.view()), made.positions.view(), near.view(), squares.view());
    double farthest = 0;
    for (const float square : squares.span()) farthest = std::max(farthest, std::sqrt(double{square}));
    return farthest;
}

TEST(UpsampleSupport, UpsampledSheetsKeepTheirRimsAndHoles) {
    const PointCloud cloud = sheet(30, 0.4f, 4);
    Upsampler upsampler = shipped();
    const Upsampled kept = upsample(upsampler, cloud, {.ratio = 4});
    UpsampleOptions filling{.ratio = 4};
    filling.holes = Holes::fill;
    const Upsampled filled = upsample(upsampler, cloud, filling);
    // Ten degrees more than half a turn reach 2 tan 5 = 0.17 spacings beyond the line of inputs, which end at 29.9.
    const float beyond = 2 * std::tan(5 * std::numbers::pi_v<float> / 180) - 0.1f;
    const auto outside = [&](const PointCloud& made) {
        int64_t count = 0;
        for (int64_t i = 0; i < made.size(); ++i) {
            const float* p = made.positions.data() + 3 * i;
            count += std::min(p[0], p[1]) < -beyond || std::max(p[0], p[1]) > 30 + beyond ||
                     std::hypot(p[0] - 15, p[1] - 15) < 3.2f;
        }
        return count;
    };
    EXPECT_EQ(kept.cloud.size(), 4 * cloud.size());
    EXPECT_EQ(filled.cloud.size(), 4 * cloud.size());
    EXPECT_EQ(outside(kept.cloud), 0);
    EXPECT_GT(outside(filled.cloud), 20);
    EXPECT_GT(kept.dropped, 20);
    EXPECT_EQ(filled.dropped, 0);
    EXPECT_LE(farthest_from(cloud, kept.cloud), 1.3);
    // Measured points stay as they are, and come first.
    EXPECT_EQ(kept.measured, cloud.size());
    EXPECT_TRUE(
        std::equal(cloud.positions.data(), cloud.positions.data() + 3 * cloud.size(), kept.cloud.positions.data()));
}

TEST(UpsampleSupport, NoiseIsTakenAwayOnRequest) {
    PointCloud cloud = sheet(20, 0.4f, 0);
    const Rng rng(8);
    for (int64_t i = 0; i < cloud.size(); ++i)
        cloud.positions.data()[3 * i + 2] = 0.2f * rng.normal(static_cast<uint64_t>(i));
    Upsampler upsampler = shipped();
    UpsampleOptions options{.ratio = 3};
    const auto roughness = [](const PointCloud& made) {
        double sum = 0;
        for (int64_t i = 0; i < made.size(); ++i) sum += std::abs(made.positions.data()[3 * i + 2]);
        return sum / static_cast<double>(made.size());
    };
    const Upsampled kept = upsample(upsampler, cloud, options);
    options.denoises = true;
    const Upsampled denoised = upsample(upsampler, cloud, options);
    EXPECT_EQ(kept.measured, 400);
    EXPECT_LT(denoised.measured, 300);
    EXPECT_EQ(denoised.cloud.size(), 1200);
    EXPECT_LT(roughness(denoised.cloud), 0.8 * roughness(kept.cloud));
}

TEST(UpsampleSupport, ThreadsDoNotMatter) {
    const PointCloud cloud = sheet(24, 0.4f, 3);
    Upsampler upsampler = shipped();
    const int usual = threads();
    std::vector<float> first;
    for (const int count : {1, 2, 3}) {
        set_threads(count);
        const Upsampled made = upsample(upsampler, cloud, {.ratio = 4, .tile_points = 200});
        const std::vector<float> all(made.cloud.positions.data(), made.cloud.positions.data() + 3 * made.cloud.size());
        if (first.empty()) first = all;
        EXPECT_EQ(all, first) << count;
    }
    set_threads(usual);
}

TEST(UpsampleSupport, ContradictionsAreRefused) {
    const PointCloud cloud = sheet(8, 0.3f, 0);
    Upsampler upsampler = shipped(), midpoints;
    UpsampleOptions options{.ratio = 2};
    options.hole_size = 1;
    EXPECT_NE(message_of([&] { upsample(upsampler, cloud, options); }).find("--holes fill"), std::string::npos);
    options.holes = Holes::fill;
    options.hole_size = -1;
    EXPECT_NE(message_of([&] { upsample(upsampler, cloud, options); }).find("hole_size must be from 0, got -1"),
              std::string::npos);
    options = {.ratio = 2};
    options.denoises = true;
    EXPECT_NE(message_of([&] { upsample(midpoints, cloud, options); }).find("does not move points"), std::string::npos);
    options.keeps_input = true;
    EXPECT_NE(message_of([&] { upsample(upsampler, cloud, options); }).find("--denoise"), std::string::npos);
}

}  // namespace
}  // namespace stipple::tasks
