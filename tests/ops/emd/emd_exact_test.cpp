#include "stipple/ops/emd_exact.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "stipple/core/parallel.h"
#include "tests/ops/emd/pair_cost.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::DistanceNorm;

double by_permutations(const Array<float, 2>& a, const Array<float, 2>& b, DistanceNorm norm) {
    std::vector<int> order(a.size(0));
    std::iota(order.begin(), order.end(), 0);
    double least = INFINITY;
    do {
        double total = 0;
        for (size_t i = 0; i < order.size(); ++i) total += pair_cost(a, i, b, order[i], norm);
        least = std::min(least, total);
    } while (std::next_permutation(order.begin(), order.end()));
    return least / static_cast<double>(order.size());
}

/// The textbook O(n^3) Hungarian method on the full matrix.
double by_hungarian(const Array<float, 2>& a, const Array<float, 2>& b, DistanceNorm norm) {
    const int n = static_cast<int>(a.size(0));
    std::vector<double> u(n + 1, 0.0), v(n + 1, 0.0);
    std::vector<int> row_of(n + 1, 0), way(n + 1, 0);
    for (int i = 1; i <= n; ++i) {
        row_of[0] = i;
        int column = 0;
        std::vector<double> slack(n + 1, INFINITY);
        std::vector<char> used(n + 1, 0);
        do {
            used[column] = 1;
            const int row = row_of[column];
            double step = INFINITY;
            int next = 0;
            for (int j = 1; j <= n; ++j) {
                if (used[j]) continue;
                const double reduced = pair_cost(a, row - 1, b, j - 1, norm) - u[row] - v[j];
                if (reduced < slack[j]) slack[j] = reduced, way[j] = column;
                if (slack[j] < step) step = slack[j], next = j;
            }
            for (int j = 0; j <= n; ++j) {
                if (used[j])
                    u[row_of[j]] += step, v[j] -= step;
                else
                    slack[j] -= step;
            }
            column = next;
        } while (row_of[column] != 0);
        do {
            const int before = way[column];
            row_of[column] = row_of[before];
            column = before;
        } while (column != 0);
    }
    double total = 0;
    for (int j = 1; j <= n; ++j) total += pair_cost(a, row_of[j] - 1, b, j - 1, norm);
    return total / n;
}

struct Exact {
    Array<double, 1> cost, dual_a, dual_b;
    Array<int32_t, 1> matching;
};

Exact run_exact(const Array<float, 2>& a, const Array<float, 2>& b, const Batch& batch, DistanceNorm norm) {
    Exact result{Array<double, 1>({batch.clouds()}), Array<double, 1>({batch.rows()}), Array<double, 1>({batch.rows()}),
                 Array<int32_t, 1>({batch.rows()})};
    ops::EmdExactOutput out;
    out.cost = result.cost.view(), out.matching = result.matching.view();
    out.dual_a = result.dual_a.view(), out.dual_b = result.dual_b.view();
    ops::emd_exact(Clouds(a.view(), batch), Clouds(b.view(), batch), out, norm);
    return result;
}

/// A bijection whose cost the duals prove least.
void check_proof(const Array<float, 2>& a, const Array<float, 2>& b, DistanceNorm norm, const Exact& result) {
    const int64_t n = a.size(0);
    double largest = 0, total = 0, duals = 0;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) largest = std::max(largest, pair_cost(a, i, b, j, norm));
    const double tiny = 1e-13 * largest;
    std::vector<char> taken(n, 0);
    for (int64_t i = 0; i < n; ++i) {
        const int32_t partner = result.matching.data()[i];
        ASSERT_GE(partner, 0);
        ASSERT_LT(partner, n);
        ASSERT_FALSE(taken[partner]++);
        total += pair_cost(a, i, b, partner, norm);
        duals += result.dual_a.data()[i] + result.dual_b.data()[i];
        for (int64_t j = 0; j < n; ++j) {
            const double slack = pair_cost(a, i, b, j, norm) - result.dual_a.data()[i] - result.dual_b.data()[j];
            ASSERT_GE(slack, -tiny) << i << " " << j;
            if (j == partner) {
                ASSERT_LE(slack, tiny) << i << " " << j;
            }
        }
    }
    EXPECT_NEAR(result.cost.data()[0], total / n, 1e-13 * total / n);
    EXPECT_NEAR(result.cost.data()[0], duals / n, tiny);
}

