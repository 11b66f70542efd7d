#include "stipple/ops/sinkhorn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stipple/core/parallel.h"
#include "tests/ops/guarded.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using namespace stipple::ops;

/// A cloud with its masses, in double.
struct Measure {
    std::vector<double> points, weights;
    std::vector<size_t> place;  // in the cloud it comes from
    size_t size() const { return weights.size(); }
};

Measure measure_of(const float* points, int64_t n, const float* weights = nullptr) {
    Measure measure;
    double total = 0;
    for (int64_t i = 0; i < n; ++i) {
        const float* p = points + 3 * i;
        const double weight = weights ? weights[i] : 1.0;
        if (!std::isfinite(p[0] + p[1] + p[2]) || !(weight > 0) || !std::isfinite(weight)) continue;
        measure.points.insert(measure.points.end(), {p[0], p[1], p[2]});
        measure.weights.push_back(weight);
        measure.place.push_back(static_cast<size_t>(i));
        total += weight;
    }
    for (double& weight : measure.weights) weight /= total;
    return measure;
}

/// Sinkhorn with the whole matrix in double.
struct Naive {
    Measure a, b;
    std::vector<double> cost, f, g;  // cost [n, m]
    double epsilon = 0;

    Naive(Measure of_a, Measure of_b, DistanceNorm norm) : a(std::move(of_a)), b(std::move(of_b)) {
        f.assign(a.size(), 0.0);
        g.assign(b.size(), 0.0);
        for (size_t i = 0; i < a.size(); ++i) {
            for (size_t j = 0; j < b.size(); ++j) {
                double sq = 0;
                for (int axis = 0; axis < 3; ++axis) {
                    const double d = a.points[3 * i + axis] - b.points[3 * j + axis];
                    sq += d * d;
                }
                cost.push_back(norm == DistanceNorm::squared ? sq : std::sqrt(sq));
            }
        }
    }

    double c(size_t i, size_t j) const { return cost[i * b.size() + j]; }

    void iterate(double eps) {
        epsilon = eps;
        for (size_t i = 0; i < a.size(); ++i)
            f[i] = -eps * log_sum(b.size(), [&](size_t j) { return std::log(b.weights[j]) + (g[j] - c(i, j)) / eps; });
        for (size_t j = 0; j < b.size(); ++j)
            g[j] = -eps * log_sum(a.size(), [&](size_t i) { return std::log(a.weights[i]) + (f[i] - c(i, j)) / eps; });
    }

    template <class Term>
    static double log_sum(size_t n, const Term& term) {
        double top = -1e300, sum = 0;
        for (size_t k = 0; k < n; ++k) top = std::max(top, term(k));
        for (size_t k = 0; k < n; ++k) sum += std::exp(term(k) - top);
        return top + std::log(sum);
    }

    double plan(size_t i, size_t j) const {
        return a.weights[i] * b.weights[j] * std::exp((f[i] + g[j] - c(i, j)) / epsilon);
    }

    double transport() const {
        double sum = 0;
        for (size_t i = 0; i < a.size(); ++i)
            for (size_t j = 0; j < b.size(); ++j) sum += plan(i, j) * c(i, j);
        return sum;
    }

    double row_error() const {
        double error = 0;
        for (size_t i = 0; i < a.size(); ++i) {
            double row = 0;
            for (size_t j = 0; j < b.size(); ++j) row += plan(i, j);
            error += std::abs(row - a.weights[i]);
        }
        return error;
    }

    double column_error() const {
        double error = 0;
        for (size_t j = 0; j < b.size(); ++j) {
            double column = 0;
            for (size_t i = 0; i < a.size(); ++i) column += plan(i, j);
            error += std::abs(column - b.weights[j]);
        }
        return error;
    }

    double dual() const {
        double sum = 0;
        for (size_t i = 0; i < a.size(); ++i) sum += a.weights[i] * f[i];
        for (size_t j = 0; j < b.size(); ++j) sum += b.weights[j] * g[j];
        return sum;
    }
};

struct HostResult {
    std::vector<float> cost, dual, error;
    std::vector<int32_t> iterations, converged;
    std::vector<float> f, g;
};

struct Problem {
    Array<float, 2> a, b;
    Batch batch_a, batch_b;
    std::vector<float> weights_a = {}, weights_b = {};
};

