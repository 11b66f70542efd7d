#include "stipple/ops/simplification.h"

#include <cmath>
#include <limits>

#include "stipple/ops/knn.h"
#include "tests/ops/ops.h"
#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;

class Simplification : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Simplification);

Array<float, 2> cloud_of_seed(int64_t n, uint64_t seed) {
    return make_features(n, 3, seed);
}

struct SimplifiedTerms {
    std::vector<double> terms;    // [clouds, sizes, 3]
    std::vector<float> gradient;  // [clouds * m, 3], of the sum of weight times term
};

/// Some weight for each term, so that all of them count.
double weight_of(size_t i) {
    return 0.25 + 0.5 * static_cast<double>(i % 5);
}

SimplifiedTerms run_simplification(const Array<float, 2>& points, const Batch& batch, const Array<float, 2>& queries,
                                   const std::vector<int64_t>& sizes, Device device) {
    const auto count = static_cast<int64_t>(sizes.size());
    const Array<float, 2> p = points.to(device), q = queries.to(device);
    const Clouds all(p.view(), batch), few(q.view(), Batch::dense(batch.clouds(), queries.size(0) / batch.clouds()));
    Array<int32_t, 2> nearest({queries.size(0), 1}, device);
    ops::knn(all, few, nearest.view(), {});
    Array<int32_t, 2> owners({count, batch.rows()}, device), farthest({batch.clouds(), count}, device);
    Array<double, 3> terms({batch.clouds(), count, 3}, device), weights({batch.clouds(), count, 3});
    const View<const int32_t, 1> of_queries(nearest.data(), {queries.size(0)}, device);
    ops::simplification(all, few, sizes, of_queries, {owners.view(), farthest.view()}, terms.view());
    for (int64_t i = 0; i < weights.elements(); ++i) weights.data()[i] = weight_of(static_cast<size_t>(i));
    const Array<double, 3> there = weights.to(device);
    Array<float, 2> gradient({queries.size(0), 3}, device);
    ops::simplification_backward(all, few, sizes, of_queries, {owners.view(), farthest.view()}, there.view(),
                                 gradient.view());
    const Array<double, 3> host = terms.to(Device{});
    const Array<float, 2> host_gradient = gradient.to(Device{});
    return {{host.data(), host.data() + host.elements()},
            {host_gradient.data(), host_gradient.data() + host_gradient.elements()}};
}

double square_of(const float* a, const float* b) {
    double sum = 0;
    for (int axis = 0; axis < 3; ++axis) sum += (double{a[axis]} - b[axis]) * (double{a[axis]} - b[axis]);
    return sum;
}

/// The definitions, loop by loop.
std::vector<double> naive_simplification(const Array<float, 2>& points, const Batch& batch,
                                         const Array<float, 2>& queries, const std::vector<int64_t>& sizes) {
    std::vector<double> terms;
    const int64_t m = queries.size(0) / batch.clouds();
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud)
        for (const int64_t size : sizes) {
            const float* q = queries.data() + 3 * cloud * m;
            double mean = 0, most = 0, back = 0;
            for (int64_t i = 0; i < size; ++i) {
                double least = std::numeric_limits<double>::infinity();
                for (int64_t p = batch.begin(cloud); p < batch.end(cloud); ++p)
                    least = std::min(least, square_of(q + 3 * i, points.data() + 3 * p));
                mean += least / static_cast<double>(size);
                most = std::max(most, least);
            }
            for (int64_t p = batch.begin(cloud); p < batch.end(cloud); ++p) {
                double least = std::numeric_limits<double>::infinity();
                for (int64_t i = 0; i < size; ++i) least = std::min(least, square_of(q + 3 * i, points.data() + 3 * p));
                back += least / static_cast<double>(batch.size(cloud));
            }
            terms.insert(terms.end(), {mean, most, back});
        }
    return terms;
}

TEST_P(Simplification, IsItsDefinitionForEverySize) {
    struct Case {
        Batch batch;
        int64_t m;
        std::vector<int64_t> sizes;
    };
    for (const Case& one :
         {Case{Batch::dense(3, 200), 32, {32}}, Case{Batch::dense(2, 300), 40, {1, 8, 16, 40}},
          Case{Batch::ragged({0, 1, 130, 777}), 300, {2, 255, 256, 257, 300}}, Case{Batch::dense(1, 5), 9, {3}}}) {
        const Array<float, 2> points = cloud_of_seed(one.batch.rows(), 3),
                              queries = cloud_of_seed(one.batch.clouds() * one.m, 4);
        const SimplifiedTerms found = run_simplification(points, one.batch, queries, one.sizes, device());
        const std::vector<double> wanted = naive_simplification(points, one.batch, queries, one.sizes);
        ASSERT_EQ(found.terms.size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i)
            EXPECT_NEAR(found.terms[i], wanted[i], 1e-6 * wanted[i]) << "term " << i;
    }
}

TEST_P(Simplification, GradientIsThatOfSmallSteps) {
    const Batch batch = Batch::dense(2, 60);
    const std::vector<int64_t> sizes = {2, 5, 7};
    const Array<float, 2> points = cloud_of_seed(batch.rows(), 7);
    Array<float, 2> queries = cloud_of_seed(2 * 7, 8);
    const SimplifiedTerms found = run_simplification(points, batch, queries, sizes, device());
    const auto loss = [&] {
        const std::vector<double> terms = naive_simplification(points, batch, queries, sizes);
        double sum = 0;
        for (size_t i = 0; i < terms.size(); ++i) sum += weight_of(i) * terms[i];
        return sum;
    };
    constexpr float kStep = 1e-3f;
    for (int64_t i = 0; i < queries.elements(); ++i) {
        const float before = queries.data()[i];
        queries.data()[i] = before + kStep;
        const double above = loss(), width_above = double{queries.data()[i]} - before;
        queries.data()[i] = before - kStep;
        const double below = loss(), width_below = before - double{queries.data()[i]};
        queries.data()[i] = before;
        EXPECT_NEAR(found.gradient[static_cast<size_t>(i)], (above - below) / (width_above + width_below), 2e-2);
    }
}

TEST_P(Simplification, OneThatIsNotFiniteIsSeen) {
    const Batch batch = Batch::dense(2, 20);
    const Array<float, 2> points = cloud_of_seed(batch.rows(), 7);
    Array<float, 2> queries = cloud_of_seed(2 * 4, 8);
    queries.data()[3] = NAN;  // of the second query of the first cloud
    const SimplifiedTerms found = run_simplification(points, batch, queries, {1, 4}, device());
    EXPECT_TRUE(std::isfinite(found.terms[0]) && std::isfinite(found.terms[1]));
    EXPECT_TRUE(std::isnan(found.terms[3]) && std::isnan(found.terms[4]));
    for (size_t i = 6; i < 12; ++i) EXPECT_TRUE(std::isfinite(found.terms[i])) << i;
}

TEST_P(Simplification, WrongSizesAreRefused) {
    const Array<float, 2> points = cloud_of_seed(20, 7), queries = cloud_of_seed(4, 8);
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{}, std::vector<int64_t>{0}, std::vector<int64_t>{5}, std::vector<int64_t>{2, 2}})
        EXPECT_ERROR(run_simplification(points, Batch::single(20), queries, sizes, device()), bad_argument,
                     "simplification: ");
}

}  // namespace
}  // namespace stipple::test
