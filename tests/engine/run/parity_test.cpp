// The engine against the plain reading of the network: every PointNet, with and without transforms, on batches of every
// kind.
//
// Measure: the largest difference of any number of an output, divided by the largest magnitude of that output in the
// reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "stipple/core/rng.h"
#include "stipple/models/pointnet.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using models::PointNetOptions;
using models::PointNetVariant;
using network::Network;
using network::Weights;
using test::EngineOutputs;
using test::ReferenceRun;

/// Clouds of a reference run, from which batches are put together.
struct Clouds {
    std::vector<int64_t> offsets = {0};
    Array<float, 2> points;    // [rows, 3]
    Array<float, 2> category;  // [clouds, 16], one-hot

    ops::Batch batch() const { return ops::Batch::ragged(offsets); }
};

Clouds random_clouds(const std::vector<int64_t>& sizes, uint64_t seed) {
    Clouds clouds;
    for (const int64_t size : sizes) clouds.offsets.push_back(clouds.offsets.back() + size);
    clouds.points = Array<float, 2>({clouds.offsets.back(), 3});
    for (int64_t i = 0; i < clouds.points.elements(); ++i)
        clouds.points.data()[i] = 2 * Rng(seed).uniform(static_cast<uint64_t>(i)) - 1;
    clouds.category = Array<float, 2>({static_cast<int64_t>(sizes.size()), 16});
    std::fill_n(clouds.category.data(), clouds.category.elements(), 0.f);
    for (size_t i = 0; i < sizes.size(); ++i) clouds.category.data()[16 * i + i * 5 % 16] = 1;
    return clouds;
}

std::vector<test::ReferenceInput> inputs_of(const Network& network, const Clouds& clouds, int64_t begin, int64_t end) {
    std::vector<test::ReferenceInput> inputs = {
        {"points", clouds.points.view().slice(clouds.offsets[begin], clouds.offsets[end])}};
    if (network.name == "pointnet-part-segmenter")
        inputs.push_back({"category", clouds.category.view().slice(begin, end)});
    return inputs;
}

/// The largest difference between outputs of clouds [begin, end) and the reference's, relative to its largest number.
double error_of(const EngineOutputs& outputs, const ReferenceRun& run, const Clouds& clouds, int64_t begin) {
    double worst = 0;
    for (const auto& [name, output] : outputs) {
        const test::ReferenceTensor& expected = run.output(name);
        const bool of_points = expected.type.level == network::Level::point;
        const int64_t first = (of_points ? clouds.offsets[begin] : begin) * expected.type.channels;
        double largest = 0, difference = 0;
        for (const double value : expected.values) largest = std::max(largest, std::abs(value));
        for (int64_t i = 0; i < output.elements(); ++i) {
            const double d = std::abs(output.data()[i] - expected.values[first + i]);
            difference = std::isnan(d) ? INFINITY : std::max(difference, d);
        }
        EXPECT_GT(output.elements(), 0) << name;
        EXPECT_GT(largest, 1e-3) << name;
        worst = std::max(worst, difference / largest);
    }
    return worst;
}

struct PointNetCase {
    const char* name;
    Network (*build)(const PointNetOptions&);
    std::vector<int64_t> sizes;  // of clouds: fewer points where a point costs the reference more
    bool is_large = false;       // millions of parameters to draw: one kind of weights for each choice
};

const PointNetCase kClassifier = {"classifier", models::pointnet_classifier, {1, 7, 64, 129, 50, 50, 50, 257}};
const PointNetCase kSegmenter = {"segmenter", models::pointnet_segmenter, {1, 7, 64, 33, 33}};
const PointNetCase kPartSegmenter = {"part segmenter", models::pointnet_part_segmenter, {1, 5, 40, 17, 17}, true};

/// As small as the shipped one in its last layer, with edges to neighbours: every cloud has that many points.
Network narrow_part_segmenter(const PointNetOptions& options) {
    PointNetOptions narrow = options;
    narrow.width = 96;
    narrow.neighbours = 16;
    return models::pointnet_part_segmenter(narrow);
}
const PointNetCase kNeighbours = {"part segmenter of neighbours", narrow_part_segmenter, {16, 23, 70, 33, 33}, true};

