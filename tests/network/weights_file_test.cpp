// Weights in files: precisions, metadata, and files that are broken.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/core/half.h"
#include "stipple/network/builder.h"
#include "stipple/network/weights.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

Network stored_network() {
    Builder build("small");
    const Tensor x = build.linear("conv1", build.input("points", points_of(3)), 16, {.norm = true});
    build.output("logits", build.linear("fc", build.max_points("pool", x), 4));
    return build.finish({{"classes", "4"}});
}

TEST(NetworkWeightsFile, Float32ComesBackExactly) {
    const TemporaryFolder folder;
    Weights weights = initial_weights(stored_network(), 1);
    weights.metadata["stipple.calibration"] = "{}";
    save_weights(folder / "w.safetensors", weights, WeightStorage::f32, Overwrite::refuse);
    const Weights back = load_weights(folder / "w.safetensors");
    EXPECT_EQ(checksum(back), checksum(weights));
    EXPECT_EQ(back.metadata.at("stipple.model"), "small");
    EXPECT_EQ(back.metadata.at("stipple.calibration"), "{}");
    EXPECT_EQ(config_of(back), stored_network().config);
    EXPECT_NO_THROW(check_weights(stored_network(), back));
    EXPECT_ERROR(save_weights(folder / "w.safetensors", weights, WeightStorage::f32, Overwrite::refuse), cannot_write,
                 "w.safetensors");
    EXPECT_NO_THROW(save_weights(folder / "w.safetensors", weights, WeightStorage::f32, Overwrite::allow));
}

TEST(NetworkWeightsFile, SixteenBitsAreRoundedToNearestEvenOnce) {
    const TemporaryFolder folder;
    const Weights weights = initial_weights(stored_network(), 1);
    for (WeightStorage storage : {WeightStorage::f16, WeightStorage::bf16}) {
        const std::string path = folder / (std::string(name_of(storage)) + ".safetensors");
        save_weights(path, weights, storage, Overwrite::refuse);
        const Weights back = load_weights(path);
        EXPECT_NO_THROW(check_weights(stored_network(), back));
        for (const auto& [name, tensor] : weights.tensors)
            for (size_t i = 0; i < tensor.values.size(); ++i) {
                const float value = tensor.values[i], read = back.tensors.at(name).values[i];
                EXPECT_NEAR(read, value,
                            std::fabs(value) * (storage == WeightStorage::f16 ? 0x1p-11 : 0x1p-8) + 0x1p-25);
                EXPECT_EQ(read, storage == WeightStorage::f16 ? half_to_float(float_to_half(value))
                                                              : bfloat16_to_float(float_to_bfloat16(value)));
            }
        // What was rounded stays.
        save_weights(path, back, storage, Overwrite::allow);
        EXPECT_EQ(checksum(load_weights(path)), checksum(back));
    }
    EXPECT_LT(read_file(folder / "f16.safetensors").size(), 1600u);
}

TEST(NetworkWeightsFile, WhatADtypeCannotHoldIsRefused) {
    const TemporaryFolder folder;
    Weights weights = initial_weights(stored_network(), 1);
    weights.tensors.at("fc.weight").values[5] = 65519;
    EXPECT_NO_THROW(save_weights(folder / "a.safetensors", weights, WeightStorage::f16, Overwrite::refuse));
    weights.tensors.at("fc.weight").values[5] = -65520;
    EXPECT_ERROR(save_weights(folder / "b.safetensors", weights, WeightStorage::f16, Overwrite::refuse), not_finite,
                 "tensor 'fc.weight': -65520 at 5 is no number of float16");
    EXPECT_NO_THROW(save_weights(folder / "c.safetensors", weights, WeightStorage::bf16, Overwrite::refuse));
    weights.tensors.at("fc.weight").values[5] = 3.4e38f;
    EXPECT_ERROR(save_weights(folder / "d.safetensors", weights, WeightStorage::bf16, Overwrite::refuse), not_finite,
                 "'fc.weight'");
    EXPECT_NO_THROW(save_weights(folder / "e.safetensors", weights, WeightStorage::f32, Overwrite::refuse));
    weights.tensors.at("fc.weight").values[5] = std::nanf("");
    for (WeightStorage storage : {WeightStorage::f32, WeightStorage::f16, WeightStorage::bf16})
        EXPECT_ERROR(save_weights(folder / "f.safetensors", weights, storage, Overwrite::refuse), not_finite,
                     "nan at 5");
    EXPECT_EQ(parse_weight_storage("bf16"), WeightStorage::bf16);
    EXPECT_ERROR(parse_weight_storage("f64"), bad_argument,
                 "weights are stored as f32, f16, bf16, int8-rows, not \"f64\"");
    weights.tensors.at("fc.weight").values.pop_back();
    EXPECT_ERROR(save_weights(folder / "f.safetensors", weights, WeightStorage::f32, Overwrite::refuse), bad_argument,
                 "tensor 'fc.weight': 63 values for a shape of 64");
    EXPECT_EQ(folder.entries(), (std::vector<std::string>{"a.safetensors", "c.safetensors", "e.safetensors"}));
}

template <class T>
io::Tensor tensor_of(const std::string& name, DType dtype, const std::vector<T>& values) {
    io::Tensor tensor{name, dtype, {static_cast<int64_t>(values.size())}, Buffer(values.size() * sizeof(T))};
    std::memcpy(tensor.data.data(), values.data(), values.size() * sizeof(T));
    return tensor;
}

