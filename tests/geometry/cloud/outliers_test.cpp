// Outliers: against plain loops, Open3D, and clouds without any.

#include "stipple/geometry/outliers.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "tests/geometry/geometry.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

/// A surface with some points that are not on it.
Array<float, 2> with_strays(int64_t n) {
    Array<float, 2> points = uniform_points(n, 0, 1, 4);
    for (int64_t i = 0; i < n; ++i) {
        float* at = points.data() + 3 * i;
        if (i % 29 != 0) at[2] = 0.1f * std::sin(6 * at[0]);
    }
    return points;
}

class GeometryOutliers : public OnDevice {
protected:
    std::vector<uint8_t> statistical(const Array<float, 2>& points, int k, double ratio,
                                     geometry::OutlierStatistics* statistics = nullptr) const {
        const Array<float, 2> there = upload(points);
        Array<uint8_t, 1> keep({points.size(0)}, device());
        const auto found = geometry::statistical_outliers(there.view(), keep.view(), k, ratio);
        if (statistics) *statistics = found;
        return counted(download(keep), found.kept);
    }
    std::vector<uint8_t> by_radius(const Array<float, 2>& points, float radius, int neighbours) const {
        const Array<float, 2> there = upload(points);
        Array<uint8_t, 1> keep({points.size(0)}, device());
        const int64_t kept = geometry::radius_outliers(there.view(), keep.view(), radius, neighbours);
        return counted(download(keep), kept);
    }

private:
    static std::vector<uint8_t> counted(const Array<uint8_t, 1>& keep, int64_t kept) {
        EXPECT_EQ(std::count(keep.data(), keep.data() + keep.size(0), 1), kept);
        return {keep.data(), keep.data() + keep.size(0)};
    }
};
STIPPLE_ON_EVERY_DEVICE(GeometryOutliers);

TEST_P(GeometryOutliers, StatisticalIsTheFormula) {
    for (const auto& [n, k, ratio] : std::vector<std::tuple<int64_t, int, double>>{
             {1, 16, 1}, {2, 2, 0}, {17, 16, 1}, {1500, 2, 1}, {1500, 16, 2}, {1500, 100, 0.5}}) {
        Array<float, 2> points = with_strays(n);
        if (n > 100)
            for (int64_t i = 5; i < n; i += 97) points.data()[3 * i + 1] = NAN;
        std::vector<double> means;
        for (int64_t i = 0; i < n; ++i) {
            std::vector<float> near;
            for (int64_t j = 0; j < n; ++j) {
                const float d = distance_sq(points.data() + 3 * i, points.data() + 3 * j);
                if (std::isfinite(d)) near.push_back(d);
            }
            std::sort(near.begin(), near.end());
            near.resize(std::min<size_t>(near.size(), static_cast<size_t>(k)));
            double sum = 0;
            for (const float d : near) sum += std::sqrt(double{d});
            means.push_back(near.empty() ? NAN : sum / static_cast<double>(near.size()));
        }
        double sum = 0, squares = 0, count = 0;
        for (const double mean : means)
            if (!std::isnan(mean)) sum += mean, squares += mean * mean, ++count;
        const double mean = sum / count;
        const double deviation = count > 1 ? std::sqrt((squares - count * mean * mean) / (count - 1)) : 0;
        geometry::OutlierStatistics statistics;
        const std::vector<uint8_t> keep = statistical(points, k, ratio, &statistics);
        EXPECT_NEAR(statistics.mean, mean, 1e-12);
        EXPECT_NEAR(statistics.deviation, deviation, 1e-9);
        EXPECT_NEAR(statistics.threshold, mean + ratio * deviation, 1e-9);
        for (int64_t i = 0; i < n; ++i) {
            if (std::fabs(means[i] - statistics.threshold) < 1e-9) continue;
            EXPECT_EQ(keep[i], means[i] <= statistics.threshold ? 1 : 0) << i;
        }
    }
}

TEST_P(GeometryOutliers, NothingIsAnOutlierAmongEquals) {
    Array<float, 2> ring({360, 3}), place({50, 3});
    for (int64_t i = 0; i < 360; ++i) {
        ring.data()[3 * i] = static_cast<float>(i % 6);
        ring.data()[3 * i + 1] = static_cast<float>(i / 6 % 6);
        ring.data()[3 * i + 2] = static_cast<float>(i / 36);
    }
    for (float& x : place.span()) x = 3;
    EXPECT_EQ(statistical(ring, 2, 0), std::vector<uint8_t>(360, 1));  // the nearest other is at 1 for all
    EXPECT_EQ(statistical(place, 16, 0), std::vector<uint8_t>(50, 1));
    EXPECT_TRUE(statistical(Array<float, 2>({0, 3}), 16, 2).empty());
    EXPECT_TRUE(by_radius(Array<float, 2>({0, 3}), 1, 1).empty());
}