/// Calls f for every variant, choice of transforms and kind of weights, with the reference's answer.
template <class F>
void for_each_case(const PointNetCase& pointnet, const F& f) {
    for (const PointNetVariant variant : {PointNetVariant::torch, PointNetVariant::tf})
        for (const int transforms : {0, 1, 2, 3})
            for (const bool is_trained : {false, true}) {
                if (pointnet.is_large && is_trained == ((transforms + (variant == PointNetVariant::tf)) % 2 == 0))
                    continue;
                SCOPED_TRACE(fmt::format("{} {}, input transform {}, feature transform {}, {} weights", pointnet.name,
                                         variant == PointNetVariant::tf ? "tf" : "torch", transforms & 1,
                                         transforms >> 1, is_trained ? "trained-like" : "random"));
                const Network network = pointnet.build({.variant = variant,
                                                        .classes = 13,
                                                        .input_transform = (transforms & 1) != 0,
                                                        .feature_transform = (transforms & 2) != 0});
                const uint64_t seed = static_cast<uint64_t>(transforms);
                const Weights weights =
                    is_trained ? test::trained_like_weights(network, seed) : test::random_weights(network, seed);
                const Clouds clouds = random_clouds(pointnet.sizes, seed);
                const int64_t count = static_cast<int64_t>(pointnet.sizes.size());
                const ReferenceRun run =
                    test::run_reference(network, weights, clouds.batch(), inputs_of(network, clouds, 0, count));
                f(network, weights, clouds, run);
            }
}

/// Stated in units of the measure above. Reduced precisions round every factor of every product, through up to twelve
/// layers and transforms of random weights; calibrated ones: precision_test.cpp.
const std::pair<Precision, double> kTolerances[] = {
    {Precision::fp32, 1e-5}, {Precision::tf32, 1e-3}, {Precision::fp16, 5e-3}, {Precision::bf16, 4e-2}};

class Parity : public test::OnDevice {
protected:
    void expect_parity(const PointNetCase& pointnet) const {
        const std::vector<Precision> precisions = precisions_of(device());
        std::map<Precision, double> worst;
        for_each_case(pointnet, [&](const Network& network, const Weights& weights, const Clouds& clouds,
                                    const ReferenceRun& run) {
            for (const auto& [precision, tolerance] : kTolerances) {
                if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end()) continue;
                const double found = error(network, weights, clouds, run, precision);
                EXPECT_LE(found, tolerance) << name_of(precision);
                worst[precision] = std::max(worst[precision], found);
            }
        });
        for (const auto& [precision, found] : worst)
            RecordProperty(std::string(name_of(precision)), fmt::format("{:.2e}", found));
    }

    /// Everything as one ragged batch, each cloud alone, and the last two clouds of one size as a dense batch.
    double error(const Network& network, const Weights& weights, const Clouds& clouds, const ReferenceRun& run,
                 Precision precision) const {
        const int64_t count = static_cast<int64_t>(clouds.offsets.size()) - 1;
        const Engine engine = compile(
            network, weights,
            {.device = device(), .precision = precision, .max_batch = count, .max_points = clouds.batch().largest()});
        Context context(engine);
        const auto run_clouds = [&](const ops::Batch& batch, int64_t begin, int64_t end) {
            return error_of(test::run_engine(context, engine, batch, inputs_of(network, clouds, begin, end)), run,
                            clouds, begin);
        };
        double worst = run_clouds(clouds.batch(), 0, count);
        for (int64_t i = 0; i < count; ++i)
            worst = std::max(worst, run_clouds(ops::Batch::single(clouds.batch().size(i)), i, i + 1));
        for (int64_t i = 0; i + 1 < count; ++i)
            if (clouds.batch().size(i) == clouds.batch().size(i + 1))
                worst = std::max(worst, run_clouds(ops::Batch::dense(2, clouds.batch().size(i)), i, i + 2));
        return worst;
    }
};
STIPPLE_ON_EVERY_DEVICE(Parity);

TEST_P(Parity, EveryClassifier) {
    expect_parity(kClassifier);
}

TEST_P(Parity, EverySegmenter) {
    expect_parity(kSegmenter);
}

TEST_P(Parity, EveryPartSegmenter) {
    expect_parity(kPartSegmenter);
}

TEST_P(Parity, EveryPartSegmenterOfNeighbours) {
    expect_parity(kNeighbours);
}

}  // namespace
}  // namespace stipple::engine