TEST(NetworkWeightsFile, EveryFloatIsReadAndNothingElse) {
    const TemporaryFolder folder;
    io::TensorFile file;
    file.tensors.push_back(tensor_of<double>("d", DType::f64, {0.1, 1e300, -2}));
    file.tensors.push_back(tensor_of<float>("f", DType::f32, {0.1f, -2}));
    file.tensors.push_back(tensor_of<uint16_t>("h", DType::f16, {0x3c00, 0x0001, 0xfc00}));
    file.tensors.push_back(tensor_of<uint16_t>("b", DType::bf16, {0x3f80, 0xc000}));
    file.tensors.push_back(tensor_of<int64_t>("conv1.num_batches_tracked", DType::i64, {5}));
    file.tensors.push_back(tensor_of<uint8_t>("bytes", DType::u8, {5}));
    file.tensors.push_back(tensor_of<uint8_t>("flags", DType::boolean, {1}));
    io::save_safetensors(folder / "w.safetensors", file, Overwrite::refuse);
    const Weights weights = load_weights(folder / "w.safetensors");
    EXPECT_EQ(weights.tensors.size(), 4u);
    EXPECT_EQ(weights.tensors.at("d").values, (std::vector<float>{0.1f, INFINITY, -2}));
    EXPECT_EQ(weights.tensors.at("f").values, (std::vector<float>{0.1f, -2}));
    EXPECT_EQ(weights.tensors.at("h").values, (std::vector<float>{1, 0x1p-24f, -INFINITY}));
    EXPECT_EQ(weights.tensors.at("b").values, (std::vector<float>{1, -2}));
    EXPECT_EQ(weights.tensors.at("d").shape, std::vector<int64_t>{3});
}

TEST(NetworkWeightsFile, FromMemory) {
    const TemporaryFolder folder;
    const Weights weights = initial_weights(stored_network(), 1);
    save_weights(folder / "w.safetensors", weights, WeightStorage::f32, Overwrite::refuse);
    const std::string text = read_file(folder / "w.safetensors");
    io::MemorySource source(std::as_bytes(std::span(text.data(), text.size())));
    io::ByteReader reader(source);
    EXPECT_EQ(checksum(parse_weights(reader)), checksum(weights));
}

// Every length that is not the whole, and every byte of the header turned: an error or weights, never more.
TEST(NetworkWeightsFile, TruncatedOrCorruptIsAnErrorThatNamesTheFile) {
    const TemporaryFolder folder(Where::memory);
    const Network network = stored_network();
    const Weights weights = initial_weights(network, 1);
    const std::string path = folder / "w.safetensors";
    save_weights(path, weights, WeightStorage::f16, Overwrite::refuse);
    const std::string whole = read_file(path);
    for (size_t length = 0; length < whole.size(); ++length) {
        write_file(path, whole.substr(0, length));
        EXPECT_ERROR(load_weights(path), bad_file, "w.safetensors");
    }
    uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof header);
    int refused = 0;
    for (size_t i = 0; i < 8 + header; ++i) {
        std::string bad = whole;
        bad[i] ^= 0x15;
        write_file(path, bad);
        try {
            check_weights(network, load_weights(path));
            // Only texts of the metadata change unnoticed here: config_of() and the registry look at them.
            EXPECT_TRUE(whole.find("__metadata__") < i && i < whole.find("\"conv1.bias\"")) << i;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file) << error.what();
            ++refused;
        }
    }
    EXPECT_GT(refused, static_cast<int>(header) / 2);
}

TEST(NetworkWeightsFile, PicklesAreNotOpened) {
    const TemporaryFolder folder;
    write_file(folder / "model.pth", "anything");
    EXPECT_ERROR(load_weights(folder / "model.pth"), bad_file, "pickle");
    write_file(folder / "model.safetensors", std::string("PK\3\4", 4) + std::string(100, 'x'));
    EXPECT_ERROR(load_weights(folder / "model.safetensors"), bad_file, "pickle");
    EXPECT_ERROR(load_weights(folder / "none.safetensors"), bad_file, "none.safetensors");
}

TEST(NetworkWeightsFile, TheConfigurationIsAnObjectOfTexts) {
    Weights weights;
    EXPECT_ERROR(config_of(weights), bad_file, "no 'stipple.config' in the metadata");
    const auto read = [&](std::string text) {
        weights.metadata["stipple.config"] = std::move(text);
        return config_of(weights);
    };
    EXPECT_TRUE(read("{}").empty());
    EXPECT_EQ(read(R"( {"a": "1", "b/c": "\u00e9\"\n"} )"),
              (std::map<std::string, std::string>{{"a", "1"}, {"b/c", "\u00e9\"\n"}}));
    for (const char* bad : {"", "null", "1", "\"a\"", "[]", "[\"a\"]", "{", "{\"a\"}", R"({"a": 1})", R"({"a": true})",
                            R"({"a": null})", R"({"a": {}})", R"({"a": []})", R"({"a": {"b": "c"}})", R"({"a": -1.5})",
                            R"({"a": "1", "a": "2"})", R"({"a": "1"} x)", R"({"a": "1",})", "{\"a\": \"\xff\"}"})
        EXPECT_ERROR(read(bad), bad_file, "'stipple.config' in the metadata is no JSON object of texts");
    Network network = stored_network();
    network.config = {{"quote\"", "back\\slash"}, {"line", "a\nb"}};
    set_config(weights, network);
    EXPECT_EQ(config_of(weights), network.config);
    EXPECT_EQ(weights.metadata.at("stipple.model"), "small");
    network.config = {{"bad", "\xff"}};
    EXPECT_ERROR(set_config(weights, network), bad_argument, "UTF-8");
}

}  // namespace
}  // namespace stipple::test
