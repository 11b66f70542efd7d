#include "stipple/ops/farthest_point_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::FarthestPointOptions;

struct Samples {
    std::vector<int32_t> indices;
    std::vector<float> distances_sq;
    bool operator==(const Samples&) const = default;
};

/// The textbook loop on one cloud.
Samples naive(const float* points, int64_t n, int64_t m, const std::vector<int32_t>& chosen = {}, int32_t start = 0) {
    std::vector<float> distance(n, kInfinity);
    std::vector<char> out(n);
    for (int64_t i = 0; i < n; ++i) {
        for (int axis = 0; axis < 3; ++axis) out[i] |= !std::isfinite(points[3 * i + axis]);
    }
    Samples result;
    const auto take = [&](int64_t at) {
        if (static_cast<int64_t>(result.indices.size()) == m || at < 0 || at >= n || out[at]) return;
        result.indices.push_back(static_cast<int32_t>(at));
        result.distances_sq.push_back(distance[at]);
        out[at] = true;
        for (int64_t i = 0; i < n; ++i)
            distance[i] = std::min(distance[i], distance_sq(points + 3 * i, points + 3 * at));
    };
    for (const int32_t index : chosen) take(index);
    if (result.indices.empty()) take(start);
    while (static_cast<int64_t>(result.indices.size()) < m) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; ++i) {
            if (!out[i] && (best < 0 || distance[i] > distance[best])) best = i;
        }
        if (best < 0) break;
        take(best);
    }
    result.indices.resize(m, -1);
    result.distances_sq.resize(m, 0.0f);
    return result;
}

class FarthestPointSample : public OnDevice {
protected:
    /// Runs the op with sentinels around both outputs.
    Samples sample(const Array<float, 2>& host, const Batch& batch, const Batch& samples, int32_t start = 0,
                   const std::vector<int32_t>& chosen = {}, const Batch& chosen_batch = {}) const {
        const Array<float, 2> points = upload(host);
        constexpr int64_t kRoom = 8;
        Array<int32_t, 1> host_indices({samples.rows() + 2 * kRoom});
        Array<float, 1> host_distances({samples.rows() + 2 * kRoom});
        std::fill(host_indices.span().begin(), host_indices.span().end(), -77);
        std::fill(host_distances.span().begin(), host_distances.span().end(), -77.0f);
        Array<int32_t, 1> indices = upload(host_indices);
        Array<float, 1> distances = upload(host_distances);
        Array<int32_t, 1> host_chosen({static_cast<int64_t>(chosen.size())});
        std::copy(chosen.begin(), chosen.end(), host_chosen.data());
        const Array<int32_t, 1> device_chosen = upload(host_chosen);
        FarthestPointOptions options;
        options.start = start;
        if (!chosen.empty()) options.chosen = device_chosen.view(), options.chosen_batch = chosen_batch;
        farthest_point_sample(Clouds(points.view(), batch), samples,
                              indices.view().slice(kRoom, kRoom + samples.rows()),
                              distances.view().slice(kRoom, kRoom + samples.rows()), options);
        host_indices = download(indices);
        host_distances = download(distances);
        for (int64_t i = 0; i < kRoom; ++i) {
            EXPECT_EQ(host_indices.data()[i], -77);
            EXPECT_EQ(host_indices.data()[kRoom + samples.rows() + i], -77);
            EXPECT_EQ(host_distances.data()[i], -77.0f);
            EXPECT_EQ(host_distances.data()[kRoom + samples.rows() + i], -77.0f);
        }
        Samples result;
        result.indices.assign(host_indices.data() + kRoom, host_indices.data() + kRoom + samples.rows());
        result.distances_sq.assign(host_distances.data() + kRoom, host_distances.data() + kRoom + samples.rows());
        return result;
    }
    Samples sample(const Array<float, 2>& host, int64_t m, int32_t start = 0,
                   const std::vector<int32_t>& chosen = {}) const {
        return sample(host, Batch::single(host.size(0)), Batch::single(m), start, chosen,
                      Batch::single(static_cast<int64_t>(chosen.size())));
    }
};
STIPPLE_ON_EVERY_DEVICE(FarthestPointSample);

TEST_P(FarthestPointSample, EqualsTheNaiveLoop) {
    for (const Kind kind : all_kinds()) {
        for (const int64_t n : {1, 2, 3, 33, 257, 1000, 2500}) {
            const Array<float, 2> cloud = make_cloud(kind, n);
            for (const int64_t m : {int64_t{1}, n / 3, std::min<int64_t>(n, 700)}) {
                const auto start = static_cast<int32_t>((n * 5) / 7);
                EXPECT_EQ(sample(cloud, m, start), naive(cloud.data(), n, m, {}, start))
                    << to_string(kind) << ", " << m << " of " << n;
            }
        }
    }
}

