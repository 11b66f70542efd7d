// Weights in int8 rows: rounding, what is stored so, and files whose rows and scales do not fit.

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>

#include "stipple/core/error.h"
#include "stipple/network/weights.h"
#include "tests/support/corpus.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::test {
namespace {

using namespace stipple::network;

// Values of several magnitudes, row by row.
Weights matrix_of(int64_t rows, int64_t columns) {
    Weights weights;
    WeightTensor& tensor = weights.tensors["fc.weight"];
    tensor.shape = {rows, columns};
    for (int64_t i = 0; i < rows * columns; ++i)
        tensor.values.push_back(std::sin(static_cast<float>(3 * i)) *
                                std::pow(10.0f, static_cast<float>(i / columns % 9 - 4)));
    return weights;
}

io::Tensor rows_tensor(const std::string& name, std::vector<int64_t> shape, std::vector<int8_t> values) {
    io::Tensor tensor{name, DType::i8, std::move(shape), Buffer(static_cast<int64_t>(values.size()))};
    if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), values.size());
    return tensor;
}

io::Tensor scales_tensor(const std::string& name, std::vector<int64_t> shape, std::vector<float> values) {
    io::Tensor tensor{name, DType::f32, std::move(shape), Buffer(static_cast<int64_t>(4 * values.size()))};
    if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), 4 * values.size());
    return tensor;
}

Weights parsed(const io::TensorFile& file) {
    MemorySink sink;
    io::write_safetensors(file, sink);
    io::MemorySource source(sink.bytes());
    io::ByteReader reader(source);
    return parse_weights(reader);
}

TEST(NetworkInt8Rows, AreWithinHalfAStepOfTheirRow) {
    const TemporaryFolder folder;
    const Weights weights = matrix_of(40, 100);
    save_weights(folder / "w.safetensors", weights, WeightStorage::int8_rows, Overwrite::refuse);
    const Weights back = load_weights(folder / "w.safetensors");
    ASSERT_EQ(back.tensors.size(), 1u);
    const WeightTensor &in = weights.tensors.at("fc.weight"), &out = back.tensors.at("fc.weight");
    ASSERT_EQ(out.shape, in.shape);
    for (size_t row = 0; row < 40; ++row) {
        float largest = 0;
        for (size_t i = row * 100; i < (row + 1) * 100; ++i) largest = std::max(largest, std::fabs(in.values[i]));
        for (size_t i = row * 100; i < (row + 1) * 100; ++i) {
            EXPECT_NEAR(out.values[i], in.values[i], largest / 127 * 0.501) << i;
            if (std::fabs(in.values[i]) == largest) {
                EXPECT_NEAR(out.values[i], in.values[i], largest * 0x1p-17) << i;
            }
        }
    }
    EXPECT_EQ(back.metadata.at("stipple.storage"), "int8-rows");
    EXPECT_LT(read_file(folder / "w.safetensors").size(), 40 * 104 + 512u);
    // What was rounded stays, to the bit.
    save_weights(folder / "again.safetensors", back, WeightStorage::int8_rows, Overwrite::refuse);
    EXPECT_EQ(read_file(folder / "again.safetensors"), read_file(folder / "w.safetensors"));
}

TEST(NetworkInt8Rows, RoundToNearestEvenAndZerosStay) {
    const TemporaryFolder folder;
    Weights weights;
    weights.tensors["a"] = {{3, 32}, std::vector<float>(96)};
    std::vector<float>& values = weights.tensors["a"].values;
    const float row[] = {127, -127, 0.5f, 1.5f, -2.5f, 2.51f, 126.5f, -0.49f};
    std::copy(std::begin(row), std::end(row), values.begin());
    values[32] = 1e-44f;  // its scale is 0
    save_weights(folder / "w.safetensors", weights, WeightStorage::int8_rows, Overwrite::refuse);
    const WeightTensor back = load_weights(folder / "w.safetensors").tensors.at("a");
    const float expected[] = {127, -127, 0, 2, -2, 3, 126, 0};
    for (size_t i = 0; i < std::size(row); ++i) EXPECT_EQ(back.values[i], expected[i]) << i;
    for (size_t i = 32; i < 96; ++i) EXPECT_EQ(back.values[i], 0) << i;
    const io::TensorFile file = io::load_safetensors(folder / "w.safetensors");
    const auto* scales = reinterpret_cast<const float*>(io::find(file, "a.scale")->data.data());
    EXPECT_EQ(scales[0], 1);
    EXPECT_EQ(scales[2], 0);
    const auto* stored = reinterpret_cast<const int8_t*>(io::find(file, "a")->data.data());
    EXPECT_EQ(stored[1], -127);
    EXPECT_EQ(stored[4], -2);
}

