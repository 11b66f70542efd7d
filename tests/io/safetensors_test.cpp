#include "stipple/io/safetensors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "stipple/core/error.h"
#include "stipple/core/rng.h"
#include "tests/support/allocation.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace stipple::io {
namespace {

using test::read_file;
using test::TemporaryFolder;
using test::write_file;

constexpr DType kAllTypes[] = {DType::u8,  DType::i8,  DType::u16,  DType::i16, DType::u32, DType::i32,    DType::u64,
                               DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64, DType::boolean};

// A file by hand: length, header, data.
std::string file_of(std::string_view header, std::string_view data = {}) {
    const uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    bytes += header;
    bytes += data;
    return bytes;
}

// A source that does not know its size, as a pipe; it gives a few bytes at a time.
class PipeSource : public ByteSource {
public:
    explicit PipeSource(std::string_view bytes) : bytes_(bytes) {}
    int64_t read(std::byte* to, int64_t capacity) override {
        const size_t count = std::min<size_t>({static_cast<size_t>(capacity), bytes_.size(), 1000});
        std::memcpy(to, bytes_.data(), count);
        bytes_.remove_prefix(count);
        return static_cast<int64_t>(count);
    }
    std::optional<int64_t> size() const override { return std::nullopt; }

private:
    std::string_view bytes_;
};

TensorFile parse(std::string_view bytes, const Limits& limits = {}) {
    MemorySource source(std::as_bytes(std::span(bytes.data(), bytes.size())));
    ByteReader reader(source, limits);
    return parse_safetensors(reader);
}

TensorFile parse_pipe(std::string_view bytes) {
    PipeSource source(bytes);
    ByteReader reader(source);
    return parse_safetensors(reader);
}

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& f) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << part;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

