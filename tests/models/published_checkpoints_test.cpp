// scripts/pth_to_safetensors.py: checkpoints with the published names become models that load and compute the same.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/models/registry.h"
#include "tests/support/data_sets.h"
#include "tests/support/puflow_reference.h"
#include "tests/support/python.h"
#include "tests/support/reference_network.h"

namespace stipple::models {
namespace {

using network::Weights;
using test::TemporaryFolder;

/// Python with the converter as `convert` and the oracle as `published`.
std::string run(const TemporaryFolder& folder, const std::string& script) {
    const std::string root = STIPPLE_SOURCE_DIR;
    return test::run_python(folder, "import sys\nsys.dont_write_bytecode = True\nsys.path[:0] = ['" + root +
                                        "/scripts', '" + root + "/tests/models']\n" +
                                        "import numpy\nimport pth_to_safetensors as convert\n"
                                        "import published_checkpoints as published\n" +
                                        script);
}

/// What a script says that does not map.
std::string refusal(const std::string& call) {
    const TemporaryFolder folder;
    return run(folder, "try:\n    " + call +
                           "\n    print('nothing was refused')\nexcept convert.MappingError as e:\n    print(e)\n");
}

Array<float, 2> rows_of(const network::WeightTensor& tensor) {
    Array<float, 2> rows({tensor.shape[0], tensor.shape[1]});
    std::copy(tensor.values.begin(), tensor.values.end(), rows.data());
    return rows;
}

/// model.safetensors and check.safetensors (points, category, logits) in the folder: the first computes the second.
Model expect_same_logits(const TemporaryFolder& folder) {
    Model model = load_model(folder / "model.safetensors");
    const Weights check = network::load_weights(folder / "check.safetensors");
    const Array<float, 2> points = rows_of(check.tensors.at("points"));
    std::vector<test::ReferenceInput> inputs = {{"points", points.view()}};
    Array<float, 2> category;
    if (check.tensors.contains("category")) {
        category = rows_of(check.tensors.at("category"));
        inputs.push_back({"category", category.view()});
    }
    const auto result = test::run_reference(model.network, model.weights, ops::Batch::single(points.size(0)), inputs);
    const std::vector<double>& found = result.output("logits").values;
    const std::vector<float>& wanted = check.tensors.at("logits").values;
    EXPECT_EQ(found.size(), wanted.size());
    double spread = 0;
    for (size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
        EXPECT_NEAR(found[i], wanted[i], 1e-5) << i;
        spread = std::max(spread, std::abs(found[i]));
    }
    EXPECT_GT(spread, 0.1);  // not all zero
    return model;
}

constexpr const char* kWrite = R"(
def write(model, state, compute, prefix="", settings=None):
    points = numpy.random.default_rng(9).standard_normal((30, 3)).astype("f4")
    category = numpy.eye(16, dtype="f4")[[3]]
    arguments = (category[0],) if model == "pointnet-part-segmenter" else ()
    logits = compute(state, points, *arguments)
    check = {"points": points, "logits": numpy.atleast_2d(logits)}
    if arguments:
        check["category"] = category
    mapped, metadata = convert.map_checkpoint(model, {prefix + name: value for name, value in state.items()}, settings)
    convert.save_safetensors("model.safetensors", mapped, metadata)
    convert.save_safetensors("check.safetensors", check, {})
)";

TEST(PublishedCheckpoints, ClassifierWithBothTransforms) {
    const TemporaryFolder folder;
    run(folder,
        std::string(kWrite) + "write('pointnet-classifier', published.classifier(), published.run_classifier)\n");
    const Model model = expect_same_logits(folder);
    EXPECT_EQ(model.network.name, "pointnet-classifier");
    EXPECT_EQ(model.network.config, (std::map<std::string, std::string>{{"variant", "torch"},
                                                                        {"classes", "10"},
                                                                        {"input_transform", "true"},
                                                                        {"feature_transform", "true"},
                                                                        {"dropout", "0.3"}}));
}

TEST(PublishedCheckpoints, ClassifierWithoutFeatureTransformSavedFromSeveralGpus) {
    const TemporaryFolder folder;
    run(folder, std::string(kWrite) +
                    "write('pointnet-classifier', published.classifier(feature_transform=False), "
                    "published.run_classifier, 'module.', {'dropout': '0.4'})\n");
    const Model model = expect_same_logits(folder);
    EXPECT_EQ(model.network.config.at("feature_transform"), "false");
    EXPECT_EQ(model.network.config.at("dropout"), "0.4");
}

TEST(PublishedCheckpoints, Segmenter) {
    for (const bool feature_transform : {false, true}) {
        const TemporaryFolder folder;
        run(folder, std::string(kWrite) + "write('pointnet-segmenter', published.segmenter(feature_transform=" +
                        (feature_transform ? "True" : "False") + "), published.run_segmenter)\n");
        const Model model = expect_same_logits(folder);
        EXPECT_EQ(model.network.config.at("classes"), "4");
        EXPECT_EQ(model.network.config.at("feature_transform"), feature_transform ? "true" : "false");
    }
}

TEST(PublishedCheckpoints, PartSegmenter) {
    const TemporaryFolder folder;
    run(folder, std::string(kWrite) +
                    "write('pointnet-part-segmenter', published.part_segmenter(), published.run_part_segmenter)\n");
    const Model model = expect_same_logits(folder);
    EXPECT_EQ(model.network.config.at("classes"), "50");
    EXPECT_EQ(model.network.config.at("categories"), "16");
}

void expect_same_weights(const Weights& a, const Weights& b) {
    EXPECT_EQ(a.tensors.size(), b.tensors.size());
    for (const auto& [name, tensor] : a.tensors) {
        ASSERT_TRUE(b.tensors.contains(name)) << name;
        EXPECT_EQ(tensor.shape, b.tensors.at(name).shape) << name;
        EXPECT_EQ(tensor.values, b.tensors.at(name).values) << name;
    }
}

TEST(PublishedCheckpoints, PuFlowNames) {
    const TemporaryFolder folder;
    run(folder, R"(
state = published.puflow()
convert.save_safetensors("state.safetensors", state, {})
mapped, metadata = convert.map_checkpoint("puflow", {"network." + name: value for name, value in state.items()}, {"ratio": "8"})
convert.save_safetensors("model.safetensors", mapped, metadata)
)");
    const Model model = load_model(folder / "model.safetensors");
    EXPECT_EQ(model.network.config.at("ratio"), "8");
    // The names by another hand, which the parity tests use.
    expect_same_weights(model.weights, test::puflow_weights(network::load_weights(folder / "state.safetensors")));
}

TEST(PublishedCheckpoints, PuFlowAsPublished) {
    STIPPLE_NEEDS_DATA(test::kPuFlowReference);
    const TemporaryFolder folder;
    const std::string path = test::data_file(test::kPuFlowReference).value() + "/puflow_x4_pugan.safetensors";
    const std::string script = std::string(STIPPLE_SOURCE_DIR) + "/scripts/pth_to_safetensors.py";
    const std::string output =
        test::run_python(folder, "import subprocess, sys\nsubprocess.run([sys.executable, '" + script +
                                     "', '--model', 'puflow', '" + path + "', 'model.safetensors'], check=True)\n");
    EXPECT_EQ(output, "model.safetensors: 360 tensors of puflow\n");
    expect_same_weights(load_model(folder / "model.safetensors").weights, test::load_puflow_weights());
}

TEST(PublishedCheckpoints, WhatIsNotAsSaidIsRefused) {
    EXPECT_EQ(refusal("convert.map_checkpoint('pointnet-classifier', published.puflow())"),
              "no tensor is named feat.conv1.weight\n");
    EXPECT_EQ(refusal("convert.map_checkpoint('puflow', published.classifier())"),
              "no tensor is named flow_blocks.0.actnorm.logs\n");
    EXPECT_EQ(refusal("convert.map_checkpoint('pointnet-classifier', published.segmenter())"),
              "tensor fc1.weight is missing\n");
    EXPECT_EQ(refusal("convert.map_checkpoint('pointnet-classifier', published.classifier(channels=6))"),
              "feat.conv1.weight takes 6 channels a point; networks on coordinates alone (3) are supported\n");
    EXPECT_EQ(refusal("convert.map_checkpoint('pointnet-classifier', {**published.classifier(), 'feat.extra.weight': "
                      "numpy.zeros(3)})"),
              "the model has no place for feat.extra.weight\n");
    EXPECT_EQ(refusal("convert.map_checkpoint('pointnet-classifier', {**published.classifier(), 'fc1.bias': "
                      "numpy.zeros(5)})"),
              "tensor fc1.bias has the shape [5], head.fc1.bias needs [512]\n");
    EXPECT_EQ(refusal("convert.map_checkpoint('pointnet-classifier', {**published.classifier(), 'fc1.weight': "
                      "numpy.zeros((512, 1024, 3))})"),
              "tensor fc1.weight has the shape [512, 1024, 3], head.fc1.weight needs [512, 1024]\n");
    EXPECT_EQ(refusal("convert.map_checkpoint('pointnet-classifier', published.classifier(), {'clases': '3'})"),
              "pointnet-classifier has no option clases; it has variant, classes, input_transform, feature_transform, "
              "dropout\n");
}

TEST(PublishedCheckpoints, OnlyTheModelOfACheckpointIsTaken) {
    const TemporaryFolder folder;
    EXPECT_EQ(run(folder, R"(
model = {"w": 1}
print(convert.state_of({"epoch": 3, "model_state_dict": model, "optimizer_state_dict": {"state": {}}}) is model,
      convert.state_of({"state_dict": {"model": model}}) is model, convert.state_of(model) is model)
)"),
              "True True True\n");
}

// A pickle is opened with a safe PyTorch or not at all; where there is none the script says so.
TEST(PublishedCheckpoints, APickleNeedsASafeTorch) {
    const TemporaryFolder folder;
    const std::string script = std::string(STIPPLE_SOURCE_DIR) + "/scripts/pth_to_safetensors.py";
    const std::string output = test::run_python(folder, R"(
import os, subprocess, sys, types
os.mkdir("old")
open("old/torch.py", "w").write("__version__ = '2.5.1+cu124'\ndef load(*a, **k): raise SystemExit('loaded')\n")
open("model.pth", "wb").write(b"\x80\x02.")
result = subprocess.run([sys.executable, ")" + script + R"(", "model.pth", "model.safetensors"],
                        env={**os.environ, "PYTHONPATH": "old"}, capture_output=True, text=True)
print(result.returncode, result.stderr.strip(), os.path.exists("model.safetensors"))
)");
    EXPECT_EQ(
        output,
        "1 pth_to_safetensors: torch 2.5.1+cu124 can be made to run code by a checkpoint; 2.10 or newer is needed "
        "False\n");
}

}  // namespace
}  // namespace stipple::models
