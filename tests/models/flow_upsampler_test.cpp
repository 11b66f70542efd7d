#include "stipple/models/flow_upsampler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
#include "stipple/core/rng.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"

namespace stipple::models {
namespace {

constexpr int64_t kCloudPoints = 60, kQueries = 25;

/// A gentle wave with one point to a square unit.
Array<float, 2> wave(int64_t n, uint64_t seed) {
    Array<float, 2> points({n, 3});
    const float side = std::sqrt(static_cast<float>(n));
    for (int64_t i = 0; i < n; ++i) {
        float* p = points.data() + 3 * i;
        p[0] = side * Rng(seed).uniform(static_cast<uint64_t>(2 * i));
        p[1] = side * Rng(seed).uniform(static_cast<uint64_t>(2 * i + 1));
        p[2] = std::sin(p[0] / 2);
    }
    return points;
}

test::ReferenceRun run(const network::Network& network, const network::Weights& weights, const Array<float, 2>& points,
                       const Array<float, 2>& queries) {
    return test::run_reference(network, weights,
                               {ops::Batch::single(points.size(0)), ops::Batch::single(queries.size(0))},
                               {{"points", points.view()}, {"queries", queries.view()}});
}

TEST(FlowUpsampler, HasFewerThanAMillionParameters) {
    int64_t trained = 0;
    for (const network::Parameter& parameter : parameters_of(flow_upsampler({}))) {
        int64_t elements = 1;
        for (const int64_t extent : parameter.shape) elements *= extent;
        if (parameter.is_trained) trained += elements;
    }
    EXPECT_LT(trained, 1'000'000);
    EXPECT_GT(trained, 10'000);
}

TEST(FlowUpsampler, ItsPartsAreTheWhole) {
    for (const Refinement refinement : {Refinement::projection, Refinement::matching, Refinement::descent}) {
        const FlowUpsamplerOptions options{.refinement = refinement};
        const network::Network whole = flow_upsampler(options);
        const network::Weights weights = test::trained_like_weights(whole, 3);
        const Array<float, 2> points = wave(kCloudPoints, 1), queries = wave(kQueries, 2);
        const auto part = [&](const network::Network& network) {
            network::Weights own;
            for (const network::Parameter& parameter : parameters_of(network))
                own.tensors[parameter.name] = weights.tensors.at(parameter.name);
            return own;
        };
        const std::vector<ops::Batch> batches = {ops::Batch::single(kCloudPoints), ops::Batch::single(kQueries)};
        const network::Network encoder = flow_upsampler_encoder(options), decoder = flow_upsampler_decoder(options);
        const std::vector<double> encoded =
            test::run_reference(encoder, part(encoder), {batches[0]}, {{"points", points.view()}})
                .output("features")
                .values;
        Array<float, 2> features({kCloudPoints, options.hidden});
        std::copy(encoded.begin(), encoded.end(), features.data());
        const auto decode = [&](const network::Network& network, const Array<float, 2>& from) {
            return test::run_reference(
                network, part(network), batches,
                {{"points", points.view()}, {"features", features.view()}, {"queries", from.view()}});
        };
        const bool tells_distance = refinement == Refinement::descent;
        const char* output = tells_distance ? "distance" : "upsampled";
        const test::ReferenceRun expected = run(whole, weights, points, queries);
        const std::vector<double> made = decode(decoder, queries).output(output).values;
        ASSERT_EQ(made.size(), expected.output(output).values.size());
        for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], expected.output(output).values[i], 1e-5) << i;
        if (refinement != Refinement::projection) {
            EXPECT_THROW(flow_upsampler_first_step(options), Error);
            continue;
        }
        const std::vector<double> first =
            decode(flow_upsampler_first_step(options), queries).output("upsampled").values;
        ASSERT_EQ(first.size(), 3u * kQueries);
        for (size_t i = 0; i < first.size(); ++i)
            EXPECT_NEAR(first[i], expected.output("moved_1").values[i], 1e-5) << i;
    }
}

TEST(FlowUpsampler, DoesNotSeeWhereACloudLies) {
    const network::Network network = flow_upsampler({});
    const network::Weights weights = test::trained_like_weights(network, 3);
    Array<float, 2> points = wave(kCloudPoints, 1), queries = wave(kQueries, 2);
    const std::vector<double> here = run(network, weights, points, queries).output("upsampled").values;
    const float shift[3] = {64, -32, 16};  // sums of float32 that lose little
    for (Array<float, 2>* rows : {&points, &queries})
        for (int64_t i = 0; i < rows->elements(); ++i) rows->data()[i] += shift[i % 3];
    const std::vector<double> there = run(network, weights, points, queries).output("upsampled").values;
    for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i] - shift[i % 3], here[i], 1e-3) << i;
}

