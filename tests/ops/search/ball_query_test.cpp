#include "stipple/ops/ball_query.h"

#include <gtest/gtest.h>

#include "tests/ops/neighbours.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::NeighbourOrder;
using ops::PointIndex;

struct BallResult {
    Array<int32_t, 2> indices;
    Array<int32_t, 1> counts;
};

BallResult run(const Array<float, 2>& points, const Batch& point_batch, const Array<float, 2>& queries,
               const Batch& query_batch, float radius, int64_t samples, NeighbourOrder order, Device device) {
    const Uploaded at(points, point_batch, device), from(queries, query_batch, device);
    Guarded<int32_t, 2> indices({queries.size(0), samples}, device);
    Guarded<int32_t, 1> counts({queries.size(0)}, device);
    ops::ball_query(PointIndex(at.clouds), from.clouds, radius, indices.view(), counts.view(), order);
    return {indices.get(), counts.get()};
}

void expect_exact(const Array<float, 2>& points, const Batch& point_batch, const Array<float, 2>& queries,
                  const Batch& query_batch, float radius, int64_t samples, Device device) {
    for (const NeighbourOrder order : {NeighbourOrder::nearest, NeighbourOrder::index}) {
        if (order == NeighbourOrder::nearest && samples > 128) continue;
        const BallResult result = run(points, point_batch, queries, query_batch, radius, samples, order, device);
        for (int64_t row = 0; row < queries.size(0); ++row) {
            const int64_t cloud = cloud_of(query_batch, row);
            auto ball = all_neighbours(points.view().slice(point_batch.begin(cloud), point_batch.end(cloud)),
                                       queries.data() + row * queries.size(1));
            std::erase_if(ball, [&](const Neighbour& n) { return !(n.distance_sq < radius * radius); });
            if (order == NeighbourOrder::index)
                std::sort(ball.begin(), ball.end(),
                          [](const Neighbour& a, const Neighbour& b) { return a.index < b.index; });
            const int64_t found = std::min(samples, static_cast<int64_t>(ball.size()));
            ASSERT_EQ(result.counts.data()[row], found) << "query " << row;
            for (int64_t i = 0; i < samples; ++i)
                ASSERT_EQ(result.indices.view()(row, i), found == 0 ? -1 : ball[i < found ? i : 0].index)
                    << "query " << row << ", " << i;
        }
    }
}

void expect_exact(const Array<float, 2>& points, const Array<float, 2>& queries, float radius, int64_t samples,
                  Device device) {
    expect_exact(points, Batch::single(points.size(0)), queries, Batch::single(queries.size(0)), radius, samples,
                 device);
}

class BallQuery : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(BallQuery);

TEST_P(BallQuery, EqualsBruteForce) {
    for (const Kind kind : all_kinds()) {
        const float scale = kind == Kind::huge ? 1e18f : kind == Kind::tiny ? 1e-18f : kind == Kind::lattice ? 8 : 1;
        for (const int64_t n : {0, 1, 2, 17, 1201}) {
            const Array<float, 2> points = make_cloud(kind, n), queries = make_cloud(kind, 75, 2);
            for (const float radius : {0.0f, 0.1f * scale, 0.125f * scale, 0.6f * scale, kInfinity}) {
                SCOPED_TRACE(fmt::format("{}, n {}, radius {}", to_string(kind), n, radius));
                for (const int64_t samples : {1, 16, 70}) expect_exact(points, queries, radius, samples, device());
                if (n <= 17) expect_exact(points, points, radius, 8, device());
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(BallQuery, LargeGroupsAndLargeBalls) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 2000), queries = make_cloud(Kind::uniform, 20, 2);
    for (const int64_t samples : {128, 129, 1000, 2100}) expect_exact(points, queries, 0.9f, samples, device());
    expect_exact(points, queries, 2, 3, device());  // far more in the ball than wanted
}

TEST_P(BallQuery, TheBoundaryIsOutside) {
    Array<float, 2> pair({2, 3});
    std::fill_n(pair.data(), 6, 0.0f);
    pair.data()[3] = 3, pair.data()[4] = 4;
    const Batch one = Batch::single(2);
    for (const NeighbourOrder order : {NeighbourOrder::nearest, NeighbourOrder::index}) {
        EXPECT_EQ(run(pair, one, pair, one, 5, 2, order, device()).counts.data()[0], 1);
        EXPECT_EQ(run(pair, one, pair, one, std::nextafter(5.0f, 6.0f), 2, order, device()).counts.data()[0], 2);
        EXPECT_EQ(run(pair, one, pair, one, 0, 2, order, device()).counts.data()[0], 0);
        EXPECT_EQ(run(pair, one, pair, one, 0, 2, order, device()).indices.data()[0], -1);
    }
}

TEST_P(BallQuery, InBatchesAndFeatureSpace) {
    const RaggedSample points({70, 0, 300, 5, 400}), queries({33, 9, 0, 50, 200}, 7);
    expect_exact(points.rows, points.batch, queries.rows, queries.batch, 0.3f, 9, device());
    expect_exact(points.rows, points.batch, points.rows, points.batch, 1.5f, 9, device());
    for (const int64_t c : {1, 2, 5, 32}) {
        const Array<float, 2> at = make_features(400, c), from = make_features(60, c, 2);
        expect_exact(at, from, 0.35f * std::sqrt(static_cast<float>(c)), 12, device());
    }
    const Array<float, 2> none({0, 3});
    run(none, Batch::dense(0, 5), none, Batch::dense(0, 5), 1, 4, NeighbourOrder::index, device());
}

TEST_P(BallQuery, WithoutCounts) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 200);
    const Uploaded at(points, device());
    const Batch one = Batch::single(200);
    for (const NeighbourOrder order : {NeighbourOrder::nearest, NeighbourOrder::index}) {
        Guarded<int32_t, 2> indices({200, 8}, device());
        ops::ball_query(PointIndex(at.clouds), at.clouds, 0.2f, indices.view(), {}, order);
        const BallResult both = run(points, one, points, one, 0.2f, 8, order, device());
        EXPECT_EQ(0, std::memcmp(indices.get().data(), both.indices.data(), 200 * 8 * 4));
    }
}

