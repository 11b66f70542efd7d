#include "stipple/engine/engine_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "stipple/core/rng.h"
#include "stipple/engine/file/plan_json.h"
#include "stipple/io/safetensors.h"
#include "stipple/models/pointnet.h"
#include "stipple/models/puflow.h"
#include "stipple/network/builder.h"
#include "tests/engine/run_engine.h"
#include "tests/support/reference_weights.h"
#include "tests/support/temporary_folder.h"

namespace stipple::engine {
namespace {

using network::Network;
using network::Weights;

std::vector<std::byte> bytes_of(const EngineFile& file) {
    MemorySink sink;
    write_engine(file, sink);
    return std::move(sink.bytes());
}

EngineFile parse(std::span<const std::byte> bytes) {
    io::MemorySource source(bytes);
    io::ByteReader reader(source);
    return parse_engine(reader);
}

/// What reading says is wrong; "" when nothing is.
std::string complaint(std::span<const std::byte> bytes) {
    try {
        parse(bytes);
        return "";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file) << error.what();
        EXPECT_EQ(std::strchr(error.what(), '\n'), nullptr);
        return error.message();
    }
}

/// A network with a transform, a cut product and a per-point output: every part of a plan.
Network small_network() {
    network::Builder build("small");
    const network::Tensor points = build.input("points", network::points_of(3));
    network::Tensor t = build.max_points("t.pool", build.linear("t.conv", points, 12, {.activation = network::relu()}));
    t = build.add_identity("t.matrix", build.linear("t.fc", t, 9));
    const network::Tensor x =
        build.linear("conv1", build.transform("apply", points, t), 16, {.activation = network::leaky_relu(0.25f)});
    const network::Tensor pool = build.max_points("pool", build.linear("conv2", x, 24));
    build.output("parts", build.linear("seg", build.concat("all", {x, build.repeat("global", pool)}), 7));
    build.output("logits", build.linear("head", pool, 5));
    return build.finish({{"key", "value"}});
}

EngineFile small_file(Precision precision = Precision::fp32) {
    const Network net = small_network();
    const Weights weights = test::random_weights(net, 1);
    Options options{.precision = precision, .max_batch = 3, .max_points = 50};
    if (precision == Precision::int8) {
        Array<float, 2> points({100, 3});
        for (int64_t i = 0; i < 300; ++i) points.data()[i] = Rng(2).normal(static_cast<uint64_t>(i));
        options.calibration = calibrate(net, weights, ops::Clouds(points.view()), {});
    }
    EngineFile file = engine_file_of(compile(net, weights, options), weights);
    file.metadata["stipple.classes"] = "[\"a\", \"b\"]";
    return file;
}

void expect_same_results(const Engine& a, const Engine& b, const ops::Batch& batch) {
    Array<float, 2> points({batch.rows(), 3});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = Rng(9).normal(static_cast<uint64_t>(i));
    const auto first = test::run_engine(a, batch, {{"points", points.view()}});
    const auto second = test::run_engine(b, batch, {{"points", points.view()}});
    ASSERT_EQ(first.size(), second.size());
    for (const auto& [name, rows] : first) {
        ASSERT_EQ(rows.shape(), second.at(name).shape());
        EXPECT_EQ(std::memcmp(rows.data(), second.at(name).data(), static_cast<size_t>(4 * rows.elements())), 0)
            << name;
    }
}

TEST(EngineFileTest, ComputesTheSameBitsAsTheModelItself) {
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::int8}) {
        SCOPED_TRACE(name_of(precision));
        const EngineFile file = small_file(precision);
        const EngineFile again = parse(bytes_of(file));
        EXPECT_EQ(again.options.precision, precision);
        EXPECT_EQ(again.options.max_batch, 3);
        EXPECT_EQ(again.options.max_points, 50);
        EXPECT_EQ(again.source, file.source);
        EXPECT_EQ(again.metadata.at("stipple.classes"), "[\"a\", \"b\"]");
        EXPECT_EQ(again.options.calibration.has_value(), precision == Precision::int8);
        EXPECT_EQ(plan_json(again.program), plan_json(file.program));
        expect_same_results(compile(file.program, file.options), compile(again), ops::Batch::ragged({0, 50, 51, 90}));
        EXPECT_EQ(bytes_of(again), bytes_of(file));
    }
}

