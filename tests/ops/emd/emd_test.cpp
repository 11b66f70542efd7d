#include "stipple/ops/emd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/ops/emd_exact.h"
#include "tests/ops/emd/pair_cost.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::DistanceNorm;
using ops::EmdOptions;

class Emd : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Emd);
class EmdOfTwoDevices : public Emd {};
STIPPLE_ON_EVERY_GPU(EmdOfTwoDevices);

struct EmdResult {
    Array<float, 1> cost, bound;
    Array<int32_t, 1> matching;
};

EmdResult run_emd(const Array<float, 2>& a, const Array<float, 2>& b, const Batch& batch, const EmdOptions& options,
                  Device device) {
    const Array<float, 2> from = a.to(device), to = b.to(device);
    Array<float, 1> cost({batch.clouds()}, device), bound({batch.clouds()}, device);
    Array<int32_t, 1> matching({batch.rows()}, device);
    ops::emd(Clouds(from.view(), batch), Clouds(to.view(), batch), {cost.view(), bound.view(), matching.view()},
             options);
    return {download(cost), download(bound), download(matching)};
}

EmdResult run_emd(const Array<float, 2>& a, const Array<float, 2>& b, const EmdOptions& options, Device device) {
    return run_emd(a, b, Batch::single(a.size(0)), options, device);
}

/// The longer side of the box of both clouds: the unit of the op's limits.
double side(const Array<float, 2>& a, const Array<float, 2>& b) {
    double most = 0;
    for (int axis = 0; axis < 3; ++axis) {
        double low = INFINITY, high = -INFINITY;
        for (const auto* cloud : {&a, &b}) {
            for (int64_t i = 0; i < cloud->size(0); ++i) {
                low = std::min<double>(low, cloud->data()[3 * i + axis]);
                high = std::max<double>(high, cloud->data()[3 * i + axis]);
            }
        }
        most = std::max(most, high - low);
    }
    return most;
}

void expect_bijection(const int32_t* matching, int64_t n) {
    std::vector<char> taken(n, 0);
    for (int64_t i = 0; i < n; ++i) {
        ASSERT_GE(matching[i], 0) << "point " << i;
        ASSERT_LT(matching[i], n) << "point " << i;
        ASSERT_FALSE(taken[matching[i]]++) << "partner " << matching[i] << " twice";
    }
}

double exact_cost(const Array<float, 2>& a, const Array<float, 2>& b, DistanceNorm norm) {
    Array<double, 1> cost({1});
    ops::EmdExactOutput out;
    out.cost = cost.view();
    ops::emd_exact(Clouds(a.view()), Clouds(b.view()), out, norm);
    return cost.data()[0];
}

/// Everything the contract promises about one finite cloud.
void check_cloud(const Array<float, 2>& a, const Array<float, 2>& b, const EmdOptions& options,
                 const EmdResult& result) {
    const int64_t n = a.size(0);
    expect_bijection(result.matching.data(), n);
    if (testing::Test::HasFatalFailure()) return;
    double mean = 0;
    for (int64_t i = 0; i < n; ++i)
        mean += pair_cost(a.data() + 3 * i, b.data() + 3 * result.matching.data()[i], options.norm);
    mean /= static_cast<double>(n);
    const double cost = result.cost.data()[0], bound = result.bound.data()[0], least = exact_cost(a, b, options.norm);
    const double unit = options.norm == DistanceNorm::squared ? side(a, b) * side(a, b) : side(a, b);
    EXPECT_NEAR(cost, mean, 1e-6 * mean + 1e-12 * unit);
    EXPECT_LE(bound, least * (1 + 1e-7));
    EXPECT_GE(cost, least * (1 - 1e-6) - 1e-12 * unit);
    const double allowed = std::max(std::max<double>(options.relative * bound, options.absolute), unit * 0x1p-19);
    // lower_bound is certified: 2^-19 below what the search compared; the scaled side is at least a half.
    EXPECT_LE(cost - bound, allowed * (1 + 1e-6) + 2 * unit * 0x1p-19 * (1 + options.relative));
}

