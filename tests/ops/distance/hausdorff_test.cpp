#include "stipple/ops/hausdorff.h"

#include <cmath>
#include <limits>

#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/ops/distance/hausdorff_key.h"
#include "tests/ops/guarded.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using namespace stipple::ops;

const Direction kDirections[] = {Direction::a_to_b, Direction::b_to_a, Direction::both};

struct HausdorffResult {
    std::vector<float> distance;
    std::vector<int32_t> pair;
};

HausdorffResult naive(const Array<float, 2>& a, const Batch& batch_a, const Array<float, 2>& b, const Batch& batch_b,
                      Direction direction) {
    HausdorffResult result;
    for (int64_t cloud = 0; cloud < batch_a.clouds(); ++cloud) {
        float farthest = -1;
        int32_t pair[2] = {-1, -1};
        for (int side = 0; side < 2; ++side) {
            if (direction == (side == 0 ? Direction::b_to_a : Direction::a_to_b)) continue;
            const Array<float, 2>&from = side == 0 ? a : b, &to = side == 0 ? b : a;
            const Batch &from_batch = side == 0 ? batch_a : batch_b, &to_batch = side == 0 ? batch_b : batch_a;
            for (int64_t i = 0; i < from_batch.size(cloud); ++i) {
                float nearest = std::numeric_limits<float>::infinity();
                int32_t found = -1;
                for (int64_t j = 0; j < to_batch.size(cloud); ++j) {
                    const float sq = distance_sq(from.data() + 3 * (from_batch.begin(cloud) + i),
                                                 to.data() + 3 * (to_batch.begin(cloud) + j));
                    if (sq < nearest) nearest = sq, found = static_cast<int32_t>(j);
                }
                if (found < 0 || !(nearest > farthest)) continue;
                farthest = nearest;
                pair[side] = static_cast<int32_t>(i);
                pair[1 - side] = found;
            }
        }
        result.distance.push_back(farthest < 0 ? std::numeric_limits<float>::quiet_NaN() : std::sqrt(farthest));
        result.pair.insert(result.pair.end(), {pair[0], pair[1]});
    }
    return result;
}

HausdorffResult run(const Array<float, 2>& a, const Batch& batch_a, const Array<float, 2>& b, const Batch& batch_b,
                    Direction direction, Device device) {
    const Array<float, 2> of_a = a.to(device), of_b = b.to(device);
    Guarded<float> distance(batch_a.clouds(), device);
    Guarded<int32_t> pair(2 * batch_a.clouds(), device);
    hausdorff(Clouds(of_a.view(), batch_a), Clouds(of_b.view(), batch_b), direction, distance.view(), pair.rows(2));
    return {distance.values(), pair.values()};
}

void expect_equal(const HausdorffResult& found, const HausdorffResult& wanted) {
    EXPECT_EQ(found.pair, wanted.pair);
    ASSERT_EQ(found.distance.size(), wanted.distance.size());
    for (size_t i = 0; i < wanted.distance.size(); ++i) {
        if (std::isnan(wanted.distance[i]))
            EXPECT_TRUE(std::isnan(found.distance[i])) << i;
        else
            EXPECT_EQ(found.distance[i], wanted.distance[i]) << i;
    }
}

class Hausdorff : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Hausdorff);

TEST_P(Hausdorff, AgreesExactlyWithEveryPairCompared) {
    for (const Kind kind : all_kinds()) {
        for (const auto& [n, m] : {std::pair{0, 0}, {0, 4}, {1, 1}, {2, 9}, {1001, 600}}) {
            for (const Direction direction : kDirections) {
                SCOPED_TRACE(fmt::format("{} {} {} {}", to_string(kind), n, m, static_cast<int>(direction)));
                const Array<float, 2> a = make_cloud(kind, n, 1), b = make_cloud(kind, m, 2);
                const Batch batch_a = Batch::single(n), batch_b = Batch::single(m);
                expect_equal(run(a, batch_a, b, batch_b, direction, device()),
                             naive(a, batch_a, b, batch_b, direction));
            }
        }
    }
}