TEST(EmdExact, IsTheBestOfAllPermutations) {
    for (const Kind kind : all_kinds()) {
        if (kind == Kind::nonfinite) continue;
        for (int64_t n = 1; n <= 7; ++n) {
            for (const DistanceNorm norm : kNorms) {
                SCOPED_TRACE(testing::Message() << to_string(kind) << " n " << n << " norm " << static_cast<int>(norm));
                const Array<float, 2> a = make_cloud(kind, n, 1), b = make_cloud(kind, n, 2);
                const Exact result = run_exact(a, b, Batch::single(n), norm);
                check_proof(a, b, norm, result);
                const double least = by_permutations(a, b, norm);
                EXPECT_NEAR(result.cost.data()[0], least, 1e-13 * least);
            }
        }
    }
}

TEST(EmdExact, EqualsTheHungarianMethod) {
    for (const Kind kind : all_kinds()) {
        if (kind == Kind::nonfinite) continue;
        for (const int64_t n : {16, 61, 150}) {
            SCOPED_TRACE(testing::Message() << to_string(kind) << " n " << n);
            const DistanceNorm norm = n == 61 ? DistanceNorm::squared : DistanceNorm::euclidean;
            const Array<float, 2> a = make_cloud(kind, n, 3), b = make_cloud(kind, n, 4);
            const Exact result = run_exact(a, b, Batch::single(n), norm);
            check_proof(a, b, norm, result);
            const double least = by_hungarian(a, b, norm);
            EXPECT_NEAR(result.cost.data()[0], least, 1e-12 * least);
        }
    }
    const Array<float, 2> a = make_cloud(Kind::uniform, 300, 5), b = make_cloud(Kind::coplanar, 300, 6);
    EXPECT_NEAR(run_exact(a, b, Batch::single(300), DistanceNorm::euclidean).cost.data()[0],
                by_hungarian(a, b, DistanceNorm::euclidean), 1e-13);
}

TEST(EmdExact, ProvesItselfBetweenDifferentShapes) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 800, 7);
    for (const Kind other : {Kind::uniform, Kind::coplanar, Kind::all_equal, Kind::duplicated, Kind::clustered}) {
        SCOPED_TRACE(to_string(other));
        const Array<float, 2> b = make_cloud(other, 800, 8);
        check_proof(a, b, DistanceNorm::euclidean, run_exact(a, b, Batch::single(800), DistanceNorm::euclidean));
        check_proof(b, a, DistanceNorm::squared, run_exact(b, a, Batch::single(800), DistanceNorm::squared));
    }
}

TEST(EmdExact, ABatchIsItsClouds) {
    const std::vector<int64_t> sizes = {40, 0, 1, 25};
    const Array<float, 2> a0 = make_cloud(Kind::uniform, 40, 1), a2 = make_cloud(Kind::uniform, 1, 2),
                          a3 = make_cloud(Kind::nonfinite, 25, 3);
    const Array<float, 2> a = concatenate({&a0, &a2, &a3}), b = make_cloud(Kind::uniform, 66, 4);
    const Exact all = run_exact(a, b, Batch::ragged({0, 40, 40, 41, 66}), DistanceNorm::euclidean);
    Array<float, 2> b0({40, 3});
    std::memcpy(b0.data(), b.data(), 40 * 12);
    const Exact one = run_exact(a0, b0, Batch::single(40), DistanceNorm::euclidean);
    EXPECT_EQ(one.cost.data()[0], all.cost.data()[0]);
    EXPECT_EQ(0, std::memcmp(one.matching.data(), all.matching.data(), 40 * 4));
    EXPECT_TRUE(std::isnan(all.cost.data()[1]));
    EXPECT_EQ(all.matching.data()[40], 0);
    EXPECT_TRUE(std::isnan(all.cost.data()[3]));
    for (int64_t i = 41; i < 66; ++i) {
        EXPECT_EQ(all.matching.data()[i], -1);
        EXPECT_TRUE(std::isnan(all.dual_a.data()[i]));
        EXPECT_TRUE(std::isnan(all.dual_b.data()[i]));
    }
    Array<double, 1> cost({4});  // the other outputs may be left out
    ops::EmdExactOutput out;
    out.cost = cost.view();
    ops::emd_exact(Clouds(a.view(), Batch::ragged({0, 40, 40, 41, 66})),
                   Clouds(b.view(), Batch::ragged({0, 40, 40, 41, 66})), out);
    EXPECT_EQ(cost.data()[0], all.cost.data()[0]);
}

