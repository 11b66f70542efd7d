// Weights that were trained, on clouds such as they know: learn, the engine and the reference agree.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/rng.h"
#include "stipple/engine/engine.h"
#include "stipple/models/registry.h"
#include "tests/learn/learn.h"
#include "tests/support/data_sets.h"
#include "tests/support/margin.h"
#include "tests/support/puflow_reference.h"
#include "tests/support/reference_classifier.h"

namespace stipple::learn {
namespace {

constexpr int64_t kClouds = 3, kCloudPoints = 64;

/// Rows for each input: shapes for points, one-hot rows for categories.
std::map<std::string, Array<float, 2>> shape_inputs(const network::Network& network) {
    std::map<std::string, Array<float, 2>> inputs;
    for (const network::Layer& layer : network.layers) {
        if (layer.kind != network::Kind::input) continue;
        const bool is_points = layer.type.level != network::Level::cloud;
        Array<float, 2> rows({is_points ? kClouds * kCloudPoints : kClouds, layer.type.channels});
        if (is_points) {
            const test::ShapeClouds shapes = test::shape_clouds(kClouds, kCloudPoints, 21 + test::trial());
            std::copy_n(shapes.points.data(), kClouds * kCloudPoints * 3, rows.data());
        } else {
            std::fill_n(rows.data(), kClouds * layer.type.channels, 0.0f);
            for (int64_t i = 0; i < kClouds; ++i)
                rows.data()[i * layer.type.channels + 5 * i % layer.type.channels] = 1;
        }
        inputs.emplace(layer.name, std::move(rows));
    }
    return inputs;
}

/// Largest difference over the largest magnitude of the reference.
template <class T>
double relative_difference(const T* found, const std::vector<double>& expected) {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        const double d = std::abs(static_cast<double>(found[i]) - expected[i]);
        worst = std::isnan(d) ? INFINITY : std::max(worst, d);
    }
    return worst / largest;
}

std::vector<test::ReferenceInput> reference_inputs(const std::map<std::string, Array<float, 2>>& rows) {
    std::vector<test::ReferenceInput> inputs;
    for (const auto& [name, array] : rows) inputs.push_back({name, array.view()});
    return inputs;
}

std::map<std::string, torch::Tensor> module_inputs(const std::map<std::string, Array<float, 2>>& rows,
                                                   torch::Dtype type) {
    std::map<std::string, torch::Tensor> inputs;
    for (const auto& [name, array] : rows)
        inputs.emplace(name,
                       torch::from_blob(const_cast<float*>(array.data()), {array.size(0), array.size(1)}).to(type));
    return inputs;
}

/// How far each output of the reference moves when every input moves to a float32 beside it: what rounding alone does.
std::map<std::string, double> effect_of_rounding(const models::Model& model, const std::vector<ops::Batch>& batch,
                                                 const std::map<std::string, Array<float, 2>>& rows,
                                                 const test::ReferenceRun& expected,
                                                 const std::vector<std::string>& outputs) {
    std::map<std::string, double> effect;
    for (uint64_t draw = 0; draw < 3; ++draw) {
        std::map<std::string, Array<float, 2>> moved;
        for (const auto& [name, array] : rows) {
            const Rng rng(draw, moved.size());
            Array<float, 2> beside({array.size(0), array.size(1)});
            for (int64_t i = 0; i < array.elements(); ++i)
                beside.data()[i] =
                    std::nextafter(array.data()[i], rng.below(static_cast<uint64_t>(i), 2) ? 2.0f : -2.0f);
            moved.emplace(name, std::move(beside));
        }
        const test::ReferenceRun run =
            test::run_reference(model.network, model.weights, batch, reference_inputs(moved));
        for (const std::string& name : outputs)
            effect[name] = std::max(effect[name],
                                    relative_difference(run.output(name).values.data(), expected.output(name).values));
    }
    return effect;
}

/// In float64 the trainer is the reference. In float32 the trainer and the engine round at every layer, each in an
/// order of its own and of the machine's, and flows magnify that: they may be off by a multiple of what one rounding
/// does.
void expect_agreement(const models::Model& model) {
    constexpr double kRoundings = 50, kLeast = 1e-5;
    SCOPED_TRACE(model.network.name);
    const bool has_queries = std::any_of(model.network.layers.begin(), model.network.layers.end(),
                                         [](const network::Layer& layer) { return layer.name == "queries"; });
    const std::vector<ops::Batch> batch(has_queries ? 2 : 1, ops::Batch::dense(kClouds, kCloudPoints));
    const std::map<std::string, Array<float, 2>> rows = shape_inputs(model.network);
    const test::ReferenceRun expected =
        test::run_reference(model.network, model.weights, batch, reference_inputs(rows));

    const torch::NoGradGuard no_gradients;
    std::vector<std::string> names;
    Module exact(model.network, model.weights, torch::kCPU, torch::kFloat64);
    for (const auto& [name, tensor] : exact.run(batch, module_inputs(rows, torch::kFloat64))) {
        if (tensor.scalar_type() != torch::kFloat64) continue;  // indices, of which equal distances may give others
        names.push_back(name);
        const torch::Tensor values = tensor.contiguous();
        const std::vector<double>& want = expected.output(name).values;
        ASSERT_EQ(values.numel(), static_cast<int64_t>(want.size())) << name;
        EXPECT_BELOW(relative_difference(values.data_ptr<double>(), want), 1e-9) << "learn in float64, " << name;
    }

    const std::map<std::string, double> effect = effect_of_rounding(model, batch, rows, expected, names);
    Module module(model.network, model.weights, torch::kCPU);
    const auto outputs = module.run(batch, module_inputs(rows, torch::kFloat32));
    std::map<std::string, Array<float, 2>> answers;
    std::vector<engine::Output> of_outputs;
    for (const std::string& name : names) {
        const torch::Tensor values = outputs.at(name).contiguous();
        const double tolerance = kLeast + kRoundings * effect.at(name);
        EXPECT_BELOW(relative_difference(values.data_ptr<float>(), expected.output(name).values), tolerance)
            << "learn, " << name;
        answers.emplace(name, Array<float, 2>({values.size(0), values.size(1)}));
    }
    std::vector<engine::Input> of_engine;
    for (const auto& [name, array] : rows) of_engine.push_back({name, array.view()});
    for (auto& [name, array] : answers) of_outputs.push_back({name, array.view()});
    const engine::Engine compiled =
        engine::compile(model.network, model.weights, {.max_batch = kClouds, .max_points = kCloudPoints});
    engine::Context(compiled).run(batch, of_engine, of_outputs);
    for (const auto& [name, array] : answers) {
        const double tolerance = kLeast + kRoundings * effect.at(name);
        EXPECT_BELOW(relative_difference(array.data(), expected.output(name).values), tolerance) << "engine, " << name;
    }
}

models::Model shipped(const std::string& name) {
    return models::load_model(std::string(STIPPLE_SOURCE_DIR) + "/weights/" + name + ".safetensors");
}

TEST(TrainedWeights, LearnEngineAndReferenceAgree) {
    for (const char* name : {"pointnet-cls", "pointnet-parts"}) expect_agreement(shipped(name));
}

TEST(TrainedWeights, OfFlowsToo) {
    expect_agreement(shipped("upsampler"));
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    expect_agreement({models::build_model("puflow", {}), test::load_puflow_weights()});
}

/// As tests/engine/run/puflow_test.cpp, under torch: every stage of the published program.
TEST(TrainedWeights, EveryStageOfThePublishedFlow) {
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    const torch::NoGradGuard no_gradients;
    const auto published = [](const std::string& name) { return test::load_puflow_array(name).values; };
    Module module(models::build_model("puflow", {{"stages", "true"}}), test::load_puflow_weights(), torch::kCPU);
    std::vector<float> patch = test::load_puflow_array("input_patch").floats();
    const auto outputs = module.run(ops::Batch::single(256), {{"points", torch::from_blob(patch.data(), {256, 3})}});
    const auto expect = [&](torch::Tensor tensor, const std::vector<double>& expected, double tolerance,
                            const std::string& name) {
        tensor = tensor.contiguous();
        ASSERT_EQ(tensor.numel(), static_cast<int64_t>(expected.size())) << name;
        double largest = 0;
        for (size_t i = 0; i < expected.size(); ++i)
            largest = std::max(largest, std::abs(tensor.data_ptr<float>()[i] - expected[i]));
        EXPECT_LE(largest, tolerance) << name;
    };
    for (int l = 1; l <= 6; ++l) {
        const std::string name = fmt::format("cond_{}", l);
        expect(outputs.at(name), published(name), 1e-4, name);
    }
    for (const char* name : {"feat_1", "feat_6", "z", "latent_interp"})
        expect(outputs.at(name), published(name), 1e-3, name);
    const std::vector<double> flow = published("flow_1to6");
    for (int l = 0; l < 6; ++l)
        expect(outputs.at(fmt::format("flow_{}", l + 1)), {flow.begin() + 768 * l, flow.begin() + 768 * (l + 1)}, 1e-3,
               fmt::format("flow_{}", l + 1));
    for (const char* name : {"decoded", "inverse_of_z"}) expect(outputs.at(name), published(name), 1e-4, name);
    expect(outputs.at("log_det"), published("logdet"), 1e-2, "log_det");
    expect(outputs.at("nll"), published("nll"), 1e-2, "nll");
    const auto children_first = [](const torch::Tensor& x) { return x.reshape({256, 8, 4}).permute({0, 2, 1}); };
    expect(children_first(outputs.at("interp_logits")), published("interp_logits"), 1e-3, "interp_logits");
    expect(children_first(outputs.at("weights")), published("interp_weights"), 1e-4, "weights");
    expect(outputs.at("inverse_of_z"), published("input_patch"), 1e-5, "the inverse of the flow");
}

}  // namespace
}  // namespace stipple::learn