TEST_P(Hausdorff, BatchesAreTheirCloudsOneByOne) {
    const Batch ragged_a = Batch::ragged({0, 40, 40, 47, 347, 352, 352});
    const Batch ragged_b = Batch::ragged({0, 30, 35, 35, 536, 545, 545});
    for (const Kind kind : {Kind::uniform, Kind::lattice, Kind::nonfinite, Kind::all_equal}) {
        for (const Direction direction : kDirections) {
            SCOPED_TRACE(to_string(kind));
            Array<float, 2> a = make_cloud(kind, 352, 1), b = make_cloud(kind, 545, 2);
            expect_equal(run(a, ragged_a, b, ragged_b, direction, device()),
                         naive(a, ragged_a, b, ragged_b, direction));
            a = make_cloud(kind, 7 * 20, 1);
            b = make_cloud(kind, 7 * 33, 2);
            expect_equal(run(a, Batch::dense(7, 20), b, Batch::dense(7, 33), direction, device()),
                         naive(a, Batch::dense(7, 20), b, Batch::dense(7, 33), direction));
        }
    }
    EXPECT_TRUE(run(Array<float, 2>({0, 3}), Batch::ragged({0}), Array<float, 2>({0, 3}), Batch::ragged({0}),
                    Direction::both, device())
                    .pair.empty());
}