TEST(EmdExact, ThreadsDoNotShow) {
    const Array<float, 2> a = make_cloud(Kind::lattice, 600, 1), b = make_cloud(Kind::uniform, 600, 2);
    expect_same_on_threads([&] {
        const Exact result = run_exact(a, b, Batch::dense(2, 300), DistanceNorm::euclidean);
        std::vector<Array<float, 2>> all;
        all.emplace_back(Array<float, 2>({600, 1}));
        std::memcpy(all.back().data(), result.matching.data(), 600 * 4);
        all.emplace_back(Array<float, 2>({600, 2}));
        std::memcpy(all.back().data(), result.dual_b.data(), 600 * 8);
        return all;
    });
}

TEST(EmdExact, BadInput) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 10), b = make_cloud(Kind::uniform, 9);
    Array<double, 1> one({1}), two({2});
    Array<int32_t, 1> matching({9});
    const auto call = [&](const Clouds& p, const Clouds& q, View<double, 1> cost, View<int32_t, 1> match) {
        ops::EmdExactOutput out;
        out.cost = cost, out.matching = match;
        return bad_argument_of([&] { ops::emd_exact(p, q, out); });
    };
    EXPECT_EQ(call(a.view(), b.view(), one.view(), {}), "emd_exact: 10 points against 9; emd_transport takes both");
    EXPECT_NE(call(a.view(), a.view(), two.view(), {}).find("cost"), std::string::npos);
    EXPECT_NE(call(a.view(), a.view(), one.view(), matching.view()).find("matching"), std::string::npos);
    EXPECT_EQ(
        call(Clouds(a.view(), Batch::ragged({0, 4, 10})), Clouds(a.view(), Batch::ragged({0, 5, 10})), two.view(), {}),
        "emd_exact: 4 points against 5 in cloud 0; emd_transport takes both");
    const View<const float, 2> many(nullptr, {4097, 3}, {0, 1}), huge(nullptr, {int64_t{1} << 33, 3}, {0, 1});
    EXPECT_EQ(call(many, many, one.view(), {}), "emd_exact: a cloud of 4097 points; the most is 4096");
    call(huge, huge, one.view(), {});
    const View<const float, 2> elsewhere(nullptr, {10, 3}, Device{DeviceType::cuda, 0});
    call(a.view(), elsewhere, one.view(), {});
    EXPECT_EQ(call(elsewhere, elsewhere, one.view(), {}), "emd_exact: points on cuda:0; it runs on the CPU");
}

TEST(EmdExact, AllocationFailures) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 30, 1), b = make_cloud(Kind::uniform, 30, 2);
    Array<double, 1> cost({1});
    ops::EmdExactOutput out;
    out.cost = cost.view();
    for_each_allocation_failure([&] { ops::emd_exact(a.view(), b.view(), out); });
}

TEST(EmdExact, MemoryStaysFlat) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 6, 1), b = make_cloud(Kind::uniform, 6, 2);
    Array<double, 1> cost({1});
    ops::EmdExactOutput out;
    out.cost = cost.view();
    ops::emd_exact(a.view(), b.view(), out);
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) ops::emd_exact(a.view(), b.view(), out);
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