TEST_P(BallQuery, DoesNotDependOnTheThreads) {
    const Array<float, 2> points = make_cloud(Kind::lattice, 5000);
    const Batch one = Batch::single(5000);
    expect_same_on_threads([&] {
        std::vector<Array<float, 2>> results;
        for (const NeighbourOrder order : {NeighbourOrder::nearest, NeighbourOrder::index}) {
            const BallResult result = run(points, one, points, one, 1.5f, 10, order, device());
            results.emplace_back(std::array<int64_t, 2>{5000, 10});
            std::memcpy(results.back().data(), result.indices.data(), size_t{5000} * 10 * 4);
        }
        return results;
    });
}

TEST_P(BallQuery, RejectsBadArguments) {
    const Uploaded at(make_cloud(Kind::uniform, 10), device()), from(make_cloud(Kind::uniform, 4, 2), device());
    const PointIndex index(at.clouds);
    Array<int32_t, 2> indices({4, 3}, device());
    Array<int32_t, 1> counts({4}, device());
    const Device other = device().type == DeviceType::cpu ? Device{DeviceType::cuda, 0} : Device{};
    const auto message = [&](const Clouds& queries, float radius, View<int32_t, 2> to, View<int32_t, 1> to_counts,
                             NeighbourOrder order = NeighbourOrder::index) {
        return bad_argument_of([&] { ops::ball_query(index, queries, radius, to, to_counts, order); });
    };
    for (const float radius : {-1.0f, -kInfinity, kNan})
        EXPECT_NE(message(from.clouds, radius, indices.view(), {}).find("ball_query: the radius"), std::string::npos);
    EXPECT_EQ(message(from.clouds, 1, {indices.data(), {4, 0}, device()}, {}), "ball_query: groups of 0 points");
    EXPECT_EQ(message(from.clouds, 1, {nullptr, {4, int64_t{1} << 31}, device()}, {}),
              "ball_query: groups of 2147483648 points");
    EXPECT_EQ(message(from.clouds, 1, {nullptr, {4, 129}, device()}, {}, NeighbourOrder::nearest),
              "ball_query: the nearest 129 points asked for; the most is 128");
    EXPECT_EQ(message(from.clouds, 1, {indices.data(), {3, 3}, device()}, {}),
              "ball_query: indices must be [4, 3], got [3, 3]");
    EXPECT_EQ(message(from.clouds, 1, {indices.data(), {4, 3}, {1, 4}, device()}, {}),
              "ball_query: indices must be contiguous");
    EXPECT_EQ(message(from.clouds, 1, indices.view(), {counts.data(), {3}, device()}),
              "ball_query: counts must be [4], got [3]");
    EXPECT_NE(message(from.clouds, 1, {nullptr, {4, 3}, other}, {}).find("indices on"), std::string::npos);
    EXPECT_NE(message(from.clouds, 1, indices.view(), {nullptr, {4}, other}).find("counts on"), std::string::npos);
    EXPECT_NE(message(View<const float, 2>(nullptr, {4, 3}, other), 1, indices.view(), {}).find("queries on"),
              std::string::npos);
    EXPECT_EQ(message(View<const float, 2>(nullptr, {4, 2}, device()), 1, indices.view(), {}),
              "ball_query: queries must be [n, 3], got [4, 2]");
    EXPECT_EQ(message(Clouds(from.clouds.rows, Batch::dense(4, 1)), 1, indices.view(), {}),
              "ball_query: 1 clouds against 4");
    const int64_t many = int64_t{1} << 31;
    EXPECT_EQ(
        message(View<const float, 2>(nullptr, {many, 3}, {0, 1}, device()), 1, {nullptr, {many, 3}, device()}, {}),
        "ball_query: a cloud of 2147483648 points; the most is 2147483647");
}

TEST(BallQueryMemory, SurvivesFailedAllocationsAndStaysFlat) {
    const Array<float, 2> points = make_cloud(Kind::uniform, 60), queries = make_cloud(Kind::uniform, 20, 2);
    Array<int32_t, 2> indices({20, 5});
    for (const NeighbourOrder order : {NeighbourOrder::nearest, NeighbourOrder::index}) {
        const auto once = [&] {
            ops::ball_query(PointIndex(points.view()), queries.view(), 0.3f, indices.view(), {}, order);
        };
        EXPECT_GT(for_each_allocation_failure(once), can_fail_allocations() ? 5 : -1);
        const int64_t before = live_allocations();
        for (int i = 0; i < 1000; ++i) once();
        EXPECT_EQ(live_allocations(), before);
    }
}

}  // namespace
}  // namespace stipple::test