TEST_P(Emd, KeepsItsGapOnEveryKindOfCloud) {
    for (const Kind kind : all_kinds()) {
        if (kind == Kind::nonfinite) continue;
        for (const int64_t n : {1, 2, 3, 17, 64, 301}) {
            for (const DistanceNorm norm : kNorms) {
                SCOPED_TRACE(testing::Message() << to_string(kind) << " n " << n << " norm " << static_cast<int>(norm));
                const Array<float, 2> a = make_cloud(kind, n, 1), b = make_cloud(kind, n, 2);
                const EmdOptions options{norm, 0.01f, 0.0f};
                check_cloud(a, b, options, run_emd(a, b, options, device()));
            }
        }
    }
}

TEST_P(Emd, KeepsItsGapBetweenDifferentShapes) {
    for (const Kind other : {Kind::coplanar, Kind::all_equal, Kind::collinear, Kind::lattice}) {
        SCOPED_TRACE(to_string(other));
        const Array<float, 2> a = make_cloud(Kind::uniform, 315, 3), b = make_cloud(other, 315, 4);
        check_cloud(a, b, {}, run_emd(a, b, {}, device()));
        check_cloud(b, a, {}, run_emd(b, a, {}, device()));
    }
}

/// Two clusters of different sizes: prices far apart, long auctions and long paths.
std::pair<Array<float, 2>, Array<float, 2>> clusters_far_apart(int64_t n) {
    Array<float, 2> a = make_cloud(Kind::uniform, n, 8), b = make_cloud(Kind::uniform, n, 9);
    for (int64_t i = 0; i < n; ++i) {
        if (i % 5 < 3) a.data()[3 * i] += 20.0f;
        if (i % 5 < 2) b.data()[3 * i] += 20.0f;
    }
    return {std::move(a), std::move(b)};
}

TEST_P(Emd, KeepsItsGapBetweenClustersFarApart) {
    const auto [a, b] = clusters_far_apart(700);
    for (const DistanceNorm norm : kNorms) {
        const EmdOptions options{norm, 0.01f, 0.0f};
        check_cloud(a, b, options, run_emd(a, b, options, device()));
    }
}

TEST_P(Emd, GivesTheGapThatIsAskedFor) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 700, 5), b = make_cloud(Kind::uniform, 700, 6);
    for (const float relative : {0.3f, 0.03f, 0.003f, 0.0003f, 0.0f}) {
        SCOPED_TRACE(relative);
        check_cloud(a, b, {DistanceNorm::euclidean, relative, 0.0f},
                    run_emd(a, b, {DistanceNorm::euclidean, relative, 0.0f}, device()));
    }
    for (const float absolute : {0.1f, 0.001f}) {
        SCOPED_TRACE(absolute);
        check_cloud(a, b, {DistanceNorm::euclidean, 0.0f, absolute},
                    run_emd(a, b, {DistanceNorm::euclidean, 0.0f, absolute}, device()));
    }
}

TEST_P(Emd, ACloudAndAPermutationOfItCostNothing) {
    const int64_t n = 400;
    const Array<float, 2> a = make_cloud(Kind::uniform, n, 7);
    Array<float, 2> b({n, 3});
    for (int64_t i = 0; i < n; ++i) std::memcpy(b.data() + 3 * i, a.data() + 3 * ((i * 37) % n), 12);
    const EmdResult result = run_emd(a, b, {}, device());
    EXPECT_EQ(result.cost.data()[0], 0.0f);
    EXPECT_EQ(result.bound.data()[0], 0.0f);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ((result.matching.data()[i] * 37) % n, i);
}

/// The nearest objects cost nothing, so eps is at its finest from the beginning, and a path from one place to the other
/// is longer than the longest that a search records.
TEST_P(Emd, TwoPlacesInDifferentNumbers) {
    for (const int64_t n : {64, 304}) {
        SCOPED_TRACE(n);
        Array<float, 2> a({n, 3}), b({n, 3});
        for (int64_t i = 0; i < n; ++i) {
            const float p[3] = {8 * i < 5 * n ? 0.0f : 1.0f, 0, 0}, q[3] = {8 * i < 3 * n ? 0.0f : 1.0f, 0, 0};
            std::memcpy(a.data() + 3 * i, p, sizeof(p));
            std::memcpy(b.data() + 3 * i, q, sizeof(q));
        }
        const EmdResult result = run_emd(a, b, {}, device());
        check_cloud(a, b, {}, result);
        EXPECT_FLOAT_EQ(result.cost.data()[0], 0.25f);
    }
}