Problem single_problem(Array<float, 2> a, Array<float, 2> b) {
    const Batch batch_a = Batch::single(a.size(0)), batch_b = Batch::single(b.size(0));
    return {std::move(a), std::move(b), batch_a, batch_b};
}

HostResult run(const Problem& problem, const SinkhornOptions& options, Device device) {
    const Array<float, 2> a = problem.a.to(device), b = problem.b.to(device);
    const auto weights_a = array_of(problem.weights_a, device), weights_b = array_of(problem.weights_b, device);
    const int64_t clouds = problem.batch_a.clouds();
    Guarded<float> cost(clouds, device), dual(clouds, device), error(clouds, device), f(a.size(0), device),
        g(b.size(0), device);
    Guarded<int32_t> iterations(clouds, device), converged(clouds, device);
    sinkhorn(Clouds(a.view(), problem.batch_a), Clouds(b.view(), problem.batch_b), weights_a.view(), weights_b.view(),
             options,
             {cost.view(), dual.view(), error.view(), iterations.view(), converged.view(), f.view(), g.view()});
    return {cost.values(),      dual.values(), error.values(), iterations.values(),
            converged.values(), f.values(),    g.values()};
}

struct SinkhornGradients {
    std::vector<float> a, b;
};

SinkhornGradients run_backward(const Problem& problem, const SinkhornOptions& options, const HostResult& forward,
                               const std::vector<float>& dL_ddual, Device device) {
    const Array<float, 2> a = problem.a.to(device), b = problem.b.to(device);
    const auto weights_a = array_of(problem.weights_a, device), weights_b = array_of(problem.weights_b, device);
    const auto f = array_of(forward.f, device), g = array_of(forward.g, device), dL = array_of(dL_ddual, device);
    Guarded<float> gradient_a(3 * a.size(0), device), gradient_b(3 * b.size(0), device);
    sinkhorn_backward(Clouds(a.view(), problem.batch_a), Clouds(b.view(), problem.batch_b), weights_a.view(),
                      weights_b.view(), options, f.view(), g.view(), dL.view(), gradient_a.rows(3), gradient_b.rows(3));
    return {gradient_a.values(), gradient_b.values()};
}

/// Largest cost of the pair: what absolute errors are measured against.
double largest_cost(const Naive& naive) {
    return naive.cost.empty() ? 0.0 : *std::max_element(naive.cost.begin(), naive.cost.end());
}

/// The result of one cloud against the matrix after the same iterations. Costs are rounded to float and divided by
/// epsilon in the exponent: an error of a few 1e-7 * cost / epsilon in every entry of the plan. CUDA keeps a potential
/// and the logarithm of its mass in one float: each of the (up to 24) updates rounds by half an ulp of log2(points).
void expect_result(const HostResult& found, size_t cloud, int64_t begin_a, int64_t begin_b, const Naive& naive) {
    const double largest = largest_cost(naive), relative = 2e-6 + 1e-6 * largest / naive.epsilon;
    const double points = static_cast<double>(std::max(naive.a.size(), naive.b.size()));
    const double rounding = 3e-6 * (largest + naive.epsilon) + 24 * 0x1p-24 * std::log2(points + 1) * naive.epsilon;
    EXPECT_NEAR(found.cost[cloud], naive.transport(), relative * naive.transport() + 1e-6 * naive.epsilon);
    EXPECT_NEAR(found.dual[cloud], naive.dual(), 3e-6 * (largest + naive.epsilon));
    EXPECT_NEAR(found.error[cloud], naive.row_error(), relative);
    for (size_t i = 0; i < naive.a.size(); ++i)
        ASSERT_NEAR(found.f[begin_a + naive.a.place[i]], naive.f[i], rounding) << i;
    for (size_t j = 0; j < naive.b.size(); ++j)
        ASSERT_NEAR(found.g[begin_b + naive.b.place[j]], naive.g[j], rounding) << j;
}

class Sinkhorn : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Sinkhorn);
class SinkhornOfTwoDevices : public Sinkhorn {};
STIPPLE_ON_EVERY_GPU(SinkhornOfTwoDevices);

