#include "stipple/models/puflow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/core/rng.h"
#include "tests/support/data_sets.h"
#include "tests/support/devices.h"
#include "tests/support/expect_error.h"
#include "tests/support/puflow_reference.h"
#include "tests/support/reference_network.h"
#include "tests/support/reference_weights.h"

namespace stipple::models {
namespace {

using network::Network;
using test::load_puflow_array;
using test::PuFlowArray;
using test::ReferenceTensor;

Array<float, 2> points_of(const std::vector<float>& values) {
    Array<float, 2> points({static_cast<int64_t>(values.size()) / 3, 3});
    std::copy(values.begin(), values.end(), points.data());
    return points;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    EXPECT_EQ(a.size(), b.size());
    double largest = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

/// [n, k, r] as the published [n, r, k].
std::vector<double> children_first(const ReferenceTensor& x) {
    const int64_t k = x.type.width, ratio = x.type.channels;
    std::vector<double> turned;
    for (int64_t n = 0; n < x.rows / k; ++n)
        for (int64_t r = 0; r < ratio; ++r)
            for (int64_t j = 0; j < k; ++j) turned.push_back(x.row(n * k + j)[r]);
    return turned;
}

TEST(PuFlow, HasThePublishedNumberOfParameters) {
    int64_t trained = 0;
    for (const network::Parameter& parameter : parameters_of(puflow({.stages = true}))) {
        int64_t elements = 1;
        for (const int64_t extent : parameter.shape) elements *= extent;
        if (parameter.is_trained) trained += elements;
    }
    EXPECT_EQ(trained, 806103);
}

TEST(PuFlow, CostsWhatTheSpecificationSays) {
    const int64_t features = 7265280, conditions = 70656, interpolation = 654336 + 8 * 4 * 3;
    const int64_t injectors = 129280, coupling = 64640, mix = 6 * 9;
    EXPECT_EQ(multiply_adds(puflow({}), 1),
              features + conditions + interpolation + injectors + (1 + 4) * (coupling + mix));
}

TEST(PuFlow, RefusesOptionsOutOfRange) {
    EXPECT_NE(test::bad_argument_of([] { puflow({.ratio = 0}); }).find("ratio"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { puflow({.ratio = 33}); }).find("ratio"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { puflow({.neighbours = 129}); }).find("neighbours"), std::string::npos);
    EXPECT_NE(test::bad_argument_of([] { puflow({.interpolation_neighbours = 0}); }).find("interpolation_neighbours"),
              std::string::npos);
}

TEST(PuFlow, EveryStageIsThatOfThePublishedProgram) {
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    const Network network = puflow({.stages = true});
    const network::Weights weights = test::load_puflow_weights();
    check_weights(network, weights);
    const Array<float, 2> patch = points_of(load_puflow_array("input_patch").floats());
    const auto run =
        test::run_reference(network, weights, ops::Batch::single(256), {{"points", patch.view()}}, test::Keep::outputs);

    const auto expect = [&](const std::string& output, const std::string& file, double tolerance) {
        EXPECT_LE(largest_difference(run.output(output).values, load_puflow_array(file).values), tolerance) << output;
    };
    for (int l = 1; l <= 6; ++l) expect(fmt::format("cond_{}", l), fmt::format("cond_{}", l), 1e-4);
    expect("feat_1", "feat_1", 1e-3);
    expect("feat_6", "feat_6", 1e-3);
    const PuFlowArray flow = load_puflow_array("flow_1to6");
    for (int l = 0; l < 6; ++l) {
        const std::vector<double> stage(flow.values.begin() + l * 768, flow.values.begin() + (l + 1) * 768);
        EXPECT_LE(largest_difference(run.output(fmt::format("flow_{}", l + 1)).values, stage), 1e-3) << l;
    }
    expect("z", "z", 1e-3);
    expect("latent_interp", "latent_interp", 1e-3);
    expect("decoded", "decoded", 1e-4);
    expect("upsampled", "decoded", 1e-4);
    expect("inverse_of_z", "inverse_of_z", 1e-4);
    expect("log_det", "logdet", 1e-2);
    expect("nll", "nll", 1e-2);
    EXPECT_LE(
        largest_difference(children_first(run.output("interp_logits")), load_puflow_array("interp_logits").values),
        1e-3);
    EXPECT_LE(largest_difference(children_first(run.output("weights")), load_puflow_array("interp_weights").values),
              1e-4);
    // The same in double precision: what is left is that eps and slopes are float32 in a Network.
    expect("z", "z_f64", 1e-6);
    expect("latent_interp", "latent_interp_f64", 1e-6);
    expect("decoded", "decoded_f64", 1e-7);
    expect("log_det", "logdet_f64", 1e-5);
}

TEST(PuFlow, TheFlowIsInvertedAndItsDeterminantCounted) {
    const int64_t n = 40;
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < 3 * n; ++i) points.data()[i] = 2 * Rng(1).uniform(static_cast<uint64_t>(i)) - 1;
    const Network network = puflow({.ratio = 3, .stages = true});
    network::Weights weights = initial_weights(network, 2);
    for (auto& [name, tensor] : weights.tensors)  // what starts at zero would hide mistakes
        if (name.ends_with("layers.4.weight") || name.ends_with("logs") || name.ends_with("actnorm.bias"))
            for (size_t i = 0; i < tensor.values.size(); ++i)
                tensor.values[i] = 0.1f * Rng(3, std::hash<std::string>{}(name)).normal(i);
    const ops::Batch batch = ops::Batch::ragged({0, 16, n});
    const auto run = test::run_reference(network, weights, batch, {{"points", points.view()}});
    EXPECT_LE(largest_difference(run.output("inverse_of_z").values, {points.data(), points.data() + 3 * n}), 1e-9);
    EXPECT_GT(largest_difference(run.output("z").values, {points.data(), points.data() + 3 * n}), 0.1);
    EXPECT_EQ(run.output("upsampled").rows, 3 * n);
    for (int64_t i = 0; i < n; ++i)
        for (int r = 0; r < 3; ++r) {
            double sum = 0;
            for (int j = 0; j < 8; ++j) sum += run.output("weights").row(8 * i + j)[r];
            EXPECT_NEAR(sum, 1, 1e-12);
        }
    // nll = -(log density + log_det), cloud by cloud.
    for (int64_t cloud = 0; cloud < 2; ++cloud) {
        double density = 0;
        for (int64_t i = batch.begin(cloud); i < batch.end(cloud); ++i)
            for (int c = 0; c < 3; ++c) density -= (std::pow(run.output("z").row(i)[c], 2) + std::log(2 * M_PI)) / 2;
        EXPECT_NEAR(run.output("nll").values[cloud], -(density + run.output("log_det").values[cloud]), 1e-9);
    }
}

/// Points of a cube, the same everywhere.
Array<float, 2> points_in_a_cube(int64_t n) {
    Array<float, 2> points({n, 3});
    for (int64_t i = 0; i < 3 * n; ++i) points.data()[i] = 2 * Rng(1).uniform(static_cast<uint64_t>(i)) - 1;
    return points;
}

TEST(PuFlow, EveryFamilyOfFlowsGoesThereAndBack) {
    const Array<float, 2> points = points_in_a_cube(20);
    for (const FlowFamily family :
         {FlowFamily::coupling, FlowFamily::residual, FlowFamily::continuous, FlowFamily::augmented}) {
        const Network network = puflow({.family = family, .steps = 40, .stages = true});
        const auto run = test::run_reference(network, test::random_weights(network, 3), ops::Batch::single(20),
                                             {{"points", points.view()}});
        const std::string& name = kFlowFamilyWords[static_cast<size_t>(family)];
        EXPECT_LE(largest_difference(run.output("inverse_of_z").values, {points.data(), points.data() + 60}), 1e-5)
            << name;
        EXPECT_EQ(run.output("upsampled").type, network::rows_of(4, 3)) << name;
        EXPECT_EQ(run.output("z").type.channels, family == FlowFamily::augmented ? 11 : 3) << name;
        EXPECT_TRUE(std::isfinite(run.output("nll").values[0])) << name;
    }
}

// What starts is the identity but for actnorms, matrices and shifts: the published one is as it was.
TEST(PuFlow, FamiliesShareFeaturesAndInterpolation) {
    std::set<std::string> published;
    for (const network::Parameter& parameter : parameters_of(puflow({}))) published.insert(parameter.name);
    for (size_t i = 0; i < std::size(kFlowFamilyWords); ++i)
        for (const network::Parameter& parameter : parameters_of(puflow({.family = static_cast<FlowFamily>(i)}))) {
            const bool is_shared = parameter.name.starts_with("feat_convs") ||
                                   parameter.name.starts_with("merge_convs") || parameter.name.starts_with("interp");
            EXPECT_TRUE(!is_shared || published.contains(parameter.name)) << parameter.name;
        }
}

TEST(PuFlow, LatentNeighboursAreNearestInLatentSpace) {
    const Array<float, 2> points = points_in_a_cube(30);
    const Network network = puflow(
        {.neighbours = 8, .interpolation_neighbours = 4, .neighbourhood = Neighbourhood::latent, .stages = true});
    const auto run = test::run_reference(network, test::random_weights(network, 3), ops::Batch::single(30),
                                         {{"points", points.view()}});
    const ReferenceTensor &z = run.output("z"), &near = run.output("neighbours");
    const auto distance = [&](int64_t i, int64_t j) {
        double sum = 0;
        for (int c = 0; c < 3; ++c) sum += std::pow(z.row(i)[c] - z.row(j)[c], 2);
        return sum;
    };
    for (int64_t i = 0; i < 30; ++i) {
        int64_t nearer = 0;
        const double last = distance(i, static_cast<int64_t>(near.values[i * 4 + 3]));
        for (int64_t j = 0; j < 30; ++j) nearer += distance(i, j) < last * (1 - 1e-6);
        EXPECT_EQ(nearer, 3) << i;
    }
}

TEST(PuFlow, NoiseIsAddedToTheLatents) {
    const Array<float, 2> points = points_in_a_cube(20);
    const Network plain = puflow({}), noisy = puflow({.noise = true});
    const network::Weights weights = test::random_weights(plain, 4);
    Array<float, 2> noise({80, 3});
    std::fill_n(noise.data(), noise.elements(), 0.0f);
    const auto run = [&](const Network& network) {
        return test::run_reference(network, weights, ops::Batch::single(20),
                                   {{"points", points.view()}, {"noise", noise.view()}})
            .output("upsampled")
            .values;
    };
    EXPECT_EQ(run(plain), run(noisy));
    noise.data()[3] = 0.1f;  // of the second child
    const std::vector<double> moved = run(noisy), before = run(plain);
    for (size_t i = 0; i < moved.size(); ++i) EXPECT_EQ(moved[i] != before[i], i >= 3 && i < 6) << i;
}

TEST(PuFlow, CoordinatesAreInterpolatedByTheSameWeights) {
    const Array<float, 2> points = points_in_a_cube(20);
    const Network direct = puflow({.interpolated = Interpolated::coordinates}), plain = puflow({});
    const network::Weights weights = test::random_weights(plain, 4);
    const auto run = [&](const Network& network) {
        return test::run_reference(network, weights, ops::Batch::single(20), {{"points", points.view()}});
    };
    const auto made = run(direct), usual = run(plain);
    EXPECT_EQ(made.output("nll").values, usual.output("nll").values);
    const ReferenceTensor &children = made.output("upsampled"), &near = made.output("neighbours"),
                          &shares = made.output("weights");
    for (int64_t i = 0; i < 20; ++i)
        for (int64_t child = 0; child < 4; ++child)
            for (int64_t axis = 0; axis < 3; ++axis) {
                double sum = 0;
                for (int64_t j = 0; j < 8; ++j)
                    sum += shares.values[static_cast<size_t>(4 * (8 * i + j) + child)] *
                           points.data()[3 * static_cast<int64_t>(near.values[static_cast<size_t>(8 * i + j)]) + axis];
                EXPECT_NEAR(children.values[static_cast<size_t>(3 * (4 * i + child) + axis)], sum, 1e-6);
            }
    EXPECT_ERROR(puflow({.interpolated = Interpolated::coordinates, .noise = true}), bad_argument, "without noise");
}

}  // namespace
}  // namespace stipple::models
