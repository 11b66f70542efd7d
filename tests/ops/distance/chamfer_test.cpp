#include "stipple/ops/chamfer.h"

#include <cmath>
#include <limits>
#include <random>

#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/ops/common/fixed_sum.h"
#include "tests/ops/guarded.h"
#include "tests/support/allocation.h"
#include "tests/support/not_finite.h"

namespace stipple::test {
namespace {

using namespace stipple::ops;

/// Two batches on the host.
struct Pair {
    Array<float, 2> a, b;
    Batch batch_a, batch_b;
};

Pair single(Array<float, 2> a, Array<float, 2> b) {
    const Batch batch_a = Batch::single(a.size(0)), batch_b = Batch::single(b.size(0));
    return {std::move(a), std::move(b), batch_a, batch_b};
}

/// Clouds of 40, 0, 7, 300, 5, 0 points against clouds of 30, 5, 0, 501, 9, 0.
Pair ragged(Kind kind) {
    return {make_cloud(kind, 352, 1), make_cloud(kind, 545, 2), Batch::ragged({0, 40, 40, 47, 347, 352, 352}),
            Batch::ragged({0, 30, 35, 35, 536, 545, 545})};
}

struct Side {
    std::vector<int32_t> nearest;
    std::vector<float> distances_sq, mean;
    std::vector<int32_t> used;
};

Side naive_side(const Array<float, 2>& from, const Batch& from_batch, const Array<float, 2>& to, const Batch& to_batch,
                DistanceNorm norm) {
    Side side;
    for (int64_t cloud = 0; cloud < from_batch.clouds(); ++cloud) {
        double sum = 0;
        int32_t used = 0;
        for (int64_t i = from_batch.begin(cloud); i < from_batch.end(cloud); ++i) {
            int32_t best = -1;
            float best_sq = std::numeric_limits<float>::infinity();
            for (int64_t j = to_batch.begin(cloud); j < to_batch.end(cloud); ++j) {
                const float sq = distance_sq(from.data() + 3 * i, to.data() + 3 * j);
                if (sq < best_sq) best_sq = sq, best = static_cast<int32_t>(j - to_batch.begin(cloud));
            }
            side.nearest.push_back(best);
            side.distances_sq.push_back(best_sq);
            if (best < 0) continue;
            ++used;
            sum += norm == DistanceNorm::squared ? double{best_sq} : std::sqrt(double{best_sq});
        }
        side.mean.push_back(static_cast<float>(sum / used));
        side.used.push_back(used);
    }
    return side;
}

struct ChamferResult {
    Side a_to_b, b_to_a;
};

ChamferResult run(const Pair& pair, DistanceNorm norm, Device device) {
    const Array<float, 2> a = pair.a.to(device), b = pair.b.to(device);
    const int64_t n = a.size(0), m = b.size(0), clouds = pair.batch_a.clouds();
    Guarded<int32_t> nearest_a(n, device), nearest_b(m, device), used_a(clouds, device), used_b(clouds, device);
    Guarded<float> sq_a(n, device), sq_b(m, device), mean_a(clouds, device), mean_b(clouds, device);
    chamfer(Clouds(a.view(), pair.batch_a), Clouds(b.view(), pair.batch_b), norm,
            {nearest_a.view(), sq_a.view(), mean_a.view(), used_a.view()},
            {nearest_b.view(), sq_b.view(), mean_b.view(), used_b.view()});
    return {{nearest_a.values(), sq_a.values(), mean_a.values(), used_a.values()},
            {nearest_b.values(), sq_b.values(), mean_b.values(), used_b.values()}};
}

void expect_side(const Side& found, const Side& wanted) {
    EXPECT_EQ(found.nearest, wanted.nearest);
    EXPECT_EQ(found.distances_sq, wanted.distances_sq);
    EXPECT_EQ(found.used, wanted.used);
    ASSERT_EQ(found.mean.size(), wanted.mean.size());
    for (size_t cloud = 0; cloud < wanted.mean.size(); ++cloud) {
        if (wanted.used[cloud] == 0)
            EXPECT_TRUE(std::isnan(found.mean[cloud])) << cloud;
        else
            EXPECT_NEAR(found.mean[cloud], wanted.mean[cloud], 2e-7 * wanted.mean[cloud]) << cloud;
    }
}

struct ChamferGradients {
    std::vector<float> a, b;
};

ChamferGradients run_backward(const Pair& pair, DistanceNorm norm, const ChamferResult& forward,
                              const std::vector<float>& dL_a_to_b, const std::vector<float>& dL_b_to_a, Device device) {
    const Array<float, 2> a = pair.a.to(device), b = pair.b.to(device);
    const auto nearest_a = array_of(forward.a_to_b.nearest, device),
               nearest_b = array_of(forward.b_to_a.nearest, device);
    const auto used_a = array_of(forward.a_to_b.used, device), used_b = array_of(forward.b_to_a.used, device);
    const auto dL_a = array_of(dL_a_to_b, device), dL_b = array_of(dL_b_to_a, device);
    Guarded<float> gradient_a(3 * a.size(0), device), gradient_b(3 * b.size(0), device);
    ChamferSideGradient side_a, side_b;
    if (!dL_a_to_b.empty()) side_a = {dL_a.view(), nearest_a.view(), used_a.view()};
    if (!dL_b_to_a.empty()) side_b = {dL_b.view(), nearest_b.view(), used_b.view()};
    chamfer_backward(Clouds(a.view(), pair.batch_a), Clouds(b.view(), pair.batch_b), norm, side_a, side_b,
                     gradient_a.rows(3), gradient_b.rows(3));
    return {gradient_a.values(), gradient_b.values()};
}

/// The gradient term by term in double, and for each number the sum of the magnitudes of its terms.
struct ExactGradients {
    std::vector<double> a, b, scale_a, scale_b;
};

void add_exact(const Array<float, 2>& from, const Batch& from_batch, const Array<float, 2>& to, const Batch& to_batch,
               DistanceNorm norm, const Side& side, const std::vector<float>& dL, std::vector<double>& gradient_from,
               std::vector<double>& scale_from, std::vector<double>& gradient_to, std::vector<double>& scale_to) {
    for (int64_t cloud = 0; cloud < from_batch.clouds() && !dL.empty(); ++cloud) {
        for (int64_t i = from_batch.begin(cloud); i < from_batch.end(cloud); ++i) {
            if (side.nearest[i] < 0) continue;
            const int64_t j = to_batch.begin(cloud) + side.nearest[i];
            double d[3], sq = 0;
            for (int axis = 0; axis < 3; ++axis) {
                d[axis] = double{from.data()[3 * i + axis]} - to.data()[3 * j + axis];
                sq += d[axis] * d[axis];
            }
            const double factor = norm == DistanceNorm::squared ? 2.0 : (sq > 0 ? 1 / std::sqrt(sq) : 0.0);
            for (int axis = 0; axis < 3; ++axis) {
                const double term = factor * d[axis] * dL[cloud] / side.used[cloud];
                gradient_from[3 * i + axis] += term;
                gradient_to[3 * j + axis] -= term;
                scale_from[3 * i + axis] += std::abs(term);
                scale_to[3 * j + axis] += std::abs(term);
            }
        }
    }
}

ExactGradients exact_gradients(const Pair& pair, DistanceNorm norm, const ChamferResult& forward,
                               const std::vector<float>& dL_a_to_b, const std::vector<float>& dL_b_to_a) {
    const size_t n = pair.a.elements(), m = pair.b.elements();
    ExactGradients exact = {std::vector<double>(n), std::vector<double>(m), std::vector<double>(n),
                            std::vector<double>(m)};
    add_exact(pair.a, pair.batch_a, pair.b, pair.batch_b, norm, forward.a_to_b, dL_a_to_b, exact.a, exact.scale_a,
              exact.b, exact.scale_b);
    add_exact(pair.b, pair.batch_b, pair.a, pair.batch_a, norm, forward.b_to_a, dL_b_to_a, exact.b, exact.scale_b,
              exact.a, exact.scale_a);
    return exact;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& wanted, const std::vector<double>& scale) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
        // Three roundings to float: of the coefficient, of the difference, of the result.
        ASSERT_NEAR(found[i], wanted[i], 4e-7 * scale[i] + 1e-44) << i;
}

class Chamfer : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Chamfer);
class ChamferOfTwoDevices : public Chamfer {};
STIPPLE_ON_EVERY_GPU(ChamferOfTwoDevices);