TEST(NetworkInt8Rows, AreMatricesWithLongRowsAndTheRestIsHalfPrecision) {
    const TemporaryFolder folder;
    Weights weights;
    const auto add = [&](const char* name, std::vector<int64_t> shape) {
        size_t count = 1;
        for (int64_t extent : shape) count *= static_cast<size_t>(extent);
        weights.tensors[name] = {std::move(shape), std::vector<float>(count, 0.1f)};
    };
    add("long", {2, 32});
    add("short", {2, 31});
    add("cube", {2, 4, 8});
    add("vector", {64});
    add("empty", {0, 64});
    add("number", {});
    add("twin", {2, 32});        // would give its namesake's name to its scales
    add("twin.scale", {2, 32});  // a tensor as any other
    save_weights(folder / "w.safetensors", weights, WeightStorage::int8_rows, Overwrite::refuse);
    std::map<std::string, DType> types;
    for (const io::Tensor& tensor : io::load_safetensors(folder / "w.safetensors").tensors)
        types[tensor.name] = tensor.dtype;
    const std::map<std::string, DType> expected = {
        {"long", DType::i8},        {"long.scale", DType::f32}, {"short", DType::f16},           {"cube", DType::i8},
        {"cube.scale", DType::f32}, {"vector", DType::f16},     {"empty", DType::f16},           {"number", DType::f16},
        {"twin", DType::f16},       {"twin.scale", DType::i8},  {"twin.scale.scale", DType::f32}};
    EXPECT_EQ(types, expected);
    const Weights back = load_weights(folder / "w.safetensors");
    ASSERT_EQ(back.tensors.size(), weights.tensors.size());
    for (const auto& [name, tensor] : weights.tensors) {
        EXPECT_EQ(back.tensors.at(name).shape, tensor.shape) << name;
        for (float value : back.tensors.at(name).values) EXPECT_NEAR(value, 0.1f, 1e-4) << name;
    }
}

TEST(NetworkInt8Rows, OfNumbersThatTheyCannotHoldAreNotWritten) {
    const TemporaryFolder folder;
    Weights weights = matrix_of(2, 32);
    const auto save = [&] {
        save_weights(folder / "w.safetensors", weights, WeightStorage::int8_rows, Overwrite::allow);
    };
    for (float bad : {INFINITY, -INFINITY, std::nanf("")}) {
        weights.tensors.at("fc.weight").values[40] = bad;
        EXPECT_ERROR(save(), not_finite, "tensor 'fc.weight': ");
        EXPECT_ERROR(save(), not_finite, " at 40 is no number of int8 rows");
    }
    EXPECT_TRUE(folder.entries().empty());
    // The largest number of all is either near enough or refused, never infinite.
    weights.tensors.at("fc.weight").values[40] = FLT_MAX;
    try {
        save();
        EXPECT_TRUE(std::isfinite(load_weights(folder / "w.safetensors").tensors.at("fc.weight").values[40]));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_finite);
    }
    weights.tensors.at("fc.weight").values[40] = 1e38f;
    save();
    EXPECT_NEAR(load_weights(folder / "w.safetensors").tensors.at("fc.weight").values[40], 1e38f, 1e33f);
}

