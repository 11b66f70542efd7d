#include "stipple/engine/program/validate_program.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/models/registry.h"
#include "tests/support/devices.h"

namespace stipple::engine {
namespace {

Program classifier() {
    static const Program program = [] {
        const network::Network net = models::build_model("pointnet-classifier", {{"classes", "5"}});
        return lower(net, network::initial_weights(net, 1));
    }();
    return program;
}

Program upsampler() {
    static const Program program = [] {
        const network::Network net = models::build_model("puflow", {});
        return lower(net, network::initial_weights(net, 1));
    }();
    return program;
}

Program continuous_upsampler() {
    static const Program program = [] {
        const network::Network net = models::build_model("puflow", {{"family", "continuous"}});
        return lower(net, network::initial_weights(net, 1));
    }();
    return program;
}

Program attentive_upsampler() {
    static const Program program = [] {
        const network::Network net =
            models::build_model("puflow", {{"context", "self-attention"}, {"attention_normalise", "joint"}});
        return lower(net, network::initial_weights(net, 1));
    }();
    return program;
}

TEST(EngineValidateProgram, AcceptsEveryModel) {
    for (const models::ModelEntry& entry : models::model_table()) {
        const network::Network net = models::build_model(entry.name, {});
        EXPECT_NO_THROW(validate(lower(net, network::initial_weights(net, 1)))) << entry.name;
    }
}

template <class Change>
std::string complaint(Program program, Change change) {
    change(program);
    return test::bad_argument_of([&] { validate(program); });
}

Step& step_of(Program& program, StepKind kind) {
    for (Step& step : program.steps)
        if (step.kind == kind) return step;
    ADD_FAILURE() << "no such step";
    return program.steps[0];
}

TEST(EngineValidateProgram, RefusesWhatBreaksThePromises) {
    const auto refused = [](Program program, const char* text, auto change) {
        const std::string found = complaint(std::move(program), change);
        EXPECT_NE(found.find(text), std::string::npos) << text << ": " << found;
    };
    refused(classifier(), "the inputs: there are none", [](Program& p) { p.inputs.clear(); });
    refused(classifier(), "the outputs: there are none", [](Program& p) { p.outputs.clear(); });
    refused(classifier(), "is there twice", [](Program& p) { p.outputs.push_back(p.outputs[0]); });
    refused(classifier(), "value 9999 of", [](Program& p) { p.outputs[0].value = 9999; });
    refused(classifier(), "value -7 of", [](Program& p) { p.steps[0].output = -7; });
    refused(classifier(), "made twice", [](Program& p) { p.steps.insert(p.steps.begin(), p.steps[0]); });
    refused(classifier(), "its value is", [](Program& p) { p.steps[1].output = p.steps[0].output; });
    refused(classifier(), "before it is made", [](Program& p) { std::swap(p.steps[0], p.steps[1]); });
    refused(classifier(), "before it is made", [](Program& p) { p.steps.pop_back(); });
    refused(classifier(), "weights", [](Program& p) { p.steps[0].layers[0].weight.pop_back(); });
    refused(classifier(), "biases", [](Program& p) { p.steps[0].layers[0].bias.clear(); });
    refused(classifier(), "not finite", [](Program& p) { p.steps[0].layers[0].weight[0] = INFINITY; });
    refused(classifier(), "not finite", [](Program& p) { p.steps[0].layers.back().bias[1] = NAN; });
    refused(classifier(), "takes", [](Program& p) { p.steps[0].layers[1].in = 7; });
    refused(classifier(), "reads nothing", [](Program& p) { p.steps[0].layers[0].parts.clear(); });
    refused(classifier(), "without layers", [](Program& p) { p.steps[0].layers.clear(); });
    refused(classifier(), "names its input",
            [](Program& p) { p.steps[0].layers[1].parts = p.steps[0].layers[0].parts; });
    refused(classifier(), "its value is", [](Program& p) { p.steps[0].reduce = Reduce::none; });
    refused(classifier(), "rows", [](Program& p) { p.steps[0].width = 3; });
    refused(classifier(), "out of range", [](Program& p) { p.steps[0].width = 0; });
    refused(classifier(), "no range", [](Program& p) { p.steps[0].layers[1].precision = Precision::int8; });
    refused(classifier(), "a range", [](Program& p) { p.steps[0].layers[1].input_range = NAN; });
    refused(classifier(), "slope", [](Program& p) { p.steps[0].layers[1].activation.slope = 0.5f; });
    refused(classifier(), "channels", [](Program& p) { p.values[0].type.channels = int64_t{1} << 40; });
    refused(classifier(), "weight", [](Program& p) { step_of(p, StepKind::fold_matrix).weight.pop_back(); });
    refused(continuous_upsampler(), "weight", [](Program& p) { step_of(p, StepKind::flow_step).weight.pop_back(); });
    refused(continuous_upsampler(), "not finite", [](Program& p) { step_of(p, StepKind::flow_step).weight[7] = NAN; });
    refused(continuous_upsampler(), "out of range", [](Program& p) { step_of(p, StepKind::flow_step).begin = 65; });
    refused(continuous_upsampler(), "out of range", [](Program& p) { step_of(p, StepKind::flow_step).end = 1 << 30; });
    refused(continuous_upsampler(), "condition", [](Program& p) { step_of(p, StepKind::flow_step).begin = 63; });
    refused(continuous_upsampler(), "neither tanh nor swish",
            [](Program& p) { step_of(p, StepKind::flow_step).activation = network::sigmoid(); });
    refused(attentive_upsampler(), "no words", [](Program& p) { step_of(p, StepKind::attend).begin = 2; });
    refused(attentive_upsampler(), "without exponentials", [](Program& p) { step_of(p, StepKind::attend).end = 0; });
    refused(attentive_upsampler(), "differ in channels",
            [](Program& p) { step_of(p, StepKind::attend).inputs[1] = step_of(p, StepKind::attend).inputs[2]; });
    refused(attentive_upsampler(), "inputs and has",
            [](Program& p) { step_of(p, StepKind::attend).inputs.pop_back(); });
    refused(attentive_upsampler(), "its value is",
            [](Program& p) { step_of(p, StepKind::weigh_points).inputs[0] = step_of(p, StepKind::attend).inputs[2]; });
    refused(classifier(), "matrix", [](Program& p) { step_of(p, StepKind::fold_matrix).inputs[0].value = 0; });
    refused(upsampler(), "inputs and has", [](Program& p) { step_of(p, StepKind::knn).inputs.clear(); });
    refused(upsampler(), "indices",
            [](Program& p) { p.values[static_cast<size_t>(step_of(p, StepKind::knn).output)].type.is_index = false; });
    refused(upsampler(), "", [](Program& p) { step_of(p, StepKind::interpolate).inputs.pop_back(); });
    refused(upsampler(), "", [](Program& p) { step_of(p, StepKind::log_det).factor = INFINITY; });
    refused(upsampler(), "", [](Program& p) { step_of(p, StepKind::softmax_rows).inputs[0].access = Access::cloud; });
}

}  // namespace
}  // namespace stipple::engine
