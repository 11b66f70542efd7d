#include "stipple/ops/poisson_disk.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "stipple/core/rng.h"
#include "stipple/ops/sampling/poisson_weight.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;

class PoissonDisk : public OnDevice {
protected:
    std::vector<int32_t> sample(const Array<float, 2>& host, int64_t m, ops::PoissonDiskOptions options = {}) const {
        return sample(host, Batch::single(host.size(0)), m, options)[0];
    }
    /// The samples of each cloud, with a sentinel behind them.
    std::vector<std::vector<int32_t>> sample(const Array<float, 2>& host, const Batch& batch, int64_t m,
                                             ops::PoissonDiskOptions options = {}) const {
        Array<int32_t, 1> all({batch.clouds() * m + 1});
        all.data()[batch.clouds() * m] = -77;
        Array<int32_t, 1> out = upload(all);
        const auto points = upload(host);
        ops::poisson_disk(Clouds(points.view(), batch), Batch::dense(batch.clouds(), m),
                          out.view().slice(0, batch.clouds() * m), options);
        all = download(out);
        EXPECT_EQ(all.data()[batch.clouds() * m], -77);
        std::vector<std::vector<int32_t>> samples;
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
            samples.emplace_back(all.data() + cloud * m, all.data() + (cloud + 1) * m);
        return samples;
    }
};
STIPPLE_ON_EVERY_DEVICE(PoissonDisk);

std::vector<int32_t> finite_of(const Array<float, 2>& points) {
    std::vector<int32_t> finite;
    for (int64_t i = 0; i < points.size(0); ++i) {
        const float* p = points.data() + 3 * i;
        if (std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]))
            finite.push_back(static_cast<int32_t>(i));
    }
    return finite;
}

int64_t weight(const Array<float, 2>& points, int32_t a, int32_t b, float radius) {
    if (!(radius > 0)) return 0;
    return ops::poisson_weight(distance_sq(points.data() + 3 * a, points.data() + 3 * b), 1 / (2 * radius));
}

/// Sums of the weights of all living samples with their neighbours.
struct Sums {
    const Array<float, 2>& points;
    float radius;
    std::vector<int32_t> living;
    std::vector<int64_t> sum;  // by index

    Sums(const Array<float, 2>& points_, float radius_)
        : points(points_), radius(radius_), living(finite_of(points_)), sum(points_.size(0), 0) {
        for (int32_t a : living)
            for (int32_t b : living)
                if (a != b) sum[a] += weight(points, a, b, radius);
    }
    bool before(int32_t a, int32_t b) const { return sum[a] != sum[b] ? sum[a] > sum[b] : a < b; }
    void remove(int32_t index) {
        living.erase(std::find(living.begin(), living.end(), index));
        for (int32_t other : living) sum[other] -= weight(points, index, other, radius);
    }
};

/// One removal after the other, everything looked at each time; what goes, in order, down to m.
std::vector<int32_t> remove_one_by_one(const Array<float, 2>& points, int64_t m, float radius) {
    Sums sums(points, radius);
    std::vector<int32_t> removed;
    while (static_cast<int64_t>(sums.living.size()) > m) {
        const int32_t next = *std::min_element(sums.living.begin(), sums.living.end(),
                                               [&](int32_t a, int32_t b) { return sums.before(a, b); });
        removed.push_back(next);
        sums.remove(next);
    }
    return removed;
}