TEST_P(Chamfer, AgreesWithEveryPairComparedForEveryKindAndSize) {
    for (const Kind kind : all_kinds()) {
        for (const auto& [n, m] : {std::pair{1, 1}, {2, 1}, {17, 33}, {1000, 777}}) {
            for (const DistanceNorm norm : kNorms) {
                SCOPED_TRACE(fmt::format("{} {} {} norm {}", to_string(kind), n, m, static_cast<int>(norm)));
                const Pair pair = single(make_cloud(kind, n, 1), make_cloud(kind, m, 2));
                const ChamferResult found = run(pair, norm, device());
                expect_side(found.a_to_b, naive_side(pair.a, pair.batch_a, pair.b, pair.batch_b, norm));
                expect_side(found.b_to_a, naive_side(pair.b, pair.batch_b, pair.a, pair.batch_a, norm));
            }
        }
    }
}

TEST_P(Chamfer, BatchesAreTheirCloudsOneByOne) {
    for (const Kind kind : {Kind::uniform, Kind::nonfinite, Kind::lattice}) {
        for (const DistanceNorm norm : kNorms) {
            SCOPED_TRACE(to_string(kind));
            Pair pair = ragged(kind);
            ChamferResult found = run(pair, norm, device());
            expect_side(found.a_to_b, naive_side(pair.a, pair.batch_a, pair.b, pair.batch_b, norm));
            expect_side(found.b_to_a, naive_side(pair.b, pair.batch_b, pair.a, pair.batch_a, norm));
            pair = {make_cloud(kind, 5 * 60, 1), make_cloud(kind, 5 * 41, 2), Batch::dense(5, 60), Batch::dense(5, 41)};
            found = run(pair, norm, device());
            expect_side(found.a_to_b, naive_side(pair.a, pair.batch_a, pair.b, pair.batch_b, norm));
            expect_side(found.b_to_a, naive_side(pair.b, pair.batch_b, pair.a, pair.batch_a, norm));
        }
    }
}

