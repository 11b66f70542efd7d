#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "stipple/io/image_file.h"

namespace stipple::io {
namespace {

Image sample(int64_t width, int64_t height, int64_t channels) {
    Image image(width, height, channels);
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x)
            for (int64_t c = 0; c < channels; ++c)
                image.at(x, y)[c] = static_cast<uint8_t>(7 * x + 13 * y + 50 * c + (x * y) % 5);
    return image;
}

std::vector<std::byte> png_of(const Image& image) {
    MemorySink sink;
    write_png(image, sink);
    return sink.bytes();
}

std::vector<std::byte> jpeg_of(const Image& image, int quality = 95) {
    MemorySink sink;
    write_jpeg(image, sink, quality);
    return sink.bytes();
}

using Parse = Image (*)(ByteReader&);

Image parsed(Parse parse, std::span<const std::byte> bytes, Limits limits = {}) {
    MemorySource source(bytes);
    ByteReader reader(source, limits);
    return parse(reader);
}

void expect_bad_file(Parse parse, std::span<const std::byte> bytes, const char* text) {
    try {
        parsed(parse, bytes);
        ADD_FAILURE() << "no error for " << bytes.size() << " bytes";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_file);
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
}

void set_big_endian(std::vector<std::byte>& bytes, size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

TEST(Png, RoundTripKeepsEveryChannelCount) {
    for (int64_t channels : {1, 3, 4}) {
        const Image image = sample(37, 23, channels);
        const Image back = parsed(parse_png, png_of(image));
        ASSERT_EQ(back.pixels.shape(), image.pixels.shape());
        EXPECT_EQ(std::memcmp(back.pixels.data(), image.pixels.data(), 37 * 23 * channels), 0);
    }
}

// Small files of the other kinds, in hexadecimal.
constexpr char kGrey16[] =
    "89504e470d0a1a0a0000000d494844520000000200000001100000000081d9fc150000000d4944415478da631032f9ff1f00"
    "03e60245f11c84650000000049454e44ae426082";
constexpr char kBits[] =
    "89504e470d0a1a0a0000000d4948445200000008000000010100000000cb7bd2ee0000000a4944415478da63d8080000b300"
    "b28c1a2b470000000049454e44ae426082";
constexpr char kPalette[] =
    "89504e470d0a1a0a0000000d49484452000000030000000108030000002c3ee48600000009504c54450a141e28323c46505a"
    "16ac84740000000374524e53ff0080a95673130000000c4944415478da63606064020000080004081d630a0000000049454e"
    "44ae426082";
constexpr char kGreyAlpha[] =
    "89504e470d0a1a0a0000000d49484452000000020000000108040000005e2bb7010000000d4944415478da6348f97f820100"
    "0622022cd56c96430000000049454e44ae426082";
constexpr char kInterlaced[] =
    "89504e470d0a1a0a0000000d4948445200000003000000030802000001ae4d127e000000234944415478da0dc4b101003008"
    "c330133a79ceffb7160d825372a57dc860171c4ddd0f0b6900c7dcec6c870000000049454e44ae426082";

constexpr char kCmyk[] =
    "ffd8ffee000e41646f626500640000000000ffdb004300ffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc00014080001000104431100"
    "4d11005911004b1100ffc4001500010100000000000000000000000000000302ffc400141001000000000000000000000000"
    "00000000ffda000e0443004d0059004b00003f00318d0fffd9";
constexpr char kProgressive[] =
    "ffd8ffdb004300ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "ffffffffffffffffffffffffffffffffffffffffffffc2000b080010001001011100ffc40015000101000000000000000000"
    "00000000000001ffda000801010000000194ffc40014100100000000000000000000000000000020ffda0008010100010502"
    "1fffc40014100100000000000000000000000000000020ffda0008010100063f021fffc40014100100000000000000000000"
    "000000000020ffda0008010100013f211fffda00080101000000103fffc40017100101010100000000000000000000000001"
    "005161ffda0008010100013f100820943ae5ffd9";

std::vector<std::byte> bytes_of(std::string_view hex) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    return bytes;
}

Image parsed_hex(std::string_view hex) {
    return parsed(parse_png, bytes_of(hex));
}

void expect_pixels(const Image& image, std::array<int64_t, 3> shape, const std::vector<uint8_t>& pixels) {
    ASSERT_EQ(image.pixels.shape(), shape);
    EXPECT_EQ(std::vector<uint8_t>(image.pixels.data(), image.pixels.data() + image.pixels.elements()), pixels);
}

TEST(Png, EveryKindBecomesEightBits) {
    expect_pixels(parsed_hex(kGrey16), {1, 2, 1}, {0x12, 0xff});
    expect_pixels(parsed_hex(kBits), {1, 8, 1}, {255, 0, 255, 255, 0, 0, 0, 255});
    expect_pixels(parsed_hex(kPalette), {1, 3, 4}, {10, 20, 30, 255, 40, 50, 60, 0, 70, 80, 90, 128});
    expect_pixels(parsed_hex(kGreyAlpha), {1, 2, 4}, {100, 100, 100, 255, 200, 200, 200, 0});
    std::vector<uint8_t> expected;
    for (uint8_t y = 0; y < 3; ++y)
        for (uint8_t x = 0; x < 3; ++x)
            for (int value : {10 * x, 10 * y, x + y}) expected.push_back(static_cast<uint8_t>(value));
    expect_pixels(parsed_hex(kInterlaced), {3, 3, 3}, expected);
}

TEST(Png, TruncationAtEveryByteIsAnError) {
    const std::vector<std::byte> bytes = png_of(sample(19, 11, 3));
    for (size_t n = 0; n < bytes.size(); ++n) expect_bad_file(parse_png, std::span(bytes).first(n), "");
}

TEST(Png, DamagedDataIsAnError) {
    std::vector<std::byte> bytes = png_of(sample(19, 11, 3));
    bytes[bytes.size() / 2] ^= std::byte{0x55};
    expect_bad_file(parse_png, bytes, "damaged PNG");
}

TEST(Png, LargeSizesInTheHeaderAreRefusedBeforeAllocation) {
    std::vector<std::byte> bytes = png_of(sample(8, 8, 3));
    set_big_endian(bytes, 16, 70'000);
    expect_bad_file(parse_png, bytes, "70000 x 8");
    set_big_endian(bytes, 16, 0x7fffffff);
    expect_bad_file(parse_png, bytes, "2147483647 x 8");
    set_big_endian(bytes, 16, 60'000);
    set_big_endian(bytes, 20, 60'000);
    expect_bad_file(parse_png, bytes, "60000 x 60000");
    set_big_endian(bytes, 16, 8'000);  // within the limits, beyond what the bytes can hold
    set_big_endian(bytes, 20, 8'000);
    expect_bad_file(parse_png, bytes, "the file has");
    set_big_endian(bytes, 16, 0);
    expect_bad_file(parse_png, bytes, "without pixels");
}

TEST(Png, RefusesImagesThatItCannotHold) {
    MemorySink sink;
    EXPECT_THROW(write_png(Image(4, 4, 2), sink), Error);
    EXPECT_THROW(write_png(Image(0, 4, 3), sink), Error);
}

TEST(Png, ASinkThatFailsIsReported) {
    struct Full : ByteSink {
        void write(const void*, int64_t) override { throw Error(ErrorCode::cannot_write, "disk full"); }
    } full;
    try {
        write_png(sample(8, 8, 3), full);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.message(), "disk full");
    }
    EXPECT_THROW(write_jpeg(sample(8, 8, 3), full), Error);
}

TEST(Jpeg, RoundTripIsClose) {
    for (int64_t channels : {1, 3}) {
        Image image(48, 33, channels);
        for (int64_t y = 0; y < 33; ++y)
            for (int64_t x = 0; x < 48; ++x)
                for (int64_t c = 0; c < channels; ++c) image.at(x, y)[c] = static_cast<uint8_t>(3 * x + 2 * y);
        const Image back = parsed(parse_jpeg, jpeg_of(image, 98));
        ASSERT_EQ(back.pixels.shape(), image.pixels.shape());
        for (int64_t i = 0; i < image.pixels.elements(); ++i)
            ASSERT_NEAR(back.pixels.data()[i], image.pixels.data()[i], 6);
    }
}

TEST(Jpeg, TruncationAtEveryByteIsAnError) {
    const std::vector<std::byte> bytes = jpeg_of(sample(40, 24, 3));
    for (size_t n = 0; n < bytes.size(); ++n) expect_bad_file(parse_jpeg, std::span(bytes).first(n), "");
}

TEST(Jpeg, ProgressiveFilesAreReadWholeOrNotAtAll) {
    const std::vector<std::byte> bytes = bytes_of(kProgressive);
    EXPECT_EQ(parsed(parse_jpeg, bytes).pixels.shape(), (std::array<int64_t, 3>{16, 16, 1}));
    for (size_t n = 0; n < bytes.size(); ++n) expect_bad_file(parse_jpeg, std::span(bytes).first(n), "");
}

TEST(Jpeg, CmykIsRefused) {
    expect_bad_file(parse_jpeg, bytes_of(kCmyk), "CMYK");
}

TEST(Jpeg, LargeSizesInTheHeaderAreRefused) {
    std::vector<std::byte> bytes = jpeg_of(sample(8, 8, 3));
    size_t frame = 0;  // of the SOF0 marker
    while (!(bytes[frame] == std::byte{0xff} && bytes[frame + 1] == std::byte{0xc0})) ++frame;
    bytes[frame + 5] = bytes[frame + 7] = std::byte{0x7f};
    expect_bad_file(parse_jpeg, bytes, "32520 x 32520");
    bytes[frame + 5] = bytes[frame + 7] = std::byte{0x10};
    expect_bad_file(parse_jpeg, bytes, "the file has");
}

TEST(ImageFile, LoadsByContentAndNamesThePath) {
    const auto folder = std::filesystem::temp_directory_path() / "stipple_image_test";
    std::filesystem::create_directories(folder);
    const std::string path = (folder / "picture.dat").string();
    const Image image = sample(12, 9, 3);
    save_png(path, image, Overwrite::allow);
    EXPECT_EQ(load_image(path).width(), 12);
    EXPECT_THROW(save_png(path, image, Overwrite::refuse), Error);
    save_jpeg(path, image, Overwrite::allow);
    EXPECT_EQ(load_image(path).height(), 9);
    {
        AtomicFile text(path, Overwrite::allow);
        text.write("hello");
        text.commit();
    }
    try {
        load_image(path);
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_EQ(error.place().path, path);
        EXPECT_NE(std::string(error.what()).find("neither a PNG nor a JPEG"), std::string::npos);
    }
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stipple::io