TEST_P(Hausdorff, FindsTheFirstOfEqualsInACloudOfManyParts) {
    const int64_t n = 200'000;
    Array<float, 2> a({n, 3}), b({2, 3});
    std::fill_n(a.data(), 3 * n, 0.0f);
    std::fill_n(b.data(), 6, 0.0f);
    for (const int64_t i : {150'001, 70'003, 199'999}) a.data()[3 * i] = -3.0f;
    const HausdorffResult found = run(a, Batch::single(n), b, Batch::single(2), Direction::both, device());
    EXPECT_EQ(found.distance, std::vector<float>{3.0f});
    EXPECT_EQ(found.pair, (std::vector<int32_t>{70'003, 0}));
}

TEST_P(Hausdorff, GradientGoesToThePairThatAttainsIt) {
    // Finite differences in double of the distance of the pair, which is the directed distance nearby.
    const Batch batch_a = Batch::ragged({0, 30, 30, 41}), batch_b = Batch::ragged({0, 25, 26, 60});
    const Array<float, 2> a = make_cloud(Kind::uniform, 41, 1), b = make_cloud(Kind::uniform, 60, 2);
    const Array<float, 2> of_a = upload(a), of_b = upload(b);
    const HausdorffResult forward = run(a, batch_a, b, batch_b, Direction::both, device());
    const auto pair = array_of(forward.pair, device());
    const std::vector<float> dL = {2.0f, 1.0f, -0.5f};
    const auto dL_ddistance = array_of(dL, device());
    Guarded<float> gradient_a(123, device()), gradient_b(180, device());
    hausdorff_backward(Clouds(of_a.view(), batch_a), Clouds(of_b.view(), batch_b),
                       View<const int32_t, 2>(pair.data(), {3, 2}, device()), dL_ddistance.view(), gradient_a.rows(3),
                       gradient_b.rows(3));
    std::vector<double> wanted_a(123), wanted_b(180);
    for (int64_t cloud = 0; cloud < 3; ++cloud) {
        if (forward.pair[2 * cloud] < 0) continue;
        const int64_t i = 3 * (batch_a.begin(cloud) + forward.pair[2 * cloud]);
        const int64_t j = 3 * (batch_b.begin(cloud) + forward.pair[2 * cloud + 1]);
        for (int axis = 0; axis < 3; ++axis) {
            const auto distance = [&](double step) {
                double sq = 0;
                for (int k = 0; k < 3; ++k) {
                    const double d = double{a.data()[i + k]} + (k == axis ? step : 0.0) - b.data()[j + k];
                    sq += d * d;
                }
                return std::sqrt(sq);
            };
            wanted_a[i + axis] = dL[cloud] * (distance(1e-6) - distance(-1e-6)) / 2e-6;
            wanted_b[j + axis] = -wanted_a[i + axis];
        }
    }
    EXPECT_EQ(forward.pair[2], -1);  // the cloud without points
    const std::vector<float> found_a = gradient_a.values(), found_b = gradient_b.values();
    for (size_t i = 0; i < wanted_a.size(); ++i) EXPECT_NEAR(found_a[i], wanted_a[i], 1e-6) << i;
    for (size_t i = 0; i < wanted_b.size(); ++i) EXPECT_NEAR(found_b[i], wanted_b[i], 1e-6) << i;
}

TEST_P(Hausdorff, BackwardIgnoresBadPairsAndDistanceZero) {
    const Array<float, 2> a = upload(make_cloud(Kind::all_equal, 2)), b = upload(make_cloud(Kind::all_equal, 2));
    const auto dL = array_of<float>({1.0f}, device());
    for (const std::vector<int32_t>& indices : {std::vector<int32_t>{0, 1}, {-1, 0}, {0, 2}, {2, 0}}) {
        const auto pair = array_of(indices, device());
        Guarded<float> gradient(6, device());
        hausdorff_backward(a.view(), b.view(), View<const int32_t, 2>(pair.data(), {1, 2}, device()), dL.view(),
                           gradient.rows(3), {});
        EXPECT_EQ(gradient.values(), std::vector<float>(6, 0.0f));
    }
}

TEST(HausdorffKey, OrdersByDistanceThenDirectionThenIndex) {
    const int32_t last = std::numeric_limits<int32_t>::max() - 1;
    EXPECT_LT(farthest_key(1.0f, 0, 0), farthest_key(2.0f, 1, last));
    EXPECT_LT(farthest_key(1.0f, 1, 0), farthest_key(1.0f, 0, last));
    EXPECT_LT(farthest_key(1.0f, 1, 5), farthest_key(1.0f, 1, 4));
    EXPECT_LT(kNoFarthest, farthest_key(0.0f, 1, last));
    const uint64_t key = farthest_key(2.5f, 1, last);
    EXPECT_EQ(key_distance_sq(key), 2.5f);
    EXPECT_EQ(key_side(key), 1);
    EXPECT_EQ(key_index(key), last);
}

TEST(HausdorffOnCpu, ThreadsDoNotChangeABit) {
    const Array<float, 2> a = make_cloud(Kind::clustered, 20'000, 1), b = make_cloud(Kind::clustered, 21'000, 2);
    const int before = threads();
    set_threads(1);
    const HausdorffResult one = run(a, Batch::single(20'000), b, Batch::single(21'000), Direction::both, Device{});
    set_threads(3);
    const HausdorffResult three = run(a, Batch::single(20'000), b, Batch::single(21'000), Direction::both, Device{});
    set_threads(before);
    EXPECT_EQ(one.pair, three.pair);
    EXPECT_EQ(one.distance, three.distance);
}

TEST(HausdorffOnCpu, WrongShapesAndDevicesAreRefusedUntouched) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 4), b = make_cloud(Kind::uniform, 3);
    Array<float, 1> distance({1});
    Array<int32_t, 2> pair({1, 2}), wide({1, 3});
    const Device gpu{DeviceType::cuda, 0};
    const auto message = [&](const Clouds& of_a, const Clouds& of_b, View<float, 1> out, View<int32_t, 2> pairs) {
        return bad_argument_of([&] { hausdorff(of_a, of_b, Direction::both, out, pairs); });
    };
    const View<const float, 2> elsewhere(nullptr, {4, 3}, gpu), huge(nullptr, {int64_t{1} << 31, 3}, {0, 1});
    EXPECT_EQ(message(a.view(), b.view(), {}, pair.view()), "hausdorff: distance must be [1], got [0]");
    EXPECT_EQ(message(a.view(), b.view(), distance.view(), wide.view()), "hausdorff: pair must be [1, 2], got [1, 3]");
    EXPECT_EQ(message(a.view(), elsewhere, distance.view(), pair.view()), "hausdorff: points on cpu, b on cuda:0");
    EXPECT_EQ(message(a.view(), b.view(), {nullptr, {1}, gpu}, pair.view()),
              "hausdorff: points on cpu, distance on cuda:0");
    EXPECT_EQ(message(huge, b.view(), distance.view(), pair.view()).rfind("hausdorff: a cloud of 2147483648", 0), 0u);
    EXPECT_EQ(message(a.view(), Clouds(b.view(), Batch::ragged({0, 1, 3})), distance.view(), pair.view()),
              "hausdorff: 1 clouds against 2");
    Array<float, 2> gradient({3, 3});
    EXPECT_EQ(bad_argument_of(
                  [&] { hausdorff_backward(a.view(), b.view(), pair.view(), distance.view(), gradient.view(), {}); }),
              "hausdorff_backward: dL_da must be [4, 3], got [3, 3]");
    EXPECT_EQ(bad_argument_of(
                  [&] { hausdorff_backward(a.view(), b.view(), wide.view(), distance.view(), {}, gradient.view()); }),
              "hausdorff_backward: pair must be [1, 2], got [1, 3]");
}

TEST(HausdorffOnCpu, FailedAllocationsAreReportedAndManyCallsKeepNothing) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 30, 1), b = make_cloud(Kind::uniform, 20, 2);
    const auto call = [&] { run(a, Batch::single(30), b, Batch::single(20), Direction::both, Device{}); };
    EXPECT_GE(for_each_allocation_failure(call), can_fail_allocations() ? 3 : 0);
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) call();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