TEST_P(Chamfer, CloudsOfManyPartsAreSummedWhole) {
    // More than two parts on CUDA and many chunks on the CPU; every distance is known.
    const int64_t n = 140'000;
    Array<float, 2> a({n, 3}), b({1, 3});
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        a.data()[3 * i] = static_cast<float>(i % 1000);
        a.data()[3 * i + 1] = a.data()[3 * i + 2] = 0;
        sum += static_cast<double>(i % 1000);
    }
    b.data()[0] = b.data()[1] = b.data()[2] = 0;
    const ChamferResult found = run(single(std::move(a), std::move(b)), DistanceNorm::euclidean, device());
    EXPECT_EQ(found.a_to_b.used[0], n);
    EXPECT_FLOAT_EQ(found.a_to_b.mean[0], static_cast<float>(sum / n));
    EXPECT_EQ(found.b_to_a.mean[0], 0.0f);
}

TEST_P(Chamfer, MeanOfNoPointsIsNan) {
    Array<float, 2> none({0, 3});
    ChamferResult found = run(single(none.clone(), make_cloud(Kind::uniform, 9)), DistanceNorm::squared, device());
    EXPECT_TRUE(std::isnan(found.a_to_b.mean[0]));
    EXPECT_TRUE(std::isnan(found.b_to_a.mean[0]));
    EXPECT_EQ(found.a_to_b.used[0], 0);
    EXPECT_EQ(found.b_to_a.used[0], 0);
    Array<float, 2> broken({2, 3});
    for (float& x : broken.span()) x = kNan;
    found = run(single(broken.clone(), make_cloud(Kind::uniform, 9)), DistanceNorm::squared, device());
    EXPECT_TRUE(std::isnan(found.a_to_b.mean[0]));
    EXPECT_TRUE(std::isnan(found.b_to_a.mean[0]));
    const Pair empty = {none.clone(), none.clone(), Batch::ragged({0}), Batch::ragged({0})};
    EXPECT_TRUE(run(empty, DistanceNorm::squared, device()).a_to_b.mean.empty());
}

