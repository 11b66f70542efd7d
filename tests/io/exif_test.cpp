// EXIF orientation: pictures stand upright, and no bytes of a tag can do harm.

#include "stipple/io/common/exif.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "stipple/core/rng.h"
#include "stipple/io/image_file.h"
#include "tests/support/temporary_folder.h"

namespace stipple::io {
namespace {

/// An APP1 segment's content with one entry.
std::vector<uint8_t> exif_segment(int orientation, bool big = false, uint16_t type = 3, uint32_t count = 1) {
    std::vector<uint8_t> bytes = {'E', 'x', 'i', 'f', 0, 0};
    const auto put = [&](uint32_t value, int size) {
        for (int i = 0; i < size; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * (big ? size - 1 - i : i)));
    };
    bytes.insert(bytes.end(), 2, big ? 'M' : 'I');
    put(42, 2), put(8, 4);
    put(2, 2);                                       // entries
    put(0x10f, 2), put(2, 2), put(3, 4), put(0, 4);  // the maker's name, skipped
    put(0x112, 2), put(type, 2), put(count, 4), put(static_cast<uint32_t>(orientation), 2), put(0, 2);
    put(0, 4);
    return bytes;
}

/// A JPEG of `image` with the segment behind its first two bytes.
std::vector<std::byte> with_segment(const Image& image, const std::vector<uint8_t>& segment) {
    MemorySink sink;
    write_jpeg(image, sink, 100);
    std::vector<std::byte> bytes = sink.bytes();
    const size_t length = segment.size() + 2;
    std::vector<std::byte> head = {std::byte{0xff}, std::byte{0xe1}, static_cast<std::byte>(length >> 8),
                                   static_cast<std::byte>(length & 255)};
    for (const uint8_t byte : segment) head.push_back(static_cast<std::byte>(byte));
    bytes.insert(bytes.begin() + 2, head.begin(), head.end());
    return bytes;
}

/// Four blocks of grey in a row above a dark one: no symmetry.
Image corner_picture() {
    Image image(32, 16, 1);
    for (int64_t y = 0; y < 16; ++y)
        for (int64_t x = 0; x < 32; ++x) *image.at(x, y) = static_cast<uint8_t>(y < 8 ? 60 + 50 * (x / 8) : 10);
    return image;
}

TEST(Exif, ReadsBothByteOrders) {
    for (int orientation = 1; orientation <= 8; ++orientation)
        for (const bool big : {false, true}) EXPECT_EQ(exif_orientation(exif_segment(orientation, big)), orientation);
}

TEST(Exif, WrongTagsAreNoOrientation) {
    EXPECT_EQ(exif_orientation({}), 1);
    EXPECT_EQ(exif_orientation(exif_segment(0)), 1);
    EXPECT_EQ(exif_orientation(exif_segment(9)), 1);
    EXPECT_EQ(exif_orientation(exif_segment(6, false, 4)), 1);
    EXPECT_EQ(exif_orientation(exif_segment(6, true, 3, 2)), 1);
    std::vector<uint8_t> far = exif_segment(6);
    far[10] = far[11] = far[12] = far[13] = 0xff;  // the directory lies behind the end
    EXPECT_EQ(exif_orientation(far), 1);
}

TEST(Exif, AnyBytesAreSafe) {
    const std::vector<uint8_t> whole = exif_segment(6);
    for (size_t length = 0; length < whole.size(); ++length) {
        const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        exif_orientation(cut);
    }
    const Rng rng(1);
    for (uint64_t trial = 0; trial < 20000; ++trial) {
        std::vector<uint8_t> bytes = whole;
        for (uint64_t k = 0; k < 3; ++k)
            bytes[6 + rng.below(8 * trial + 2 * k, static_cast<uint32_t>(bytes.size() - 6))] =
                static_cast<uint8_t>(rng.bits(8 * trial + 2 * k + 1));
        const int orientation = exif_orientation(bytes);
        ASSERT_TRUE(orientation >= 1 && orientation <= 8);
    }
}

TEST(Exif, TurnsPicturesUpright) {
    const Image stored = corner_picture();
    // Where the stored upper left block lies in the upright picture: corner (right, bottom) by the standard's table.
    const bool right[] = {false, true, true, false, false, true, true, false};
    const bool bottom[] = {false, false, true, true, false, false, true, true};
    for (int orientation = 1; orientation <= 8; ++orientation) {
        const auto bytes = with_segment(stored, exif_segment(orientation, orientation % 2 == 0));
        MemorySource source(bytes);
        ByteReader reader(source);
        const Image upright = parse_jpeg(reader);
        EXPECT_EQ(upright.width(), orientation >= 5 ? 16 : 32);
        EXPECT_EQ(upright.height(), orientation >= 5 ? 32 : 16);
        const size_t i = static_cast<size_t>(orientation - 1);
        const int64_t x = right[i] ? upright.width() - 4 : 3, y = bottom[i] ? upright.height() - 4 : 3;
        EXPECT_NEAR(*upright.at(x, y), 60, 3) << orientation;
        // The row of blocks runs along x, or along y where width and height are swapped.
        const int64_t other_x = orientation >= 5 ? x : upright.width() - 1 - x;
        const int64_t other_y = orientation >= 5 ? upright.height() - 1 - y : y;
        EXPECT_NEAR(*upright.at(other_x, other_y), 210, 3) << orientation;
    }
    EXPECT_THROW(turned_upright(stored, 9), Error);
}

TEST(Exif, LoadsAsStoredOrUpright) {
    const test::TemporaryFolder folder;
    const auto bytes = with_segment(corner_picture(), exif_segment(6));
    test::write_file(folder / "a.jpg", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    EXPECT_EQ(load_image(folder / "a.jpg").width(), 16);
    int orientation = 0;
    EXPECT_EQ(load_image_as_stored(folder / "a.jpg", orientation).width(), 32);
    EXPECT_EQ(orientation, 6);
    save_png(folder / "b.png", corner_picture(), Overwrite::refuse);
    EXPECT_EQ(load_image_as_stored(folder / "b.png", orientation).width(), 32);
    EXPECT_EQ(orientation, 1);
}

}  // namespace
}  // namespace stipple::io