/// All local maxima at once, until nothing lives; then by (sum at removal, index).
std::vector<int32_t> remove_in_rounds(const Array<float, 2>& points, int64_t m, float radius) {
    Sums sums(points, radius);
    std::vector<std::pair<int64_t, int32_t>> keys;  // (- sum, index)
    while (!sums.living.empty()) {
        std::vector<int32_t> leaders;
        for (int32_t a : sums.living)
            if (std::all_of(sums.living.begin(), sums.living.end(), [&](int32_t b) {
                    return a == b || weight(points, a, b, radius) == 0 || sums.before(a, b);
                }))
                leaders.push_back(a);
        for (int32_t a : leaders) keys.emplace_back(-sums.sum[a], a);
        for (int32_t a : leaders) sums.remove(a);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<int32_t> removed;
    for (size_t i = 0; i + m < keys.size(); ++i) removed.push_back(keys[i].second);
    return removed;
}

std::vector<int32_t> kept_of(const Array<float, 2>& points, const std::vector<int32_t>& removed) {
    const std::set<int32_t> gone(removed.begin(), removed.end());
    std::vector<int32_t> kept;
    for (int32_t i : finite_of(points))
        if (!gone.count(i)) kept.push_back(i);
    return kept;
}

/// n points of an even distribution on the unit sphere.
Array<float, 2> sphere(int64_t n, uint64_t seed = 1) {
    Array<float, 2> points({n, 3});
    const Rng rng(seed, 7);
    for (int64_t i = 0; i < n; ++i) {
        const double z = 2 * rng.uniform(2 * i) - 1, angle = 6.283185307 * rng.uniform(2 * i + 1);
        const double ring = std::sqrt(1 - z * z);
        points.view()(i, 0) = static_cast<float>(ring * std::cos(angle));
        points.view()(i, 1) = static_cast<float>(ring * std::sin(angle));
        points.view()(i, 2) = static_cast<float>(z);
    }
    return points;
}

double least_distance(const Array<float, 2>& points, const std::vector<int32_t>& samples) {
    double least = 1e300;
    for (size_t a = 0; a < samples.size(); ++a)
        for (size_t b = 0; b < a; ++b)
            least =
                std::min<double>(least, distance_sq(points.data() + 3 * samples[a], points.data() + 3 * samples[b]));
    return std::sqrt(least);
}

TEST_P(PoissonDisk, IsTheOraclesForEveryKind) {
    for (Kind kind : all_kinds()) {
        for (int64_t n : {1, 2, 3, 64, 333}) {
            const auto points = make_cloud(kind, n);
            const auto finite = static_cast<int64_t>(finite_of(points).size());
            for (int64_t m : {int64_t{0}, int64_t{1}, finite / 4, finite - 1, finite}) {
                if (m < 0) continue;
                SCOPED_TRACE(to_string(kind) + " " + std::to_string(n) + " to " + std::to_string(m));
                const auto found = sample(points, m);
                if (m == 0) continue;
                const auto on_device = upload(points);
                const float radius = ops::poisson_disk_radius(on_device.view(), m);
                ASSERT_EQ(radius, ops::poisson_disk_radius(points.view(), m));
                ASSERT_EQ(found, kept_of(points, remove_one_by_one(points, m, radius)));
                ASSERT_TRUE(std::is_sorted(found.begin(), found.end()));
            }
        }
    }
}

TEST_P(PoissonDisk, RadiusOfTheCaller) {
    const auto points = make_cloud(Kind::duplicated, 300);
    for (float radius : {1e-6f, 0.05f, 0.3f, 100.f}) {
        SCOPED_TRACE(radius);
        ASSERT_EQ(sample(points, 40, {radius}), kept_of(points, remove_one_by_one(points, 40, radius)));
    }
}

TEST(PoissonDiskCpu, RoundsGiveWhatOneRemovalAfterTheOtherGives) {
    for (Kind kind : {Kind::uniform, Kind::clustered, Kind::duplicated, Kind::lattice, Kind::coplanar}) {
        const auto points = make_cloud(kind, 200);
        for (float radius : {0.04f, 0.2f, 1.f})
            for (int64_t m : {0, 20, 100, 199})
                ASSERT_EQ(remove_one_by_one(points, m, radius), remove_in_rounds(points, m, radius))
                    << to_string(kind) << " " << radius << " " << m;
    }
}

TEST_P(PoissonDisk, OfThousandsAndOfBatches) {
    // Large enough for several blocks and for parallel loops; the oracle is quadratic.
    const auto points = sphere(3000);
    const float radius = ops::poisson_disk_radius(points.view(), 500);
    ASSERT_EQ(sample(points, 500), kept_of(points, remove_one_by_one(points, 500, radius)));

    const auto mixed = make_cloud(Kind::nonfinite, 900);
    for (const Batch& batch : {Batch::dense(3, 300), Batch::ragged({0, 100, 700, 900})}) {
        const auto samples = sample(mixed, batch, 50);
        for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
            Array<float, 2> part({batch.size(cloud), 3});
            std::copy_n(mixed.data() + 3 * batch.begin(cloud), part.elements(), part.data());
            EXPECT_EQ(samples[cloud], sample(part, 50));
        }
    }
}