// On CUDA these are the sizes of a group of blocks, of one and of several.
TEST_P(FarthestPointSample, LargerClouds) {
    for (const Kind kind : all_kinds()) {
        const Array<float, 2> cloud = make_cloud(kind, 8193, 2);
        EXPECT_EQ(sample(cloud, 200), naive(cloud.data(), 8193, 200)) << to_string(kind);
    }
    for (const Kind kind : {Kind::uniform, Kind::nonfinite, Kind::lattice, Kind::clustered}) {
        const Array<float, 2> cloud = make_cloud(kind, 50'001, 3);
        EXPECT_EQ(sample(cloud, 150, 7), naive(cloud.data(), 50'001, 150, {}, 7)) << to_string(kind);
    }
}

// On CUDA: more points than the registers of any device hold.
TEST_P(FarthestPointSample, AMillionAndAHalf) {
    const Array<float, 2> cloud = make_cloud(Kind::uniform, 1'500'000, 4);
    EXPECT_EQ(sample(cloud, 50, 3, {}), naive(cloud.data(), cloud.size(0), 50, {}, 3));
}

TEST_P(FarthestPointSample, AllPointsOnce) {
    for (const Kind kind : {Kind::duplicated, Kind::all_equal, Kind::lattice, Kind::uniform}) {
        for (const int64_t n : {1, 64, 65, 1023, 9000}) {
            const Array<float, 2> cloud = make_cloud(kind, n);
            const Samples all = sample(cloud, n);
            EXPECT_EQ(std::set<int32_t>(all.indices.begin(), all.indices.end()).size(), static_cast<size_t>(n))
                << to_string(kind) << ", " << n;
            EXPECT_TRUE(std::is_sorted(all.distances_sq.rbegin(), all.distances_sq.rend()));
        }
    }
}

TEST_P(FarthestPointSample, DuplicatesFollowByIndex) {
    const Array<float, 2> cloud = make_cloud(Kind::all_equal, 500);
    const Samples result = sample(cloud, 300, 42);
    std::vector<int32_t> expected = {42};
    for (int32_t i = 0; expected.size() < 300; ++i) {
        if (i != 42) expected.push_back(i);
    }
    EXPECT_EQ(result.indices, expected);
    EXPECT_EQ(result.distances_sq[0], kInfinity);
    EXPECT_EQ(result.distances_sq[1], 0.0f);
}

TEST_P(FarthestPointSample, DistancesBeyondFloatAreInfinite) {
    Array<float, 2> cloud({300, 3});
    const Rng rng(5);
    for (int64_t i = 0; i < cloud.elements(); ++i) cloud.data()[i] = (2 * rng.uniform(i) - 1) * 3e38f;
    EXPECT_EQ(sample(cloud, 300, 9), naive(cloud.data(), 300, 300, {}, 9));
}

TEST_P(FarthestPointSample, OutliersDoNotMatter) {
    Array<float, 2> cloud = make_cloud(Kind::uniform, 3000);
    cloud.data()[3 * 1234] = 1e30f;
    cloud.data()[3 * 77 + 1] = -1e12f;
    EXPECT_EQ(sample(cloud, 400), naive(cloud.data(), 3000, 400));
}

TEST_P(FarthestPointSample, FewerFinitePointsThanSamples) {
    for (const int64_t n : {40, 300, 9000}) {
        Array<float, 2> cloud = make_cloud(Kind::uniform, n);
        for (int64_t i = 0; i < n; ++i) {
            if (i % 3 != 1 || i >= 600) cloud.data()[3 * i + i % 3] = std::numeric_limits<float>::quiet_NaN();
        }
        const Samples result = sample(cloud, n);
        EXPECT_EQ(result, naive(cloud.data(), n, n));
        EXPECT_EQ(result.indices.back(), -1);
        EXPECT_EQ(result.distances_sq.back(), 0.0f);
        for (int64_t i = 0; i < 3 * n; ++i) cloud.data()[i] = kInfinity;
        EXPECT_EQ(sample(cloud, n).indices, std::vector<int32_t>(n, -1));
    }
}

TEST_P(FarthestPointSample, ThePrefixDoesNotDependOnTheCount) {
    for (const int64_t n : {3000, 9000}) {
        const Array<float, 2> cloud = make_cloud(Kind::lattice, n, 8);
        const Samples all = sample(cloud, 700);
        for (const int64_t m : {1, 20, 47, 48, 300}) {
            const Samples part = sample(cloud, m);
            EXPECT_TRUE(std::equal(part.indices.begin(), part.indices.end(), all.indices.begin())) << m;
        }
    }
}

TEST_P(FarthestPointSample, GoesOnFromWhatIsChosen) {
    for (const int64_t n : {1500, 9000}) {
        for (const Kind kind : {Kind::uniform, Kind::duplicated, Kind::lattice, Kind::nonfinite}) {
            const Array<float, 2> cloud = make_cloud(kind, n, 9);
            const Samples all = sample(cloud, 200);
            for (const int64_t j : {1, 2, 50, 199, 200}) {
                const std::vector<int32_t> first(all.indices.begin(), all.indices.begin() + j);
                EXPECT_EQ(sample(cloud, 200, 5, first), all) << to_string(kind) << ", from " << j;
            }
        }
    }
}

TEST_P(FarthestPointSample, ChosenPointsMayRepeatOrBeNone) {
    for (const int64_t n : {700, 9000}) {
        const Array<float, 2> cloud = make_cloud(Kind::nonfinite, n, 10);  // 3, 10, 17 ... are not finite
        const std::vector<std::vector<int32_t>> lists = {
            {5, 5, 5, 9, 5},
            {-1, -1, 8},
            {-1, std::numeric_limits<int32_t>::max(), static_cast<int32_t>(n), std::numeric_limits<int32_t>::min()},
            {3, 10, 17},
            {100, 3, 99, -1, 100, 98, 699}};
        for (const std::vector<int32_t>& chosen : lists) {
            for (const int64_t m : {1, 3, 100})
                EXPECT_EQ(sample(cloud, m, 6, chosen), naive(cloud.data(), n, m, chosen, 6)) << chosen[0] << ", " << m;
        }
        std::vector<int32_t> many(1000);  // more than are asked for, with repetitions
        for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int32_t>(i * i % 691);
        EXPECT_EQ(sample(cloud, 150, 0, many), naive(cloud.data(), n, 150, many));
        EXPECT_EQ(sample(cloud, 600, 0, many), naive(cloud.data(), n, 600, many));
    }
}

TEST_P(FarthestPointSample, AStartThatIsNotFiniteLeavesItToTheLowest) {
    const Array<float, 2> cloud = make_cloud(Kind::nonfinite, 100);
    EXPECT_EQ(sample(cloud, 5, 3).indices[0], 0);
}

TEST_P(FarthestPointSample, DenseBatch) {
    for (const int64_t n : {300, 8500}) {
        std::vector<Array<float, 2>> clouds;
        std::vector<const Array<float, 2>*> pointers;
        for (uint64_t i = 0; i < 7; ++i) clouds.push_back(make_cloud(all_kinds()[i], n, i));
        for (const auto& cloud : clouds) pointers.push_back(&cloud);
        const Samples all = sample(concatenate(pointers), Batch::dense(7, n), Batch::dense(7, 60), 2);
        for (int64_t i = 0; i < 7; ++i) {
            const Samples one = naive(clouds[i].data(), n, 60, {}, 2);
            EXPECT_TRUE(std::equal(one.indices.begin(), one.indices.end(), all.indices.begin() + 60 * i)) << i;
        }
    }
}

TEST_P(FarthestPointSample, RaggedBatch) {
    for (const int64_t largest : {900, 20'000}) {
        const std::vector<int64_t> sizes = {0, 5, 1, 0, largest, 257, 30, 0}, counts = {0, 5, 1, 0, 100, 64, 0, 0};
        std::vector<int64_t> offsets = {0}, sample_offsets = {0}, chosen_offsets = {0};
        std::vector<int32_t> chosen;
        std::vector<std::vector<int32_t>> chosen_of(sizes.size());
        std::vector<Array<float, 2>> clouds;
        std::vector<const Array<float, 2>*> pointers;
        for (size_t i = 0; i < sizes.size(); ++i) {
            clouds.push_back(make_cloud(Kind::clustered, sizes[i], i));
            offsets.push_back(offsets.back() + sizes[i]);
            sample_offsets.push_back(sample_offsets.back() + counts[i]);
            for (size_t j = 0; j < i % 4; ++j) chosen_of[i].push_back(static_cast<int32_t>(j * 3));
            chosen.insert(chosen.end(), chosen_of[i].begin(), chosen_of[i].end());
            chosen_offsets.push_back(static_cast<int64_t>(chosen.size()));
        }
        for (const auto& cloud : clouds) pointers.push_back(&cloud);
        const Array<float, 2> all = concatenate(pointers);
        for (const bool with_chosen : {false, true}) {
            const Samples result = sample(all, Batch::ragged(offsets), Batch::ragged(sample_offsets), 0,
                                          with_chosen ? chosen : std::vector<int32_t>(), Batch::ragged(chosen_offsets));
            for (size_t i = 0; i < sizes.size(); ++i) {
                const Samples one =
                    naive(clouds[i].data(), sizes[i], counts[i], with_chosen ? chosen_of[i] : std::vector<int32_t>());
                for (int64_t j = 0; j < counts[i]; ++j) {
                    ASSERT_EQ(result.indices[sample_offsets[i] + j], one.indices[j]) << "cloud " << i;
                    ASSERT_EQ(result.distances_sq[sample_offsets[i] + j], one.distances_sq[j]) << "cloud " << i;
                }
            }
        }
    }
}

// More clouds than a device has room for at once.
TEST_P(FarthestPointSample, ManyLargeClouds) {
    const int64_t clouds = 150, n = 8300, m = 12;
    const Array<float, 2> all = make_cloud(Kind::uniform, clouds * n, 11);
    const Samples result = sample(all, Batch::dense(clouds, n), Batch::dense(clouds, m));
    for (int64_t i = 0; i < clouds; i += 7) {
        const Samples one = naive(all.data() + 3 * n * i, n, m);
        EXPECT_TRUE(std::equal(one.indices.begin(), one.indices.end(), result.indices.begin() + m * i)) << i;
    }
}

TEST_P(FarthestPointSample, RowsMayBeApart) {
    const Array<float, 2> rows = make_features(9000, 7, 12);
    Array<float, 2> cloud({9000, 3});
    for (int64_t i = 0; i < 9000; ++i) std::copy_n(rows.data() + 7 * i + 2, 3, cloud.data() + 3 * i);
    const Array<float, 2> uploaded = upload(rows);
    for (const int64_t n : {2000, 9000}) {
        Array<int32_t, 1> indices({100}, device());
        const View<const float, 2> strided(uploaded.data() + 2, {n, 3}, {7, 1}, device());
        ops::farthest_point_sample(strided, Batch::single(100), indices.view());
        const Array<int32_t, 1> host = download(indices);
        EXPECT_EQ(std::vector<int32_t>(host.data(), host.data() + 100), naive(cloud.data(), n, 100).indices);
    }
}

// Without ties the samples are the same points whatever their order.
TEST_P(FarthestPointSample, PermutedPointsGiveTheSamePoints) {
    const int64_t n = 9000;
    const Array<float, 2> cloud = make_cloud(Kind::uniform, n, 13);
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    const Rng rng(14);
    for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[rng.below(i, static_cast<uint32_t>(i + 1))]);
    Array<float, 2> permuted({n, 3});
    for (int64_t i = 0; i < n; ++i) std::copy_n(cloud.data() + 3 * order[i], 3, permuted.data() + 3 * i);
    const Samples of_permuted = sample(permuted, 500), of_cloud = sample(cloud, 500, order[0]);
    for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(order[of_permuted.indices[i]], of_cloud.indices[i]) << i;
    EXPECT_EQ(of_permuted.distances_sq, of_cloud.distances_sq);
}

TEST_P(FarthestPointSample, NothingToDo) {
    const Array<float, 2> none({0, 3}, device());
    ops::farthest_point_sample(none.view(), Batch::single(0), {nullptr, {0}, device()});
    ops::farthest_point_sample(Clouds(none.view(), Batch()), Batch(), {nullptr, {0}, device()});
    const Array<float, 2> cloud = upload(make_cloud(Kind::uniform, 10));
    ops::farthest_point_sample(cloud.view(), Batch::single(0), {nullptr, {0}, device()});
}

TEST(FarthestPointSampleCpu, ThreadsDoNotMatter) {
    const Array<float, 2> all = make_cloud(Kind::lattice, 40'000, 15);
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> results;
        for (const int64_t clouds : {1, 8}) {
            Array<int32_t, 1> indices({400});
            Array<float, 2> result({2, 400});
            ops::farthest_point_sample(Clouds(all.view(), Batch::dense(clouds, 40'000 / clouds)),
                                       Batch::dense(clouds, 400 / clouds), indices.view(), {result.data(), {400}});
            for (int64_t i = 0; i < 400; ++i) result.data()[400 + i] = static_cast<float>(indices.data()[i]);
            results.push_back(std::move(result));
        }
        return results;
    });
}

TEST(FarthestPointSampleCpu, SurvivesFailedAllocations) {
    const Array<float, 2> cloud = make_cloud(Kind::clustered, 600);
    const std::vector<int32_t> chosen = {4, 5};
    Array<int32_t, 1> indices({60});
    const int64_t tried = for_each_allocation_failure([&] {
        FarthestPointOptions options;
        options.chosen = {chosen.data(), {2}};
        options.chosen_batch = Batch::single(2);
        ops::farthest_point_sample(cloud.view(), Batch::single(60), indices.view(), {}, options);
    });
    if (can_fail_allocations()) {
        EXPECT_GT(tried, 3);
    }
}

TEST(FarthestPointSampleCpu, LeavesNothingBehind) {
    const Array<float, 2> cloud = make_cloud(Kind::uniform, 300);
    Array<int32_t, 1> indices({50});
    const auto run = [&] { ops::farthest_point_sample(cloud.view(), Batch::single(50), indices.view()); };
    run();
    const int64_t before = live_allocations();
    for (int i = 0; i < 3000; ++i) run();
    EXPECT_EQ(live_allocations(), before);
}

TEST(FarthestPointSampleErrors, WrongUse) {
    const Array<float, 2> cloud = make_cloud(Kind::uniform, 10), flat = make_features(10, 2);
    Array<int32_t, 1> indices({10});
    Array<float, 1> distances({10});
    const auto message = [&](const Clouds& points, const Batch& samples, View<int32_t, 1> out, View<float, 1> far = {},
                             const FarthestPointOptions& options = {}) {
        const std::string text =
            bad_argument_of([&] { ops::farthest_point_sample(points, samples, out, far, options); });
        EXPECT_EQ(text.find("farthest_point_sample: "), 0u) << text;
        return text;
    };
    const View<int32_t, 1> out = indices.view();
    message(flat.view(), Batch::single(10), out);
    EXPECT_NE(message(cloud.view(), Batch::single(11), out).find("11 samples of the 10 points"), std::string::npos);
    message(Clouds(cloud.view(), Batch::ragged({0, 4, 10})), Batch::ragged({0, 5, 10}), out);
    message(cloud.view(), Batch::dense(2, 5), out);
    message(cloud.view(), Batch::single(9), out);
    message(cloud.view(), Batch::single(5), View<int32_t, 1>(indices.data(), {5}, {2}));
    message(cloud.view(), Batch::single(10), out, distances.view().slice(0, 9));
    for (const int32_t start : {-1, 10}) {
        FarthestPointOptions options;
        options.start = start;
        message(cloud.view(), Batch::single(10), out, {}, options);
    }
    FarthestPointOptions options;
    options.chosen = {indices.data(), {4}};
    options.chosen_batch = Batch::single(3);
    message(cloud.view(), Batch::single(10), out, {}, options);
    options.chosen_batch = Batch::dense(2, 2);
    message(cloud.view(), Batch::single(10), out, {}, options);
    options.chosen_batch = Batch();
    message(cloud.view(), Batch::single(10), out, {}, options);
}

TEST(FarthestPointSampleErrors, BeforeAnythingIsTouched) {
    const Device cuda{DeviceType::cuda, 0};
    const View<const float, 2> cloud(nullptr, {10, 3});
    const View<const float, 2> far(nullptr, {10, 3}, cuda);
    const View<int32_t, 1> out(nullptr, {10});
    EXPECT_NE(bad_argument_of([&] { ops::farthest_point_sample(far, Batch::single(10), out); }).find("indices on cpu"),
              std::string::npos);
    bad_argument_of([&] { ops::farthest_point_sample(cloud, Batch::single(10), {nullptr, {10}, cuda}); });
    bad_argument_of([&] { ops::farthest_point_sample(cloud, Batch::single(10), out, {nullptr, {10}, cuda}); });
    FarthestPointOptions options;
    options.chosen = {nullptr, {2}, cuda};
    options.chosen_batch = Batch::single(2);
    bad_argument_of([&] { ops::farthest_point_sample(cloud, Batch::single(10), out, {}, options); });
    const int64_t huge = int64_t{1} << 31;
    const View<const float, 2> too_many(nullptr, {huge, 3}, {0, 1});
    bad_argument_of([&] { ops::farthest_point_sample(too_many, Batch::single(10), out); });
    options.chosen = {nullptr, {huge}};
    options.chosen_batch = Batch::single(huge);
    bad_argument_of([&] { ops::farthest_point_sample(cloud, Batch::single(10), out, {}, options); });
}

}  // namespace
}  // namespace stipple::test