TEST_P(Sinkhorn, FollowsTheMatrixInDoubleForEveryKindAndSize) {
    for (const Kind kind : all_kinds()) {
        for (const auto& [n, m] : {std::pair{1, 1}, {1, 5}, {2, 1}, {65, 33}, {130, 257}}) {
            for (const DistanceNorm norm : kNorms) {
                SCOPED_TRACE(fmt::format("{} {} {} norm {}", to_string(kind), n, m, static_cast<int>(norm)));
                const Problem problem = single_problem(make_cloud(kind, n, 1), make_cloud(kind, m, 2));
                Naive naive(measure_of(problem.a.data(), n), measure_of(problem.b.data(), m), norm);
                SinkhornOptions options;
                options.norm = norm;
                const double largest = largest_cost(naive);
                options.epsilon = largest > 0 ? std::max(1e-30f, static_cast<float>(0.02 * largest)) : 0.02f;
                options.max_iterations = 12;
                options.tolerance = 0;
                const HostResult found = run(problem, options, device());
                for (int i = 0; i < options.max_iterations; ++i) naive.iterate(options.epsilon);
                expect_result(found, 0, 0, 0, naive);
                EXPECT_EQ(found.iterations[0], 12);
            }
        }
    }
}

TEST_P(Sinkhorn, SmallEpsilonLeavesOutOnlyWhatDoesNotMatter) {
    // Most blocks of pairs are left out here; the first iterations meet potentials that are no guide at all.
    for (const DistanceNorm norm : kNorms) {
        const int64_t n = 450, m = 520;
        const Problem problem = single_problem(make_cloud(Kind::uniform, n, 1), make_cloud(Kind::uniform, m, 2));
        for (const int iterations : {1, 6}) {
            SinkhornOptions options;
            options.norm = norm;
            options.epsilon = 0.001f;
            options.max_iterations = iterations;
            options.tolerance = 0;
            Naive naive(measure_of(problem.a.data(), n), measure_of(problem.b.data(), m), norm);
            for (int i = 0; i < iterations; ++i) naive.iterate(options.epsilon);
            expect_result(run(problem, options, device()), 0, 0, 0, naive);
        }
    }
}

