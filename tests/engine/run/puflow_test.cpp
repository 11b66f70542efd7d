// PU-Flow through the engine: every stage of the published program, whole clouds, and, where the published weights are
// not at hand, the plain reading of the network with random ones.

#include "stipple/models/puflow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "tests/engine/run_engine.h"
#include "tests/support/data_sets.h"
#include "tests/support/devices.h"
#include "tests/support/puflow_cloud.h"
#include "tests/support/puflow_reference.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using network::Network;
using network::Weights;
using test::EngineOutputs;
using test::load_puflow_array;

Array<float, 2> points_of(const std::vector<float>& values) {
    Array<float, 2> points({static_cast<int64_t>(values.size()) / 3, 3});
    std::copy(values.begin(), values.end(), points.data());
    return points;
}

double largest_difference(std::span<const float> a, std::span<const double> b) {
    EXPECT_EQ(a.size(), b.size());
    double largest = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const double d = std::abs(a[i] - b[i]);
        largest = std::isnan(d) ? INFINITY : std::max(largest, d);
    }
    return largest;
}

/// [n * k, r] as the published [n, r, k].
std::vector<float> children_first(const Array<float, 2>& x, int64_t k) {
    std::vector<float> turned;
    for (int64_t n = 0; n < x.size(0) / k; ++n)
        for (int64_t r = 0; r < x.size(1); ++r)
            for (int64_t j = 0; j < k; ++j) turned.push_back(x.view()(n * k + j, r));
    return turned;
}

network::Tensor find_layer(const Network& network, std::string_view name) {
    for (size_t i = 0; i < network.layers.size(); ++i)
        if (network.layers[i].name == name) return static_cast<network::Tensor>(i);
    return -1;
}

class EnginePuFlow : public test::OnDevice {};
STIPPLE_ON_EVERY_DEVICE(EnginePuFlow);

TEST_P(EnginePuFlow, EveryStageIsThatOfThePublishedProgram) {
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    const Array<float, 2> patch = points_of(load_puflow_array("input_patch").floats());
    const Engine engine = compile(models::puflow({.stages = true}), test::load_puflow_weights(),
                                  {.device = device(), .max_batch = 1, .max_points = 256});
    const EngineOutputs outputs = test::run_engine(engine, ops::Batch::single(256), {{"points", patch.view()}});
    const auto expect = [&](const std::string& output, const std::string& file, double tolerance) {
        const double found = largest_difference(outputs.at(output).span(), load_puflow_array(file).values);
        EXPECT_LE(found, tolerance) << output;
        RecordProperty(output, fmt::format("{:.1e}", found));
    };
    for (int l = 1; l <= 6; ++l) expect(fmt::format("cond_{}", l), fmt::format("cond_{}", l), 1e-4);
    expect("feat_1", "feat_1", 1e-3);
    expect("feat_6", "feat_6", 1e-3);
    const std::vector<double> flow = load_puflow_array("flow_1to6").values;
    for (int l = 0; l < 6; ++l)
        EXPECT_LE(largest_difference(outputs.at(fmt::format("flow_{}", l + 1)).span(),
                                     std::span(flow).subspan(static_cast<size_t>(l) * 768, 768)),
                  1e-3)
            << l;
    expect("z", "z", 1e-3);
    expect("latent_interp", "latent_interp", 1e-3);
    expect("decoded", "decoded", 1e-4);
    expect("upsampled", "decoded", 1e-4);
    expect("inverse_of_z", "inverse_of_z", 1e-4);
    expect("log_det", "logdet", 1e-2);
    expect("nll", "nll", 1e-2);
    EXPECT_LE(
        largest_difference(children_first(outputs.at("interp_logits"), 8), load_puflow_array("interp_logits").values),
        1e-3);
    EXPECT_LE(largest_difference(children_first(outputs.at("weights"), 8), load_puflow_array("interp_weights").values),
              1e-4);
}