TEST(EngineFileTest, EveryKindOfStepComesBack) {
    for (const models::FlowFamily family :
         {models::FlowFamily::coupling, models::FlowFamily::residual, models::FlowFamily::continuous}) {
        const Network net = models::puflow({.ratio = 4, .family = family, .steps = 2});
        const Weights weights = test::random_weights(net, 1);
        const Engine engine = compile(net, weights, {.max_batch = 2, .max_points = 40});
        const EngineFile again = parse(bytes_of(engine_file_of(engine, weights)));
        EXPECT_EQ(plan_json(again.program), plan_json(engine.program()));
        expect_same_results(engine, compile(again), ops::Batch::ragged({0, 40, 70}));
    }
}

io::Tensor* tensor_of_type(io::TensorFile& file, DType dtype) {
    for (io::Tensor& tensor : file.tensors)
        if (tensor.dtype == dtype) return &tensor;
    return nullptr;
}

/// Of the container: bytes of the tensors in numbers of this type.
int64_t bytes_in(const EngineFile& file, DType dtype) {
    const std::vector<std::byte> bytes = bytes_of(file);
    io::MemorySource source(bytes);
    io::ByteReader reader(source);
    int64_t sum = 0;
    for (const io::Tensor& tensor : io::parse_safetensors(reader).tensors)
        sum += tensor.dtype == dtype ? tensor.data.bytes() : 0;
    return sum;
}

TEST(EngineFileTest, LowPrecisionsTakeLessSpaceAndComputeTheSame) {
    const Network net = models::pointnet_classifier({});
    const Weights weights = test::random_weights(net, 1);
    Array<float, 2> points({400, 3});
    for (int64_t i = 0; i < points.elements(); ++i) points.data()[i] = Rng(2).normal(static_cast<uint64_t>(i));
    std::map<Precision, size_t> sizes;
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::int8}) {
        SCOPED_TRACE(name_of(precision));
        Options options{.precision = precision, .max_batch = 2, .max_points = 60};
        if (precision == Precision::int8) options.calibration = calibrate(net, weights, ops::Clouds(points.view()), {});
        const Engine engine = compile(net, weights, options);
        const EngineFile file = engine_file_of(engine, weights);
        const std::vector<std::byte> bytes = bytes_of(file);
        sizes[precision] = bytes.size();
        EXPECT_EQ(bytes_in(file, DType::i8) > 0, precision == Precision::int8);
        EXPECT_EQ(bytes_in(file, DType::bf16) > 0, precision != Precision::fp32);
        const EngineFile again = parse(bytes);
        expect_same_results(engine, compile(again), ops::Batch::ragged({0, 60, 101}));
        EXPECT_EQ(bytes_of(again), bytes);
        // A GPU computes some of the layers in other numbers: nothing is taken from it.
        EngineFile for_gpu = file;
        for_gpu.options.device.type = DeviceType::cuda;
        EXPECT_EQ(bytes_in(for_gpu, DType::i8) + bytes_in(for_gpu, DType::bf16), 0);
    }
    EXPECT_LT(static_cast<double>(sizes[Precision::bf16]), 0.55 * static_cast<double>(sizes[Precision::fp32]));
    EXPECT_LT(sizes[Precision::int8], sizes[Precision::bf16]);
}

TEST(EngineFileTest, WeightsThatWouldChangeStayFloat32) {
    // Rows of nothing, of one number, of numbers without a scale in float32, of the largest ones.
    for (const float size : {0.f, 1e-45f, 1e-39f, 1e-20f, 1.f, 3e38f}) {
        EngineFile file = small_file(Precision::int8);
        for (Step& step : file.program.steps)
            for (Dense& layer : step.layers)
                for (size_t i = 0; i < layer.weight.size(); ++i)
                    layer.weight[i] = i % 3 ? 0 : size * (i % 2 ? 1 : -0.4f);
        const EngineFile again = parse(bytes_of(file));
        EXPECT_EQ(bytes_of(again), bytes_of(file)) << size;
        if (size > 1e-21f && size < 2) {
            EXPECT_GT(bytes_in(file, DType::i8), 0) << size;
        }
        if (size < 1e10f)
            expect_same_results(compile(file.program, file.options), compile(again), ops::Batch::ragged({0, 50, 51}));
    }
}