TEST_P(PoissonDisk, SamplesLieApart) {
    const auto points = sphere(5000);
    const auto samples = sample(points, 1000);
    const float radius = ops::poisson_disk_radius_of_area(4 * 3.14159265, 1000);
    std::vector<int32_t> first(1000);
    std::iota(first.begin(), first.end(), 0);
    EXPECT_GT(least_distance(points, samples), 0.58 * 2 * radius);
    EXPECT_LT(least_distance(points, first), 0.1 * 2 * radius);  // what chance gives
}

TEST_P(PoissonDisk, AsGoodAsWeightsInDouble) {
    // Elimination with double sums, without rounding of weights: another set, but spread as well.
    const auto points = sphere(1500);
    const int64_t m = 300;
    const float radius = ops::poisson_disk_radius(points.view(), m);
    std::vector<int32_t> living(1500);
    std::iota(living.begin(), living.end(), 0);
    const auto exact = [&](int32_t a, int32_t b) {
        const double d = std::sqrt(double{distance_sq(points.data() + 3 * a, points.data() + 3 * b)});
        return d < 2 * radius ? std::pow(1 - d / (2 * radius), 8) : 0;
    };
    std::vector<double> sum(1500, 0);
    for (int32_t a : living)
        for (int32_t b : living)
            if (a != b) sum[a] += exact(a, b);
    while (static_cast<int64_t>(living.size()) > m) {
        const auto worst =
            std::max_element(living.begin(), living.end(), [&](int32_t a, int32_t b) { return sum[a] < sum[b]; });
        const int32_t gone = *worst;
        living.erase(worst);
        for (int32_t b : living) sum[b] -= exact(gone, b);
    }
    EXPECT_GT(least_distance(points, sample(points, m)), 0.9 * least_distance(points, living));
}

TEST_P(PoissonDisk, PrefixesOfProgressiveOrderAreSpreadToo) {
    const auto points = sphere(4000);
    const auto plain = sample(points, 1024), progressive = sample(points, 1024, {0, true});
    auto sorted = progressive;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, plain);
    for (int64_t m : {512, 256, 128, 64}) {
        const float radius = ops::poisson_disk_radius_of_area(4 * 3.14159265, m);
        const std::vector<int32_t> prefix(progressive.begin(), progressive.begin() + m);
        EXPECT_GT(least_distance(points, prefix), 0.5 * 2 * radius) << m;
    }
    EXPECT_EQ(sample(points, 1024, {0, true}), progressive);
    for (int64_t n : {1, 2, 3, 5}) {
        auto few = sample(sphere(500), n, {0, true});
        std::sort(few.begin(), few.end());
        EXPECT_EQ(few, sample(sphere(500), n));
    }
    auto given = sample(points, 100, {0.05f, true});
    std::sort(given.begin(), given.end());
    EXPECT_EQ(given, sample(points, 100, {0.05f}));
}

TEST_P(PoissonDisk, RadiusOfKnownShapes) {
    const auto radius_of = [&](const Array<float, 2>& host, int64_t m) {
        return ops::poisson_disk_radius(upload(host).view(), m);
    };
    // 2048 counts of about 18 points each scatter by half a percent, the edges of a square count double.
    EXPECT_NEAR(radius_of(sphere(10000), 2000), ops::poisson_disk_radius_of_area(12.566, 2000), 0.03 * 0.0426);
    const float square = ops::poisson_disk_radius_of_area(1, 2000);
    EXPECT_NEAR(radius_of(make_cloud(Kind::coplanar, 10000), 2000), square, 0.06 * square);
    // Every point four times, and one point far away: the same area. (A quarter of the places is as many points.)
    auto duplicated = sphere(10000);
    for (int64_t i = 2500; i < 10000; ++i)
        std::memcpy(duplicated.data() + 3 * i, duplicated.data() + 3 * (i % 2500), 12);
    EXPECT_NEAR(radius_of(duplicated, 500), ops::poisson_disk_radius_of_area(12.566, 500), 0.06 * 0.0852);
    auto stray = sphere(10000);
    stray.view()(0, 0) = 1e3f;
    EXPECT_NEAR(radius_of(stray, 2000), ops::poisson_disk_radius_of_area(12.566, 2000), 0.04 * 0.0426);
    // A solid: 3.6 samples in a ball of 2 r_max, fewer at the faces.
    const double ball = std::cbrt(3.6276 / 2000 * 3 / (4 * 3.14159265)) / 2;
    EXPECT_NEAR(radius_of(make_cloud(Kind::uniform, 20000), 2000), ball, 0.15 * ball);
    EXPECT_EQ(radius_of(make_cloud(Kind::all_equal, 100), 10), 0);
    EXPECT_EQ(radius_of(make_cloud(Kind::uniform, 0), 10), 0);
}