TEST_P(EmdOfTwoDevices, CudaEqualsTheCpuBitForBit) {
    for (const Kind kind : all_kinds()) {
        for (const int64_t n : {33, 513, 2100, 8200}) {  // the last is more than a block's shared memory holds
            if (n > 1000 && kind != Kind::uniform && kind != Kind::coplanar) continue;
            if (n > 8000 && kind != Kind::uniform) continue;
            SCOPED_TRACE(testing::Message() << to_string(kind) << " n " << n);
            const Array<float, 2> a = make_cloud(kind, n, 8), b = make_cloud(kind, n, 9);
            const EmdResult cpu = run_emd(a, b, {}, Device{}), here = run_emd(a, b, {}, device());
            EXPECT_TRUE(std::equal(cpu.matching.data(), cpu.matching.data() + n, here.matching.data()));
            EXPECT_EQ(0, std::memcmp(cpu.cost.data(), here.cost.data(), sizeof(float)));
            EXPECT_EQ(0, std::memcmp(cpu.bound.data(), here.bound.data(), sizeof(float)));
        }
    }
    const auto [a, b] = clusters_far_apart(700);
    for (const DistanceNorm norm : kNorms) {
        const EmdOptions options{norm, 0.01f, 0.0f};
        const EmdResult cpu = run_emd(a, b, options, Device{}), here = run_emd(a, b, options, device());
        EXPECT_TRUE(std::equal(cpu.matching.data(), cpu.matching.data() + 700, here.matching.data()));
        EXPECT_EQ(cpu.bound.data()[0], here.bound.data()[0]);
    }
}

TEST_P(Emd, ABatchIsItsClouds) {
    const std::vector<int64_t> sizes = {130, 0, 1, 77, 0, 300, 2};
    std::vector<Array<float, 2>> as, bs;
    std::vector<const Array<float, 2>*> a_list, b_list;
    std::vector<int64_t> offsets = {0};
    for (size_t i = 0; i < sizes.size(); ++i) {
        as.push_back(make_cloud(i == 3 ? Kind::nonfinite : Kind::uniform, sizes[i], 10 + i));
        bs.push_back(make_cloud(Kind::clustered, sizes[i], 20 + i));
        offsets.push_back(offsets.back() + sizes[i]);
    }
    for (size_t i = 0; i < sizes.size(); ++i) a_list.push_back(&as[i]), b_list.push_back(&bs[i]);
    const EmdResult all = run_emd(concatenate(a_list), concatenate(b_list), Batch::ragged(offsets), {}, device());
    for (size_t i = 0; i < sizes.size(); ++i) {
        SCOPED_TRACE(i);
        const EmdResult one = run_emd(as[i], bs[i], {}, device());
        EXPECT_TRUE(std::equal(one.matching.data(), one.matching.data() + sizes[i], all.matching.data() + offsets[i]));
        if (sizes[i] == 0 || i == 3) {
            EXPECT_TRUE(std::isnan(all.cost.data()[i]));
            EXPECT_TRUE(std::isnan(all.bound.data()[i]));
            for (int64_t k = 0; k < sizes[i]; ++k) EXPECT_EQ(all.matching.data()[offsets[i] + k], -1);
        } else {
            EXPECT_EQ(one.cost.data()[0], all.cost.data()[i]);
            EXPECT_EQ(one.bound.data()[0], all.bound.data()[i]);
        }
    }
}