TEST(EngineFileTest, SavesAndLoadsByPath) {
    const test::TemporaryFolder folder(test::Where::memory);
    const EngineFile file = small_file();
    save_engine(folder / "a.engine", file, Overwrite::refuse);
    EXPECT_TRUE(is_engine_file(folder / "a.engine"));
    EXPECT_EQ(load_engine(folder / "a.engine").source, file.source);
    EXPECT_THROW(save_engine(folder / "a.engine", file, Overwrite::refuse), Error);
    network::save_weights(folder / "w.safetensors", test::random_weights(small_network(), 1),
                          network::WeightStorage::f32, Overwrite::refuse);
    EXPECT_FALSE(is_engine_file(folder / "w.safetensors"));
    try {
        load_engine(folder / "w.safetensors");
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("w.safetensors: is no engine file"), std::string::npos)
            << error.what();
    }
    EXPECT_THROW(load_engine(folder / "none.engine"), Error);
    EXPECT_THROW(is_engine_file(folder / "none.engine"), Error);
}

TEST(EngineFileTest, CutAnywhereItSaysSo) {
    const std::vector<std::byte> bytes = bytes_of(small_file());
    for (size_t length = 0; length < bytes.size(); length += length < 600 ? 7 : 97)
        EXPECT_NE(complaint(std::span(bytes).first(length)), "") << length;
    EXPECT_NE(complaint(std::span(bytes).first(bytes.size() - 1)), "");
    std::vector<std::byte> longer = bytes;
    longer.push_back({});
    EXPECT_NE(complaint(longer), "");
    EXPECT_EQ(complaint(bytes), "");
}

TEST(EngineFileTest, EveryChangedBitIsFound) {
    const std::vector<std::byte> bytes = bytes_of(small_file());
    std::vector<std::byte> changed = bytes;
    for (size_t i = 0; i < bytes.size(); i += i < 200 ? 1 : 13) {
        changed[i] ^= std::byte{static_cast<unsigned char>(1 << (i % 8))};
        // Spaces and quotes that pad the header may change without changing what it says.
        bool same = false;
        try {
            same = bytes_of(parse(changed)) == bytes;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file) << i << ": " << error.what();
            same = true;
        }
        EXPECT_TRUE(same) << "byte " << i;
        changed[i] = bytes[i];
    }
}

/// The container of a good file, changed, written again.
template <class Change>
std::string complaint_after(Change change, Precision precision = Precision::fp32) {
    const std::vector<std::byte> bytes = bytes_of(small_file(precision));
    io::MemorySource source(bytes);
    io::ByteReader reader(source);
    io::TensorFile file = io::parse_safetensors(reader);
    change(file);
    MemorySink sink;
    io::write_safetensors(file, sink);
    return complaint(sink.bytes());
}

TEST(EngineFileTest, OtherVersionsAreRefusedWithBothNamed) {
    EXPECT_EQ(complaint_after([](io::TensorFile& file) { file.metadata["stipple.engine.architecture"] = "7"; }),
              "engine architecture version 7, this program reads version 1");
    EXPECT_EQ(complaint_after([](io::TensorFile& file) { file.metadata["stipple.engine.format"] = "3"; }),
              "engine file format version 3, this program reads version 1 to 2");
    EXPECT_EQ(complaint_after([](io::TensorFile& file) { file.metadata["stipple.engine.format"] = "0"; }),
              "engine file format version 0, this program reads version 1 to 2");
    // The version before is read up to the checksum, which holds the version too; it knew float32 alone.
    const auto make_first = [](io::TensorFile& file) { file.metadata["stipple.engine.format"] = "1"; };
    EXPECT_NE(complaint_after(make_first).find("checksum"), std::string::npos);
    EXPECT_NE(complaint_after(make_first, Precision::int8).find("the plan needs float32"), std::string::npos);
    EXPECT_NE(complaint_after([](io::TensorFile& file) { file.metadata["stipple.engine.format"] = "new"; }), "");
}

