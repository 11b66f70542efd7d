#include "stipple/ops/nearest_pairs.h"

#include <gtest/gtest.h>

#include "tests/ops/neighbours.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;

struct Pairs {
    Array<int32_t, 1> b_of_a, a_of_b;
    Array<float, 1> sq_of_a, sq_of_b;
};

Pairs run(const Array<float, 2>& a, const Batch& batch_a, const Array<float, 2>& b, const Batch& batch_b,
          Device device) {
    const Uploaded on_a(a, batch_a, device), on_b(b, batch_b, device);
    Guarded<int32_t, 1> b_of_a({a.size(0)}, device), a_of_b({b.size(0)}, device);
    Guarded<float, 1> sq_of_a({a.size(0)}, device), sq_of_b({b.size(0)}, device);
    ops::nearest_pairs(on_a.clouds, on_b.clouds, b_of_a.view(), sq_of_a.view(), a_of_b.view(), sq_of_b.view());
    return {b_of_a.get(), a_of_b.get(), sq_of_a.get(), sq_of_b.get()};
}

void expect_one_way(const Array<int32_t, 1>& indices, const Array<float, 1>& distances_sq, const Array<float, 2>& from,
                    const Batch& batch_from, const Array<float, 2>& to, const Batch& batch_to, int64_t step) {
    for (int64_t row = 0; row < from.size(0); row += step) {
        const int64_t cloud = cloud_of(batch_from, row);
        const auto found =
            all_neighbours(to.view().slice(batch_to.begin(cloud), batch_to.end(cloud)), from.data() + 3 * row);
        ASSERT_EQ(indices.data()[row], found.empty() ? -1 : found[0].index) << "point " << row;
        ASSERT_EQ(distances_sq.data()[row], found.empty() ? kInfinity : found[0].distance_sq) << "point " << row;
    }
}

void expect_exact(const Array<float, 2>& a, const Batch& batch_a, const Array<float, 2>& b, const Batch& batch_b,
                  Device device, int64_t step = 1) {
    const Pairs pairs = run(a, batch_a, b, batch_b, device);
    expect_one_way(pairs.b_of_a, pairs.sq_of_a, a, batch_a, b, batch_b, step);
    expect_one_way(pairs.a_of_b, pairs.sq_of_b, b, batch_b, a, batch_a, step);
}

void expect_exact(const Array<float, 2>& a, const Array<float, 2>& b, Device device, int64_t step = 1) {
    expect_exact(a, Batch::single(a.size(0)), b, Batch::single(b.size(0)), device, step);
}

class NearestPairs : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(NearestPairs);

