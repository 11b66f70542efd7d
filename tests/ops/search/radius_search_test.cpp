#include "stipple/ops/radius_search.h"

#include <gtest/gtest.h>

#include "tests/ops/neighbours.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::NeighbourOrder;
using ops::PointIndex;

struct RadiusResult {
    Array<int32_t, 1> counts, indices;
    Array<int64_t, 1> offsets;
    Array<float, 1> distances_sq;
    int64_t total = 0;
};

RadiusResult run(const Array<float, 2>& points, const Batch& point_batch, const Array<float, 2>& queries,
                 const Batch& query_batch, float radius, NeighbourOrder order, Device device) {
    const Uploaded at(points, point_batch, device), from(queries, query_batch, device);
    const PointIndex index(at.clouds);
    RadiusResult result;
    Guarded<int32_t, 1> counts({queries.size(0)}, device);
    ops::radius_count(index, from.clouds, radius, counts.view());
    Guarded<int64_t, 1> offsets({queries.size(0) + 1}, device);
    result.total = ops::radius_offsets(counts.view(), offsets.view());
    Guarded<int32_t, 1> indices({result.total}, device);
    Guarded<float, 1> distances_sq({result.total}, device);
    ops::radius_search(index, from.clouds, radius, offsets.view(), indices.view(), distances_sq.view(), order);
    result.counts = counts.get();
    result.offsets = offsets.get();
    result.indices = indices.get();
    result.distances_sq = distances_sq.get();
    return result;
}

void expect_exact(const Array<float, 2>& points, const Batch& point_batch, const Array<float, 2>& queries,
                  const Batch& query_batch, float radius, Device device) {
    for (const NeighbourOrder order : {NeighbourOrder::nearest, NeighbourOrder::index}) {
        const RadiusResult result = run(points, point_batch, queries, query_batch, radius, order, device);
        int64_t at = 0;
        for (int64_t row = 0; row < queries.size(0); ++row) {
            const int64_t cloud = cloud_of(query_batch, row);
            auto expected = all_neighbours(points.view().slice(point_batch.begin(cloud), point_batch.end(cloud)),
                                           queries.data() + row * queries.size(1));
            std::erase_if(expected, [&](const Neighbour& n) { return !(n.distance_sq <= radius * radius); });
            if (order == NeighbourOrder::index)
                std::sort(expected.begin(), expected.end(),
                          [](const Neighbour& a, const Neighbour& b) { return a.index < b.index; });
            ASSERT_EQ(result.counts.data()[row], static_cast<int32_t>(expected.size())) << "query " << row;
            ASSERT_EQ(result.offsets.data()[row], at);
            for (const Neighbour& neighbour : expected) {
                ASSERT_EQ(result.indices.data()[at], neighbour.index) << "query " << row;
                ASSERT_EQ(result.distances_sq.data()[at], neighbour.distance_sq) << "query " << row;
                ++at;
            }
        }
        ASSERT_EQ(result.offsets.data()[queries.size(0)], at);
        ASSERT_EQ(result.total, at);
    }
}

void expect_exact(const Array<float, 2>& points, const Array<float, 2>& queries, float radius, Device device) {
    expect_exact(points, Batch::single(points.size(0)), queries, Batch::single(queries.size(0)), radius, device);
}

class RadiusSearch : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(RadiusSearch);

