#include "stipple/engine/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/calibrate/observe.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/registry.h"
#include "stipple/network/builder.h"
#include "tests/engine/run_engine.h"
#include "tests/support/devices.h"
#include "tests/support/reference_classifier.h"
#include "tests/support/reference_weights.h"

namespace stipple::engine {
namespace {

using network::Network;
using network::Weights;
using test::bad_argument_of;

/// A PointNet that tells shapes apart, and shapes that it has not seen.
struct Fixture {
    Network network = models::pointnet_classifier({.classes = test::kShapes});
    Weights weights = test::random_weights(network, 3);
    test::ShapeClouds clouds = test::shape_clouds(40, 128, 7);

    Fixture() { test::fit_head(network, weights, test::shape_clouds(100, 128, 5)); }
    ops::Clouds view() const { return {clouds.points.view(), clouds.batch}; }
};

const Fixture& fixture() {
    static const Fixture made;
    return made;
}

TEST(EngineCalibration, RangesAreThoseOfTheLayersInputs) {
    const Fixture& f = fixture();
    const Calibration found = calibrate(f.network, f.weights, f.view(), {.method = RangeMethod::max});
    EXPECT_EQ(found.clouds, 40);
    EXPECT_EQ(found.precision, Precision::int8);
    // The wide layers of the three branches are there, coordinates and heads are not.
    ASSERT_GE(found.layers.size(), 5u);
    const test::ReferenceRun run = test::run_reference(f.network, f.weights, f.clouds.batch,
                                                       {{"points", f.clouds.points.view()}}, test::Keep::all);
    int compared = 0;
    for (const network::Layer& layer : f.network.layers) {
        const auto range = found.layers.find(layer.name);
        if (range == found.layers.end() || layer.kind != network::Kind::linear) continue;
        const test::ReferenceTensor& input = run.tensors[static_cast<size_t>(layer.inputs[0])];
        double largest = 0;
        for (const double x : input.values) largest = std::max(largest, std::abs(x));
        // A layer that follows a transform multiplies by the cloud's own matrix, and reads what the transform reads.
        if (f.network[layer.inputs[0]].kind == network::Kind::transform) continue;
        EXPECT_NEAR(range->second.largest, largest, 1e-4 * largest) << layer.name;
        EXPECT_EQ(range->second.range, range->second.largest) << layer.name;
        ++compared;
    }
    EXPECT_GE(compared, 4);
}

TEST(EngineCalibration, MethodsOrderTheirRanges) {
    const Fixture& f = fixture();
    const Calibration largest = calibrate(f.network, f.weights, f.view(), {.method = RangeMethod::max}),
                      most = calibrate(f.network, f.weights, f.view(),
                                       {.method = RangeMethod::percentile, .percentile = 99.9}),
                      half = calibrate(f.network, f.weights, f.view(),
                                       {.method = RangeMethod::percentile, .percentile = 60}),
                      entropy = calibrate(f.network, f.weights, f.view(), {.method = RangeMethod::entropy});
    for (const auto& [name, layer] : largest.layers) {
        EXPECT_LT(most.layers.at(name).range, layer.range) << name;
        EXPECT_LT(half.layers.at(name).range, most.layers.at(name).range) << name;
        EXPECT_LE(entropy.layers.at(name).range, layer.range) << name;
        EXPECT_GT(entropy.layers.at(name).range, 0.05f * layer.range) << name;
        EXPECT_GT(half.layers.at(name).error, most.layers.at(name).error) << name;  // clipping hurts
        EXPECT_GT(layer.error, 0) << name;
    }
}

TEST(EngineCalibration, ErrorsAreThoseOfTheEngine) {
    const Fixture& f = fixture();
    const Calibration found = calibrate(f.network, f.weights, f.view(), {.max_logit_error = 1e9});
    const Options options{.precision = Precision::fp32, .max_batch = 16, .max_points = 128};
    const ops::Batch first = ops::Batch::dense(16, 128);
    const View<const float, 2> points = f.clouds.points.view().slice(0, 16 * 128);
    const Array<float, 2> exact =
        std::move(test::run_engine(compile(f.network, f.weights, options), first, {{"points", points}}).at("logits"));
    double mean = 0, spread = 0;
    for (const float x : exact.span()) mean += x / static_cast<double>(exact.elements());
    for (const float x : exact.span()) spread += (x - mean) * (x - mean) / static_cast<double>(exact.elements());
    for (const auto& [name, layer] : found.layers) {
        Calibration alone = found;
        for (auto& [other, range] : alone.layers) range.keep_higher = other != name;
        Options low = options;
        low.precision = Precision::int8;
        low.calibration = alone;
        Program program = lower(f.network, f.weights);
        Engine engine = compile(f.network, f.weights, low);
        // Heads are bf16 in such an engine: only the layer in question may differ from fp32.
        program = engine.program();
        for (Step& step : program.steps)
            for (Dense& dense : step.layers)
                if (dense.name != name) dense.precision = Precision::fp32;
        engine = compile(program, low);
        const Array<float, 2> rounded = std::move(test::run_engine(engine, first, {{"points", points}}).at("logits"));
        double squares = 0;
        for (int64_t i = 0; i < exact.elements(); ++i)
            squares += std::pow(rounded.data()[i] - exact.data()[i], 2) / static_cast<double>(exact.elements());
        const double error = std::sqrt(squares / spread);
        // Rounding on the other side of a half, now and then: the same errors, not the same bits.
        EXPECT_NEAR(error, layer.error, 0.2 * layer.error + 1e-4) << name;
    }
}

TEST(EngineCalibration, LayersThatHurtAreKeptBack) {
    const Fixture& f = fixture();
    const Calibration all = calibrate(f.network, f.weights, f.view(), {.max_logit_error = 1e9});
    std::vector<double> errors;
    for (const auto& [name, layer] : all.layers) {
        EXPECT_FALSE(layer.keep_higher);
        errors.push_back(layer.error);
    }
    std::sort(errors.begin(), errors.end());
    const double limit = (errors[errors.size() / 2 - 1] + errors[errors.size() / 2]) / 2;
    const Calibration some = calibrate(f.network, f.weights, f.view(), {.max_logit_error = limit});
    for (const auto& [name, layer] : some.layers) {
        EXPECT_EQ(layer.error, all.layers.at(name).error) << name;
        EXPECT_EQ(layer.keep_higher, layer.error > limit) << name;
    }
    const Engine engine = compile(f.network, f.weights, {.precision = Precision::int8, .calibration = some});
    for (const Step& step : engine.program().steps)
        for (const Dense& dense : step.layers)
            if (const auto layer = some.layers.find(dense.name); layer != some.layers.end()) {
                EXPECT_EQ(dense.precision, layer->second.keep_higher ? Precision::fp32 : Precision::int8) << dense.name;
            }
}

TEST(EngineCalibration, WinnersStayTheSame) {
    const Fixture& f = fixture();
    for (const RangeMethod method : {RangeMethod::max, RangeMethod::percentile, RangeMethod::entropy}) {
        const Calibration found = calibrate(f.network, f.weights, f.view(), {.method = method});
        const Options options{.max_batch = 40, .max_points = 128};
        Options low = options;
        low.precision = Precision::int8;
        low.calibration = found;
        const std::vector<test::ReferenceInput> inputs = {{"points", f.clouds.points.view()}};
        const Array<float, 2>
            exact = std::move(
                test::run_engine(compile(f.network, f.weights, options), f.clouds.batch, inputs).at("logits")),
            rounded =
                std::move(test::run_engine(compile(f.network, f.weights, low), f.clouds.batch, inputs).at("logits"));
        int equal = 0;
        for (int64_t i = 0; i < 40; ++i) {
            const auto winner = [&](const Array<float, 2>& logits) {
                const float* row = logits.data() + i * test::kShapes;
                return std::max_element(row, row + test::kShapes) - row;
            };
            equal += winner(exact) == winner(rounded);
        }
        EXPECT_GE(equal, 39) << name_of(method);
    }
}

TEST(EngineCalibration, Fp8HasErrorsOfItsOwn) {
    const Fixture& f = fixture();
    const Calibration found =
        calibrate(f.network, f.weights, f.view(), {.precision = Precision::fp8, .method = RangeMethod::max});
    EXPECT_EQ(found.precision, Precision::fp8);
    const Calibration int8 = calibrate(f.network, f.weights, f.view(), {.method = RangeMethod::max});
    for (const auto& [name, layer] : found.layers) {
        EXPECT_EQ(layer.range, int8.layers.at(name).range) << name;
        // Three bits of mantissa round to 1/32 of a number at most, int8 to 1/254 of the largest one.
        EXPECT_GT(layer.error, int8.layers.at(name).error) << name;
        EXPECT_LT(layer.error, 20 * int8.layers.at(name).error) << name;
    }
}

TEST(EngineCalibration, SameOnAnyNumberOfThreads) {
    const Fixture& f = fixture();
    set_threads(1);
    const std::string one = calibration_json(calibrate(f.network, f.weights, f.view(), {}));
    set_threads(3);
    const std::string three = calibration_json(calibrate(f.network, f.weights, f.view(), {}));
    set_threads(0);
    EXPECT_EQ(one, three);
}

TEST(EngineCalibration, RaggedCloudsAndOneCloud) {
    const Fixture& f = fixture();
    const ops::Clouds ragged(f.clouds.points.view().slice(0, 300), ops::Batch::ragged({0, 1, 120, 300}));
    EXPECT_EQ(calibrate(f.network, f.weights, ragged, {}).clouds, 3);
    EXPECT_EQ(calibrate(f.network, f.weights, ops::Clouds(f.clouds.points.view().slice(0, 20)), {}).clouds, 1);
}

TEST(EngineCalibration, RefusesWhatItCannotCalibrate) {
    const Fixture& f = fixture();
    EXPECT_NE(bad_argument_of([&] {
                  calibrate(f.network, f.weights, f.view(), {.precision = Precision::bf16});
              }).find("bf16 needs no calibration"),
              std::string::npos);
    EXPECT_NE(bad_argument_of([&] {
                  calibrate(f.network, f.weights, ops::Clouds(f.clouds.points.view().slice(0, 0), ops::Batch()), {});
              }).find("needs clouds"),
              std::string::npos);
    EXPECT_NE(bad_argument_of([&] { calibrate(f.network, f.weights, f.view(), {.percentile = 0}); }).find("percentile"),
              std::string::npos);
    const ops::Clouds flat(View<const float, 2>(f.clouds.points.data(), {64, 2}));
    EXPECT_NE(bad_argument_of([&] { calibrate(f.network, f.weights, flat, {}); }).find("must be [64, 3], got [64, 2]"),
              std::string::npos);
    Array<float, 2> points({64, 3});
    std::fill_n(points.data(), 192, 0.5f);
    points.data()[100] = NAN;
    try {
        calibrate(f.network, f.weights, ops::Clouds(points.view()), {});
        ADD_FAILURE() << "a NaN was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_finite);
        EXPECT_NE(error.message().find("cloud 0"), std::string::npos) << error.message();
    }
}

Calibration small_calibration() {
    Calibration calibration;
    calibration.precision = Precision::fp8;
    calibration.method = RangeMethod::entropy;
    calibration.clouds = 12;
    calibration.layers["conv2"] = {1.5f, 2.25f, 0.01, false};
    calibration.layers["seg1/conv2"] = {0.1f, 3e5f, 0.25, true};
    return calibration;
}

TEST(EngineCalibrationJson, ReadsBackWhatWasWritten) {
    Weights weights;
    EXPECT_FALSE(has_calibration(weights));
    set_calibration(weights, small_calibration());
    EXPECT_TRUE(has_calibration(weights));
    const Calibration again = calibration_of(weights), first = small_calibration();
    EXPECT_EQ(again.precision, first.precision);
    EXPECT_EQ(again.method, first.method);
    EXPECT_EQ(again.clouds, first.clouds);
    ASSERT_EQ(again.layers.size(), 2u);
    for (const auto& [name, layer] : first.layers) {
        EXPECT_EQ(again.layers.at(name).range, layer.range);
        EXPECT_EQ(again.layers.at(name).largest, layer.largest);
        EXPECT_EQ(again.layers.at(name).error, layer.error);
        EXPECT_EQ(again.layers.at(name).keep_higher, layer.keep_higher);
    }
    EXPECT_EQ(calibration_json(again), calibration_json(first));
}

TEST(EngineCalibrationJson, RefusesEverythingElse) {
    const std::string layer = R"({"range":1,"largest":1,"error":0,"keep_higher":false})",
                      head = R"("precision":"int8","method":"max","clouds":1)";
    parse_calibration("{" + head + R"(,"layers":{"a":)" + layer + "}}");
    const std::pair<std::string, std::string> bad[] = {
        {"", "no JSON"},
        {"[]", "no JSON"},
        {"{}", "lacks its precision"},
        {R"({"precision":"int8","method":"max"})", "lacks"},
        {"{" + head, "no JSON"},
        {"{" + head + R"(,"more":1})", "\"more\" is not known"},
        {R"({"precision":"fp32","method":"max","clouds":1})", "must be int8 or fp8"},
        {R"({"precision":8,"method":"max","clouds":1})", "must be int8 or fp8"},
        {R"({"precision":"int8","method":"best","clouds":1})", "must be max, percentile or entropy"},
        {R"({"precision":"int8","method":"max","clouds":0})", "must be at least 1"},
        {R"({"precision":"int8","method":"max","clouds":"1"})", "must be a whole number"},
        {"{" + head + R"(,"layers":{"a":{"range":1}}})", "lacks a field"},
        {"{" + head + R"(,"layers":{"a":{"range":0,"largest":1,"error":0,"keep_higher":false}}})", "above 0"},
        {"{" + head + R"(,"layers":{"a":{"range":-1,"largest":1,"error":0,"keep_higher":false}}})", "from 0"},
        {"{" + head + R"(,"layers":{"a":{"range":1e300,"largest":1,"error":0,"keep_higher":false}}})", "of float32"},
        {"{" + head + R"(,"layers":{"a":{"range":1,"largest":"x","error":0,"keep_higher":false}}})",
         "must be a number"},
        {"{" + head + R"(,"layers":{"a":{"range":1,"largest":1,"error":-1,"keep_higher":false}}})", "from 0"},
        {"{" + head + R"(,"layers":{"a":{"range":1,"largest":1,"error":0,"keep_higher":0}}})", "true or false"},
        {"{" + head + R"(,"layers":{"a":{"range":1,"largest":1,"error":0,"keep_higher":true,"x":1}}})", "not known"},
        {"{" + head + R"(,"layers":{"a":1}})", "not known"},
        {"{" + head + R"(,"layers":[1,2]})", "not known"},
    };
    for (const auto& [text, reason] : bad) {
        try {
            parse_calibration(text);
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file) << text;
            EXPECT_NE(error.message().find(reason), std::string::npos) << text << ": " << error.message();
        }
    }
    EXPECT_THROW(calibration_of(Weights{}), Error);
}

TEST(EngineUnfuse, ComputesTheSame) {
    const Fixture& f = fixture();
    const Program program = lower(f.network, f.weights);
    const Unfused unfused = unfuse(program, Precision::int8);
    for (const Step& step : unfused.program.steps) EXPECT_LE(step.layers.size(), 1u);
    EXPECT_GT(unfused.program.steps.size(), program.steps.size());
    const Options options{.max_batch = 40, .max_points = 128};
    const std::vector<test::ReferenceInput> inputs = {{"points", f.clouds.points.view()}};
    const auto fused = test::run_engine(compile(program, options), f.clouds.batch, inputs);
    const auto flat = test::run_engine(compile(unfused.program, options), f.clouds.batch, inputs);
    for (const auto& [name, rows] : fused)
        for (int64_t i = 0; i < rows.elements(); ++i)
            ASSERT_NEAR(flat.at(name).data()[i], rows.data()[i], 1e-4) << name;
}

}  // namespace
}  // namespace stipple::engine
