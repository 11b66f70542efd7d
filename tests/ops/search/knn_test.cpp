#include "stipple/ops/knn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "stipple/core/parallel.h"
#include "tests/ops/neighbours.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::PointIndex;

struct KnnResult {
    Array<int32_t, 2> indices;
    Array<float, 2> distances_sq;
};

KnnResult run(const Array<float, 2>& points, const Batch& point_batch, const Array<float, 2>& queries,
              const Batch& query_batch, int64_t k, Device device) {
    const Uploaded at(points, point_batch, device), from(queries, query_batch, device);
    Guarded<int32_t, 2> indices({queries.size(0), k}, device);
    Guarded<float, 2> distances_sq({queries.size(0), k}, device);
    ops::knn(PointIndex(at.clouds), from.clouds, indices.view(), distances_sq.view());
    // Without an index it is the same.
    Guarded<int32_t, 2> again({queries.size(0), k}, device);
    Guarded<float, 2> again_sq({queries.size(0), k}, device);
    ops::knn(at.clouds, from.clouds, again.view(), again_sq.view());
    KnnResult result = {indices.get(), distances_sq.get()};
    const Array<int32_t, 2> others = again.get();
    const Array<float, 2> others_sq = again_sq.get();
    EXPECT_TRUE(std::equal(others.data(), others.data() + others.elements(), result.indices.data()));
    EXPECT_TRUE(std::equal(others_sq.data(), others_sq.data() + others_sq.elements(), result.distances_sq.data()));
    return result;
}

KnnResult run(const Array<float, 2>& points, const Array<float, 2>& queries, int64_t k, Device device) {
    return run(points, Batch::single(points.size(0)), queries, Batch::single(queries.size(0)), k, device);
}

// Every step-th query against all points of its cloud.
void expect_exact(const KnnResult& result, const Array<float, 2>& points, const Batch& point_batch,
                  const Array<float, 2>& queries, const Batch& query_batch, int64_t step = 1) {
    const int64_t k = result.indices.size(1);
    for (int64_t row = 0; row < queries.size(0); row += step) {
        const int64_t cloud = cloud_of(query_batch, row);
        const auto expected = all_neighbours(points.view().slice(point_batch.begin(cloud), point_batch.end(cloud)),
                                             queries.data() + row * queries.size(1));
        for (int64_t i = 0; i < k; ++i) {
            const bool found = i < static_cast<int64_t>(expected.size());
            ASSERT_EQ(result.indices.view()(row, i), found ? expected[i].index : -1) << "query " << row << ", " << i;
            ASSERT_EQ(result.distances_sq.view()(row, i), found ? expected[i].distance_sq : kInfinity)
                << "query " << row << ", " << i;
        }
    }
}

void expect_exact(const KnnResult& result, const Array<float, 2>& points, const Array<float, 2>& queries,
                  int64_t step = 1) {
    expect_exact(result, points, Batch::single(points.size(0)), queries, Batch::single(queries.size(0)), step);
}

class Knn : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Knn);

TEST_P(Knn, OfTheIndexedPointsThemselves) {
    for (const Kind kind : all_kinds()) {
        for (const int64_t n : {1, 2, 16, 17, 129, 3001}) {
            for (const int64_t k : {1, 5, 16, 33, 128}) {
                if (k > n) continue;
                SCOPED_TRACE(fmt::format("{}, n {}, k {}", to_string(kind), n, k));
                const Array<float, 2> points = make_cloud(kind, n);
                expect_exact(run(points, points, k, device()), points, points, n / 150 + 1);
                if (HasFatalFailure()) return;
            }
        }
    }
}

// The same rows as the index's, unchanged and then overwritten, are queries like any others.
TEST_P(Knn, OfTheIndexedRowsWhateverTheyHoldNow) {
    for (const Kind kind : {Kind::duplicated, Kind::nonfinite}) {
        const RaggedSample sample({70, 0, 300, 40, 900});
        const Batch batches[] = {Batch::single(sample.rows.size(0)), Batch::dense(5, sample.rows.size(0) / 5),
                                 sample.batch};
        for (const Batch& batch : batches) {
            Uploaded at(sample.rows, batch, device());
            const PointIndex index(at.clouds);
            for (const bool overwritten : {false, true}) {
                const Array<float, 2> queries =
                    overwritten ? make_cloud(kind, sample.rows.size(0), 5) : sample.rows.clone();
                copy_bytes(at.rows.data(), device(), queries.data(), Device{},
                           queries.elements() * static_cast<int64_t>(sizeof(float)));
                for (const int64_t k : {1, 4, 8, 13, 16, 20, 32, 40}) {
                    SCOPED_TRACE(fmt::format("{}, {} clouds, overwritten {}, k {}", to_string(kind), batch.clouds(),
                                             overwritten, k));
                    Guarded<int32_t, 2> indices({queries.size(0), k}, device());
                    Guarded<float, 2> distances_sq({queries.size(0), k}, device());
                    ops::knn(index, at.clouds, indices.view(), distances_sq.view());
                    expect_exact({indices.get(), distances_sq.get()}, sample.rows, batch, queries, batch, 7);
                    if (HasFatalFailure()) return;
                }
            }
        }
    }
}

