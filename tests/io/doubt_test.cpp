// Files that are not what their name says: refused by name, or doubted.

#include "stipple/io/kitti.h"
#include "tests/io/binary_samples.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

TEST(IoDoubt, DecimalCommasAreRefusedByName) {
    using io::Format;
    for (const char* row : {"1,5 2,5 3,25", "1,5;2,5;3,25", "1,5\t2\t3", "-1,5 2,5 +3,25 7"}) {
        const std::string found = error_of(std::string(row) + "\n" + row + "\n", Format::xyz);
        expect_contains(found, "line 1: decimal commas: \"");
        expect_contains(found, "1,5\"");
    }
    EXPECT_EQ(error_of("1 2 3\n# a comment\n4 5 6\n1,5 2,5 3,25\n", Format::xyz), "line 4: decimal commas: \"1,5\"");
    EXPECT_EQ(error_of("x;y;z\n1;2;3\n4;5,5;6\n", Format::csv), "line 3: decimal commas: \"5,5\"");
    EXPECT_EQ(error_of("2\n1 2 3\n1,5 2,5 3,25\n", Format::pts), "line 3: decimal commas: \"1,5\"");
    EXPECT_EQ(error_of("ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float "
                       "z\nend_header\n1,5 2 3\n",
                       Format::ply),
              "line 8: decimal commas: \"1,5\"");
    for (const char* fine : {"1,2,3\n", "1, 2, 3\n", "1.5,2.5,3\n", "1,2,3 4\n", "1 2 3\n", "1;2;3\n", "1.5 ,2 ,3\n"})
        EXPECT_EQ(error_of(fine, Format::xyz), "") << fine;
}

TEST(IoDoubt, WhatIsNoKitti) {
    Mesh mesh = dyadic_cloud(100);
    mesh.vertices.attributes.push_back(
        make_attribute<float>("intensity", 100, 1, [](int64_t i) { return static_cast<float>(i) / 100; }));
    io::Warnings warnings;
    parse(io::parse_kitti, write(io::write_kitti, mesh), &warnings);
    EXPECT_TRUE(warnings.empty());

    find(mesh.vertices.attributes, "intensity")->as<float>()(3, 0) = -5;
    mesh.vertices.positions.data()[21] = NAN;
    parse(io::parse_kitti, write(io::write_kitti, mesh), &warnings);
    ASSERT_EQ(warnings.size(), 1u);
    expect_contains(warnings[0], "KITTI: 2 of 100 points have odd numbers: point 3 is");
    expect_contains(warnings[0], "with intensity -5; is it KITTI?");

    // Text, and bytes that count: neither is float32.
    Bytes text = bytes_of(std::string(1600, 'x')), counting(1600);
    for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<std::byte>(i / 4 % 4 == 0 ? i : 0);
    for (const Bytes& bytes : {text, Bytes(1600, std::byte{1})}) {
        expect_contains(refusal(io::parse_kitti, bytes), "byte 0: does not look like KITTI");
        expect_contains(refusal(io::parse_kitti, bytes), "--from kitti reads it nevertheless");
        io::ReadOptions options;
        options.named = true;
        EXPECT_EQ(parse(io::parse_kitti, bytes, nullptr, options).vertices.size(), 100);
    }
    expect_contains(refusal(io::parse_kitti, Bytes(60)), "nuScenes has five numbers a point");
}

}  // namespace
}  // namespace stipple::test
