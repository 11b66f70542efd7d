// scripts/pth_to_safetensors.py: checkpoints with the published names become models that load and compute the same.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/array.h"
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
    const TemporaryFolder folder;
    EXPECT_EQ(run(folder, R"(
classifier = published.classifier()
def refuse(model, state, settings=None):
    try:
        convert.map_checkpoint(model, state, settings)
        print("nothing was refused")
    except convert.MappingError as error:
        print(error)
refuse("pointnet-classifier", published.puflow())
refuse("puflow", classifier)
refuse("pointnet-classifier", published.segmenter())
refuse("pointnet-classifier", published.classifier(channels=6))
refuse("pointnet-classifier", {**classifier, "feat.extra.weight": numpy.zeros(3)})
refuse("pointnet-classifier", {**classifier, "fc1.bias": numpy.zeros(5)})
refuse("pointnet-classifier", {**classifier, "fc1.weight": numpy.zeros((512, 1024, 3))})
refuse("pointnet-classifier", {**classifier, "fc1.weight": numpy.zeros(512)})
refuse("pointnet-classifier", {**classifier, "other.feat.conv1.weight": numpy.zeros(3)})
refuse("pointnet-classifier", classifier, {"clases": "3"})
)"),
              "no tensor is named feat.conv1.weight\n"
              "no tensor is named flow_blocks.0.actnorm.logs\n"
              "tensor fc1.weight is missing\n"
              "feat.conv1.weight takes 6 channels a point; networks on coordinates alone (3) are supported\n"
              "the model has no place for feat.extra.weight\n"
              "tensor fc1.bias has the shape [5], head.fc1.bias needs [512]\n"
              "tensor fc1.weight has the shape [512, 1024, 3], head.fc1.weight needs [512, 1024]\n"
              "tensor fc1.weight has the shape [512], a matrix is needed\n"
              "2 tensors end in feat.conv1.weight\n"
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

/// Runs the program on model.pth with a torch of our own making; exit status and messages.
std::string run_with_torch(const TemporaryFolder& folder, const std::string& torch) {
    std::filesystem::create_directory(folder / "fake");
    test::write_file(folder / "fake/torch.py", torch);
    test::write_file(folder / "model.pth", "\x80\x02.");
    return run(folder, R"(
import os, subprocess
environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["fake"] + sys.path[:2]), "PYTHONDONTWRITEBYTECODE": "1"}
result = subprocess.run([sys.executable, convert.__file__, "--model", "pointnet-classifier", "model.pth",
                         "model.safetensors"], env=environment, capture_output=True, text=True)
print(result.returncode, result.stdout + result.stderr, end="")
)");
}

// A pickle is opened by a PyTorch that can do so safely, or not at all.
TEST(PublishedCheckpoints, APickleNeedsASafeTorch) {
    const TemporaryFolder folder;
    EXPECT_EQ(run_with_torch(folder, "__version__ = '2.5.1+cu124'\ndef load(*a, **k): raise SystemExit('loaded')\n"),
              "1 pth_to_safetensors: torch 2.5.1+cu124 can be made to run code by a checkpoint; 2.10 or newer is "
              "needed\n");
    EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
}

TEST(PublishedCheckpoints, OfAPickleTheModelIsConverted) {
    const TemporaryFolder folder;
    const std::string output = run_with_torch(folder, R"(
import published_checkpoints
__version__ = "2.11.0"
class Tensor:
    def __init__(self, array): self.array, self.dtype = array, "torch." + str(array.dtype)
    def detach(self): return self
    cpu = contiguous = detach
    def numpy(self): return self.array
def load(path, map_location, weights_only):
    assert path == "model.pth" and map_location == "cpu" and weights_only is True
    state = {name: Tensor(value) for name, value in published_checkpoints.classifier().items()}
    return {"epoch": 200, "model_state_dict": state, "optimizer_state_dict": {"state": {0: {"step": state["fc1.bias"]}}}}
)");
    EXPECT_EQ(
        output,
        "0 model.safetensors: 96 tensors of pointnet-classifier\n"
        "pth_to_safetensors: a pickle is read with weights_only=True; convert only files whose origin you trust\n");
    EXPECT_EQ(load_model(folder / "model.safetensors").network.config.at("classes"), "10");
}

}  // namespace
}  // namespace stipple::models