TEST_P(RadiusSearch, EqualsBruteForce) {
    for (const Kind kind : all_kinds()) {
        const float scale = kind == Kind::huge ? 1e18f : kind == Kind::tiny ? 1e-18f : kind == Kind::lattice ? 8 : 1;
        for (const int64_t n : {0, 1, 2, 17, 1201}) {
            const Array<float, 2> points = make_cloud(kind, n), queries = make_cloud(kind, 101, 2);
            for (const float radius : {0.0f, 0.05f * scale, 0.125f * scale, 0.5f * scale}) {
                SCOPED_TRACE(fmt::format("{}, n {}, radius {}", to_string(kind), n, radius));
                expect_exact(points, queries, radius, device());
                if (n <= 17) expect_exact(points, points, radius, device());
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(RadiusSearch, OfTheIndexedPointsThemselves) {
    for (const Kind kind : {Kind::uniform, Kind::clustered, Kind::lattice}) {
        const Array<float, 2> points = make_cloud(kind, 900);
        for (const float radius : {1e-3f, 0.1f, 1.0f}) expect_exact(points, points, radius, device());
    }
}

TEST_P(RadiusSearch, TheBoundaryIsInside) {
    const Array<float, 2> points = make_cloud(Kind::lattice, 700);
    expect_exact(points, points, 1, device());
    Array<float, 2> pair({2, 3});
    std::fill_n(pair.data(), 6, 0.0f);
    pair.data()[3] = 3, pair.data()[4] = 4;
    const Batch one = Batch::single(2);
    EXPECT_EQ(run(pair, one, pair, one, 5, NeighbourOrder::nearest, device()).total, 4);
    EXPECT_EQ(run(pair, one, pair, one, std::nextafter(5.0f, 0.0f), NeighbourOrder::nearest, device()).total, 2);
}

TEST_P(RadiusSearch, RadiusZeroFindsDuplicates) {
    expect_exact(make_cloud(Kind::duplicated, 500), make_cloud(Kind::duplicated, 500), 0, device());
    expect_exact(make_cloud(Kind::duplicated, 500), make_cloud(Kind::duplicated, 500), -0.0f, device());
}

TEST_P(RadiusSearch, EndlessRadiusFindsEveryFinitePointThatIsNotTooFar) {
    Array<float, 2> points = make_cloud(Kind::nonfinite, 100);
    points.data()[0] = 3e38f;  // at an overflowing distance from all others, 0 from itself
    const Batch one = Batch::single(100);
    for (const float radius : {kInfinity, 1e30f}) {
        expect_exact(points, points, radius, device());
        const RadiusResult result = run(points, one, points, one, radius, NeighbourOrder::index, device());
        EXPECT_EQ(result.counts.data()[0], 1);
        EXPECT_EQ(result.counts.data()[1], 99 - 14);  // 14 are not finite
        EXPECT_EQ(result.counts.data()[3], 0);        // one of them
    }
}

TEST_P(RadiusSearch, InBatches) {
    const RaggedSample points({70, 0, 300, 5, 400}), queries({33, 9, 0, 50, 200}, 7);
    expect_exact(points.rows, points.batch, queries.rows, queries.batch, 0.3f, device());
    expect_exact(points.rows, points.batch, points.rows, points.batch, 1.0f, device());
    const Array<float, 2> none({0, 3});
    EXPECT_EQ(run(none, Batch::dense(0, 5), none, Batch::dense(0, 5), 1, NeighbourOrder::nearest, device()).total, 0);
}

TEST_P(RadiusSearch, InFeatureSpace) {
    for (const int64_t c : {1, 2, 5, 32}) {
        const Array<float, 2> points = make_features(500, c), queries = make_features(60, c, 2);
        expect_exact(points, queries, 0.3f * std::sqrt(static_cast<float>(c)), device());
    }
}

TEST_P(RadiusSearch, WithoutDistances) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 200);
    const Batch one = Batch::single(200);
    const RadiusResult both = run(points, one, points, one, 0.2f, NeighbourOrder::nearest, device());
    const Uploaded at(points, device());
    const Array<int64_t, 1> offsets = upload(both.offsets);
    Guarded<int32_t, 1> indices({both.total}, device());
    ops::radius_search(PointIndex(at.clouds), at.clouds, 0.2f, offsets.view(), indices.view(), {});
    EXPECT_EQ(0, std::memcmp(indices.get().data(), both.indices.data(), static_cast<size_t>(both.total) * 4));
}

TEST_P(RadiusSearch, DoesNotDependOnTheThreads) {
    const Array<float, 2> points = make_cloud(Kind::lattice, 3000);
    const Batch one = Batch::single(3000);
    expect_same_on_threads([&] {
        const RadiusResult result = run(points, one, points, one, 1, NeighbourOrder::nearest, device());
        std::vector<Array<float, 2>> results;
        for (int i = 0; i < 2; ++i) results.emplace_back(std::array<int64_t, 2>{result.total, 1});
        std::memcpy(results[0].data(), result.indices.data(), static_cast<size_t>(result.total) * 4);
        std::memcpy(results[1].data(), result.distances_sq.data(), static_cast<size_t>(result.total) * 4);
        return results;
    });
}

TEST_P(RadiusSearch, RejectsBadArguments) {
    const Uploaded at(make_cloud(Kind::uniform, 10), device()), from(make_cloud(Kind::uniform, 4, 2), device());
    const PointIndex index(at.clouds);
    Array<int32_t, 1> counts({4}, device()), indices({8}, device());
    Array<int64_t, 1> offsets({5}, device());
    Array<float, 1> distances_sq({8}, device());
    const Device other = device().type == DeviceType::cpu ? Device{DeviceType::cuda, 0} : Device{};
    const auto count = [&](const Clouds& queries, float radius, View<int32_t, 1> to) {
        return bad_argument_of([&] { ops::radius_count(index, queries, radius, to); });
    };
    const auto search = [&](const Clouds& queries, float radius, View<const int64_t, 1> where, View<int32_t, 1> to,
                            View<float, 1> distances) {
        return bad_argument_of([&] { ops::radius_search(index, queries, radius, where, to, distances); });
    };
    for (const float radius : {-1.0f, -kInfinity, kNan}) {
        EXPECT_NE(count(from.clouds, radius, counts.view()).find("radius_count: the radius"), std::string::npos);
        EXPECT_NE(search(from.clouds, radius, offsets.view(), indices.view(), {}).find("radius_search: the radius"),
                  std::string::npos);
    }
    EXPECT_EQ(count(from.clouds, 1, {counts.data(), {3}, device()}), "radius_count: counts must be [4], got [3]");
    EXPECT_EQ(count(from.clouds, 1, {counts.data(), {4}, {2}, device()}), "radius_count: counts must be contiguous");
    EXPECT_NE(count(from.clouds, 1, {counts.data(), {4}, other}).find("counts on"), std::string::npos);
    EXPECT_NE(count(View<const float, 2>(nullptr, {4, 3}, other), 1, counts.view()).find("queries on"),
              std::string::npos);
    EXPECT_EQ(count(View<const float, 2>(nullptr, {4, 5}, device()), 1, counts.view()),
              "radius_count: queries must be [n, 3], got [4, 5]");
    EXPECT_EQ(count(Clouds(from.clouds.rows, Batch::dense(2, 2)), 1, counts.view()),
              "radius_count: 1 clouds against 2");
    const int64_t many = int64_t{1} << 31;
    EXPECT_EQ(count(View<const float, 2>(nullptr, {many, 3}, {0, 1}, device()), 1, {nullptr, {many}, device()}),
              "radius_count: a cloud of 2147483648 points; the most is 2147483647");
    EXPECT_EQ(search(from.clouds, 1, {offsets.data(), {4}, device()}, indices.view(), {}),
              "radius_search: offsets must be [5], got [4]");
    EXPECT_EQ(search(from.clouds, 1, offsets.view(), indices.view(), {distances_sq.data(), {7}, device()}),
              "radius_search: distances_sq must be [8], got [7]");
    EXPECT_NE(search(from.clouds, 1, offsets.view(), {indices.data(), {8}, other}, {}).find("indices on"),
              std::string::npos);
    EXPECT_EQ(bad_argument_of([&] {
                  ops::radius_offsets(counts.view(), {offsets.data(), {4}, device()});
              }),
              "radius_offsets: offsets must be [5], got [4]");
}

TEST(RadiusSearchOffsets, ThatDoNotFitAreRejected) {
    const Array<float, 2> points = make_cloud(Kind::all_equal, 2);  // two neighbours for each of two
    const PointIndex index(points.view());
    for (const std::array<int64_t, 3> wrong : {std::array<int64_t, 3>{0, 1, 4},
                                               {0, 2, 5},
                                               {-2, 0, 2},
                                               {0, 2, 1},
                                               {4, 6, 8},
                                               {0, 3, 4},
                                               {std::numeric_limits<int64_t>::min(), 2, 4}}) {
        Array<int64_t, 1> offsets({3});
        std::copy_n(wrong.data(), 3, offsets.data());
        Guarded<int32_t, 1> indices({4}, Device{});
        bad_argument_of([&] { ops::radius_search(index, points.view(), 1, offsets.view(), indices.view(), {}); });
        indices.get();
    }
    Array<int32_t, 1> counts({2});
    counts.data()[0] = 1, counts.data()[1] = -1;
    Array<int64_t, 1> offsets({3});
    EXPECT_EQ(bad_argument_of([&] { ops::radius_offsets(counts.view(), offsets.view()); }),
              "radius_offsets: count 1 is -1");
}

TEST(RadiusSearchOffsets, OfCountsBeyondInt32) {
    Array<int32_t, 1> counts({3});
    std::fill_n(counts.data(), 3, std::numeric_limits<int32_t>::max());
    Array<int64_t, 1> offsets({4});
    EXPECT_EQ(ops::radius_offsets(counts.view(), offsets.view()), 3 * int64_t{2147483647});
    EXPECT_EQ(offsets.data()[0], 0);
    EXPECT_EQ(offsets.data()[2], 2 * int64_t{2147483647});
}

TEST(RadiusSearchMemory, SurvivesFailedAllocationsAndStaysFlat) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 60), queries = make_cloud(Kind::uniform, 20, 2);
    Array<int32_t, 1> counts({20}), indices({1200});
    Array<int64_t, 1> offsets({21});
    const auto once = [&] {
        const PointIndex index(points.view());
        ops::radius_count(index, queries.view(), 0.3f, counts.view());
        const int64_t total = ops::radius_offsets(counts.view(), offsets.view());
        ops::radius_search(index, queries.view(), 0.3f, offsets.view(), {indices.data(), {total}}, {});
    };
    EXPECT_GT(for_each_allocation_failure(once), can_fail_allocations() ? 10 : -1);
    const int64_t before = live_allocations();
    for (int i = 0; i < 1000; ++i) once();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