TEST_P(Sinkhorn, WeightsAreScaledAndPointsWithoutMassLeftOut) {
    Array<float, 2> a = make_cloud(Kind::nonfinite, 60, 1), b = make_cloud(Kind::uniform, 50, 2);
    Problem problem = single_problem(std::move(a), std::move(b));
    for (int i = 0; i < 60; ++i) problem.weights_a.push_back(static_cast<float>(1 + i % 5));
    for (int j = 0; j < 50; ++j) problem.weights_b.push_back(static_cast<float>(j % 3) * 1e-3f);  // every third is 0
    problem.weights_b[1] = kNan;
    problem.weights_b[4] = kInfinity;
    problem.weights_b[7] = -1;
    SinkhornOptions options;
    options.epsilon = 0.05f;
    options.max_iterations = 20;
    options.tolerance = 0;
    const HostResult found = run(problem, options, device());
    Naive naive(measure_of(problem.a.data(), 60, problem.weights_a.data()),
                measure_of(problem.b.data(), 50, problem.weights_b.data()), options.norm);
    for (int i = 0; i < 20; ++i) naive.iterate(options.epsilon);
    expect_result(found, 0, 0, 0, naive);
    EXPECT_EQ(naive.a.size(), 51u);
    EXPECT_EQ(naive.b.size(), 30u);
    const SinkhornGradients gradients = run_backward(problem, options, found, {1.0f}, device());
    for (const int j : {0, 1, 4, 7}) {
        EXPECT_EQ(found.g[j], 0.0f);
        EXPECT_EQ(gradients.b[3 * j], 0.0f);
    }
    EXPECT_EQ(found.f[3], 0.0f);
    EXPECT_EQ(gradients.a[9], 0.0f);
    for (const float value : gradients.a) EXPECT_TRUE(std::isfinite(value));
    for (const float value : gradients.b) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(Sinkhorn, StopsAtTheToleranceAndSaysWhereItStands) {
    const Problem problem = single_problem(make_cloud(Kind::uniform, 150, 1), make_cloud(Kind::uniform, 120, 2));
    SinkhornOptions options;
    options.epsilon = 0.05f;
    options.tolerance = 1e-3f;
    options.check_every = 5;
    const HostResult found = run(problem, options, device());
    ASSERT_EQ(found.converged[0], 1);
    EXPECT_LE(found.error[0], 1e-3f);
    EXPECT_EQ(found.iterations[0] % 5, 0);
    EXPECT_LT(found.iterations[0], 1000);
    // The first look that was good enough, and the potentials of that moment.
    Naive naive(measure_of(problem.a.data(), 150), measure_of(problem.b.data(), 120), options.norm);
    int iterations = 0;
    while (iterations < 1000) {
        for (int i = 0; i < 5; ++i) naive.iterate(options.epsilon);
        iterations += 5;
        if (naive.row_error() <= 1e-3) break;
    }
    EXPECT_EQ(found.iterations[0], iterations);
    expect_result(found, 0, 0, 0, naive);
    EXPECT_LT(naive.column_error(), 1e-9);

    options.max_iterations = 3;
    const HostResult early = run(problem, options, device());
    EXPECT_EQ(early.converged[0], 0);
    EXPECT_EQ(early.iterations[0], 3);
    EXPECT_GT(early.error[0], 1e-3f);
}

TEST_P(Sinkhorn, FallingEpsilonFollowsItsScheduleAndConvergesSooner) {
    const Problem problem = single_problem(make_cloud(Kind::uniform, 100, 1), make_cloud(Kind::uniform, 100, 2));
    SinkhornOptions options;
    options.epsilon = 0.01f;
    options.epsilon_start = 1.0f;
    options.epsilon_ratio = 0.7f;
    options.max_iterations = 20;
    options.tolerance = 0;
    Naive naive(measure_of(problem.a.data(), 100), measure_of(problem.b.data(), 100), options.norm);
    for (int i = 0; i < 20; ++i) naive.iterate(std::max(0.01, std::pow(double{0.7f}, i)));
    expect_result(run(problem, options, device()), 0, 0, 0, naive);
    EXPECT_EQ(sinkhorn_epsilon(options, 0), 1.0f);
    EXPECT_EQ(sinkhorn_epsilon(options, 19), 0.01f);
    // A look needs two iterations at the final epsilon: 0.7^13 is the first below it.
    options.tolerance = 1.0f;
    options.check_every = 1;
    EXPECT_FALSE(sinkhorn_looks(options, 13));
    EXPECT_TRUE(sinkhorn_looks(options, 14));
    EXPECT_EQ(run(problem, options, device()).iterations[0], 14);
}

TEST_P(Sinkhorn, ApproachesTheBestAssignment) {
    const int n = 7;
    for (const DistanceNorm norm : kNorms) {
        const Problem problem = single_problem(make_cloud(Kind::uniform, n, 4), make_cloud(Kind::uniform, n, 5));
        const Naive costs(measure_of(problem.a.data(), n), measure_of(problem.b.data(), n), norm);
        std::vector<size_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        double best = 1e300;
        do {
            double sum = 0;
            for (size_t i = 0; i < order.size(); ++i) sum += costs.c(i, order[i]) / n;
            best = std::min(best, sum);
        } while (std::next_permutation(order.begin(), order.end()));
        double last = 1e300;
        for (const float epsilon : {0.1f, 0.02f, 0.004f, 0.001f}) {
            SinkhornOptions options;
            options.norm = norm;
            options.epsilon = epsilon;
            options.epsilon_start = 1.0f;
            options.max_iterations = 5000;
            options.tolerance = 2e-3f;
            const HostResult found = run(problem, options, device());
            EXPECT_EQ(found.converged[0], 1) << epsilon;
            // The plan of a larger epsilon costs more; the marginals' error leaves up to its share unpaid.
            EXPECT_GT(found.cost[0], best - 2e-3 * largest_cost(costs));
            EXPECT_LT(found.cost[0], last + 2e-3 * largest_cost(costs));
            last = found.cost[0];
        }
        EXPECT_NEAR(last, best, 5e-3);
    }
}

TEST_P(Sinkhorn, GradientsAgreeWithFiniteDifferences) {
    // The converged dual in double, for every step anew.
    const int n = 9, m = 12;
    for (const DistanceNorm norm : kNorms) {
        Problem problem = single_problem(make_cloud(Kind::uniform, n, 6), make_cloud(Kind::uniform, m, 7));
        for (int i = 0; i < n; ++i) problem.weights_a.push_back(static_cast<float>(1 + i % 3));
        SinkhornOptions options;
        options.norm = norm;
        options.epsilon = 0.1f;
        options.max_iterations = 100;
        options.tolerance = 0;  // as far as float32 goes
        const HostResult forward = run(problem, options, device());
        ASSERT_LT(forward.error[0], 5e-6f);
        const SinkhornGradients found = run_backward(problem, options, forward, {1.5f}, device());
        Measure a = measure_of(problem.a.data(), n, problem.weights_a.data()), b = measure_of(problem.b.data(), m);
        const auto loss = [&] {
            Naive naive(a, b, norm);
            for (int i = 0; i < 100; ++i) naive.iterate(options.epsilon);
            return 1.5 * naive.dual();
        };
        for (Measure* side : {&a, &b}) {
            const std::vector<float>& gradient = side == &a ? found.a : found.b;
            for (size_t i = 0; i < side->points.size(); ++i) {
                const double x = side->points[i], h = 1e-5;
                side->points[i] = x + h;
                const double up = loss();
                side->points[i] = x - h;
                const double down = loss();
                side->points[i] = x;
                ASSERT_NEAR(gradient[i], (up - down) / (2 * h), 3e-6) << i;
            }
        }
    }
}

TEST_P(Sinkhorn, IdenticalCloudsCostLittleAndPullNowhere) {
    const Problem problem = single_problem(make_cloud(Kind::duplicated, 80, 1), make_cloud(Kind::duplicated, 80, 1));
    SinkhornOptions options;
    options.epsilon = 1e-4f;
    options.epsilon_start = 0.5f;
    const HostResult found = run(problem, options, device());
    EXPECT_EQ(found.converged[0], 1);
    EXPECT_LT(found.cost[0], 1e-4f);
    const SinkhornGradients gradients = run_backward(problem, options, found, {1.0f}, device());
    for (const float value : gradients.a) EXPECT_NEAR(value, 0.0f, 1e-3f);
}

TEST_P(Sinkhorn, FarFromTheOriginNothingChanges) {
    Array<float, 2> a = make_cloud(Kind::lattice, 100, 1), b = make_cloud(Kind::lattice, 90, 2);
    SinkhornOptions options;
    options.epsilon = 0.5f;
    options.max_iterations = 30;
    options.tolerance = 0;
    const HostResult here = run(single_problem(a.clone(), b.clone()), options, device());
    for (float& x : a.span()) x += 4096.0f;  // exact for small integers
    for (float& x : b.span()) x += 4096.0f;
    const HostResult there = run(single_problem(std::move(a), std::move(b)), options, device());
    expect_same_bits(here.cost, there.cost);
    expect_same_bits(here.f, there.f);
}

TEST_P(Sinkhorn, BatchesAreTheirCloudsOneByOne) {
    Problem problem = {make_cloud(Kind::nonfinite, 352, 1), make_cloud(Kind::nonfinite, 245, 2),
                       Batch::ragged({0, 40, 40, 47, 347, 352, 352}), Batch::ragged({0, 30, 35, 35, 236, 245, 245})};
    SinkhornOptions options;
    options.epsilon = 0.03f;
    options.check_every = 3;
    options.tolerance = 5e-3f;
    const HostResult found = run(problem, options, device());
    const std::vector<float> dL = {1, 1, 1, 2, 1, 1};
    const SinkhornGradients gradients = run_backward(problem, options, found, dL, device());
    for (int64_t cloud = 0; cloud < 6; ++cloud) {
        SCOPED_TRACE(cloud);
        const int64_t begin_a = problem.batch_a.begin(cloud), n = problem.batch_a.size(cloud);
        const int64_t begin_b = problem.batch_b.begin(cloud), m = problem.batch_b.size(cloud);
        Array<float, 2> a({n, 3}), b({m, 3});
        std::copy_n(problem.a.data() + 3 * begin_a, 3 * n, a.data());
        std::copy_n(problem.b.data() + 3 * begin_b, 3 * m, b.data());
        const Problem alone = single_problem(std::move(a), std::move(b));
        const HostResult one = run(alone, options, device());
        expect_same_bits(one.cost, {found.cost[cloud]});
        expect_same_bits(one.dual, {found.dual[cloud]});
        expect_same_bits(one.error, {found.error[cloud]});
        EXPECT_EQ(one.iterations[0], found.iterations[cloud]);
        EXPECT_EQ(one.converged[0], found.converged[cloud]);
        expect_same_bits(one.f, std::vector<float>(found.f.begin() + begin_a, found.f.begin() + begin_a + n));
        const SinkhornGradients own = run_backward(alone, options, one, {dL[cloud]}, device());
        expect_same_bits(
            own.a, std::vector<float>(gradients.a.begin() + 3 * begin_a, gradients.a.begin() + 3 * (begin_a + n)));
        if (n == 0 || m == 0) {
            EXPECT_TRUE(std::isnan(one.cost[0]));
            EXPECT_TRUE(std::isnan(one.dual[0]));
            EXPECT_TRUE(std::isnan(one.error[0]));
            EXPECT_EQ(one.iterations[0], 0);
        }
    }
    EXPECT_NE(found.iterations[3], found.iterations[4]);  // clouds stop one by one
}

TEST_P(Sinkhorn, ManyRowsGiveTheSameAsFew) {
    // CUDA takes four rows a warp from 16384 rows on.
    const int64_t clouds = 180, n = 93;
    Array<float, 2> a({clouds * n, 3}), b({clouds * 17, 3});
    const Array<float, 2> one_a = make_cloud(Kind::uniform, n, 1), one_b = make_cloud(Kind::uniform, 17, 2);
    for (int64_t cloud = 0; cloud < clouds; ++cloud) {
        std::copy_n(one_a.data(), 3 * n, a.data() + cloud * 3 * n);
        std::copy_n(one_b.data(), 3 * 17, b.data() + cloud * 3 * 17);
    }
    SinkhornOptions options;
    options.epsilon = 0.05f;
    const HostResult all =
        run({std::move(a), std::move(b), Batch::dense(clouds, n), Batch::dense(clouds, 17)}, options, device());
    const HostResult one = run(single_problem(one_a.clone(), one_b.clone()), options, device());
    expect_same_bits(all.cost, std::vector<float>(clouds, one.cost[0]));
    EXPECT_EQ(all.iterations, std::vector<int32_t>(clouds, one.iterations[0]));
}

TEST_P(SinkhornOfTwoDevices, DevicesAgree) {
    const Problem problem = single_problem(make_cloud(Kind::uniform, 700, 1), make_cloud(Kind::clustered, 600, 2));
    SinkhornOptions options;
    options.epsilon = 2.0f;
    options.max_iterations = 40;
    options.tolerance = 0;
    const HostResult cpu = run(problem, options, Device{}), here = run(problem, options, device());
    EXPECT_NEAR(here.cost[0], cpu.cost[0], 1e-4f * cpu.cost[0]);
    EXPECT_NEAR(here.dual[0], cpu.dual[0], 1e-4f * cpu.cost[0]);
    EXPECT_NEAR(here.error[0], cpu.error[0], 1e-3f);
}

TEST(SinkhornOnCpu, ThreadsDoNotChangeABit) {
    for (const int64_t clouds : {1, 4}) {
        const Problem problem = {make_cloud(Kind::uniform, 600, 1), make_cloud(Kind::uniform, 800, 2),
                                 Batch::dense(clouds, 600 / clouds), Batch::dense(clouds, 800 / clouds)};
        SinkhornOptions options;
        options.epsilon = 0.02f;
        options.tolerance = 0.02f;
        const std::vector<float> dL(clouds, 1.0f);
        const int before = threads();
        set_threads(1);
        const HostResult one = run(problem, options, Device{});
        const SinkhornGradients gradient_one = run_backward(problem, options, one, dL, Device{});
        set_threads(3);
        const HostResult three = run(problem, options, Device{});
        const SinkhornGradients gradient_three = run_backward(problem, options, three, dL, Device{});
        set_threads(before);
        expect_same_bits(one.cost, three.cost);
        expect_same_bits(one.f, three.f);
        expect_same_bits(one.g, three.g);
        expect_same_bits(gradient_one.a, gradient_three.a);
        expect_same_bits(gradient_one.b, gradient_three.b);
    }
}

TEST(SinkhornOnCpu, BadArgumentsAreRefusedUntouched) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 4), b = make_cloud(Kind::uniform, 3);
    Array<float, 1> cost({1}), dual({1}), error({1}), f({4}), g({3}), weights({2});
    Array<int32_t, 1> iterations({1}), converged({1});
    const SinkhornResult good = {cost.view(),      dual.view(), error.view(), iterations.view(),
                                 converged.view(), f.view(),    g.view()};
    const auto message = [&](const Clouds& of_b, View<const float, 1> weights_a, const SinkhornOptions& options,
                             const SinkhornResult& result) {
        return bad_argument_of([&] { sinkhorn(a.view(), of_b, weights_a, {}, options, result); });
    };
    const Device gpu{DeviceType::cuda, 0};
    const View<const float, 2> elsewhere(nullptr, {3, 3}, gpu), huge(nullptr, {int64_t{1} << 31, 3}, {0, 1});
    EXPECT_EQ(message(elsewhere, {}, {}, good), "sinkhorn: points on cpu, b on cuda:0");
    EXPECT_EQ(message(huge, {}, {}, good).rfind("sinkhorn: a cloud of 2147483648 points", 0), 0u);
    EXPECT_EQ(message(b.view(), weights.view(), {}, good), "sinkhorn: weights_a must be [4], got [2]");
    EXPECT_EQ(message(Clouds(b.view(), Batch::ragged({0, 1, 3})), {}, {}, good), "sinkhorn: 1 clouds against 2");
    SinkhornResult bad = good;
    bad.g = f.view();
    EXPECT_EQ(message(b.view(), {}, {}, bad), "sinkhorn: g must be [3], got [4]");
    bad = good;
    bad.dual = {nullptr, {1}, gpu};
    EXPECT_EQ(message(b.view(), {}, {}, bad), "sinkhorn: points on cpu, dual on cuda:0");
    const auto refuse = [&](const auto& change, const char* wanted) {
        SinkhornOptions options;
        change(options);
        EXPECT_EQ(message(b.view(), {}, options, good), wanted);
    };
    refuse([](SinkhornOptions& o) { o.epsilon = 0; }, "sinkhorn: epsilon 0 is not in 1e-30..1e37");
    refuse([](SinkhornOptions& o) { o.epsilon = kNan; }, "sinkhorn: epsilon nan is not in 1e-30..1e37");
    refuse([](SinkhornOptions& o) { o.epsilon_start = -1; }, "sinkhorn: epsilon_start -1 is not in 0..1e37");
    refuse([](SinkhornOptions& o) { o.epsilon_ratio = 1; }, "sinkhorn: epsilon_ratio 1 is not in (0, 1)");
    refuse([](SinkhornOptions& o) { o.max_iterations = 0; }, "sinkhorn: max_iterations is 0");
    refuse([](SinkhornOptions& o) { o.tolerance = kInfinity; }, "sinkhorn: tolerance inf");
    refuse([](SinkhornOptions& o) { o.check_every = 0; }, "sinkhorn: check_every is 0");
    Array<float, 2> gradient({3, 3});
    EXPECT_EQ(bad_argument_of([&] {
                  sinkhorn_backward(a.view(), b.view(), {}, {}, {}, f.view(), g.view(), cost.view(), gradient.view(),
                                    {});
              }),
              "sinkhorn_backward: dL_da must be [4, 3], got [3, 3]");
    EXPECT_EQ(bad_argument_of([&] {
                  sinkhorn_backward(a.view(), b.view(), {}, {}, {}, g.view(), g.view(), cost.view(), {},
                                    gradient.view());
              }),
              "sinkhorn_backward: f must be [4], got [3]");
}

TEST(SinkhornOnCpu, FailedAllocationsAreReportedAndManyCallsKeepNothing) {
    const Problem problem = single_problem(make_cloud(Kind::uniform, 30, 1), make_cloud(Kind::uniform, 20, 2));
    SinkhornOptions options;
    options.max_iterations = 2;
    const auto call = [&] {
        const HostResult forward = run(problem, options, Device{});
        run_backward(problem, options, forward, {1.0f}, Device{});
    };
    EXPECT_GE(for_each_allocation_failure(call), can_fail_allocations() ? 3 : 0);
    const int64_t before = live_allocations();
    for (int i = 0; i < 1000; ++i) call();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