TEST_P(Chamfer, DirectionsCanBeLeftOut) {
    const Pair pair = single(make_cloud(Kind::uniform, 100, 1), make_cloud(Kind::uniform, 80, 2));
    const ChamferResult both = run(pair, DistanceNorm::squared, device());
    const Array<float, 2> a = upload(pair.a), b = upload(pair.b);
    Guarded<int32_t> nearest(100, device()), used(1, device()), nearest_b(80, device()), used_b(1, device());
    Guarded<float> sq(100, device()), mean(1, device()), sq_b(80, device()), mean_b(1, device());
    chamfer(a.view(), b.view(), DistanceNorm::squared, {nearest.view(), sq.view(), mean.view(), used.view()}, {});
    EXPECT_EQ(nearest.values(), both.a_to_b.nearest);
    EXPECT_EQ(mean.values(), both.a_to_b.mean);
    chamfer(a.view(), b.view(), DistanceNorm::squared, {},
            {nearest_b.view(), sq_b.view(), mean_b.view(), used_b.view()});
    EXPECT_EQ(nearest_b.values(), both.b_to_a.nearest);
    EXPECT_EQ(mean_b.values(), both.b_to_a.mean);
}

TEST_P(Chamfer, PointsMayLieApartInMemory) {
    const Array<float, 2> wide = make_features(50, 5, 3), other = make_cloud(Kind::uniform, 60, 2);
    Array<float, 2> narrow({50, 3});
    for (int64_t i = 0; i < 50; ++i) std::memcpy(narrow.data() + 3 * i, wide.data() + 5 * i, 3 * sizeof(float));
    const ChamferResult wanted = run(single(narrow.clone(), other.clone()), DistanceNorm::euclidean, device());
    const Array<float, 2> a = upload(wide), b = upload(other);
    const View<const float, 2> points(a.data(), {50, 3}, {5, 1}, device());
    Guarded<int32_t> nearest(50, device()), used(1, device());
    Guarded<float> sq(50, device()), mean(1, device()), gradient(150, device());
    chamfer(points, b.view(), DistanceNorm::euclidean, {nearest.view(), sq.view(), mean.view(), used.view()}, {});
    EXPECT_EQ(nearest.values(), wanted.a_to_b.nearest);
    EXPECT_EQ(mean.values(), wanted.a_to_b.mean);
    const auto dL = array_of<float>({1.5f}, device());
    chamfer_backward(points, b.view(), DistanceNorm::euclidean, {dL.view(), nearest.view(), used.view()}, {},
                     gradient.rows(3), {});
    const ChamferGradients dense =
        run_backward(single(narrow.clone(), other.clone()), DistanceNorm::euclidean, wanted, {1.5f}, {}, device());
    expect_same_bits(gradient.values(), dense.a);
}

TEST_P(Chamfer, GradientsAreExactForEveryKind) {
    for (const Kind kind : all_kinds()) {
        for (const DistanceNorm norm : kNorms) {
            SCOPED_TRACE(fmt::format("{} norm {}", to_string(kind), static_cast<int>(norm)));
            const Pair pair = ragged(kind);
            const ChamferResult forward = {naive_side(pair.a, pair.batch_a, pair.b, pair.batch_b, norm),
                                           naive_side(pair.b, pair.batch_b, pair.a, pair.batch_a, norm)};
            const std::vector<float> dL_a = {1, 2, 3, -0.5f, 5, 6}, dL_b = {0.25f, 1, 0, 2, -3, 1};
            for (const auto& [of_a, of_b] : {std::pair{dL_a, dL_b}, {dL_a, {}}, {{}, dL_b}, {{}, {}}}) {
                const ChamferGradients found = run_backward(pair, norm, forward, of_a, of_b, device());
                const ExactGradients wanted = exact_gradients(pair, norm, forward, of_a, of_b);
                expect_near(found.a, wanted.a, wanted.scale_a);
                expect_near(found.b, wanted.b, wanted.scale_b);
            }
        }
    }
}

