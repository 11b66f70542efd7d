// Colours of 16 bits in formats whose readers expect 8.

#include "tests/io/binary_samples.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

/// Six points whose colours are bytes times `factor`, plus `more`.
Mesh deep_cloud(int factor, int more = 0) {
    Mesh mesh = random_cloud(6);
    mesh.vertices.attributes.push_back(make_attribute<uint16_t>(
        "color", 6, 3, [=](int64_t i) { return static_cast<uint16_t>((i * 15) * factor + more); }));
    return mesh;
}

void expect_bytes(const Mesh& mesh, const std::string& what) {
    const Attribute* color = find(mesh.vertices.attributes, "color");
    ASSERT_TRUE(color) << what;
    ASSERT_EQ(color->dtype(), DType::u8) << what;
    for (int64_t i = 0; i < 18; ++i) ASSERT_EQ(color->value(i / 3, i % 3), i * 15) << what;
}

TEST(IoColors, SixteenBitsBecomeEight) {
    using io::Format;
    for (const Format format : {Format::ply, Format::pcd, Format::obj, Format::off, Format::pts, Format::xyzrgb})
        for (const int factor : {1, 256, 257}) {
            const std::string what = fmt::format("{} times {}", io::info_of(format).name, factor);
            io::Warnings warnings;
            expect_bytes(from_bytes(to_bytes(deep_cloud(factor), format, {}, &warnings), format), what);
            EXPECT_TRUE(warnings.empty()) << what << ": " << warnings[0];
            // Digits that are lost are told.
            if (factor != 256) continue;
            expect_bytes(from_bytes(to_bytes(deep_cloud(256, 77), format, {}, &warnings), format), what);
            ASSERT_EQ(warnings.size(), 1u) << what;
            expect_contains(warnings[0], "colors of 16 bits are written with 8; --keep-16-bit keeps them");
        }
}

TEST(IoColors, AsOthersNameThem) {
    const auto text = [](io::Format format) {
        const auto bytes = to_bytes(deep_cloud(257), format, {.ascii = true});
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    expect_contains(text(io::Format::ply), "property uchar red\nproperty uchar green\nproperty uchar blue\n");
    expect_contains(text(io::Format::pcd), "FIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F F\n");
}

TEST(IoColors, SixteenBitsOnDemand) {
    io::WriteOptions options;
    options.keep_16_bit = true;
    for (const io::Format format : {io::Format::ply, io::Format::pcd}) {
        io::Warnings warnings;
        const Mesh mesh = deep_cloud(256, 77);
        EXPECT_EQ(difference(from_bytes(to_bytes(mesh, format, options, &warnings), format), mesh), "");
        EXPECT_TRUE(warnings.empty());
    }
    const Mesh back = from_bytes(to_bytes(deep_cloud(256, 77), io::Format::xyzrgb, options), io::Format::xyzrgb);
    EXPECT_NEAR(find(back.vertices.attributes, "color")->value(1, 0), (45 * 256 + 77) / 65535.0, 1e-6);
    // Formats that hold them do so without being asked.
    const Mesh mesh = deep_cloud(256, 77);
    EXPECT_EQ(difference(from_bytes(to_bytes(mesh, io::Format::npz), io::Format::npz), mesh), "");
}

}  // namespace
}  // namespace stipple::test