TEST(PoissonDiskCpu, WeightsAreTheFormulas) {
    for (int i = 0; i <= 1000; ++i) {
        const float d = static_cast<float>(i) * 1.2e-3f;
        const double expected = d < 1 ? std::pow(1 - double{d}, 8) : 0;
        EXPECT_NEAR(ops::poisson_weight(d * d, 1) * 0x1p-30, expected, 2e-6 * expected + 0x1p-29) << d;
    }
    EXPECT_EQ(ops::poisson_weight(0, 1), 1 << 30);
    // Cells of kPoissonCell of the reach are wide enough.
    EXPECT_EQ(ops::poisson_weight(ops::kPoissonCell * ops::kPoissonCell, 1), 0);
    EXPECT_GT(ops::poisson_weight(0.92f * 0.92f, 1), 0);
}

TEST(PoissonDiskCpu, SameOnOneThreadAndThree) {
    const auto points = sphere(20000);
    expect_same_on_threads([&] {
        Array<int32_t, 1> out({3000});
        ops::poisson_disk(Clouds(points.view(), Batch::dense(2, 10000)), Batch::dense(2, 1500), out.view(), {0, true});
        std::vector<Array<float, 2>> result;
        result.emplace_back(Array<float, 2>::Shape{2, 1500});
        std::memcpy(result[0].data(), out.data(), 12000);
        return result;
    });
}

TEST(PoissonDiskCpu, RefusesWhatMakesNoSense) {
    const auto points = make_cloud(Kind::nonfinite, 100);
    Array<int32_t, 1> out({101});
    const auto sample = [&](const Clouds& clouds, const Batch& samples, ops::PoissonDiskOptions options = {}) {
        return bad_argument_of([&] {
            ops::poisson_disk(clouds, samples, out.view().slice(0, std::min<int64_t>(101, samples.rows())), options);
        });
    };
    EXPECT_EQ(sample(points.view(), Batch::single(101)), "poisson_disk: asked for 101 of the 100 points of cloud 0");
    EXPECT_EQ(sample(points.view(), Batch::single(99)), "poisson_disk: asked for 99 samples of 86 finite points");
    sample(points.view(), Batch::single(50), {-1});
    sample(points.view(), Batch::single(50), {std::nanf("")});
    sample(points.view(), Batch::dense(2, 50));
    sample(points.view(), Batch::single(102));  // a view of 101
    sample(make_features(100, 4).view(), Batch::single(50));
    sample(Clouds(points.view(), Batch::ragged({0, 60, 100})), Batch::dense(2, 50));
    const Device gpu{DeviceType::cuda, 0};
    sample(View<const float, 2>(nullptr, {100, 3}, gpu), Batch::single(50));
    bad_argument_of([&] { ops::poisson_disk(points.view(), Batch::single(50), View<int32_t, 1>(nullptr, {50}, gpu)); });
    sample(View<const float, 2>(nullptr, {int64_t{1} << 31, 3}, {0, 1}), Batch::single(50));
    bad_argument_of([&] { ops::poisson_disk_radius(points.view(), 0); });
    bad_argument_of([&] { ops::poisson_disk_radius_of_area(-1, 5); });
    bad_argument_of([&] { ops::poisson_disk_radius_of_area(1, 0); });
}

TEST(PoissonDiskCpu, SurvivesFailingAllocations) {
    const auto points = make_cloud(Kind::nonfinite, 40);
    EXPECT_GE(for_each_allocation_failure([&] {
                  Array<int32_t, 1> out({8});
                  ops::poisson_disk(points.view(), Batch::single(8), out.view());
                  ops::poisson_disk(points.view(), Batch::single(8), out.view(), {0.2f, true});
              }),
              can_fail_allocations() ? 10 : 0);
}

TEST(PoissonDiskCpu, KeepsNoMemory) {
    const auto points = make_cloud(Kind::uniform, 12);
    Array<int32_t, 1> out({5});
    const auto once = [&] { ops::poisson_disk(points.view(), Batch::single(5), out.view()); };
    once();
    const int64_t before = live_allocations();
    for (int i = 0; i < 1000; ++i) once();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
