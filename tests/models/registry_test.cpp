#include "stipple/models/registry.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "stipple/core/error.h"
#include "stipple/models/autoencoder.h"
#include "stipple/models/flow_upsampler.h"
#include "stipple/models/gumbel_subset.h"
#include "stipple/models/pcrnet.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"
#include "stipple/models/samplenet.h"
#include "tests/support/temporary_folder.h"

namespace stipple::models {
namespace {

using network::Network;

struct Refusal {
    ErrorCode code;
    std::string text, hint;
};

template <class F>
Refusal refusal_of(const F& f) {
    try {
        f();
    } catch (const Error& error) {
        return {error.code(), error.what(), error.hint()};
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
}

/// Everything that makes two networks different.
std::string all_of(const Network& network) {
    std::string text = network.name;
    for (const network::Layer& layer : network.layers) {
        const network::LayerOptions& o = layer.options;
        text += fmt::format("\n{} {} ({}) {} {}: {} {} {} {} {} {} {} {} {} {} {} {} {} {}", layer.name,
                            name_of(layer.kind), fmt::join(layer.inputs, " "), layer.parameters, to_string(layer.type),
                            o.channels, o.bias, o.norm, o.norm_eps, o.norm_momentum,
                            static_cast<int>(o.activation.kind), o.activation.slope, static_cast<int>(o.weights),
                            o.rate, o.begin, o.end, o.width, o.factor, o.inverse);
    }
    for (const network::Output& output : network.outputs) text += fmt::format("\n{}: {}", output.name, output.tensor);
    return text;
}

void expect_refused(const std::string& model, const std::map<std::string, std::string>& config, const std::string& text,
                    const std::string& hint = "") {
    const Refusal refusal = refusal_of([&] { build_model(model, config); });
    EXPECT_EQ(refusal.code, ErrorCode::bad_config) << refusal.text;
    EXPECT_NE(refusal.text.find(text), std::string::npos) << refusal.text;
    EXPECT_NE(refusal.hint.find(hint), std::string::npos) << refusal.hint;
}

void expect_round_trip(const Network& network) {
    const Network again = build_model(network.name, network.config);
    EXPECT_EQ(all_of(again), all_of(network));
    EXPECT_EQ(again.config, network.config);
}

TEST(Registry, NamesAreThoseOfTheNetworks) {
    ASSERT_EQ(model_table().size(), 9u);
    for (const ModelEntry& entry : model_table()) {
        EXPECT_EQ(build_model(entry.name, {}).name, entry.name);
        EXPECT_FALSE(entry.summary.empty());
        expect_round_trip(build_model(entry.name, {}));
    }
}

TEST(Registry, ConfigurationsRoundTrip) {
    const PointNetOptions odd = {.variant = PointNetVariant::tf,
                                 .classes = 13,
                                 .input_transform = false,
                                 .feature_transform = true,
                                 .dropout = 0.1f,
                                 .dropout1 = 0.2f,
                                 .categories = 5,
                                 .width = 96,
                                 .neighbours = 7};
    for (const auto builder : {pointnet_classifier, pointnet_segmenter, pointnet_part_segmenter}) {
        expect_round_trip(builder(odd));
        EXPECT_EQ(builder(odd).config.at("dropout"), "0.1");
    }
    EXPECT_EQ(pointnet_classifier(odd).config.at("dropout1"), "0.2");
    EXPECT_EQ(pointnet_classifier({}).config.count("dropout1"), 0u);  // as published
    EXPECT_EQ(pointnet_part_segmenter(odd).config.at("categories"), "5");
    EXPECT_EQ(pointnet_part_segmenter(odd).config.at("width"), "96");
    EXPECT_EQ(pointnet_part_segmenter(odd).config.at("neighbours"), "7");
    expect_round_trip(flow_upsampler({.neighbours = 9,
                                      .layers = 2,
                                      .width = 24,
                                      .query_neighbours = 5,
                                      .hidden = 32,
                                      .blocks = 0,
                                      .flow_hidden = 8,
                                      .steps = 3}));
    expect_round_trip(puflow({.ratio = 7, .neighbours = 9, .interpolation_neighbours = 5, .stages = true}));
    expect_round_trip(puflow({.family = FlowFamily::residual, .neighbourhood = Neighbourhood::latent}));
    expect_round_trip(puflow({.interpolated = Interpolated::coordinates}));
    expect_round_trip(puflow({.family = FlowFamily::continuous, .steps = 5, .noise = true}));
    expect_round_trip(puflow({.family = FlowFamily::augmented, .augmented_channels = 3}));
    expect_round_trip(puflow({.family = FlowFamily::mlp, .stages = true}));
    expect_round_trip(samplenet({.shape = SamplerShape::reconstruction,
                                 .count = 9,
                                 .points = 77,
                                 .progressive = true,
                                 .neighbours = 3,
                                 .min_sigma = 0.5f,
                                 .projected = true}));
    expect_round_trip(samplenet({.neighbours = 0}));
    expect_round_trip(gumbel_subset({.count = 9, .points = 77, .progressive = true}));
    expect_round_trip(pcrnet({.iterations = 3, .features = 70, .hidden = 20}));
    expect_round_trip(autoencoder({.count = 9, .latent = 10, .hidden = 11}));
    EXPECT_NE(all_of(build_model("pointnet-classifier", {{"classes", "3"}})),
              all_of(build_model("pointnet-classifier", {})));
}

TEST(Registry, RefusesWhatItDoesNotKnow) {
    expect_refused("pointnet-clasifier", {}, "there is no model \"pointnet-clasifier\"",
                   "did you mean pointnet-classifier?");
    expect_refused("x", {}, "there is no model \"x\"", "there are autoencoder, flow-upsampler, ");
    expect_refused("pointnet-classifier", {{"clases", "4"}}, "pointnet-classifier has no option \"clases\"",
                   "did you mean classes?");
    expect_refused("pointnet-classifier", {{"categories", "4"}}, "no option \"categories\"");
    expect_refused("pointnet-classifier", {{"neighbours", "4"}}, "no option \"neighbours\"");
    expect_refused("pointnet-part-segmenter", {{"dropout1", "0.4"}}, "no option \"dropout1\"", "dropout?");
    expect_refused("puflow", {{"classes", "4"}}, "puflow has no option \"classes\"");
}

TEST(Registry, RefusesValuesThatDoNotParse) {
    expect_refused("pointnet-classifier", {{"classes", "4x"}},
                   "classes must be a whole number, 1 to 65536, got \"4x\"");
    expect_refused("pointnet-classifier", {{"classes", ""}}, "classes must be a whole number");
    expect_refused("pointnet-classifier", {{"classes", "99999999999999999999"}}, "classes must be a whole number");
    expect_refused("pointnet-classifier", {{"classes", "-1"}}, "classes must be 1 to 65536");
    expect_refused("pointnet-classifier", {{"classes", "1000000000000"}}, "classes must be 1 to 65536");
    expect_refused("pointnet-classifier", {{"dropout", "half"}},
                   "dropout must be a number, from 0, below 1, got \"half\"");
    expect_refused("pointnet-classifier", {{"dropout", "nan"}}, "dropout must be from 0, below 1, got nan");
    expect_refused("pointnet-classifier", {{"dropout", "1.5"}}, "dropout must be from 0, below 1, got 1.5");
    expect_refused("pointnet-classifier", {{"dropout1", "1"}}, "dropout1 must be from 0, below 1, got 1");
    expect_refused("pointnet-part-segmenter", {{"neighbours", "129"}}, "neighbours must be 0 to 128, got 129");
    expect_refused("pointnet-part-segmenter", {{"width", "0"}}, "width must be 1 to 65536, got 0");
    expect_refused("pointnet-classifier", {{"variant", "keras"}}, "variant must be one of torch, tf, got \"keras\"");
    expect_refused("pointnet-classifier", {{"input_transform", "1"}}, "input_transform must be true or false");
    expect_refused("puflow", {{"ratio", "33"}}, "ratio must be 1 to 32, got 33");
    expect_refused("puflow", {{"neighbours", "0"}}, "neighbours must be 1 to 128");
    expect_refused("puflow", {{"family", "spline"}}, "family");
    expect_refused("puflow", {{"steps", "0"}}, "steps must be 1 to 1000");
    expect_refused("puflow", {{"augmented_channels", "62"}}, "augmented_channels must be 1 to 61");
    expect_refused("flow-upsampler", {{"neighbours", "1"}}, "neighbours must be 2 to 128, got 1");
    expect_refused("flow-upsampler", {{"hidden", "30"}}, "hidden must be a multiple of 4, got 30");
    expect_refused("flow-upsampler", {{"steps", "0"}}, "steps must be 1 to 8, got 0");
    expect_refused("flow-upsampler", {{"refinement", "jump"}},
                   "refinement must be one of projection, matching, descent, got \"jump\"");
}

TEST(Registry, AFileIsAModel) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "model.safetensors";
    const Network network = pointnet_classifier({.classes = 3, .feature_transform = false});
    network::Weights weights = initial_weights(network, 1);
    set_config(weights, network);
    save_weights(path, weights, network::WeightStorage::f32, Overwrite::allow);
    const Model model = load_model(path);
    EXPECT_EQ(all_of(model.network), all_of(network));
    EXPECT_EQ(checksum(model.weights), checksum(weights));
}

TEST(Registry, AFileThatIsNoneSaysWhy) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "model.safetensors";
    const Network network = pointnet_classifier({.classes = 3, .feature_transform = false});
    network::Weights weights = initial_weights(network, 1);
    const auto expect = [&](ErrorCode code, const std::string& text) {
        save_weights(path, weights, network::WeightStorage::f32, Overwrite::allow);
        const Refusal refusal = refusal_of([&] { load_model(path); });
        EXPECT_EQ(refusal.code, code) << refusal.text;
        EXPECT_NE(refusal.text.find(path), std::string::npos) << refusal.text;
        EXPECT_NE(refusal.text.find(text), std::string::npos) << refusal.text;
    };
    weights.metadata.clear();
    expect(ErrorCode::bad_file, "stipple.model");
    set_config(weights, network);
    weights.metadata.at("stipple.model") = "pointnet-segmenter";
    expect(ErrorCode::bad_file, "head.");
    weights.metadata.at("stipple.model") = "pointnot";
    expect(ErrorCode::bad_config, "there is no model \"pointnot\"");
    set_config(weights, pointnet_classifier({.classes = 4, .feature_transform = false}));
    expect(ErrorCode::bad_file, "head.fc3");
}

/// A file with the weights of a network, some of them calibrated.
struct ModelFile {
    explicit ModelFile(const Network& network) : weights(initial_weights(network, 1)) {
        set_config(weights, network);
        weights.metadata["stipple.calibration"] = "{}";
        weights.metadata["stipple.classes"] = "a,b";
        save_weights(path, weights, network::WeightStorage::f32, Overwrite::allow);
    }
    test::TemporaryFolder folder;
    std::string path = folder / "model.safetensors";
    network::Weights weights;
};

TEST(RegistryOverrides, ChangeWhatTrainingDoesNotFix) {
    const ModelFile file(puflow({}));
    const Model model =
        load_model(file.path, {{"ratio", "16"}, {"neighbours", "24"}, {"interpolation_neighbours", "5"}});
    EXPECT_EQ(all_of(model.network), all_of(puflow({.ratio = 16, .neighbours = 24, .interpolation_neighbours = 5})));
    EXPECT_EQ(checksum(model.weights), checksum(file.weights));
    // The metadata are those of the new network: saved, it is that model.
    EXPECT_EQ(network::config_of(model.weights).at("ratio"), "16");
    EXPECT_EQ(network::config_of(model.weights).at("neighbours"), "24");
    EXPECT_EQ(network::config_of(model.weights).at("stages"), "false");
    EXPECT_EQ(model.weights.metadata.at("stipple.classes"), "a,b");
    save_weights(file.folder / "again.safetensors", model.weights, network::WeightStorage::f32, Overwrite::allow);
    EXPECT_EQ(all_of(load_model(file.folder / "again.safetensors").network), all_of(model.network));
}

TEST(RegistryOverrides, ACalibrationIsOfTheNetworkItWasMadeWith) {
    const ModelFile file(puflow({}));
    EXPECT_EQ(load_model(file.path).weights.metadata.count("stipple.calibration"), 1u);
    EXPECT_EQ(load_model(file.path, {{"ratio", "4"}}).weights.metadata.count("stipple.calibration"), 1u);
    EXPECT_EQ(load_model(file.path, {{"ratio", "8"}}).weights.metadata.count("stipple.calibration"), 0u);
}

TEST(RegistryOverrides, RefuseWhatDoesNotFitTheWeights) {
    const ModelFile file(pointnet_classifier({.classes = 3, .feature_transform = false}));
    const auto expect = [&](const std::map<std::string, std::string>& overrides, const std::string& text,
                            const std::string& hint) {
        const Refusal refusal = refusal_of([&] { load_model(file.path, overrides); });
        EXPECT_EQ(refusal.code, ErrorCode::bad_config) << refusal.text;
        EXPECT_NE(refusal.text.find(file.path), std::string::npos) << refusal.text;
        EXPECT_NE(refusal.text.find(text), std::string::npos) << refusal.text;
        EXPECT_NE(refusal.hint.find(hint), std::string::npos) << refusal.hint;
    };
    const std::string names = "names and shapes";
    expect({{"classes", "4"}},
           "classes = 4 does not fit the weights: head.fc3.weight would be [4, 256], the file has [3, 256]", names);
    expect({{"dropout", "0.5"}, {"input_transform", "false"}},
           "dropout = 0.5, input_transform = false does not fit the weights: there would be no "
           "input_transform.conv1.weight",
           names);
    expect({{"feature_transform", "true"}}, "feature_transform.conv1.weight [64, 64] is not in the file", names);
    expect({{"clases", "3"}}, "pointnet-classifier has no option \"clases\"", "did you mean classes?");
    expect({{"k", "3"}}, "pointnet-classifier has no option \"k\"", "it has variant, classes");
    expect({{"dropout", "much"}}, "dropout must be a number, from 0, below 1, got \"much\"", "");
    expect({{"dropout", "2"}}, "dropout must be from 0, below 1, got 2", "");
    EXPECT_EQ(load_model(file.path, {{"dropout", "0.5"}}).network.config.at("dropout"), "0.5");
}

}  // namespace
}  // namespace stipple::models