TEST_P(Chamfer, GradientsCanBeLeftOut) {
    const Pair pair = ragged(Kind::uniform);
    const ChamferResult forward = run(pair, DistanceNorm::euclidean, device());
    const std::vector<float> dL(6, 1.0f);
    const ChamferGradients both = run_backward(pair, DistanceNorm::euclidean, forward, dL, dL, device());
    const Array<float, 2> a = upload(pair.a), b = upload(pair.b);
    const auto nearest_a = array_of(forward.a_to_b.nearest, device()), used_a = array_of(forward.a_to_b.used, device());
    const auto nearest_b = array_of(forward.b_to_a.nearest, device()), used_b = array_of(forward.b_to_a.used, device());
    const auto weights = array_of(dL, device());
    const ChamferSideGradient side_a = {weights.view(), nearest_a.view(), used_a.view()};
    const ChamferSideGradient side_b = {weights.view(), nearest_b.view(), used_b.view()};
    const Clouds of_a(a.view(), pair.batch_a), of_b(b.view(), pair.batch_b);
    Guarded<float> gradient_a(pair.a.elements(), device()), gradient_b(pair.b.elements(), device());
    chamfer_backward(of_a, of_b, DistanceNorm::euclidean, side_a, side_b, gradient_a.rows(3), {});
    chamfer_backward(of_a, of_b, DistanceNorm::euclidean, side_a, side_b, {}, gradient_b.rows(3));
    expect_same_bits(gradient_a.values(), both.a);
    expect_same_bits(gradient_b.values(), both.b);
    chamfer_backward(of_a, of_b, DistanceNorm::euclidean, side_a, side_b, {}, {});
}

TEST_P(Chamfer, GradientsAgreeWithFiniteDifferences) {
    // The loss in double, with the nearest points sought anew for every step.
    const auto loss = [](const std::vector<double>& a, const std::vector<double>& b, bool squared) {
        const auto mean = [&](const std::vector<double>& from, const std::vector<double>& to) {
            double sum = 0;
            for (size_t i = 0; i < from.size(); i += 3) {
                double best = 1e300;
                for (size_t j = 0; j < to.size(); j += 3) {
                    double sq = 0;
                    for (int axis = 0; axis < 3; ++axis)
                        sq += (from[i + axis] - to[j + axis]) * (from[i + axis] - to[j + axis]);
                    best = std::min(best, sq);
                }
                sum += squared ? best : std::sqrt(best);
            }
            return sum / (static_cast<double>(from.size()) / 3);
        };
        return 1.5 * mean(a, b) - 0.5 * mean(b, a);
    };
    const Pair pair = single(make_cloud(Kind::uniform, 23, 1), make_cloud(Kind::uniform, 31, 2));
    for (const DistanceNorm norm : kNorms) {
        const ChamferGradients found = run_backward(pair, norm, run(pair, norm, device()), {1.5f}, {-0.5f}, device());
        std::vector<double> a(pair.a.span().begin(), pair.a.span().end()),
            b(pair.b.span().begin(), pair.b.span().end());
        const double h = 1e-6;
        for (auto* points : {&a, &b}) {
            const std::vector<float>& gradient = points == &a ? found.a : found.b;
            for (size_t i = 0; i < points->size(); ++i) {
                const double x = (*points)[i];
                (*points)[i] = x + h;
                const double up = loss(a, b, norm == DistanceNorm::squared);
                (*points)[i] = x - h;
                const double down = loss(a, b, norm == DistanceNorm::squared);
                (*points)[i] = x;
                ASSERT_NEAR(gradient[i], (up - down) / (2 * h), 1e-6) << i;
            }
        }
    }
}

TEST_P(Chamfer, ManyPointsMayHaveTheSameNearestOne) {
    const int64_t m = 20'000;
    Array<float, 2> a({1, 3}), b = make_cloud(Kind::clustered, m, 2);
    a.data()[0] = a.data()[1] = a.data()[2] = 0.5f;
    const Pair pair = single(std::move(a), std::move(b));
    for (const DistanceNorm norm : kNorms) {
        const ChamferResult forward = run(pair, norm, device());
        const ChamferGradients found = run_backward(pair, norm, forward, {}, {1.0f}, device());
        const ExactGradients wanted = exact_gradients(pair, norm, forward, {}, {1.0f});
        expect_near(found.a, wanted.a, wanted.scale_a);
    }
}

TEST_P(ChamferOfTwoDevices, GradientHasTheSameBits) {
    for (const Kind kind : {Kind::uniform, Kind::clustered, Kind::duplicated, Kind::tiny}) {
        for (const DistanceNorm norm : kNorms) {
            const Pair pair = ragged(kind);
            const ChamferResult forward = run(pair, norm, Device{});
            const std::vector<float> dL = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
            const ChamferGradients cpu = run_backward(pair, norm, forward, dL, dL, Device{});
            const ChamferGradients here = run_backward(pair, norm, forward, dL, dL, device());
            expect_same_bits(cpu.a, here.a);
            expect_same_bits(cpu.b, here.b);
        }
    }
}