TEST(NetworkInt8Rows, AreToldByTheirType) {
    // Without I8 a tensor X.scale is what it says, beside X and alone.
    io::TensorFile file;
    file.tensors.push_back(scales_tensor("norm.scale", {2}, {5, -6}));
    file.tensors.push_back(scales_tensor("a", {2}, {1, 2}));
    file.tensors.push_back(scales_tensor("a.scale", {2}, {NAN, -4}));
    EXPECT_EQ(parsed(file).tensors.size(), 3u);
    EXPECT_EQ(parsed(file).tensors.at("norm.scale").values, (std::vector<float>{5, -6}));
    // Scales may come before or behind their rows in a file.
    file.tensors.clear();
    file.tensors.push_back(scales_tensor("a.scale", {2}, {0.5f, 0}));
    file.tensors.push_back(rows_tensor("a", {2, 3}, {1, -127, 127, 1, 2, 3}));
    const Weights weights = parsed(file);
    EXPECT_EQ(weights.tensors.size(), 1u);
    EXPECT_EQ(weights.tensors.at("a").shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(weights.tensors.at("a").values, (std::vector<float>{0.5f, -63.5f, 63.5f, 0, 0, 0}));
    // Rows of one number, and none.
    file.tensors.clear();
    file.tensors.push_back(rows_tensor("v", {2}, {3, 4}));
    file.tensors.push_back(scales_tensor("v.scale", {2}, {1, 2}));
    file.tensors.push_back(rows_tensor("none", {0, 5}, {}));
    file.tensors.push_back(scales_tensor("none.scale", {0}, {}));
    file.tensors.push_back(rows_tensor("thin", {2, 0}, {}));
    file.tensors.push_back(scales_tensor("thin.scale", {2}, {1, 1}));
    EXPECT_EQ(parsed(file).tensors.at("v").values, (std::vector<float>{3, 8}));
    EXPECT_EQ(parsed(file).tensors.size(), 3u);
}

TEST(NetworkInt8Rows, ThatDoNotFitTheirScalesAreRefused) {
    const auto refused = [](io::Tensor rows, std::vector<io::Tensor> others, const char* message) {
        io::TensorFile file;
        file.tensors.push_back(std::move(rows));
        for (io::Tensor& tensor : others) file.tensors.push_back(std::move(tensor));
        EXPECT_ERROR(parsed(file), bad_file, message);
    };
    const auto with = [](io::Tensor tensor) {
        std::vector<io::Tensor> list;
        list.push_back(std::move(tensor));
        return list;
    };
    const auto good = [] { return rows_tensor("a", {2, 1}, {1, 2}); };
    refused(good(), {}, "tensor \"a\": int8 rows need their scales, \"a.scale\" of float32");
    refused(good(), with(scales_tensor("b.scale", {2}, {1, 1})), "tensor \"a\": int8 rows need");
    refused(good(), with(scales_tensor("a.scale", {3}, {1, 1, 1})),
            "tensor \"a.scale\": should be [2], a scale for each row of \"a\", found [3]");
    refused(good(), with(scales_tensor("a.scale", {2, 1}, {1, 1})), "tensor \"a.scale\": should be [2]");
    refused(good(), with(scales_tensor("a.scale", {2}, {1, -0.5f})), "tensor \"a.scale\": -0.5 of row 1 is no scale");
    refused(good(), with(scales_tensor("a.scale", {2}, {NAN, 1})), "tensor \"a.scale\": nan of row 0 is no scale");
    refused(good(), with(scales_tensor("a.scale", {2}, {1, INFINITY})), "inf of row 1 is no scale");
    refused(good(), with({"a.scale", DType::f16, {2}, Buffer(4)}), "scales of int8 rows are float32, found float16");
    refused(rows_tensor("a", {2, 1}, {1, -128}), with(scales_tensor("a.scale", {2}, {1, 1})),
            "tensor \"a\": -128 at 1, int8 rows go from -127 to 127");
    refused(rows_tensor("a", {}, {1}), with(scales_tensor("a.scale", {1}, {1})),
            "tensor \"a\": int8 rows have a shape");
    // In a file that says it has int8 rows, scales without them are a mistake.
    io::TensorFile file;
    file.metadata["stipple.storage"] = "int8-rows";
    file.tensors.push_back(scales_tensor("a.scale", {2}, {1, 1}));
    EXPECT_ERROR(parsed(file), bad_file, "tensor \"a.scale\": scales of int8 rows \"a\", which are not there");
    file.metadata["stipple.storage"] = "f32";
    EXPECT_EQ(parsed(file).tensors.size(), 1u);
    // By path the message begins with it.
    const TemporaryFolder folder;
    file.metadata["stipple.storage"] = "int8-rows";
    io::save_safetensors(folder / "w.safetensors", file, Overwrite::refuse);
    EXPECT_ERROR(load_weights(folder / "w.safetensors"), bad_file, "w.safetensors: tensor \"a.scale\"");
}

TEST(NetworkInt8Rows, OfTheCorpusGiveTheirMessages) {
    const int64_t files = expect_corpus([](const std::string& folder) { return folder == "weights"; },
                                        [](const std::string&, io::ByteReader& reader) { parse_weights(reader); });
    EXPECT_EQ(files, 13);
}

}  // namespace
}  // namespace stipple::test
