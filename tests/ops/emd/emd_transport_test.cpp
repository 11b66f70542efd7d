#include "stipple/ops/emd_transport.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/ops/emd/pair_cost.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::DistanceNorm;
using ops::EmdFlow;
using ops::EmdPlan;

/// Marginals, cost, and duals that prove it least.
void check_plan(const Array<float, 2>& a, const Array<float, 2>& b, DistanceNorm norm) {
    const int64_t n = a.size(0), m = b.size(0);
    Array<double, 1> dual_a({n}), dual_b({m});
    const EmdPlan plan = ops::emd_transport(a.view(), b.view(), norm, dual_a.view(), dual_b.view());
    ASSERT_EQ(plan.offsets, (std::vector<int64_t>{0, static_cast<int64_t>(plan.flows.size())}));
    double largest = 0, total = 0;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) largest = std::max(largest, pair_cost(a, i, b, j, norm));
    const double tiny = 1e-13 * largest;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j)
            ASSERT_LE(dual_a.data()[i] + dual_b.data()[j], pair_cost(a, i, b, j, norm) + tiny);
    std::vector<double> out(n, 0.0), in(m, 0.0);
    std::pair<int32_t, int32_t> before = {-1, -1};
    for (const EmdFlow& flow : plan.flows) {
        ASSERT_LT(before, std::pair(flow.from, flow.to));  // sorted, nothing twice
        before = {flow.from, flow.to};
        ASSERT_GT(flow.mass, 0.0);
        out[flow.from] += flow.mass, in[flow.to] += flow.mass;
        const double cost = pair_cost(a, flow.from, b, flow.to, norm);
        total += flow.mass * cost;
        EXPECT_NEAR(dual_a.data()[flow.from] + dual_b.data()[flow.to], cost, tiny);
    }
    for (const double mass : out) EXPECT_NEAR(mass, 1.0 / n, 1e-14);
    for (const double mass : in) EXPECT_NEAR(mass, 1.0 / m, 1e-14);
    EXPECT_NEAR(plan.cost[0], total, 1e-13 * total);
    const double duals = std::accumulate(dual_a.span().begin(), dual_a.span().end(), 0.0) / n +
                         std::accumulate(dual_b.span().begin(), dual_b.span().end(), 0.0) / m;
    EXPECT_NEAR(plan.cost[0], duals, tiny);
}

TEST(EmdTransport, ProvesItselfOnEveryKindAndSize) {
    for (const Kind kind : all_kinds()) {
        if (kind == Kind::nonfinite) continue;
        for (const auto& [n, m] : {std::pair{1, 1}, {1, 9}, {7, 1}, {5, 3}, {40, 40}, {64, 16}, {61, 47}, {30, 101}}) {
            SCOPED_TRACE(testing::Message() << to_string(kind) << " " << n << " x " << m);
            check_plan(make_cloud(kind, n, 1), make_cloud(kind, m, 2), kNorms[n % 2 == 0 ? 1 : 0]);
        }
    }
    check_plan(make_cloud(Kind::uniform, 300, 3), make_cloud(Kind::coplanar, 211, 4), DistanceNorm::euclidean);
}

/// A cloud whose points are all there k times weighs the same as the cloud itself.
TEST(EmdTransport, RepeatedPointsChangeNothing) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 30, 1), b = make_cloud(Kind::uniform, 20, 2);
    const Array<float, 2> a2 = concatenate({&a, &a}), b3 = concatenate({&b, &b, &b});
    const double cost = ops::emd_transport(a.view(), b.view()).cost[0];
    EXPECT_NEAR(ops::emd_transport(a2.view(), b3.view()).cost[0], cost, 1e-13);
    EXPECT_NEAR(ops::emd_transport(a.view(), b3.view()).cost[0], cost, 1e-13);
    Array<double, 1> exact({1});  // 60 against 60: a plain matching
    ops::EmdExactOutput out;
    out.cost = exact.view();
    ops::emd_exact(a2.view(), b3.view(), out);
    EXPECT_NEAR(exact.data()[0], cost, 1e-13);
    EXPECT_NEAR(ops::emd_transport(b.view(), a.view()).cost[0], cost, 1e-13);
}

TEST(EmdTransport, BatchesAndCloudsWithoutAPlan) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 12, 1);
    Array<float, 2> b = make_cloud(Kind::uniform, 15, 2);
    b.data()[3 * 14] = NAN;
    Array<double, 1> dual_a({12}), dual_b({15});
    const Clouds from(a.view(), Batch::ragged({0, 5, 9, 12, 12})), to(b.view(), Batch::ragged({0, 6, 6, 15, 15}));
    const EmdPlan plan = ops::emd_transport(from, to, DistanceNorm::euclidean, dual_a.view(), dual_b.view());
    ASSERT_EQ(plan.cost.size(), 4u);
    Array<float, 2> a0({5, 3}), b0({6, 3});
    std::memcpy(a0.data(), a.data(), 5 * 12);
    std::memcpy(b0.data(), b.data(), 6 * 12);
    EXPECT_EQ(plan.cost[0], ops::emd_transport(a0.view(), b0.view()).cost[0]);
    for (int cloud = 1; cloud < 4; ++cloud) {
        EXPECT_TRUE(std::isnan(plan.cost[cloud]));
        EXPECT_EQ(plan.offsets[cloud], plan.offsets[cloud + 1]);
    }
    EXPECT_TRUE(std::isnan(dual_a.data()[5]));
    EXPECT_TRUE(std::isnan(dual_b.data()[14]));
}