// Refused in both ways of reading, with the part in the message.
void expect_bad(std::string_view bytes, const std::string& part, const Limits& limits = {}) {
    expect_error(ErrorCode::bad_file, part, [&] { parse(bytes, limits); });
}
void expect_bad_header(std::string_view header, const std::string& part, std::string_view data = {}) {
    expect_bad(file_of(header, data), part);
    expect_error(ErrorCode::bad_file, part, [&] { parse_pipe(file_of(header, data)); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
    return fmt::format("\"{}\":{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":{}}}", name, dtype, shape, offsets);
}

Tensor tensor_of(std::string name, DType dtype, std::vector<int64_t> shape, uint64_t seed = 1) {
    Tensor tensor{std::move(name), dtype, std::move(shape), {}};
    int64_t bytes = size_of(dtype);
    for (int64_t extent : tensor.shape) bytes *= extent;
    tensor.data = Buffer(bytes);
    const Rng rng(seed, static_cast<uint64_t>(dtype));
    for (int64_t i = 0; i < bytes; ++i) {
        const auto value = rng.bits(static_cast<uint64_t>(i));
        tensor.data.data()[i] = static_cast<std::byte>(dtype == DType::boolean ? value & 1 : value);
    }
    return tensor;
}

std::string written(const TensorFile& file) {
    MemorySink sink;
    write_safetensors(file, sink);
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

void expect_equal(const TensorFile& a, const TensorFile& b) {
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (size_t i = 0; i < a.tensors.size(); ++i) {
        EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
        EXPECT_EQ(a.tensors[i].dtype, b.tensors[i].dtype);
        EXPECT_EQ(a.tensors[i].shape, b.tensors[i].shape);
        ASSERT_EQ(a.tensors[i].data.bytes(), b.tensors[i].data.bytes());
        if (a.tensors[i].data.bytes() == 0) continue;
        EXPECT_EQ(std::memcmp(a.tensors[i].data.data(), b.tensors[i].data.data(),
                              static_cast<size_t>(a.tensors[i].data.bytes())),
                  0)
            << a.tensors[i].name;
    }
}

TensorFile sample() {
    TensorFile file;
    for (DType dtype : kAllTypes) file.tensors.push_back(tensor_of(std::string(name_of(dtype)), dtype, {3, 5}));
    file.tensors.push_back(tensor_of("scalar", DType::f32, {}));
    file.tensors.push_back(tensor_of("empty", DType::i64, {4, 0, 2}));
    file.tensors.push_back(tensor_of("deep", DType::u8, {1, 2, 1, 2, 1, 2, 1, 2}));
    file.tensors.push_back(tensor_of("conv\"1\".weight \xc3\xa4\n", DType::bf16, {7}));
    file.metadata = {{"stipple.version", "0.1.0"}, {"note", "a \"quoted\"\nline"}};
    return file;
}

// === What must work

TEST(Safetensors, RoundTripOfAllTypes) {
    const TensorFile file = sample();
    const std::string bytes = written(file);
    for (const TensorFile& back : {parse(bytes), parse_pipe(bytes)}) {
        expect_equal(back, file);
        EXPECT_EQ(back.metadata.at("format"), "pt");
        EXPECT_EQ(back.metadata.at("note"), "a \"quoted\"\nline");
        EXPECT_EQ(back.metadata.size(), 3u);
    }
    EXPECT_TRUE(written(parse(bytes)) == bytes);
    EXPECT_EQ(find(parse(bytes), "scalar")->dtype, DType::f32);
    EXPECT_EQ(find(file, "nothing"), nullptr);
}

TEST(Safetensors, ASmallFileByteByByte) {
    TensorFile file;
    file.tensors.push_back(tensor_of("b", DType::u8, {3}));
    file.tensors.push_back(tensor_of("a", DType::f32, {1, 2}));
    std::memcpy(file.tensors[0].data.data(), "\x01\x02\x03", 3);
    const float values[] = {1.0f, -2.0f};
    std::memcpy(file.tensors[1].data.data(), values, 8);
    const std::string header =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}";
    ASSERT_EQ(header.size(), 140u);
    const std::string expected = std::string("\xb8\0\0\0\0\0\0\0", 8) + header + std::string(184 - 140, ' ') +
                                 std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0\x01\x02\x03", 11);
    EXPECT_EQ(written(file), expected);
}

TEST(Safetensors, DataAreAligned) {
    const TensorFile file = sample();
    const std::string bytes = written(file);
    MemorySource source(std::as_bytes(std::span(bytes.data(), bytes.size())));
    ByteReader reader(source);
    const TensorHeader header = read_safetensors_header(reader);
    EXPECT_EQ(header.data_offset % 64, 0);
    EXPECT_EQ(reader.offset(), header.data_offset);
    EXPECT_EQ(header.data_offset + header.data_bytes, static_cast<int64_t>(bytes.size()));
    ASSERT_EQ(header.tensors.size(), file.tensors.size());
    for (size_t i = 0; i < header.tensors.size(); ++i) {
        EXPECT_EQ(header.tensors[i].name, file.tensors[i].name);  // listed in the given order
        EXPECT_EQ(header.tensors[i].begin % size_of(header.tensors[i].dtype), 0) << header.tensors[i].name;
    }
}

TEST(Safetensors, AFormatThatIsThereStays) {
    TensorFile file;
    file.metadata["format"] = "np";
    EXPECT_EQ(parse(written(file)).metadata.at("format"), "np");
}

TEST(Safetensors, NoTensorsNoMetadata) {
    EXPECT_TRUE(parse(file_of("{}")).tensors.empty());
    EXPECT_TRUE(parse(file_of("{\"__metadata__\":{}}")).metadata.empty());
    EXPECT_TRUE(parse(file_of("{}          ")).tensors.empty());
    expect_equal(parse(written({})), {});
}

TEST(Safetensors, ScalarsAndEmptyTensors) {
    const std::string header = std::string("{") + entry("s", "F32", "[]", "[0,4]") + "," +
                               entry("e", "F32", "[0]", "[4,4]") + "," + entry("f", "F64", "[0,7]", "[0,0]") + "}";
    const TensorFile file = parse(file_of(header, "abcd"));
    EXPECT_TRUE(file.tensors[0].shape.empty());
    EXPECT_EQ(file.tensors[0].data.bytes(), 4);
    EXPECT_EQ(file.tensors[1].data.bytes(), 0);
    EXPECT_EQ(file.tensors[2].shape, (std::vector<int64_t>{0, 7}));
}

TEST(Safetensors, NanIsAValueLikeAnyOther) {
    TensorFile file;
    file.tensors.push_back(tensor_of("x", DType::f32, {2}));
    const float values[] = {std::nanf(""), INFINITY};
    std::memcpy(file.tensors[0].data.data(), values, 8);
    expect_equal(parse(written(file)), file);
}

TEST(Safetensors, AnyOrderInTheHeader) {
    const TensorFile file = parse(file_of(
        std::string("{") + entry("b", "U8", "[2]", "[1,3]") + "," + entry("a", "U8", "[1]", "[0,1]") + "}", "abb"));
    EXPECT_EQ(file.tensors[0].name, "b");
    EXPECT_EQ(static_cast<char>(file.tensors[0].data.data()[0]), 'b');
    EXPECT_EQ(static_cast<char>(file.tensors[1].data.data()[0]), 'a');
}

TEST(Safetensors, LargeTensorsThroughAPipe) {
    TensorFile file;
    file.tensors.push_back(tensor_of("large", DType::f32, {1000, 1000}));
    const std::string bytes = written(file);
    expect_equal(parse_pipe(bytes), file);
}

// === One test for each error

TEST(SafetensorsErrors, Empty) {
    expect_bad("", "the file is empty");
    expect_error(ErrorCode::bad_file, "the file is empty", [] { parse_pipe(""); });
}
TEST(SafetensorsErrors, HeaderLengthCut) {
    for (size_t n = 1; n < 8; ++n) expect_bad(file_of("{}").substr(0, n), "ends in the middle of the header length");
}
TEST(SafetensorsErrors, HeaderLengthBeyondTheLimit) {
    std::string bytes = file_of("{}");
    for (uint64_t length : {uint64_t{100'000'001}, uint64_t{1} << 40, uint64_t{1} << 63, ~uint64_t{0}}) {
        std::memcpy(bytes.data(), &length, 8);
        expect_bad(bytes, fmt::format("a header of {} bytes", length));
    }
    Limits limits;
    limits.max_tensor_header = 1;
    expect_bad(file_of("{}"), "more than 1 are not read", limits);
}
TEST(SafetensorsErrors, HeaderLengthBeyondTheFile) {
    std::string bytes = file_of("{}");
    bytes[0] = 3;
    expect_bad(bytes, "3 bytes needed, the file has 2 left");
    expect_error(ErrorCode::bad_file, "ends in the middle of the header", [&] { parse_pipe(bytes); });
}
TEST(SafetensorsErrors, HeaderTooShort) {
    expect_bad(file_of(""), "a header of 0 bytes is too short");
    expect_bad(file_of("{"), "a header of 1 bytes is too short");
}
TEST(SafetensorsErrors, HeaderStart) {
    for (const char* header : {" {}", "[]", "\xef\xbb\xbf{}", "\"{}\"", "//{}", "null"})
        expect_bad_header(header, "must start with '{'");
}
TEST(SafetensorsErrors, NotJson) {
    using namespace std::string_view_literals;
    for (std::string_view header : {"{ "sv, "{}x"sv, "{}{}"sv, "{\"a\":"sv, "{'a':1}"sv, "{\"a\" 1}"sv, "{,}"sv,
                                    "{\"a\":+1}"sv, "{}/**/"sv, "{\"a\":{\"dtype\":\"U8\",}}"sv})
        expect_bad_header(header, "not valid UTF-8 JSON");
}
TEST(SafetensorsErrors, NotUtf8) {
    for (const char* header : {"{\"\xff\":{}}", "{\"__metadata__\":{\"a\":\"\xc3\"}}", "{\"\\ud800\":{}}",
                               "{\"\xed\xa0\x80\":{}}", "{\"\xc0\xaf\":{}}", "{\"a\x01\":{}}"})
        expect_bad_header(header, "not valid UTF-8 JSON");
}
TEST(SafetensorsErrors, ZeroBytesDoNotHideTheRest) {
    using namespace std::string_view_literals;
    for (std::string_view header : {"{}\0"sv, "{}\0{\"a\":1}"sv, "{\0}"sv, "{\"a\0b\":{}}"sv})
        expect_bad_header(header, "not valid UTF-8 JSON");
}
TEST(SafetensorsErrors, JsonErrorsNameTheByte) {
    expect_bad(file_of("{\"a\" 1}"), "byte 13:");
    expect_bad(file_of(std::string_view("{}\0", 3)), "byte 10:");
}
TEST(SafetensorsErrors, Depth) {
    expect_bad_header("{\"a\":" + std::string(100'000, '['), "expected an object, found an array");
    expect_bad_header("{\"a\":{\"shape\":" + std::string(100'000, '['), "must hold whole numbers, found an array");
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    expect_bad_header(objects, "unknown key");
}
TEST(SafetensorsErrors, TensorNotAnObject) {
    expect_bad_header("{\"a\":1}", "tensor \"a\": expected an object, found a number");
    expect_bad_header("{\"a\":null}", "found null");
    expect_bad_header("{\"a\":true}", "found a boolean");
    expect_bad_header("{\"a\":\"x\"}", "found a string");
}
TEST(SafetensorsErrors, UnknownKey) {
    expect_bad_header("{\"a\":{\"strides\":[1]}}", "tensor \"a\": unknown key \"strides\"");
}
TEST(SafetensorsErrors, MissingKey) {
    expect_bad_header("{\"a\":{}}", "tensor \"a\": \"dtype\" is missing");
    expect_bad_header("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", "\"shape\" is missing");
    expect_bad_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", "\"data_offsets\" is missing");
}
TEST(SafetensorsErrors, DuplicateKeys) {
    const std::string a = entry("a", "U8", "[1]", "[0,1]");
    expect_bad_header(std::string("{") + a + "," + a + "}", "two tensors are named \"a\"", "x");
    expect_bad_header(std::string("{") + a + "," + entry("\\u0061", "U8", "[1]", "[1,2]") + "}",
                      "two tensors are named \"a\"", "xy");
    expect_bad_header("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "\"dtype\" is there twice");
    expect_bad_header("{\"a\":{\"shape\":[],\"shape\":[]}}", "\"shape\" is there twice");
    expect_bad_header("{\"a\":{\"data_offsets\":[0,0],\"data_offsets\":[0,0]}}", "\"data_offsets\" is there twice");
    expect_bad_header("{\"__metadata__\":{},\"__metadata__\":{}}", "two __metadata__");
    expect_bad_header("{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", "two metadata entries are named \"a\"");
}
TEST(SafetensorsErrors, UnknownDtype) {
    for (const char* dtype : {"F8_E4M3", "C64", "f32", "F128", "", "U8 "})
        expect_bad_header(std::string("{") + entry("w", dtype, "[1]", "[0,1]") + "}",
                          std::string("tensor \"w\": unknown dtype \"") + dtype + "\"", "x");
    expect_bad_header("{\"a\":{\"dtype\":8}}", "\"dtype\" must be a string, found a number");
}
TEST(SafetensorsErrors, Shapes) {
    const auto bad = [](const char* shape, const char* part) {
        expect_bad_header(std::string("{") + entry("w", "U8", shape, "[0,1]") + "}", part, "x");
    };
    bad("1", "\"shape\" must be an array, found a number");
    bad("[-1]", "found a negative number");
    bad("[1.0]", "found a number that is not a whole one");
    bad("[1e3]", "found a number that is not a whole one");
    bad("[\"1\"]", "found a string");
    bad("[null]", "found null");
    bad("[18446744073709551616]", "found a number that is not a whole one");
    bad("[9223372036854775808]", "does not fit in 63 bits");
    bad("[1,1,1,1,1,1,1,1,1]", "more than 8 dimensions");
}
TEST(SafetensorsErrors, ShapeOverflow) {
    for (const char* shape : {"[4294967296,4294967296]", "[9223372036854775807,2]", "[3,6148914691236517206]",
                              "[2305843009213693952,4]", "[4611686018427387904,4,0]"})
        expect_bad_header(std::string("{") + entry("w", "F32", shape, "[0,4]") + "}", "the shape overflows 64 bits",
                          "xxxx");
}
TEST(SafetensorsErrors, ShapeAndOffsetsDisagree) {
    const auto bad = [](const char* offsets) {
        expect_bad_header(std::string("{") + entry("w", "F32", "[2]", offsets) + "}", "need 8 bytes, data_offsets are",
                          "12345678");
    };
    bad("[0,7]");
    bad("[0,9]");
    bad("[0,0]");
    bad("[8,0]");
    bad("[0,9223372036854775807]");
}
TEST(SafetensorsErrors, Offsets) {
    const auto bad = [](const char* offsets) {
        expect_bad_header(std::string("{") + entry("w", "U8", "[1]", offsets) + "}",
                          "\"data_offsets\" must be two numbers", "x");
    };
    bad("[]");
    bad("[0]");
    bad("[0,1,2]");
    bad("1");
    bad("[0,-1]");
    bad("[0,1.0]");
    bad("[[0],[1]]");
    bad("{}");
}
TEST(SafetensorsErrors, Overlap) {
    const std::string header =
        std::string("{") + entry("a", "U8", "[4]", "[0,4]") + "," + entry("b", "U8", "[4]", "[2,6]") + "}";
    expect_bad_header(header, "tensor \"b\": data start at 2, overlapping the data before, which end at 4", "123456");
    // Every tensor the same bytes: a small file that would need much memory.
    std::string many = "{";
    for (int i = 0; i < 1000; ++i)
        many.append(i ? "," : "").append(entry(fmt::format("t{}", i), "U8", "[1000]", "[0,1000]"));
    expect_bad_header(many + "}", "overlapping", std::string(1000, 'x'));
}
TEST(SafetensorsErrors, Hole) {
    expect_bad_header(std::string("{") + entry("a", "U8", "[1]", "[1,2]") + "}", "data start at 1, leaving a hole",
                      "xx");
    expect_bad_header(
        std::string("{") + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "U8", "[1]", "[2,3]") + "}",
        "tensor \"b\": data start at 2, leaving a hole", "xxx");
    expect_bad_header(std::string("{") + entry("a", "U8", "[0]", "[5,5]") + "}", "leaving a hole", "xxxxx");
}
TEST(SafetensorsErrors, DataTooShort) {
    const std::string header = std::string("{") + entry("a", "U8", "[100]", "[0,100]") + "}";
    expect_bad(file_of(header, "x"), "describes 100 bytes of data, the file has 1");
    expect_error(ErrorCode::bad_file, "ends in the middle of tensor \"a\"", [&] { parse_pipe(file_of(header, "x")); });
    const std::string huge =
        std::string("{") + entry("a", "U8", "[1152921504606846976]", "[0,1152921504606846976]") + "}";
    expect_bad(file_of(huge, "x"), "the file has 1");
    expect_error(ErrorCode::bad_file, "ends in the middle", [&] { parse_pipe(file_of(huge, "x")); });  // no allocation
}
TEST(SafetensorsErrors, TrailingBytes) {
    const std::string header = std::string("{") + entry("a", "U8", "[1]", "[0,1]") + "}";
    expect_bad(file_of(header, "xy"), "describes 1 bytes of data, the file has 2");
    expect_error(ErrorCode::bad_file, "bytes follow the last tensor", [&] { parse_pipe(file_of(header, "xy")); });
    expect_bad(file_of("{}", "x"), "describes 0 bytes of data");
    expect_error(ErrorCode::bad_file, "bytes follow", [&] { parse_pipe(file_of("{}", "x")); });
}
TEST(SafetensorsErrors, Metadata) {
    expect_bad_header("{\"__metadata__\":1}", "__metadata__ must be an object, found a number");
    expect_bad_header("{\"__metadata__\":[]}", "__metadata__ must be an object, found an array");
    expect_bad_header("{\"__metadata__\":{\"a\":1}}", "metadata \"a\" must be a string, found a number");
    expect_bad_header("{\"__metadata__\":{\"a\":{}}}", "metadata \"a\" must be a string, found an object");
    expect_bad_header("{\"__metadata__\":{\"a\":null}}", "found null");
    Limits limits;
    limits.max_metadata = 10;
    EXPECT_EQ(parse(file_of("{\"__metadata__\":{\"1234\":\"567890\"}}"), limits).metadata.size(), 1u);
    expect_bad(file_of("{\"__metadata__\":{\"1234\":\"5678901\"}}"), "more than 10 bytes of metadata", limits);
}
TEST(SafetensorsErrors, TooManyTensors) {
    Limits limits;
    limits.max_tensors = 2;
    const std::string two =
        std::string("{") + entry("a", "U8", "[0]", "[0,0]") + "," + entry("b", "U8", "[0]", "[0,0]");
    EXPECT_EQ(parse(file_of(two + "}"), limits).tensors.size(), 2u);
    expect_bad(file_of(two + "," + entry("c", "U8", "[0]", "[0,0]") + "}"), "more than 2 tensors", limits);
}
TEST(SafetensorsErrors, BoolsAreZeroOrOne) {
    expect_bad_header(std::string("{") + entry("m", "BOOL", "[3]", "[0,3]") + "}", "a BOOL must be 0 or 1, found 2",
                      std::string_view("\x00\x01\x02", 3));
}
TEST(SafetensorsErrors, NamesOfFilesDoNotReachTheTerminal) {
    try {
        parse(file_of("{\"\\u001b[2J" + std::string(100, 'x') + "\":1}"));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
        EXPECT_LT(std::strlen(error.what()), 150u);
    }
}

TEST(Safetensors, TruncatedAtEveryByte) {
    TensorFile file;
    file.tensors.push_back(tensor_of("a", DType::f32, {5}));
    file.tensors.push_back(tensor_of("b", DType::boolean, {3}));
    const std::string bytes = written(file);
    for (size_t length = 0; length < bytes.size(); ++length) {
        const std::string_view prefix = std::string_view(bytes).substr(0, length);
        EXPECT_THROW(parse(prefix), Error) << length;
        EXPECT_THROW(parse_pipe(prefix), Error) << length;
    }
}

TEST(Safetensors, AnyFlippedBitIsAnErrorOrAnotherFile) {
    const std::string bytes = written(sample());
    const Rng rng(5);
    for (uint64_t i = 0; i < 3000; ++i) {
        std::string damaged = bytes;
        const size_t at = rng.below(2 * i, static_cast<uint32_t>(bytes.size()));
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << rng.below(2 * i + 1, 8)));
        try {
            const TensorFile file = parse(damaged);
            expect_equal(parse(written(file)), file);
        } catch (const Error& error) {
            ASSERT_EQ(error.code(), ErrorCode::bad_file);
        }
    }
}

// === Writing

TEST(SafetensorsWriting, RefusesWrongUse) {
    const auto bad = [](Tensor tensor, const char* part) {
        TensorFile file;
        file.tensors.push_back(std::move(tensor));
        expect_error(ErrorCode::bad_argument, part, [&] { written(file); });
    };
    Tensor tensor = tensor_of("w", DType::f32, {2});
    tensor.shape = {3};
    bad(std::move(tensor), "its shape needs 12 bytes, it has 8");
    tensor = tensor_of("w", DType::f32, {0});
    tensor.shape = {-1, 0};
    bad(std::move(tensor), "negative shape");
    tensor = tensor_of("w", DType::f32, {0});
    tensor.shape = {INT64_MAX, 2};
    bad(std::move(tensor), "overflows");
    bad(tensor_of("__metadata__", DType::f32, {1}), "may not be named __metadata__");
    bad(tensor_of("\xff", DType::f32, {1}), "not UTF-8");
    TensorFile twice;
    twice.tensors.push_back(tensor_of("w", DType::f32, {1}));
    twice.tensors.push_back(tensor_of("w", DType::f32, {1}));
    expect_error(ErrorCode::bad_argument, "two tensors are named", [&] { written(twice); });
}

// === Files

TEST(SafetensorsFile, SavesAndLoads) {
    const TemporaryFolder folder;
    const std::string path = folder / "weights.safetensors";
    const TensorFile file = sample();
    save_safetensors(path, file, Overwrite::refuse);
    expect_equal(load_safetensors(path), file);
    expect_error(ErrorCode::cannot_write, "exists already", [&] { save_safetensors(path, file, Overwrite::refuse); });
    save_safetensors(path, parse(written({})), Overwrite::allow);
    EXPECT_TRUE(load_safetensors(path).tensors.empty());
    // Wrong use leaves what was there.
    TensorFile broken = sample();
    broken.tensors[0].shape = {1};
    EXPECT_THROW(save_safetensors(path, broken, Overwrite::allow), Error);
    EXPECT_TRUE(load_safetensors(path).tensors.empty());
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"weights.safetensors"});
}

TEST(SafetensorsFile, ErrorsNameThePath) {
    const TemporaryFolder folder;
    write_file(folder / "x.safetensors", "");
    expect_error(ErrorCode::bad_file, "x.safetensors: byte 0: the file is empty",
                 [&] { load_safetensors(folder / "x.safetensors"); });
    expect_error(ErrorCode::bad_file, "missing.safetensors: cannot open",
                 [&] { load_safetensors(folder / "missing.safetensors"); });
    expect_error(ErrorCode::bad_file, "is a folder", [&] { load_safetensors(folder.path()); });
}

TEST(SafetensorsFile, PicklesAreRefusedUnread) {
    const TemporaryFolder folder;
    using namespace std::string_view_literals;
    const std::string good = written(sample());
    for (const char* name : {"a.pt", "a.pth", "a.ckpt", "a.pkl"}) {
        write_file(folder / name, good);
        expect_error(ErrorCode::bad_file, "pickle checkpoints are not read", [&] { load_safetensors(folder / name); });
    }
    for (std::string_view content : {"PK\x03\x04 and a zip archive behind it"sv,
                                     "\x80\x02}q\x00(X\x03\x00\x00\x00"
                                     "abcq\x01K\x01u."sv,
                                     "\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00"sv}) {
        write_file(folder / "b.safetensors", content);
        try {
            load_safetensors(folder / "b.safetensors");
            FAIL();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file);
        }
    }
    write_file(folder / "c.bin", "PK\x03\x04 and a zip archive behind it"sv);
    try {
        load_safetensors(folder / "c.bin");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(error.hint().find("scripts/pth_to_safetensors.py"), std::string::npos);
    }
}