TEST_P(Emd, ADenseBatchOfManyClouds) {
    const int64_t clouds = 300, n = 20;  // more clouds than a GPU has room for groups at once
    Array<float, 2> a = make_features(clouds * n, 3, 1), b = make_features(clouds * n, 3, 2);
    const EmdResult all = run_emd(a, b, Batch::dense(clouds, n), {}, device());
    for (const int64_t cloud : {int64_t{0}, int64_t{133}, clouds - 1}) {
        Array<float, 2> one_a({n, 3}), one_b({n, 3});
        std::memcpy(one_a.data(), a.data() + cloud * n * 3, n * 12);
        std::memcpy(one_b.data(), b.data() + cloud * n * 3, n * 12);
        const EmdResult one = run_emd(one_a, one_b, {}, device());
        EXPECT_EQ(0, std::memcmp(one.matching.data(), all.matching.data() + cloud * n, n * sizeof(int32_t)));
        EXPECT_EQ(one.cost.data()[0], all.cost.data()[cloud]);
    }
}

TEST_P(Emd, RowsMayLieApartAndNothingElseIsWritten) {
    const int64_t n = 50;
    Array<float, 2> wide_a = make_features(n, 5, 3), wide_b = make_features(n, 4, 4);
    Array<float, 2> a({n, 3}), b({n, 3});
    for (int64_t i = 0; i < n; ++i) {
        std::memcpy(a.data() + 3 * i, wide_a.data() + 5 * i + 1, 12);
        std::memcpy(b.data() + 3 * i, wide_b.data() + 4 * i, 12);
    }
    const EmdResult plain = run_emd(a, b, {}, device());
    wide_a = upload(wide_a), wide_b = upload(wide_b);
    Array<float, 1> values({4});
    Array<int32_t, 1> matching({n + 2});
    for (float& value : values.span()) value = -7.0f;
    for (int32_t& value : matching.span()) value = -7;
    values = upload(values), matching = upload(matching);
    const View<const float, 2> rows_a(wide_a.data() + 1, {n, 3}, {5, 1}, device()),
        rows_b(wide_b.data(), {n, 3}, {4, 1}, device());
    const View<float, 1> cost(values.data() + 1, {1}, device()), bound(values.data() + 2, {1}, device());
    ops::emd(Clouds(rows_a), Clouds(rows_b), {cost, bound, View<int32_t, 1>(matching.data() + 1, {n}, device())});
    values = download(values), matching = download(matching);
    EXPECT_EQ(values.data()[0], -7.0f);
    EXPECT_EQ(values.data()[3], -7.0f);
    EXPECT_EQ(values.data()[1], plain.cost.data()[0]);
    EXPECT_EQ(matching.data()[0], -7);
    EXPECT_EQ(matching.data()[n + 1], -7);
    EXPECT_EQ(0, std::memcmp(matching.data() + 1, plain.matching.data(), n * sizeof(int32_t)));
}

TEST_P(Emd, GradientIsThatOfTheMatchedPairs) {
    const int64_t n = 40;
    for (const DistanceNorm norm : kNorms) {
        Array<float, 2> a = make_cloud(Kind::uniform, 2 * n, 11), b = make_cloud(Kind::uniform, 2 * n, 12);
        std::memcpy(b.data(), a.data() + 3 * 5, 12);  // a distance of 0
        const Batch batch = Batch::dense(2, n);
        const EmdResult result = run_emd(a, b, batch, {norm, 0.01f, 0.0f}, device());
        Array<float, 1> weights({2});
        weights.data()[0] = 1.5f, weights.data()[1] = -2.0f;
        const Array<float, 2> from = upload(a), to = upload(b);
        const Array<int32_t, 1> matching = upload(result.matching);
        const Array<float, 1> grad_cost = upload(weights);
        Array<float, 2> grad_a({2 * n, 3}, device()), grad_b({2 * n, 3}, device());
        ops::emd_backward(Clouds(from.view(), batch), Clouds(to.view(), batch), norm, matching.view(), grad_cost.view(),
                          grad_a.view(), grad_b.view());
        const Array<float, 2> got_a = download(grad_a), got_b = download(grad_b);
        // Finite differences of the cost of this matching, in double.
        const auto cost = [&](int64_t cloud, int64_t row_a, int64_t row_b, int axis, double step_a, double step_b) {
            double total = 0;
            for (int64_t i = cloud * n; i < (cloud + 1) * n; ++i) {
                const int64_t j = cloud * n + result.matching.data()[i];
                double sq = 0;
                for (int k = 0; k < 3; ++k) {
                    const double d = (a.data()[3 * i + k] + (i == row_a && k == axis ? step_a : 0.0)) -
                                     (b.data()[3 * j + k] + (j == row_b && k == axis ? step_b : 0.0));
                    sq += d * d;
                }
                total += norm == DistanceNorm::squared ? sq : std::sqrt(sq);
            }
            return total / n * weights.data()[cloud];
        };
        for (int64_t row = 0; row < 2 * n; ++row) {
            for (int axis = 0; axis < 3; ++axis) {
                const double h = 1e-6;
                const int64_t cloud = row / n;
                EXPECT_NEAR(got_a.data()[3 * row + axis],
                            (cost(cloud, row, -1, axis, h, 0) - cost(cloud, row, -1, axis, -h, 0)) / (2 * h), 1e-6);
                EXPECT_NEAR(got_b.data()[3 * row + axis],
                            (cost(cloud, -1, row, axis, 0, h) - cost(cloud, -1, row, axis, 0, -h)) / (2 * h), 1e-6);
            }
        }
        Array<float, 2> only_b({2 * n, 3}, device());
        ops::emd_backward(Clouds(from.view(), batch), Clouds(to.view(), batch), norm, matching.view(), grad_cost.view(),
                          {}, only_b.view());
        EXPECT_EQ(0, std::memcmp(download(only_b).data(), got_b.data(), 2 * n * 12));
    }
}