TEST_P(Knn, OfOtherPoints) {
    for (const Kind kind : all_kinds()) {
        for (const Kind from : {kind, Kind::uniform, Kind::clustered, Kind::nonfinite, Kind::huge}) {
            SCOPED_TRACE(fmt::format("{} in {}", to_string(from), to_string(kind)));
            const Array<float, 2> points = make_cloud(kind, 1500), queries = make_cloud(from, 611, 2);
            for (const int64_t k : {1, 9}) expect_exact(run(points, queries, k, device()), points, queries, 4);
            if (HasFatalFailure()) return;
        }
    }
}

// Groups of queries far apart are searched query by query.
TEST_P(Knn, OfAFewQueriesAmongMany) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 40000);
    for (const int64_t m : {1, 3, 40}) {
        const Array<float, 2> queries = make_cloud(Kind::clustered, m, 3);
        const Array<float, 2> inside = make_cloud(Kind::uniform, m, 4);
        for (const int64_t k : {1, 20}) {
            expect_exact(run(points, queries, k, device()), points, queries);
            expect_exact(run(points, inside, k, device()), points, inside);
        }
    }
}

TEST_P(Knn, WithPointsFarOutside) {
    Array<float, 2> points = make_cloud(Kind::uniform, 5000);
    for (int64_t i = 0; i < 3; ++i) points.data()[3 * 1000 * i + i] = 1e9f;
    expect_exact(run(points, points, 8, device()), points, points, 20);
}

TEST_P(Knn, InFeatureSpace) {
    for (const int64_t c : {1, 2, 4, 7, 32}) {
        for (const int64_t n : {1, 40, 1100}) {
            SCOPED_TRACE(fmt::format("c {}, n {}", c, n));
            Array<float, 2> points = make_features(n, c), queries = make_features(200, c, 2);
            points.data()[points.elements() / 2] = kNan;
            queries.data()[queries.elements() / 2] = kInfinity;
            const int64_t k = std::min<int64_t>(n, 10);
            expect_exact(run(points, points, k, device()), points, points, n / 100 + 1);
            expect_exact(run(points, queries, k, device()), points, queries);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(Knn, InBatches) {
    const RaggedSample points({70, 0, 300, 5, 900}), queries({33, 0, 0, 50, 1000}, 7);
    expect_exact(run(points.rows, points.batch, queries.rows, queries.batch, 5, device()), points.rows, points.batch,
                 queries.rows, queries.batch);
    expect_exact(run(points.rows, points.batch, points.rows, points.batch, 5, device()), points.rows, points.batch,
                 points.rows, points.batch);
    const Array<float, 2> dense = make_cloud(Kind::uniform, 40 * 50);  // more clouds than threads
    expect_exact(run(dense, Batch::dense(40, 50), dense, Batch::dense(40, 50), 50, device()), dense,
                 Batch::dense(40, 50), dense, Batch::dense(40, 50), 3);
    const Array<float, 2> none({0, 3});
    EXPECT_EQ(run(none, Batch::ragged({0, 0, 0}), none, Batch::ragged({0, 0, 0}), 3, device()).indices.size(0), 0);
    EXPECT_EQ(run(none, Batch::dense(0, 7), none, Batch::dense(0, 7), 3, device()).indices.size(0), 0);
}

TEST_P(Knn, OfRowsFartherApart) {
    const Array<float, 2> wide = make_features(500, 5);
    Array<float, 2> narrow({500, 3});
    for (int64_t i = 0; i < 500; ++i) std::copy_n(wide.data() + 5 * i + 1, 3, narrow.data() + 3 * i);
    const Array<float, 2> uploaded = upload(wide);
    const Clouds clouds(View<const float, 2>(uploaded.data() + 1, {500, 3}, {5, 1}, device()));
    Guarded<int32_t, 2> indices({500, 4}, device());
    Guarded<float, 2> distances_sq({500, 4}, device());
    ops::knn(PointIndex(clouds), clouds, indices.view(), distances_sq.view());
    expect_exact({indices.get(), distances_sq.get()}, narrow, narrow);
}

TEST_P(Knn, WithoutDistances) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 300);
    const Uploaded at(points, device());
    Guarded<int32_t, 2> indices({300, 6}, device());
    ops::knn(PointIndex(at.clouds), at.clouds, indices.view(), {});
    const Array<int32_t, 2> alone = indices.get();
    const KnnResult both = run(points, points, 6, device());
    EXPECT_EQ(0, std::memcmp(alone.data(), both.indices.data(), static_cast<size_t>(alone.elements()) * 4));
}

TEST_P(Knn, OutlivesThePoints) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 300);
    auto at = std::make_unique<Uploaded>(points, device());
    const PointIndex index(at->clouds), copy = index;
    at = nullptr;
    const Uploaded from(points, device());
    Guarded<int32_t, 2> indices({300, 2}, device());
    Guarded<float, 2> distances_sq({300, 2}, device());
    ops::knn(copy, from.clouds, indices.view(), distances_sq.view());
    expect_exact({indices.get(), distances_sq.get()}, points, points);
}