TEST(EmdTransport, GradientIsThatOfThePlan) {
    const int64_t n = 14, m = 9;
    Array<float, 2> a = make_cloud(Kind::uniform, n, 1), b = make_cloud(Kind::uniform, m, 2);
    std::memcpy(b.data(), a.data(), 12);  // a distance of 0
    Array<float, 1> weight({1});
    weight.data()[0] = -1.5f;
    for (const DistanceNorm norm : kNorms) {
        const EmdPlan plan = ops::emd_transport(a.view(), b.view(), norm);
        Array<float, 2> grad_a({n, 3}), grad_b({m, 3});
        ops::emd_transport_backward(a.view(), b.view(), norm, plan, weight.view(), grad_a.view(), grad_b.view());
        const auto cost = [&](int64_t row_a, int64_t row_b, int axis, double step) {
            double total = 0;
            for (const EmdFlow& flow : plan.flows) {
                double sq = 0;
                for (int k = 0; k < 3; ++k) {
                    const double d = a.data()[3 * flow.from + k] + (flow.from == row_a && k == axis ? step : 0.0) -
                                     (b.data()[3 * flow.to + k] + (flow.to == row_b && k == axis ? step : 0.0));
                    sq += d * d;
                }
                total += flow.mass * (norm == DistanceNorm::squared ? sq : std::sqrt(sq));
            }
            return -1.5 * total;
        };
        const double h = 1e-6;
        for (int axis = 0; axis < 3; ++axis) {
            for (int64_t i = 0; i < n; ++i)
                EXPECT_NEAR(grad_a.data()[3 * i + axis], (cost(i, -1, axis, h) - cost(i, -1, axis, -h)) / (2 * h),
                            1e-6);
            for (int64_t j = 0; j < m; ++j)
                EXPECT_NEAR(grad_b.data()[3 * j + axis], (cost(-1, j, axis, h) - cost(-1, j, axis, -h)) / (2 * h),
                            1e-6);
        }
    }
}

class EmdTransportAuction : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(EmdTransportAuction);
class EmdTransportAuctionOfTwoDevices : public EmdTransportAuction {};
STIPPLE_ON_EVERY_GPU(EmdTransportAuctionOfTwoDevices);

/// The exact cost lies between bound and cost, which are as near as was asked; the plan is a plan and costs what it
/// says.
TEST_P(EmdTransportAuction, IsWithinItsGapOfTheExactPlan) {
    for (const Kind kind : {Kind::uniform, Kind::clustered, Kind::coplanar, Kind::duplicated, Kind::lattice}) {
        for (const auto& [n, m] : {std::pair{1, 7}, {5, 3}, {40, 40}, {64, 16}, {20, 30}, {100, 250}}) {
            SCOPED_TRACE(testing::Message() << to_string(kind) << " " << n << " x " << m);
            const Array<float, 2> a = make_cloud(kind, n, 1), b = make_cloud(kind, m, 2);
            const Array<float, 2> a_there = upload(a), b_there = upload(b);
            const EmdPlan plan = ops::emd_transport_auction(a_there.view(), b_there.view(), {.relative = 0.02f});
            const double exact = ops::emd_transport(a.view(), b.view()).cost[0];
            EXPECT_LE(plan.lower_bound[0], exact * (1 + 1e-6));
            EXPECT_GE(plan.cost[0], exact * (1 - 1e-6));
            EXPECT_LE(plan.cost[0], exact * 1.02 + 1e-3 * (kind == Kind::clustered));  // 2^-19 of a box of 400
            std::vector<double> out(n, 0.0), in(m, 0.0);
            double total = 0;
            for (const EmdFlow& flow : plan.flows) {
                out[flow.from] += flow.mass, in[flow.to] += flow.mass;
                total += flow.mass * pair_cost(a, flow.from, b, flow.to, DistanceNorm::euclidean);
            }
            for (const double mass : out) EXPECT_NEAR(mass, 1.0 / n, 1e-12);
            for (const double mass : in) EXPECT_NEAR(mass, 1.0 / m, 1e-12);
            EXPECT_NEAR(plan.cost[0], total, 2e-6 * total + 1e-7);
        }
    }
}

TEST_P(EmdTransportAuction, AnEmptyCloudOfABatchMovesNothing) {
    const Array<float, 2> a = upload(make_cloud(Kind::uniform, 30, 1)), b = upload(make_cloud(Kind::uniform, 45, 2));
    const EmdPlan plan = ops::emd_transport_auction(Clouds(a.view(), Batch::ragged({0, 10, 10, 30})),
                                                    Clouds(b.view(), Batch::ragged({0, 15, 20, 45})));
    EXPECT_LT(plan.offsets[0], plan.offsets[1]);
    EXPECT_EQ(plan.offsets[1], plan.offsets[2]);
    EXPECT_LT(plan.offsets[2], plan.offsets[3]);
    EXPECT_TRUE(std::isnan(plan.cost[1]));
}