TEST_P(Chamfer, BadIndicesAndNonFiniteLossesStayWhereTheyAre) {
    Pair pair = single(make_cloud(Kind::uniform, 4, 1), make_cloud(Kind::uniform, 3, 2));
    ChamferResult forward = run(pair, DistanceNorm::squared, device());
    forward.a_to_b.nearest = {3, -7, 0, std::numeric_limits<int32_t>::max()};
    ChamferGradients found = run_backward(pair, DistanceNorm::squared, forward, {1.0f}, {}, device());
    for (int i : {0, 1, 3}) EXPECT_EQ(found.a[3 * i], 0.0f);
    EXPECT_NE(found.a[6], 0.0f);
    EXPECT_EQ(found.b[0], -found.a[6]);
    EXPECT_EQ(found.b[3], 0.0f);
    found = run_backward(pair, DistanceNorm::squared, forward, {kNan}, {}, device());
    EXPECT_TRUE(std::isnan(found.a[6]));
    EXPECT_TRUE(std::isnan(found.b[0]));
    EXPECT_EQ(found.b[3], 0.0f);  // no point's nearest one
}

TEST(ChamferOnCpu, ThreadsDoNotChangeABit) {
    const Pair pair = single(make_cloud(Kind::clustered, 40'000, 1), make_cloud(Kind::clustered, 35'000, 2));
    for (const DistanceNorm norm : kNorms) {
        const int before = threads();
        set_threads(1);
        const ChamferResult one = run(pair, norm, Device{});
        const ChamferGradients gradient_one = run_backward(pair, norm, one, {1.0f}, {2.0f}, Device{});
        set_threads(3);
        const ChamferResult three = run(pair, norm, Device{});
        const ChamferGradients gradient_three = run_backward(pair, norm, three, {1.0f}, {2.0f}, Device{});
        set_threads(before);
        expect_same_bits(one.a_to_b.mean, three.a_to_b.mean);
        expect_same_bits(one.b_to_a.mean, three.b_to_a.mean);
        EXPECT_EQ(one.a_to_b.nearest, three.a_to_b.nearest);
        expect_same_bits(gradient_one.a, gradient_three.a);
        expect_same_bits(gradient_one.b, gradient_three.b);
    }
}

TEST(ChamferOnCpu, WrongShapesAndDevicesAreRefusedUntouched) {
    const Array<float, 2> a = make_cloud(Kind::uniform, 4), b = make_cloud(Kind::uniform, 3);
    Array<int32_t, 1> nearest({4}), used({1});
    Array<float, 1> sq({4}), mean({1}), short_sq({3});
    const ChamferSide good = {nearest.view(), sq.view(), mean.view(), used.view()};
    const auto message = [&](const Clouds& of_a, const Clouds& of_b, const ChamferSide& side) {
        return bad_argument_of([&] { chamfer(of_a, of_b, DistanceNorm::squared, side, {}); });
    };
    const Device gpu{DeviceType::cuda, 0};
    const View<const float, 2> elsewhere(nullptr, {4, 3}, gpu), flat(nullptr, {4, 2});
    const View<const float, 2> huge(nullptr, {int64_t{1} << 31, 3}, {0, 1});
    ChamferSide bad = good;
    bad.distances_sq = short_sq.view();
    EXPECT_EQ(message(a.view(), b.view(), bad), "chamfer: a_to_b.distances_sq must be [4], got [3]");
    bad = good;
    bad.mean = {};
    EXPECT_EQ(message(a.view(), b.view(), bad), "chamfer: a_to_b.mean must be [1], got [0]");
    bad = good;
    bad.used = {nullptr, {1}, gpu};
    EXPECT_EQ(message(a.view(), b.view(), bad), "chamfer: points on cpu, a_to_b.used on cuda:0");
    bad.used = {used.data(), {1}, {2}};
    bad.nearest = {nearest.data(), {4}, {2}};
    EXPECT_EQ(message(a.view(), b.view(), bad), "chamfer: a_to_b.nearest must be contiguous");
    EXPECT_EQ(message(elsewhere, b.view(), good), "chamfer: points on cuda:0, b on cpu");
    EXPECT_EQ(message(flat, b.view(), good), "chamfer: a must be [n, 3], got [4, 2]");
    EXPECT_EQ(message(a.view(), huge, good).rfind("chamfer: a cloud of 2147483648 points", 0), 0u);
    EXPECT_EQ(message(a.view(), Clouds(b.view(), Batch::ragged({0, 1, 3})), good), "chamfer: 1 clouds against 2");

    Array<float, 2> gradient({4, 3}), short_gradient({3, 3});
    Array<float, 1> dL({1});
    const auto backward = [&](const ChamferSideGradient& side, View<float, 2> dL_da, View<float, 2> dL_db) {
        return bad_argument_of(
            [&] { chamfer_backward(a.view(), b.view(), DistanceNorm::squared, side, {}, dL_da, dL_db); });
    };
    const ChamferSideGradient good_side = {dL.view(), nearest.view(), used.view()};
    EXPECT_EQ(backward({dL.view(), nearest.view(), {}}, gradient.view(), {}),
              "chamfer_backward: a_to_b.used must be [1], got [0]");
    EXPECT_EQ(backward(good_side, short_gradient.view(), {}), "chamfer_backward: dL_da must be [4, 3], got [3, 3]");
    EXPECT_EQ(backward(good_side, gradient.view(), gradient.view()),
              "chamfer_backward: dL_db must be [3, 3], got [4, 3]");
    EXPECT_EQ(backward(good_side, {nullptr, {4, 3}, gpu}, {}), "chamfer_backward: points on cpu, dL_da on cuda:0");
}