TEST_P(Knn, OverflowingDistancesAreNotFound) {
    Array<float, 2> points({3, 3});
    const float rows[] = {0, 0, 0, 1e19f, 0, 0, 2e19f, 0, 0};  // squares: 0, 1e38, beyond float
    std::copy_n(rows, 9, points.data());
    const KnnResult result = run(points, points, 3, device());
    const int32_t expected[] = {0, 1, -1, 1, 0, 2, 2, 1, -1};
    for (int i = 0; i < 9; ++i) EXPECT_EQ(result.indices.data()[i], expected[i]) << i;
    EXPECT_EQ(result.distances_sq.data()[2], kInfinity);
    EXPECT_EQ(result.distances_sq.data()[1], 1e19f * 1e19f);
}

TEST_P(Knn, UnderflowingDistancesTie) {
    Array<float, 2> points({4, 3});  // squares: 1e-46 is 0, 1e-40 is denormal
    const float rows[] = {0, 0, 0, 1e-23f, 0, 0, 1e-20f, 0, 0, -1e-23f, 0, 0};
    std::copy_n(rows, 12, points.data());
    const KnnResult result = run(points, points, 4, device());
    const int32_t expected[] = {0, 1, 3, 2, 0, 1, 3, 2, 2, 1, 0, 3, 0, 1, 3, 2};
    for (int i = 0; i < 16; ++i) EXPECT_EQ(result.indices.data()[i], expected[i]) << i;
    EXPECT_EQ(result.distances_sq.data()[2], 0.0f);
    EXPECT_EQ(result.distances_sq.data()[3], 1e-20f * 1e-20f);
}

TEST_P(Knn, FindsTheQueryItselfOrItsLowestDuplicate) {
    const Array<float, 2> points = make_cloud(Kind::duplicated, 2000);
    const KnnResult result = run(points, points, 1, device());
    for (int64_t i = 0; i < 2000; ++i) {
        int32_t lowest = 0;
        while (!std::equal(points.data() + 3 * i, points.data() + 3 * i + 3, points.data() + 3 * lowest)) ++lowest;
        ASSERT_EQ(result.indices.data()[i], lowest);
        ASSERT_EQ(result.distances_sq.data()[i], 0.0f);
    }
}

TEST_P(Knn, PermutedPointsHaveTheSameDistances) {
    constexpr int64_t kPoints = 2500;
    const Array<float, 2> points = make_cloud(Kind::lattice, kPoints), queries = make_cloud(Kind::uniform, 300, 5);
    Array<float, 2> permuted({kPoints, 3});
    for (int64_t i = 0; i < kPoints; ++i)
        std::copy_n(points.data() + 3 * (i * 777 % kPoints), 3, permuted.data() + 3 * i);  // 777 and 2500 are coprime
    const KnnResult a = run(points, queries, 12, device()), b = run(permuted, queries, 12, device());
    EXPECT_EQ(0, std::memcmp(a.distances_sq.data(), b.distances_sq.data(), size_t{4} * 12 * 300));
}

TEST_P(Knn, TranslatedLatticesHaveTheSameNeighbours) {
    const Array<float, 2> points = make_cloud(Kind::lattice, 2000);
    Array<float, 2> moved = points.clone();
    for (int64_t i = 0; i < 3 * 2000; ++i) moved.data()[i] += static_cast<float>(100 * (i % 3) - 77);
    const KnnResult a = run(points, points, 20, device()), b = run(moved, moved, 20, device());
    EXPECT_EQ(0, std::memcmp(a.indices.data(), b.indices.data(), size_t{4} * 20 * 2000));
    EXPECT_EQ(0, std::memcmp(a.distances_sq.data(), b.distances_sq.data(), size_t{4} * 20 * 2000));
}