TEST(EngineFileTest, EveryFieldIsChecked) {
    const std::pair<const char*, std::vector<const char*>> wrong[] = {
        {"stipple.engine.precision", {"", "fp33"}},
        {"stipple.engine.device", {"", "gpu"}},
        {"stipple.engine.max_batch", {"0", "-1", "x", "1e9", "99999999999"}},
        {"stipple.engine.max_points", {"0", "-1", "x", "2147483648"}},
        {"stipple.engine.source", {"", "123", "00000000000000zz", "0123456789abcdef0"}},
        {"stipple.engine.plan", {"", "{}", "[]", "null"}},
        {"stipple.engine.checksum", {"", "0000000000000000"}},
        {"stipple.model", {"", "other"}},
        {"stipple.calibration", {"", "{}"}},
        {"stipple.classes", {"changed"}},
    };
    for (const auto& [key, values] : wrong) {
        for (const char* value : values)
            EXPECT_NE(complaint_after([&](io::TensorFile& file) { file.metadata[key] = value; }), "")
                << key << " " << value;
        if (std::string(key) != "stipple.calibration") {
            EXPECT_NE(complaint_after([&](io::TensorFile& file) { file.metadata.erase(key); }), "") << key;
        }
    }
    EXPECT_NE(complaint_after([](io::TensorFile& file) { file.metadata.erase("stipple.calibration"); }, Precision::int8)
                  .find("int8 without a calibration"),
              std::string::npos);
}

TEST(EngineFileTest, EveryTensorIsChecked) {
    EXPECT_NE(complaint_after([](io::TensorFile& file) { file.tensors.pop_back(); }).find("is missing"),
              std::string::npos);
    EXPECT_NE(complaint_after([](io::TensorFile& file) { file.tensors[0].name = "step.99.weight"; }), "");
    EXPECT_NE(complaint_after([](io::TensorFile& file) {
                  file.tensors.push_back({"more", DType::f32, {1}, Buffer(4)});
              }).find("belongs to no layer"),
              std::string::npos);
    EXPECT_NE(complaint_after([](io::TensorFile& file) {
                  for (io::Tensor& tensor : file.tensors)
                      if (tensor.shape.size() == 2) std::swap(tensor.shape[0], tensor.shape[1]);
              }).find("the plan needs float32"),
              std::string::npos);
    EXPECT_NE(complaint_after([](io::TensorFile& file) { file.tensors[0].dtype = DType::i32; }), "");
    const float nan = NAN;
    EXPECT_NE(complaint_after([&](io::TensorFile& file) {
                  std::memcpy(file.tensors[0].data.data(), &nan, 4);
              }).find("not finite"),
              std::string::npos);
    // Of 8-bit weights the scales belong to them.
    const auto after_int8 = [](auto change) { return complaint_after(change, Precision::int8); };
    const auto scale_of = [](io::TensorFile& file) -> io::Tensor& {
        for (io::Tensor& tensor : file.tensors)
            if (tensor.name.ends_with(".scale")) return tensor;
        ADD_FAILURE() << "no scales";
        return file.tensors[0];
    };
    ASSERT_EQ(after_int8([](io::TensorFile&) {}), "");
    EXPECT_NE(after_int8([&](io::TensorFile& file) { scale_of(file).name = "other"; }).find(".scale is missing"),
              std::string::npos);
    EXPECT_NE(after_int8([&](io::TensorFile& file) {
                  scale_of(file).shape[0] -= 1;
                  scale_of(file).data = Buffer(4 * scale_of(file).shape[0]);
              }).find("the plan needs float32 ["),
              std::string::npos);
    for (const float bad : {-1.f, INFINITY, nan})
        EXPECT_NE(after_int8([&](io::TensorFile& file) {
                      std::memcpy(scale_of(file).data.data(), &bad, 4);
                  }).find("the scale of row 0"),
                  std::string::npos);
    EXPECT_NE(after_int8([](io::TensorFile& file) {
                  *tensor_of_type(file, DType::i8)->data.data() = std::byte{0x80};
              }).find("-128"),
              std::string::npos);
    EXPECT_NE(after_int8([](io::TensorFile& file) { tensor_of_type(file, DType::i8)->dtype = DType::u8; }), "");
    const float other = 0.123f;
    EXPECT_NE(complaint_after([&](io::TensorFile& file) {
                  std::memcpy(file.tensors[0].data.data(), &other, 4);
              }).find("checksum"),
              std::string::npos);
}