TEST(ChamferOnCpu, FailedAllocationsAreReported) {
    const Pair pair = ragged(Kind::uniform);
    const std::vector<float> dL(6, 1.0f);
    EXPECT_GE(for_each_allocation_failure([&] {
                  const ChamferResult forward = run(pair, DistanceNorm::squared, Device{});
                  run_backward(pair, DistanceNorm::squared, forward, dL, dL, Device{});
              }),
              can_fail_allocations() ? 3 : 0);
}

TEST(ChamferOnCpu, ManyCallsKeepNothing) {
    const Pair pair = single(make_cloud(Kind::uniform, 8, 1), make_cloud(Kind::uniform, 6, 2));
    const auto call = [&] {
        const ChamferResult forward = run(pair, DistanceNorm::squared, Device{});
        run_backward(pair, DistanceNorm::squared, forward, {1.0f}, {1.0f}, Device{});
    };
    call();
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) call();
    EXPECT_EQ(live_allocations(), before);
}

TEST(FixedSum, IsTheSameInEveryOrderAndFinerThanFloat) {
    std::mt19937 random(7);
    for (const float scale : {1e-44f, 1e-30f, 1.0f, 1e30f, 3e38f}) {
        std::vector<float> terms(1000);
        uint32_t largest = 0;
        double exact = 0;
        for (float& term : terms) {
            term = static_cast<float>(static_cast<double>(random()) / 4294967296.0 * 2 - 1) * scale;
            largest = std::max(largest, magnitude_bits(term));
            exact += term;
        }
        const FixedGrid grid(largest, 1000);
        int64_t first = 0;
        for (int order = 0; order < 3; ++order) {
            int64_t sum = 0;
            for (const float term : terms) sum += grid.steps(term);
            if (order == 0) first = sum;
            EXPECT_EQ(sum, first);
            std::shuffle(terms.begin(), terms.end(), random);
        }
        EXPECT_NEAR(grid.value(first), exact, 1e-12 * scale) << scale;
    }
}

TEST(FixedSum, HoldsAsManyOfTheLargestTermsAsPromised) {
    for (const int64_t terms : {int64_t{1}, int64_t{2}, int64_t{1000}, int64_t{1} << 31}) {
        for (const float term :
             {std::numeric_limits<float>::max(), 1.9999999f, std::numeric_limits<float>::denorm_min()}) {
            const FixedGrid grid(magnitude_bits(term), terms);
            const int64_t steps = grid.steps(-term);
            int64_t sum = 0;
            ASSERT_FALSE(__builtin_mul_overflow(steps, terms, &sum));
            EXPECT_EQ(grid.value(sum), -static_cast<double>(term) * static_cast<double>(terms));
        }
    }
    const FixedGrid broken(magnitude_bits(kNan), 4);
    EXPECT_EQ(broken.steps(1.0f), 0);
    EXPECT_TRUE(std::isnan(broken.value(0)));
}

}  // namespace
}  // namespace stipple::test