TEST_P(Knn, DoesNotDependOnTheThreads) {
    const Array<float, 2> points = make_cloud(Kind::lattice, 30000), queries = make_cloud(Kind::uniform, 5000, 2);
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> results;
        for (const auto* from : {&points, &queries}) {
            KnnResult result = run(points, *from, 7, device());
            Array<float, 2> indices({from->size(0), 7});
            std::memcpy(indices.data(), result.indices.data(), static_cast<size_t>(indices.elements()) * 4);
            results.push_back(std::move(indices));
            results.push_back(std::move(result.distances_sq));
        }
        return results;
    });
}

TEST_P(Knn, RejectsBadArguments) {
    const Uploaded at(make_cloud(Kind::uniform, 10), device()), from(make_cloud(Kind::uniform, 4, 2), device());
    const PointIndex index(at.clouds);
    Array<int32_t, 2> indices({4, 3}, device());
    Array<float, 2> distances_sq({4, 3}, device());
    const auto message = [&](const Clouds& queries, View<int32_t, 2> to, View<float, 2> distances) {
        return bad_argument_of([&] { ops::knn(index, queries, to, distances); });
    };
    const Device other = device().type == DeviceType::cpu ? Device{DeviceType::cuda, 0} : Device{};
    int32_t* const data = indices.data();
    float* const numbers = distances_sq.data();

    EXPECT_EQ(message(from.clouds, {data, {4, 0}, device()}, {}), "knn: k must be 1 to 128, got 0");
    EXPECT_EQ(message(from.clouds, {data, {4, 129}, device()}, {}), "knn: k must be 1 to 128, got 129");
    EXPECT_EQ(message(from.clouds, {data, {4, 11}, device()}, {}), "knn: k is 11, but cloud 0 has 10 points");
    EXPECT_EQ(message(from.clouds, {data, {5, 3}, device()}, {}), "knn: indices must be [4, 3], got [5, 3]");
    EXPECT_EQ(message(from.clouds, {data, {4, 3}, {1, 4}, device()}, {}), "knn: indices must be contiguous");
    EXPECT_EQ(message(from.clouds, indices.view(), {numbers, {4, 2}, device()}),
              "knn: distances_sq must be [4, 3], got [4, 2]");
    EXPECT_NE(message(from.clouds, {data, {4, 3}, other}, {}).find("knn: points on"), std::string::npos);
    EXPECT_NE(message(from.clouds, indices.view(), {numbers, {4, 3}, other}).find("distances_sq on"),
              std::string::npos);
    EXPECT_NE(message(View<const float, 2>(numbers, {4, 3}, other), indices.view(), {}).find("queries on"),
              std::string::npos);
    EXPECT_EQ(message(View<const float, 2>(numbers, {4, 2}, device()), indices.view(), {}),
              "knn: queries must be [n, 3], got [4, 2]");
    EXPECT_EQ(message(Clouds(from.clouds.rows, Batch::dense(2, 2)), indices.view(), {}), "knn: 1 clouds against 2");
    const int64_t many = int64_t{1} << 31;
    EXPECT_EQ(message(View<const float, 2>(nullptr, {many, 3}, {0, 1}, device()), {data, {many, 3}, device()}, {}),
              "knn: a cloud of 2147483648 points; the most is 2147483647");

    // An empty cloud needs no neighbours.
    const PointIndex two(Clouds(at.clouds.rows, Batch::ragged({0, 0, 10})));
    Array<int32_t, 2> enough({4, 3}, device());
    ops::knn(two, Clouds(from.clouds.rows, Batch::ragged({0, 0, 4})), enough.view(), {});
    EXPECT_EQ(bad_argument_of([&] {
                  ops::knn(two, Clouds(from.clouds.rows, Batch::ragged({0, 1, 4})), enough.view(), {});
              }),
              "knn: k is 3, but cloud 0 has 0 points");
}

TEST(KnnMemory, SurvivesFailedAllocations) {
    const RaggedSample points({40, 100, 70}), queries({5, 70, 30}, 3);
    Array<int32_t, 2> indices({queries.rows.size(0), 4});
    EXPECT_GT(for_each_allocation_failure([&] {
                  const PointIndex index(Clouds(points.rows.view(), points.batch));
                  ops::knn(index, Clouds(queries.rows.view(), queries.batch), indices.view(), {});
              }),
              can_fail_allocations() ? 5 : -1);
}

TEST(KnnMemory, StaysFlat) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 20);
    Array<int32_t, 2> indices({20, 4});
    const auto once = [&] { ops::knn(PointIndex(points.view()), points.view(), indices.view(), {}); };
    once();
    const int64_t before = live_allocations();
    for (int i = 0; i < 3000; ++i) once();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