// A reader of thirty lines that shares nothing with ours.
constexpr const char* kPython = R"(
import json, struct, sys
import numpy
names = {'U8': 'u1', 'I8': 'i1', 'U16': '<u2', 'I16': '<i2', 'U32': '<u4', 'I32': '<i4', 'U64': '<u8', 'I64': '<i8',
         'F16': '<f2', 'BF16': '<u2', 'F32': '<f4', 'F64': '<f8', 'BOOL': '?'}
def load(path):
    raw = open(path, 'rb').read()
    length, = struct.unpack('<Q', raw[:8])
    header = json.loads(raw[8:8 + length].decode('utf-8'))
    metadata = header.pop('__metadata__', {})
    data = raw[8 + length:]
    tensors, used = {}, 0
    for name, entry in header.items():
        begin, end = entry['data_offsets']
        array = numpy.frombuffer(data[begin:end], names[entry['dtype']]).reshape(entry['shape'])
        tensors[name] = array
        used += end - begin
    assert used == len(data), (used, len(data))
    return tensors, metadata, (8 + length) % 64
tensors, metadata, over = load(sys.argv[1])
assert over == 0 and metadata == {'format': 'pt', 'model': 'net'}, metadata
assert list(tensors) == ['count', 'w', 'half', 'mask', 'scale', 'none'], list(tensors)
assert tensors['count'].dtype == numpy.uint8 and tensors['count'].tolist() == [1, 2, 3]
assert tensors['w'].shape == (2, 3) and tensors['w'].tolist() == [[0.0, 0.5, 1.0], [1.5, 2.0, 2.5]]
assert tensors['half'].dtype == numpy.float16 and tensors['half'].tolist() == [1.0, -2.0]
assert tensors['mask'].tolist() == [True, False]
assert tensors['scale'].shape == () and tensors['scale'] == -7
assert tensors['none'].shape == (0, 4)
def save(path, tensors):
    header, data = {}, b''
    for name, array in tensors.items():
        kind = {v: k for k, v in names.items() if k != 'BF16'}
        dtype = kind.get(array.dtype.str) or kind[array.dtype.str[1:]]
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {'dtype': dtype, 'shape': list(array.shape), 'data_offsets': offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    open(path, 'wb').write(struct.pack('<Q', len(text)) + text + data)
x = numpy.arange(6, dtype='<f8').reshape(2, 3)
save(sys.argv[2], {'x': x, 'y': numpy.array(5, 'u1'), 'z': numpy.zeros((0,), '<i4')})
# Where the library itself is there, it is the judge.
try:
    from safetensors.numpy import load_file, save_file
except ImportError:
    pass
else:
    judged = load_file(sys.argv[1])
    assert sorted(judged) == sorted(tensors) and all((judged[n] == tensors[n]).all() for n in tensors), judged
    save_file({'x': x, 'y': numpy.array(5, 'u1'), 'z': numpy.zeros((0,), '<i4')}, sys.argv[2])
print('python agrees')
)";