/// Without blocks the latent space is that of the points: with all weight on the neighbours a query becomes their mean.
TEST(FlowUpsampler, InterpolatesItsNeighbours) {
    const network::Network network = flow_upsampler({.blocks = 0, .steps = 1});
    network::Weights weights = test::random_weights(network, 4);
    for (float& value : weights.tensors.at("step1.share.weight").values) value = 0;
    for (float& value : weights.tensors.at("step1.share.bias").values) value = 60;  // sigmoid: 1
    for (const char* name : {"step1.latent_offset.weight", "step1.latent_offset.bias"})
        for (float& value : weights.tensors.at(name).values) value = 0;
    const Array<float, 2> points = wave(kCloudPoints, 1), queries = wave(kQueries, 2);
    const test::ReferenceRun found = run(network, weights, points, queries);
    const test::ReferenceTensor &upsampled = found.output("upsampled"), &w = found.output("weights"),
                                &neighbours = found.output("neighbours");
    constexpr int64_t kNear = FlowUpsamplerOptions{}.flow_neighbours;
    for (int64_t q = 0; q < kQueries; ++q) {
        double mean[3] = {}, sum = 0;
        for (int64_t j = 0; j < kNear; ++j) {
            const double weight = w.values[static_cast<size_t>(kNear * q + j)];
            const auto from = static_cast<int64_t>(neighbours.values[static_cast<size_t>(kNear * q + j)]);
            for (int c = 0; c < 3; ++c) mean[c] += weight * points.data()[3 * from + c];
            sum += weight;
        }
        EXPECT_NEAR(sum, 1, 1e-12);
        for (int c = 0; c < 3; ++c) EXPECT_NEAR(upsampled.values[static_cast<size_t>(3 * q + c)], mean[c], 1e-5);
    }
}

/// What the flow does to the neighbours its inverse undoes: all weight on one neighbour gives that neighbour, whatever
/// the flow.
TEST(FlowUpsampler, TheInverseFlowIsTheInverse) {
    const network::Network network = flow_upsampler({.flow_neighbours = 1, .steps = 1});
    network::Weights weights = test::trained_like_weights(network, 5);
    for (float& value : weights.tensors.at("step1.share.weight").values) value = 0;
    for (float& value : weights.tensors.at("step1.share.bias").values) value = 60;
    for (const char* name : {"step1.latent_offset.weight", "step1.latent_offset.bias"})
        for (float& value : weights.tensors.at(name).values) value = 0;
    double moved = 0;
    for (const float value : weights.tensors.at("step1.flow1.move.weight").values) moved += std::abs(value);
    ASSERT_GT(moved, 0.1);
    const Array<float, 2> points = wave(kCloudPoints, 1), queries = wave(kQueries, 2);
    const test::ReferenceRun found = run(network, weights, points, queries);
    for (int64_t q = 0; q < kQueries; ++q) {
        const auto from = static_cast<int64_t>(found.output("neighbours").values[static_cast<size_t>(q)]);
        for (int c = 0; c < 3; ++c)
            EXPECT_NEAR(found.output("upsampled").values[static_cast<size_t>(3 * q + c)], points.data()[3 * from + c],
                        1e-5);
    }
}

}  // namespace
}  // namespace stipple::models