TEST_P(GeometryOutliers, RadiusCountsOthersWithinIt) {
    Array<float, 2> points = uniform_points(2000, 0, 1, 6);
    for (int64_t i = 3; i < 2000; i += 101) points.data()[3 * i] = -std::numeric_limits<float>::infinity();
    for (const auto& [radius, neighbours] : std::vector<std::pair<float, int>>{{0.05f, 1}, {0.1f, 6}, {9.0f, 0}}) {
        const std::vector<uint8_t> keep = by_radius(points, radius, neighbours);
        for (int64_t i = 0; i < 2000; ++i) {
            int64_t others = 0;
            for (int64_t j = 0; j < 2000; ++j)
                others += j != i && distance_sq(points.data() + 3 * i, points.data() + 3 * j) <= radius * radius;
            const bool finite = std::isfinite(points.data()[3 * i]);
            EXPECT_EQ(keep[i], finite && others >= neighbours ? 1 : 0) << i;
        }
    }
    EXPECT_EQ(by_radius(uniform_points(1, 0, 1), 5, 1), std::vector<uint8_t>{0});
    EXPECT_EQ(by_radius(uniform_points(1, 0, 1), 5, 0), std::vector<uint8_t>{1});
}

TEST_P(GeometryOutliers, SamePointsAsOpen3D) {
    const Array<float, 2> points = with_strays(4000);
    const TemporaryFolder folder;
    std::ofstream(folder / "points.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(points.data()), 4000 * 12);
    const std::string output = run_python(folder, R"(
import numpy, open3d
points = numpy.fromfile("points.bin", dtype=numpy.float32).reshape(-1, 3).astype(float)
cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
for k, ratio in (16, 2.0), (8, 1.0), (30, 0.5):
    print(*sorted(cloud.remove_statistical_outlier(k, ratio)[1]))
for count, radius in (4, 0.05), (20, 0.1):
    print(*sorted(cloud.remove_radius_outlier(count, radius)[1]))
)");
    std::istringstream lines(output);
    const auto expect_line = [&](const std::vector<uint8_t>& keep) {
        std::string line;
        ASSERT_TRUE(std::getline(lines, line));
        std::istringstream numbers(line);
        std::vector<uint8_t> want(4000, 0);
        for (size_t i = 0; numbers >> i;) want.at(i) = 1;
        EXPECT_EQ(keep, want);
        EXPECT_LT(std::count(keep.begin(), keep.end(), 1), 4000);
    };
    for (const auto& [k, ratio] : {std::pair{16, 2.0}, {8, 1.0}, {30, 0.5}}) expect_line(statistical(points, k, ratio));
    for (const auto& [count, radius] : {std::pair{4, 0.05f}, {20, 0.1f}}) expect_line(by_radius(points, radius, count));
}

TEST(GeometryOutliersThreads, DoNotMatter) {
    const Array<float, 2> points = with_strays(6000);
    expect_same_on_threads([&] {
        Array<uint8_t, 1> keep({6000});
        Array<float, 2> out({6000, 1}), numbers({3, 1});
        const auto found = geometry::statistical_outliers(points.view(), keep.view());
        for (int64_t i = 0; i < 6000; ++i) out.data()[i] = keep.data()[i];
        numbers.data()[0] = static_cast<float>(found.kept);
        numbers.data()[1] = static_cast<float>(found.mean);
        numbers.data()[2] = static_cast<float>(found.deviation);
        std::vector<Array<float, 2>> result;
        result.push_back(std::move(out));
        result.push_back(std::move(numbers));
        return result;
    });
}

TEST(GeometryOutliersErrors, NameTheFunctionAndWhatIsWrong) {
    const Array<float, 2> points = uniform_points(10, 0, 1);
    Array<uint8_t, 1> keep({10}), few({9});
    using geometry::radius_outliers;
    using geometry::statistical_outliers;
    EXPECT_EQ(bad_argument_of([&] { statistical_outliers(points.view(), few.view()); }),
              "statistical_outliers: keep must be [10], got [9]");
    EXPECT_EQ(bad_argument_of([&] { statistical_outliers(points.view(), keep.view(), 1); }),
              "statistical_outliers: k must be 2 to 128, got 1");
    EXPECT_EQ(bad_argument_of([&] { statistical_outliers(points.view(), keep.view(), 129); }),
              "statistical_outliers: k must be 2 to 128, got 129");
    EXPECT_EQ(bad_argument_of([&] { statistical_outliers(points.view(), keep.view(), 16, -1); }),
              "statistical_outliers: the ratio must be from 0, got -1");
    EXPECT_EQ(bad_argument_of([&] { statistical_outliers(points.view(), keep.view(), 16, NAN); }),
              "statistical_outliers: the ratio must be from 0, got nan");
    EXPECT_EQ(bad_argument_of([&] { radius_outliers(points.view(), keep.view(), 0); }),
              "radius_outliers: the radius must be above 0, got 0");
    EXPECT_EQ(bad_argument_of([&] { radius_outliers(points.view(), keep.view(), 1, -1); }),
              "radius_outliers: -1 neighbours");
    EXPECT_EQ(bad_argument_of([&] {
                  radius_outliers(View<const float, 2>(points.data(), {15, 2}), keep.view(), 1);
              }),
              "radius_outliers: points must be [n, 3], got [15, 2]");
}

}  // namespace
}  // namespace stipple::test