TEST_P(EmdTransportAuctionOfTwoDevices, PlansAndGradientsOfABatchAreTheCpus) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 30, 1), b = make_cloud(Kind::uniform, 45, 2);
    const Batch batch_a = Batch::ragged({0, 10, 10, 30}), batch_b = Batch::ragged({0, 15, 20, 45});
    const EmdPlan here = ops::emd_transport_auction(Clouds(a.view(), batch_a), Clouds(b.view(), batch_b));
    const Array<float, 2> a_there = upload(a), b_there = upload(b);
    const Clouds from(a_there.view(), batch_a), to(b_there.view(), batch_b);
    const EmdPlan there = ops::emd_transport_auction(from, to);
    ASSERT_EQ(here.offsets, there.offsets);
    for (size_t k = 0; k < here.flows.size(); ++k) {
        EXPECT_EQ(here.flows[k].from, there.flows[k].from);
        EXPECT_EQ(here.flows[k].to, there.flows[k].to);
        EXPECT_EQ(here.flows[k].mass, there.flows[k].mass);
    }
    Array<float, 1> ones({3});
    for (float& one : ones.span()) one = 1;
    const Array<float, 1> ones_there = ones.to(device());
    Array<float, 2> grad_here({30, 3}), grad_there({30, 3}, device());
    ops::emd_transport_backward(Clouds(a.view(), batch_a), Clouds(b.view(), batch_b), DistanceNorm::euclidean, here,
                                std::as_const(ones).view(), grad_here.view(), {});
    ops::emd_transport_backward(from, to, DistanceNorm::euclidean, there, ones_there.view(), grad_there.view(), {});
    const Array<float, 2> back = download(grad_there);
    EXPECT_EQ(0, std::memcmp(grad_here.data(), back.data(), 90 * sizeof(float)));
}

TEST(EmdTransport, AuctionRefusesSizesWithoutACommonMeasure) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 2047, 1), b = make_cloud(Kind::uniform, 2048, 2);
    EXPECT_EQ(bad_argument_of([&] { ops::emd_transport_auction(a.view(), b.view()); }),
              "emd_transport_auction: 2047 and 2048 points have 4192256 in common; the most is 1048576");
}

TEST(EmdTransport, BadInput) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 10), b = make_cloud(Kind::uniform, 9);
    Array<double, 1> duals({9});
    bad_argument_of([&] { ops::emd_transport(Clouds(a.view(), Batch::dense(2, 5)), b.view()); });
    bad_argument_of([&] { ops::emd_transport(a.view(), b.view(), DistanceNorm::euclidean, duals.view()); });
    const View<const float, 2> many(nullptr, {4097, 3}, {0, 1});
    EXPECT_EQ(bad_argument_of([&] { ops::emd_transport(a.view(), many); }),
              "emd_transport: a cloud of 4097 points; the most is 4096");
    const View<const float, 2> elsewhere(nullptr, {10, 3}, Device{DeviceType::cuda, 0});
    bad_argument_of([&] { ops::emd_transport(a.view(), elsewhere); });
    bad_argument_of([&] { ops::emd_transport(elsewhere, elsewhere); });
    EmdPlan plan = ops::emd_transport(a.view(), b.view());
    Array<float, 1> one({1}), two({2});
    one.data()[0] = 1.0f;
    Array<float, 2> grad({10, 3});
    bad_argument_of([&] {
        ops::emd_transport_backward(a.view(), b.view(), DistanceNorm::euclidean, plan, two.view(), grad.view(), {});
    });
    bad_argument_of([&] {
        ops::emd_transport_backward(a.view(), b.view(), DistanceNorm::euclidean, plan, one.view(), {}, grad.view());
    });
    plan.flows[0].to = 9;
    bad_argument_of([&] {
        ops::emd_transport_backward(a.view(), b.view(), DistanceNorm::euclidean, plan, one.view(), grad.view(), {});
    });
    plan.offsets.pop_back();
    bad_argument_of([&] {
        ops::emd_transport_backward(a.view(), b.view(), DistanceNorm::euclidean, plan, one.view(), grad.view(), {});
    });
}

TEST(EmdTransport, AllocationFailuresAndFlatMemory) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 12, 1), b = make_cloud(Kind::uniform, 8, 2);
    for_each_allocation_failure([&] { ops::emd_transport(a.view(), b.view()); });
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) ops::emd_transport(a.view(), b.view());
    EXPECT_EQ(live_allocations(), before);
}

/// A thread that meets the op for the first time in the middle of a program keeps no memory of its own.
TEST(EmdTransport, ThreadsKeepNothing) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 12, 1), b = make_cloud(Kind::uniform, 8, 2);
    int64_t kept = -1;
    std::thread([&] {
        const int64_t before = live_allocations();
        ops::emd_transport(a.view(), b.view());
        kept = live_allocations() - before;
    }).join();
    EXPECT_EQ(kept, 0);
}

}  // namespace
}  // namespace stipple::test
