#include "stipple/tasks/upsampling_study/ruler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "stipple/core/rng.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/weights.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks::study {
namespace {

/// n x n points of the plane z = 0, one apart, with this much noise.
PointCloud grid(int64_t n, float noise = 0) {
    const Rng rng(3);
    PointCloud cloud(n * n);
    for (int64_t i = 0; i < n * n; ++i) {
        float* p = cloud.positions.data() + 3 * i;
        p[0] = static_cast<float>(i % n), p[1] = static_cast<float>(i / n);
        p[2] = noise * rng.normal(static_cast<uint64_t>(i));
    }
    return cloud;
}

/// This is what a reader of the protocol would write down first: every distance is found and sorted.
struct Slow {
    std::vector<double> spacings;  // of the scan
    const PointCloud& scan;

    static std::vector<std::pair<double, int64_t>> nearest(const PointCloud& among, const float* p) {
        std::vector<std::pair<double, int64_t>> all;
        for (int64_t j = 0; j < among.size(); ++j) {
            const float* q = among.positions.data() + 3 * j;
            all.emplace_back(std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]), j);
        }
        std::sort(all.begin(), all.end());
        return all;
    }
    explicit Slow(const PointCloud& of) : scan(of) {
        for (int64_t i = 0; i < scan.size(); ++i)
            spacings.push_back(0.443 * nearest(scan, scan.positions.data() + 3 * i)[16].first);
    }
    double stray(const float* p) const {
        const auto first = nearest(scan, p)[0];
        return first.first / spacings[static_cast<size_t>(first.second)];
    }
};

TEST(Ruler, DistancesAreThoseOfAllPairs) {
    const PointCloud scan = grid(12, 0.1f);
    PointCloud output(200);
    const Rng rng(9);
    for (int64_t i = 0; i < 600; ++i)
        output.positions.data()[i] =
            i % 3 == 2 ? 0.6f * rng.normal(static_cast<uint64_t>(i)) : 13 * rng.uniform(static_cast<uint64_t>(i)) - 1;
    const RulerScores scores = measure_by_ruler(output, scan);
    const Slow slow(scan);
    double stray = 0, cover = 0;
    int invented = 0;
    for (int64_t i = 0; i < 200; ++i) {
        const double one = slow.stray(output.positions.data() + 3 * i);
        stray += one / 200, invented += one >= 1.5;
    }
    for (int64_t i = 0; i < scan.size(); ++i)
        cover += Slow::nearest(output, scan.positions.data() + 3 * i)[0].first / slow.spacings[static_cast<size_t>(i)] /
                 static_cast<double>(scan.size());
    EXPECT_NEAR(scores.stray_mean, stray, 1e-3 * stray);
    EXPECT_GT(invented, 0);
    EXPECT_NEAR(scores.invented, invented / 2.0, 0.51);  // percent of 200; a point may lie at the border
    EXPECT_NEAR(scores.cover_mean, cover, 1e-3 * cover);
}

TEST(Ruler, OfAPlaneItIsWhatAReaderExpects) {
    const PointCloud scan = grid(40);
    const RulerScores same = measure_by_ruler(scan, scan);
    EXPECT_EQ(same.stray_mean, 0);
    EXPECT_EQ(same.cover_99, 0);
    PointCloud above = scan.clone();
    for (int64_t i = 0; i < above.size(); ++i) above.positions.data()[3 * i + 2] = 0.5f;
    const RulerScores lifted = measure_by_ruler(above, scan);
    // A grid's spacing by the 16th neighbour is 0.443 times sqrt(5).
    EXPECT_NEAR(lifted.off_mean, 0.5 / (0.443 * std::sqrt(5)), 0.03);
    EXPECT_EQ(lifted.invented, 0);
    for (int64_t i = 0; i < above.size(); ++i) above.positions.data()[3 * i + 2] = 3;
    EXPECT_EQ(measure_by_ruler(above, scan).invented, 100);
}

TEST(Ruler, ThinningTakesPointsOfTheScan) {
    const PointCloud scan = grid(40, 0.01f);
    for (const Thinning kind : {Thinning::fps, Thinning::random, Thinning::voxel}) {
        const PointCloud some = thin(scan, kind, 400, 5);
        EXPECT_LE(some.size(), 400);
        EXPECT_GE(some.size(), 320) << thinning_names()[static_cast<size_t>(kind)];
        std::set<std::pair<float, float>> places;
        for (int64_t i = 0; i < some.size(); ++i) {
            const float* p = some.positions.data() + 3 * i;
            EXPECT_EQ(p[0], std::round(p[0]));
            EXPECT_TRUE(places.insert({p[0], p[1]}).second);
        }
    }
    EXPECT_NE(test::message_of([&] { thin(scan, Thinning::random, 1601, 0); }), "");
}

TEST(Ruler, ScansToJudgeByAreClean) {
    PointCloud cloud = grid(10);
    cloud.positions.data()[3 * 20] = std::numeric_limits<float>::quiet_NaN();
    std::copy_n(cloud.positions.data() + 3 * 30, 3, cloud.positions.data() + 3 * 31);
    EXPECT_EQ(scan_to_judge_by(cloud, 1000).size(), 97);  // without a NaN, a copy, and the point at the origin
    EXPECT_LE(scan_to_judge_by(cloud, 50).size(), 50);
}

}  // namespace
}  // namespace stipple::tasks::study