TEST(SafetensorsFile, PythonReadsOursAndWeReadPythons) {
    const TemporaryFolder folder;
    TensorFile file;
    const auto add = [&](const char* name, DType dtype, std::vector<int64_t> shape, const auto& values) {
        file.tensors.push_back(tensor_of(name, dtype, std::move(shape)));
        std::memcpy(file.tensors.back().data.data(), std::data(values), sizeof values);
    };
    add("count", DType::u8, {3}, std::array<uint8_t, 3>{1, 2, 3});
    add("w", DType::f32, {2, 3}, std::array<float, 6>{0, 0.5f, 1, 1.5f, 2, 2.5f});
    add("half", DType::f16, {2}, std::array<uint16_t, 2>{0x3c00, 0xc000});
    add("mask", DType::boolean, {2}, std::array<uint8_t, 2>{1, 0});
    add("scale", DType::i64, {}, std::array<int64_t, 1>{-7});
    file.tensors.push_back(tensor_of("none", DType::f64, {0, 4}));
    file.metadata["model"] = "net";
    save_safetensors(folder / "ours.safetensors", file, Overwrite::refuse);
    write_file(folder / "check.py", kPython);
    const char* python = std::getenv("STIPPLE_PYTHON");  // another than the system's
    const auto result = test::run_program({python ? python : "/usr/bin/python3", folder / "check.py",
                                           folder / "ours.safetensors", folder / "theirs.safetensors"});
    ASSERT_EQ(result.exit_code, 0) << "needs python3 with numpy (scripts/bootstrap.sh installs them)\n"
                                   << result.output;
    EXPECT_EQ(result.output, "python agrees\n");
    const TensorFile theirs = load_safetensors(folder / "theirs.safetensors");
    ASSERT_EQ(theirs.tensors.size(), 3u);
    const Tensor *x = find(theirs, "x"), *y = find(theirs, "y"), *z = find(theirs, "z");
    ASSERT_TRUE(x && y && z);
    EXPECT_EQ(x->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(load_as_double(DType::f64, x->data.data() + 40), 5.0);
    EXPECT_EQ(load_as_double(DType::u8, y->data.data()), 5.0);
    EXPECT_EQ(z->data.bytes(), 0);
}

// === Memory

TEST(SafetensorsMemory, SurvivesAllocationFailures) {
    const std::string bytes = written(sample());
    const int64_t tried = test::for_each_allocation_failure([&] { expect_equal(parse(bytes), sample()); });
    EXPECT_GT(tried, test::can_fail_allocations() ? 100 : -1);
    const TensorFile file = sample();
    test::for_each_allocation_failure([&] { written(file); });
    // Errors too: what cannot be said is still an exception.
    test::for_each_allocation_failure([&] {
        try {
            parse("{}");
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_file) throw;
        }
    });
}

TEST(SafetensorsMemory, FilesSurviveAllocationFailures) {
    const TemporaryFolder folder(test::Where::memory);
    const std::string path = folder / "w.safetensors";
    const TensorFile file = sample();
    test::for_each_allocation_failure([&] { save_safetensors(path, file, Overwrite::allow); });
    test::for_each_allocation_failure([&] { load_safetensors(path); });
    EXPECT_EQ(folder.entries(), std::vector<std::string>{"w.safetensors"});
}

}  // namespace
}  // namespace stipple::io