TEST_P(EnginePuFlow, AWholeCloudIsThatOfThePublishedProgram) {
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    const Engine engine = compile(models::puflow({}), test::load_puflow_weights(),
                                  {.device = device(), .max_batch = 8, .max_points = 256});
    Context context(engine);
    const Array<float, 2> input = points_of(load_puflow_array("cloud_input").floats());
    const test::UpsampledCloud cloud = test::upsample_cloud(input, 4, [&](const Array<float, 2>& patches) {
        const int64_t rows = 8 * test::kPatchPoints;  // of a batch
        Array<float, 2> children({patches.size(0) * 4, 3});
        for (int64_t begin = 0; begin < patches.size(0); begin += rows) {
            const EngineOutputs outputs = test::run_engine(context, engine, ops::Batch::dense(8, test::kPatchPoints),
                                                           {{"points", patches.view().slice(begin, begin + rows)}});
            std::copy_n(outputs.at("upsampled").data(), 12 * rows, children.data() + 12 * begin);
        }
        return children;
    });
    EXPECT_LE(largest_difference(cloud.candidates.span(), load_puflow_array("cloud_candidates").values), 1e-3);
    const Array<float, 2> expected = points_of(load_puflow_array("cloud_output").floats());
    ASSERT_EQ(cloud.points.size(0), expected.size(0));
    const double missed = test::largest_nearest_distance(cloud.points.view(), expected.view());
    const double added = test::largest_nearest_distance(expected.view(), cloud.points.view());
    EXPECT_LE(missed, 1e-3);
    EXPECT_LE(added, 1e-3);
    RecordProperty("sets", fmt::format("{:.1e}", std::max(missed, added)));
}

/// Every output relative to its own largest number, as in parity_test.cpp. A flow magnifies what goes into it: 1e-4.
TEST_P(EnginePuFlow, IsThePlainReadingOfTheNetwork) {
    const ops::Batch batch = ops::Batch::ragged({0, 16, 53, 117});
    Array<float, 2> points({117, 3});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = 2 * Rng(1).uniform(static_cast<uint64_t>(i)) - 1;
    for (const int64_t ratio : {1, 4, 5}) {
        const Network network = models::puflow({.ratio = ratio, .stages = ratio == 4});
        const Weights weights = test::trained_like_weights(network, 2);
        const auto run = test::run_reference(network, weights, batch, {{"points", points.view()}});
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 3, .max_points = 64});
        const EngineOutputs outputs = test::run_engine(engine, batch, {{"points", points.view()}});
        ASSERT_EQ(outputs.size(), network.outputs.size());
        for (const auto& [name, output] : outputs) {
            const std::vector<double>& expected = run.output(name).values;
            double largest = 0;
            for (const double value : expected) largest = std::max(largest, std::abs(value));
            EXPECT_GT(largest, 1e-3) << name;
            EXPECT_LE(largest_difference(output.span(), expected), 1e-4 * largest) << name << ", ratio " << ratio;
        }
    }
}

/// Noise in, and neighbours that latents choose: of 60 points in two clouds, where no two are at equal distances.
TEST_P(EnginePuFlow, EveryFamilyIsThePlainReadingOfTheNetwork) {
    const ops::Batch batch = ops::Batch::ragged({0, 23, 60});
    Array<float, 2> points({60, 3});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = 2 * Rng(2).uniform(static_cast<uint64_t>(i)) - 1;
    for (size_t family = 0; family < std::size(models::kFlowFamilyWords); ++family) {
        const bool is_latent = family % 2 == 1;
        const Network network = models::puflow(
            {.family = static_cast<models::FlowFamily>(family),
             .steps = 3,
             .neighbourhood = is_latent ? models::Neighbourhood::latent : models::Neighbourhood::euclidean,
             .noise = true,
             .stages = true});
        const Weights weights = test::random_weights(network, 2);
        Array<float, 2> noise({240, network[find_layer(network, "noise")].type.channels});
        for (int64_t i = 0; i < noise.elements(); ++i) noise.data()[i] = 0.1f * Rng(3).normal(static_cast<uint64_t>(i));
        const std::vector<test::ReferenceInput> inputs = {{"points", points.view()}, {"noise", noise.view()}};
        const auto run = test::run_reference(network, weights, batch, inputs);
        const Engine engine = compile(network, weights, {.device = device(), .max_batch = 2, .max_points = 64});
        const EngineOutputs outputs = test::run_engine(engine, batch, inputs);
        for (const auto& [name, output] : outputs) {
            const std::vector<double>& expected = run.output(name).values;
            double largest = 1e-3;
            for (const double value : expected) largest = std::max(largest, std::abs(value));
            EXPECT_LE(largest_difference(output.span(), expected), 1e-4 * largest)
                << models::kFlowFamilyWords[family] << ", " << name;
        }
    }
}

}  // namespace
}  // namespace stipple::engine