/// One text in the plan replaced by another.
std::string complaint_of_plan(const std::string& from, const std::string& to) {
    return complaint_after([&](io::TensorFile& file) {
        std::string& plan = file.metadata["stipple.engine.plan"];
        const size_t at = plan.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        plan.replace(at, from.size(), to);
    });
}

TEST(EngineFileTest, EveryPartOfThePlanIsChecked) {
    const std::pair<const char*, const char*> changes[] = {
        {"\"kind\":\"chain\"", "\"kind\":\"chains\""},
        {"\"kind\":\"chain\"", "\"kind\":3"},
        {"\"kind\":\"chain\"", "\"kind\":\"knn\""},
        {"\"output\":", "\"output\":1000, \"begin\":"},
        {"\"output\":", "\"output\":-1, \"begin\":"},
        {"\"output\":", "\"output\":99999999999, \"begin\":"},
        {"\"in\":3", "\"in\":4"},
        {"\"in\":3", "\"in\":-3"},
        {"\"in\":3", "\"in\":1e300"},
        {"\"out\":12", "\"out\":13"},
        {"\"out\":12", "\"out\":2147483648"},
        {"\"channels\":3", "\"channels\":0"},
        {"\"channels\":3", "\"channels\":99999999999"},
        {"\"channels\":3", "\"channels\":true"},
        {"\"level\":\"point\"", "\"level\":\"cloud\""},
        {"\"level\":\"point\"", "\"level\":\"point\",\"width\":2"},
        {"\"level\":\"point\"", "\"level\":\"point\",\"width\":0"},
        {"\"level\":\"point\"", "\"level\":\"point\",\"index\":true"},
        {"\"value\":0", "\"value\":5"},
        {"\"value\":0", "\"value\":\"0\""},
        {"\"value\":0", "\"value\":0,\"access\":\"neighbour\""},
        {"\"value\":0", "\"value\":0,\"indices\":0"},
        {"\"slope\":0.25", "\"slope\":2"},
        {"\"slope\":0.25", "\"slope\":1e60"},
        {"\"matrix\":", "\"matrix\":-2,\"in\":"},
        {"\"reduce\":\"max_points\"", "\"reduce\":\"max_rows\""},
        {"\"reduce\":\"max_points\"", "\"reduce\":\"none\""},
        {"\"precision\":\"fp32\"", "\"precision\":\"fp31\""},
        {"\"precision\":\"fp32\"", "\"precision\":\"int8\""},
        {"\"steps\":[", "\"steps\":[7,"},
        {"\"steps\":[", "\"steps\":[[],"},
        {"\"steps\":[", "\"steps\":[{},"},
        {"\"values\":[", "\"values\":[{\"more\":1},"},
        {"\"values\":", "\"other\":"},
        {"\"inputs\":[{\"name\":\"points\"", "\"inputs\":[{\"name\":\"\""},
        {"\"outputs\":[{", "\"outputs\":[{\"name\":\"logits\",\"value\":0},{"},
    };
    for (const auto& [from, to] : changes) EXPECT_NE(complaint_of_plan(from, to), "") << from << " -> " << to;
    // The place is named.
    EXPECT_NE(complaint_of_plan("\"kind\":\"chain\"", "\"kind\":3").find("steps/0/kind"), std::string::npos);
    EXPECT_NE(complaint_of_plan("\"in\":3", "\"in\":-3"), "");
}

TEST(EngineFileTest, WhatIsNoEngineFileIsRefused) {
    EXPECT_NE(complaint({}), "");
    EXPECT_NE(complaint(std::vector<std::byte>(1000)), "");
    MemorySink sink;
    io::write_safetensors({}, sink);
    EXPECT_NE(complaint(sink.bytes()).find("is no engine file"), std::string::npos);
}

}  // namespace
}  // namespace stipple::engine