TEST_P(Emd, GradientOfUnmatchedPointsIsZero) {
    const int64_t n = 9;
    const Array<float, 2> a = upload(make_cloud(Kind::nonfinite, n, 1)), b = upload(make_cloud(Kind::uniform, n, 2));
    Array<float, 1> cost({1}, device()), bound({1}, device());
    Array<int32_t, 1> matching({n}, device());
    ops::emd(Clouds(a.view()), Clouds(b.view()), {cost.view(), bound.view(), matching.view()});
    Array<float, 1> one({1});
    one.data()[0] = 1.0f;
    one = upload(one);
    Array<float, 2> grad_a({n, 3}, device()), grad_b({n, 3}, device());
    ops::emd_backward(Clouds(a.view()), Clouds(b.view()), DistanceNorm::euclidean, matching.view(),
                      std::as_const(one).view(), grad_a.view(), grad_b.view());
    for (const auto& grad : {download(grad_a), download(grad_b)})
        for (const float value : grad.span()) EXPECT_EQ(value, 0.0f);
}

TEST_P(Emd, EmptyBatches) {
    const Array<float, 2> none({0, 3}, device());
    Array<float, 1> cost({0}, device()), bound({0}, device());
    Array<int32_t, 1> matching({0}, device());
    ops::emd(Clouds(none.view(), Batch::dense(0, 5)), Clouds(none.view(), Batch::dense(0, 5)),
             {cost.view(), bound.view(), matching.view()});
    Array<float, 1> cost2({2}, device()), bound2({2}, device());
    ops::emd(Clouds(none.view(), Batch::dense(2, 0)), Clouds(none.view(), Batch::dense(2, 0)),
             {cost2.view(), bound2.view(), matching.view()});
    const Array<float, 1> costs = download(cost2);
    for (const float value : costs.span()) EXPECT_TRUE(std::isnan(value));
}

TEST(EmdCpu, ThreadsDoNotShow) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 900, 13), b = make_cloud(Kind::coplanar, 900, 14);
    expect_same_on_threads([&] {
        EmdResult result = run_emd(a, b, {}, Device{});
        std::vector<Array<float, 2>> all;
        all.emplace_back(Array<float, 2>({900, 1}));
        std::memcpy(all.back().data(), result.matching.data(), 900 * 4);
        return all;
    });
}