TEST_P(NearestPairs, EqualBruteForce) {
    for (const Kind kind : all_kinds()) {
        for (const Kind other : {kind, Kind::uniform, Kind::lattice}) {
            for (const auto& [n, m] : {std::pair{0, 0}, {0, 3}, {1, 1}, {2, 19}, {1003, 1}, {1501, 2000}}) {
                SCOPED_TRACE(fmt::format("{} {}, {} {}", to_string(kind), n, to_string(other), m));
                expect_exact(make_cloud(kind, n), make_cloud(other, m, 2), device(), n / 200 + 1);
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(NearestPairs, OfACloudWithItselfAreItsLowestDuplicates) {
    const Array<float, 2> cloud = make_cloud(Kind::duplicated, 3000);
    const Pairs pairs = run(cloud, Batch::single(3000), cloud, Batch::single(3000), device());
    for (int64_t i = 0; i < 3000; ++i) {
        ASSERT_EQ(pairs.sq_of_a.data()[i], 0.0f);
        ASSERT_LE(pairs.b_of_a.data()[i], i);
        ASSERT_EQ(pairs.b_of_a.data()[i], pairs.a_of_b.data()[i]);
    }
    expect_exact(cloud, cloud, device(), 30);
}

TEST_P(NearestPairs, OfCloudsFarApartAndOfVeryDifferentSizes) {
    Array<float, 2> far = make_cloud(Kind::uniform, 400, 3);
    for (int64_t i = 0; i < 1200; ++i) far.data()[i] += 1e4f;
    expect_exact(make_cloud(Kind::uniform, 600), far, device());
    expect_exact(make_cloud(Kind::uniform, 20), make_cloud(Kind::clustered, 20000, 2), device(), 97);
}

TEST_P(NearestPairs, InBatches) {
    const RaggedSample a({70, 0, 300, 5, 900}), b({33, 9, 0, 50, 1000}, 7);
    expect_exact(a.rows, a.batch, b.rows, b.batch, device());
    const Array<float, 2> dense = make_cloud(Kind::uniform, 1200), other = make_cloud(Kind::uniform, 600, 2);
    expect_exact(dense, Batch::dense(30, 40), other, Batch::dense(30, 20), device());
    const Array<float, 2> none({0, 3});
    expect_exact(none, Batch::dense(0, 5), none, Batch::dense(0, 2), device());
}

TEST_P(NearestPairs, OneWayOnly) {
    const Array<float, 2> a = make_cloud(Kind::nonfinite, 300), b = make_cloud(Kind::uniform, 200, 2);
    const Uploaded on_a(a, device()), on_b(b, device());
    const Pairs both = run(a, Batch::single(300), b, Batch::single(200), device());
    Guarded<int32_t, 1> b_of_a({300}, device()), a_of_b({200}, device());
    Guarded<float, 1> sq_of_a({300}, device()), sq_of_b({200}, device());
    ops::nearest_pairs(on_a.clouds, on_b.clouds, b_of_a.view(), sq_of_a.view(), {}, {});
    ops::nearest_pairs(on_a.clouds, on_b.clouds, {}, {}, a_of_b.view(), sq_of_b.view());
    EXPECT_EQ(0, std::memcmp(b_of_a.get().data(), both.b_of_a.data(), 300 * 4));
    EXPECT_EQ(0, std::memcmp(sq_of_a.get().data(), both.sq_of_a.data(), 300 * 4));
    EXPECT_EQ(0, std::memcmp(a_of_b.get().data(), both.a_of_b.data(), 200 * 4));
    EXPECT_EQ(0, std::memcmp(sq_of_b.get().data(), both.sq_of_b.data(), 200 * 4));
    ops::nearest_pairs(on_a.clouds, on_b.clouds, {}, {}, {}, {});
}

TEST_P(NearestPairs, DoNotDependOnTheThreads) {
    const Array<float, 2> a = make_cloud(Kind::lattice, 20000), b = make_cloud(Kind::lattice, 15000, 2);
    expect_same_on_threads([&] {
        const Pairs pairs = run(a, Batch::single(20000), b, Batch::single(15000), device());
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{20000, 2});
        std::memcpy(results[0].data(), pairs.b_of_a.data(), size_t{20000} * 4);
        std::memcpy(results[0].data() + 20000, pairs.sq_of_a.data(), size_t{20000} * 4);
        results.emplace_back(std::array<int64_t, 2>{15000, 2});
        std::memcpy(results[1].data(), pairs.a_of_b.data(), size_t{15000} * 4);
        std::memcpy(results[1].data() + 15000, pairs.sq_of_b.data(), size_t{15000} * 4);
        return results;
    });
}

TEST_P(NearestPairs, RejectBadArguments) {
    const Uploaded a(make_cloud(Kind::uniform, 4), device()), b(make_cloud(Kind::uniform, 3, 2), device());
    Array<int32_t, 1> indices({4}, device());
    Array<float, 1> distances_sq({4}, device());
    const Device other = device().type == DeviceType::cpu ? Device{DeviceType::cuda, 0} : Device{};
    const auto message = [&](const Clouds& from, const Clouds& to, View<int32_t, 1> b_of_a, View<float, 1> sq_of_a,
                             View<int32_t, 1> a_of_b, View<float, 1> sq_of_b) {
        return bad_argument_of([&] { ops::nearest_pairs(from, to, b_of_a, sq_of_a, a_of_b, sq_of_b); });
    };
    const View<int32_t, 1> of_a = indices.view(), of_b = {indices.data(), {3}, device()};
    const View<float, 1> sq_a = distances_sq.view(), sq_b = {distances_sq.data(), {3}, device()};
    EXPECT_EQ(message(a.clouds, b.clouds, of_b, sq_a, {}, {}), "nearest_pairs: b_of_a must be [4], got [3]");
    EXPECT_EQ(message(a.clouds, b.clouds, of_a, {}, {}, {}), "nearest_pairs: sq_of_a must be [4], got [0]");
    EXPECT_EQ(message(a.clouds, b.clouds, of_a, sq_a, of_b, sq_a), "nearest_pairs: sq_of_b must be [3], got [4]");
    EXPECT_EQ(message(a.clouds, b.clouds, of_a, sq_a, {}, sq_b), "nearest_pairs: a_of_b must be [3], got [0]");
    EXPECT_EQ(message(a.clouds, b.clouds, {nullptr, {4}, {2}, device()}, sq_a, {}, {}),
              "nearest_pairs: b_of_a must be contiguous");
    EXPECT_NE(message(a.clouds, b.clouds, {nullptr, {4}, other}, sq_a, {}, {}).find("b_of_a on"), std::string::npos);
    EXPECT_NE(message(a.clouds, View<const float, 2>(nullptr, {3, 3}, other), of_a, sq_a, {}, {}).find("b on"),
              std::string::npos);
    EXPECT_EQ(message(a.clouds, View<const float, 2>(nullptr, {3, 2}, device()), of_a, sq_a, {}, {}),
              "nearest_pairs: b must be [n, 3], got [3, 2]");
    EXPECT_EQ(message(Clouds(a.clouds.rows, Batch::dense(2, 2)), b.clouds, of_a, sq_a, {}, {}),
              "nearest_pairs: 2 clouds against 1");
    const int64_t many = int64_t{1} << 31;
    EXPECT_EQ(message(View<const float, 2>(nullptr, {many, 3}, {0, 1}, device()), b.clouds, of_a, sq_a, {}, {}),
              "nearest_pairs: a cloud of 2147483648 points; the most is 2147483647");
}

TEST(NearestPairsMemory, SurviveFailedAllocationsAndStayFlat) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 60), b = make_cloud(Kind::uniform, 20, 2);
    Array<int32_t, 1> b_of_a({60}), a_of_b({20});
    Array<float, 1> sq_of_a({60}), sq_of_b({20});
    const auto once = [&] {
        ops::nearest_pairs(a.view(), b.view(), b_of_a.view(), sq_of_a.view(), a_of_b.view(), sq_of_b.view());
    };
    EXPECT_GT(for_each_allocation_failure(once), can_fail_allocations() ? 5 : -1);
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) once();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