TEST(EmdCpu, BadInput) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 10), b = make_cloud(Kind::uniform, 9);
    Array<float, 1> one({1}), two({2});
    Array<int32_t, 1> matching({10}), short_matching({9});
    const Clouds from(a.view()), other(b.view());
    const auto call = [&](const Clouds& p, const Clouds& q, View<float, 1> cost, View<float, 1> bound,
                          View<int32_t, 1> match, EmdOptions options) {
        return bad_argument_of([&] { ops::emd(p, q, {cost, bound, match}, options); });
    };
    EXPECT_EQ(call(from, other, one.view(), one.view(), matching.view(), {}),
              "emd: 10 points against 9; emd_transport takes both");
    EXPECT_NE(call(from, from, two.view(), one.view(), matching.view(), {}).find("cost"), std::string::npos);
    EXPECT_NE(call(from, from, one.view(), two.view(), matching.view(), {}).find("lower_bound"), std::string::npos);
    EXPECT_NE(call(from, from, one.view(), one.view(), short_matching.view(), {}).find("matching"), std::string::npos);
    for (const float bad : {-1.0f, std::nanf(""), INFINITY}) {
        call(from, from, one.view(), one.view(), matching.view(), {DistanceNorm::euclidean, bad, 0.0f});
        call(from, from, one.view(), one.view(), matching.view(), {DistanceNorm::euclidean, 0.0f, bad});
    }
    const Array<float, 2> flat = make_features(10, 2);
    call(Clouds(flat.view()), from, one.view(), one.view(), matching.view(), {});
    call(from, Clouds(a.view(), Batch::dense(2, 5)), one.view(), one.view(), matching.view(), {});
    const Device cuda{DeviceType::cuda, 0};
    const View<const float, 2> elsewhere(nullptr, {10, 3}, cuda);
    EXPECT_NE(call(from, Clouds(elsewhere), one.view(), one.view(), matching.view(), {}).find("cuda:0"),
              std::string::npos);
    call(from, from, View<float, 1>(nullptr, {1}, cuda), one.view(), matching.view(), {});
    const int64_t huge = int64_t{1} << 32;
    const View<const float, 2> many(nullptr, {huge, 3}, {0, 1});
    call(Clouds(many), Clouds(many), one.view(), one.view(), matching.view(), {});
    const View<const float, 2> more(nullptr, {(1 << 20) + 1, 3}, {0, 1});
    EXPECT_NE(call(Clouds(more), Clouds(more), one.view(), one.view(), matching.view(), {}).find("the most is 1048576"),
              std::string::npos);
    const std::string ragged = bad_argument_of([&] {
        ops::emd(Clouds(a.view(), Batch::ragged({0, 4, 10})), Clouds(a.view(), Batch::ragged({0, 5, 10})),
                 {two.view(), two.view(), matching.view()});
    });
    EXPECT_EQ(ragged, "emd: 4 points against 5 in cloud 0; emd_transport takes both");
    Array<float, 2> grad({10, 3}), small({9, 3});
    bad_argument_of([&] {
        ops::emd_backward(from, from, DistanceNorm::euclidean, short_matching.view(), one.view(), grad.view(), {});
    });
    bad_argument_of(
        [&] { ops::emd_backward(from, from, DistanceNorm::euclidean, matching.view(), two.view(), grad.view(), {}); });
    bad_argument_of(
        [&] { ops::emd_backward(from, from, DistanceNorm::euclidean, matching.view(), one.view(), small.view(), {}); });
    bad_argument_of(
        [&] { ops::emd_backward(from, from, DistanceNorm::euclidean, matching.view(), one.view(), {}, small.view()); });
    bad_argument_of(
        [&] { ops::emd_backward(from, other, DistanceNorm::euclidean, matching.view(), one.view(), grad.view(), {}); });
}

TEST(EmdCpu, AllocationFailures) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 60, 1), b = make_cloud(Kind::uniform, 60, 2);
    Array<float, 1> cost({1}), bound({1});
    Array<int32_t, 1> matching({60});
    for_each_allocation_failure([&] {
        ops::emd(Clouds(a.view()), Clouds(b.view()), {cost.view(), bound.view(), matching.view()});
    });
}

TEST(EmdCpu, MemoryStaysFlat) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 6, 1), b = make_cloud(Kind::uniform, 6, 2);
    Array<float, 1> cost({1}), bound({1});
    Array<int32_t, 1> matching({6});
    const auto call = [&] {
        ops::emd(Clouds(a.view()), Clouds(b.view()), {cost.view(), bound.view(), matching.view()});
    };
    call();
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) call();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
