#include <gtest/gtest.h>

#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using io::Format;

std::string text_of(const Mesh& mesh, Format format, io::Warnings* warnings = nullptr) {
    const std::vector<std::byte> bytes = to_bytes(mesh, format, {}, warnings);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void expect_round_trip(const Mesh& mesh, Format format) {
    io::Warnings warnings;
    const Mesh again = from_bytes(to_bytes(mesh, format, {}, &warnings), format);
    EXPECT_EQ(difference(mesh, again), "");
    EXPECT_TRUE(warnings.empty()) << warnings[0];
}

TEST(IoXyz, RoundTrip) {
    expect_round_trip(random_cloud(1), Format::xyz);
    expect_round_trip(random_cloud(100'003), Format::xyz);
}

TEST(IoXyz, OneLineForEachPoint) {
    Mesh mesh = random_cloud(10);
    add_colors(mesh.vertices);
    io::Warnings warnings;
    const std::string text = text_of(mesh, Format::xyz, &warnings);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0], "XYZ cannot hold attribute color: dropped");
}

TEST(IoXyz, JudgesNamelessColumns) {
    EXPECT_EQ(from_text("0 0 0 0.5\n", Format::xyz).vertices.attributes[0].name(), "intensity");
    EXPECT_EQ(from_text("0 0 0 255 0 7\n1 1 1 0 0 0\n", Format::xyz).vertices.attributes[0].name(), "color");
    EXPECT_EQ(from_text("0 0 0 0.6 0.8 0\n", Format::xyz).vertices.attributes[0].name(), "normal");
    EXPECT_EQ(from_text("0 0 0 0.6 0.8 7\n", Format::xyz).vertices.attributes[0].name(), "extra");
    const Mesh pts_like = from_text("0 0 0 -12 10 20 30\n", Format::xyz);
    ASSERT_EQ(pts_like.vertices.attributes.size(), 2u);
    EXPECT_EQ(pts_like.vertices.attributes[0].name(), "intensity");
    EXPECT_EQ(pts_like.vertices.attributes[1].as<uint8_t>()(0, 2), 30);
    const Mesh both = from_text("0 0 0 10 20 30 0 0 1\n", Format::xyz);
    ASSERT_EQ(both.vertices.attributes.size(), 2u);
    EXPECT_EQ(both.vertices.attributes[1].name(), "normal");
}

TEST(IoXyz, HeadersNameColumns) {
    for (const char* text : {"x,y,z,label\n1,2,3,4\n", "# X Y Z label\n1 2 3 4\n", "//X Y Z label\n1 2 3 4\n",
                             "\"x\";\"y\";\"z\";\"label\"\n1;2;3;4\n"}) {
        const Mesh mesh = from_text(text, Format::xyz);
        ASSERT_EQ(mesh.vertices.attributes.size(), 1u) << text;
        EXPECT_EQ(mesh.vertices.attributes[0].as<int32_t>()(0, 0), 4) << text;
        EXPECT_EQ(mesh.vertices.positions.data()[2], 3) << text;
    }
}

TEST(IoXyz, ErrorsNameTheLine) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += "1 2 3\n";
    EXPECT_EQ(error_of(text + "1 2 x\n" + text, Format::xyz), "line 200001: expected a number for z, found \"x\"");
    EXPECT_EQ(error_of("# comment\n\n1 2 3\n1 2\n", Format::xyz), "line 4: expected 3 numbers, found 2");
}

TEST(IoXyz, WorldCoordinatesKeepTheirDigits) {
    const std::string text = "500000.123 5400000.456 100.789\n500010.001 5400020.002 101.003\n";
    const Mesh mesh = from_text(text, Format::xyz);
    EXPECT_NE(mesh.vertices.origin[0], 0);
    EXPECT_EQ(text_of(mesh, Format::xyz), text);
}

TEST(IoCsv, RoundTrip) {
    Mesh mesh = random_cloud(1000);
    add_normals(mesh.vertices);
    add_colors(mesh.vertices);
    add_attribute(mesh.vertices, "intensity", DType::f32);
    add_attribute(mesh.vertices, "label", DType::i32);
    add_attribute(mesh.vertices, "time", DType::f64);
    add_attribute(mesh.vertices, "feature", DType::f64, 3);
    expect_round_trip(mesh, Format::csv);
}

TEST(IoPts, RoundTrip) {
    Mesh mesh = random_cloud(1000);
    add_attribute(mesh.vertices, "intensity", DType::f32);
    add_colors(mesh.vertices);
    expect_round_trip(mesh, Format::pts);
    EXPECT_EQ(text_of(mesh, Format::pts).substr(0, 5), "1000\n");
}

TEST(IoOff, RoundTrip) {
    Mesh mesh = random_mesh(1000);
    expect_round_trip(mesh, Format::off);
    add_normals(mesh.vertices);
    expect_round_trip(mesh, Format::off);
    add_colors(mesh.vertices, 4);
    expect_round_trip(mesh, Format::off);
}

TEST(IoOff, GluedHeaderOfModelNet) {
    const Mesh mesh = from_text("OFF4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 2 3\n", Format::off);
    EXPECT_EQ(mesh.vertices.size(), 4);
    EXPECT_EQ(mesh.faces(), 2);
}

TEST(IoObj, RoundTrip) {
    Mesh mesh = random_mesh(1000);
    expect_round_trip(mesh, Format::obj);
    add_normals(mesh.vertices);
    add_colors(mesh.vertices);
    expect_round_trip(mesh, Format::obj);
    mesh.triangles = Array<int32_t, 2>({0, 3});
    expect_round_trip(mesh, Format::obj);
}

TEST(IoObj, NegativeIndicesAndCornersWithTexture) {
    const Mesh mesh = from_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nf -4/1 -3/-1 3/1 4/1\n", Format::obj);
    ASSERT_EQ(mesh.faces(), 2);
    const int32_t expected[] = {0, 1, 2, 0, 2, 3};
    for (int i = 0; i < 6; ++i) EXPECT_EQ(mesh.triangles.data()[i], expected[i]);
}

TEST(IoPcd, RoundTrip) {
    Mesh mesh = random_cloud(1000);
    const io::WriteOptions kinds[] = {{false, false}, {true, false}, {false, true}};
    for (const io::WriteOptions& kind : kinds)
        EXPECT_EQ(difference(mesh, from_bytes(to_bytes(mesh, Format::pcd, kind), Format::pcd)), "");
    add_normals(mesh.vertices);
    add_colors(mesh.vertices);
    for (DType dtype : {DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::i32, DType::u64, DType::i64,
                        DType::f32, DType::f64})
        add_attribute(mesh.vertices, std::string("a_") + std::string(name_of(dtype)), dtype);
    add_attribute(mesh.vertices, "feature", DType::f32, 5);
    for (const io::WriteOptions& kind : kinds) {
        io::Warnings warnings;
        EXPECT_EQ(difference(mesh, from_bytes(to_bytes(mesh, Format::pcd, kind, &warnings), Format::pcd)), "");
        EXPECT_TRUE(warnings.empty());
    }
    // Points that repeat shrink; points that do not grow by at most one byte in 32.
    Mesh equal = random_cloud(10'000);
    std::fill_n(equal.vertices.positions.data(), 30'000, 0.5f);
    EXPECT_LT(to_bytes(equal, Format::pcd, {false, true}).size(), 120'000u / 40);
    EXPECT_EQ(difference(equal, from_bytes(to_bytes(equal, Format::pcd, {false, true}), Format::pcd)), "");
    equal.vertices.origin = {500000, 0, 0};
    const Mesh world = from_bytes(to_bytes(equal, Format::pcd, {false, true}), Format::pcd);
    EXPECT_EQ(world.vertices.world(9'999, 0), 500000.5);
}

TEST(IoPcd, TheViewpointIsCarriedAndWrittenBack) {
    const std::string head = "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1\nHEIGHT 1\n";
    const std::string body = "POINTS 1\nDATA ascii\n1 2 3\n";
    io::Warnings warnings;
    const Mesh moved = from_text(head + "VIEWPOINT 1 -2.5 0.1 0.5 0.5 0.5 0.5\n" + body, Format::pcd, &warnings);
    const std::array<double, 7> expected = {1, -2.5, 0.1, 0.5, 0.5, 0.5, 0.5};
    EXPECT_EQ(moved.vertices.facts.viewpoint, expected);
    EXPECT_TRUE(warnings.empty());
    const std::string written = text_of(moved, Format::pcd, &warnings);
    EXPECT_NE(written.find("\nVIEWPOINT 1 -2.5 0.1 0.5 0.5 0.5 0.5\n"), std::string::npos) << written;
    EXPECT_TRUE(warnings.empty());
    text_of(moved, Format::npz, &warnings);
    EXPECT_EQ(warnings.back(), "NPZ cannot hold the viewpoint: dropped");

    const Mesh plain = from_text(head + "VIEWPOINT 0 0 0 1 0 0 0\n" + body, Format::pcd);
    EXPECT_FALSE(plain.vertices.facts.viewpoint);
    EXPECT_NE(text_of(plain, Format::pcd).find("\nVIEWPOINT 0 0 0 1 0 0 0\n"), std::string::npos);
}

TEST(IoPcd, CompressedEqualsBinary) {
    // Columns of two points: x x y y z z, then a field of COUNT 2 whose items stay together.
    const std::string header =
        "VERSION 0.7\nFIELDS x y z f\nSIZE 4 4 4 1\nTYPE F F F U\nCOUNT 1 1 1 2\nWIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA ";
    const float columns[6] = {1, 2, 3, 4, 5, 6};
    std::string body(reinterpret_cast<const char*>(columns), 24);
    body += std::string("\x0a\x0b\x0c\x0d", 4);
    const std::string packed = "\x1b" + body;
    uint32_t sizes[2] = {static_cast<uint32_t>(packed.size()), 28};
    const Mesh mesh = from_text(
        header + "binary_compressed\n" + std::string(reinterpret_cast<char*>(sizes), 8) + packed, Format::pcd);
    EXPECT_EQ(mesh.vertices.positions.data()[0], 1);
    EXPECT_EQ(mesh.vertices.positions.data()[1], 3);
    EXPECT_EQ(mesh.vertices.positions.data()[5], 6);
    const auto f = mesh.vertices.attributes[0].as<uint8_t>();
    EXPECT_EQ(f(0, 1), 0x0b);
    EXPECT_EQ(f(1, 0), 0x0c);
}

TEST(IoFormats, RefusalsNameAConverter) {
    for (const auto& [path, text] : {std::pair{"a.e57", "pdal"}, {"a.pth", "pth_to_safetensors"}, {"a.pkl", "savez"}}) {
        try {
            io::Warnings warnings;
            io::load(path, {}, warnings);
            FAIL() << path;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_file);
            EXPECT_NE(error.hint().find(text), std::string::npos) << error.hint();
        }
    }
}

TEST(IoXyzn, SixColumnsAreNormalsWhateverTheirLength) {
    const Mesh mesh = from_text("1 2 3 0 0 2\n4 5 6 1 0 0\n", Format::xyzn);
    ASSERT_EQ(mesh.vertices.attributes.size(), 1u);
    EXPECT_EQ(mesh.vertices.attributes[0].name(), "normal");
    EXPECT_EQ(mesh.vertices.attributes[0].as<float>()(0, 2), 2);
    EXPECT_EQ(text_of(mesh, Format::xyzn), "1 2 3 0 0 2\n4 5 6 1 0 0\n");
    // Columns that are named, or not six, are read as in XYZ.
    EXPECT_EQ(from_text("x y z label nx ny\n1 2 3 4 5 6\n", Format::xyzn).vertices.attributes[0].name(), "label");
    EXPECT_EQ(from_text("1 2 3 4\n", Format::xyzn).vertices.attributes[0].name(), "intensity");
}

TEST(IoXyzrgb, ColoursAreFrom0To1) {
    Mesh mesh = random_cloud(300);
    add_colors(mesh.vertices);
    EXPECT_EQ(difference(mesh, from_bytes(to_bytes(mesh, Format::xyzrgb), Format::xyzrgb)), "");
    const auto first = [](const Mesh& read) { return read.vertices.attributes.at(0).clone(); };
    EXPECT_EQ(first(from_text("0 0 0 0.25 0.5 1\n", Format::xyzrgb)).dtype(), DType::f32);
    EXPECT_EQ(first(from_text("0 0 0 0.25 0.5 1\n", Format::xyzrgb)).value(0, 1), 0.5);
    EXPECT_EQ(first(from_text("0 0 0 1 0 1\n", Format::xyzrgb)).value(0, 2), 255);
    EXPECT_EQ(first(from_text("0 0 0 1 0 17\n", Format::xyzrgb)).value(0, 2), 17);  // other programs' integers
    // Sixteen bits, full and with 8-bit values as LAS files have them.
    mesh = random_cloud(1);
    mesh.vertices.attributes.emplace_back("color", DType::u16, 1, 3);
    auto color = mesh.vertices.attributes[0].as<uint16_t>();
    color(0, 0) = color(0, 1) = color(0, 2) = 65535;
    EXPECT_EQ(first(from_bytes(to_bytes(mesh, Format::xyzrgb), Format::xyzrgb)).value(0, 1), 255);
    color(0, 0) = color(0, 1) = color(0, 2) = 51;
    EXPECT_EQ(first(from_bytes(to_bytes(mesh, Format::xyzrgb), Format::xyzrgb)).value(0, 1), 51);
}

TEST(IoFormats, WhatAFormatCannotHoldIsRefusedByName) {
    const auto refused = [](const auto& work) -> std::string {
        try {
            work();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_argument);
            return error.message() + " | " + error.hint();
        }
        return "";
    };
    EXPECT_EQ(refused([] { io::require_can_hold(Format::ply, "label"); }), "");
    EXPECT_EQ(refused([] { io::require_can_hold(Format::xyzn, "normal"); }), "");
    EXPECT_EQ(refused([] { io::require_can_hold(Format::xyz, "normal"); }),
              "XYZ cannot hold the attribute normal | "
              "formats that can: .ply, .xyzn, .csv, .obj, .off, .pcd, .las, .npz, .h5");
    EXPECT_EQ(refused([] { io::require_can_hold(Format::kitti, "label"); }),
              "KITTI cannot hold the attribute label | formats that can: .ply, .csv, .pcd, .las, .npz, .h5");
    const Mesh bare = random_cloud(2);
    EXPECT_EQ(refused([&] { to_bytes(bare, Format::xyzn); }),
              "XYZN holds points with a normal, and the cloud has none | write .xyz or .ply instead");
    EXPECT_EQ(refused([&] { to_bytes(bare, Format::xyzrgb); }),
              "XYZRGB holds points with a color, and the cloud has none | write .xyz or .ply instead");
}

/// The table's words about each format are true: an attribute that it keeps is read back, another is not.
TEST(IoFormats, EveryFormatKeepsWhatItsTableSays) {
    for (const io::FormatInfo& info : io::formats()) {
        if (!info.write || info.format == Format::stl) continue;
        Mesh mesh = random_cloud(20);
        add_normals(mesh.vertices);
        add_colors(mesh.vertices);
        add_attribute(mesh.vertices, "intensity", DType::f32);
        add_attribute(mesh.vertices, "label", DType::i32);
        const Mesh again = from_bytes(to_bytes(mesh, info.format), info.format);
        for (const Attribute& attribute : mesh.vertices.attributes)
            EXPECT_EQ(find(again.vertices.attributes, attribute.name()) != nullptr,
                      io::can_hold(info.format, attribute.name()))
                << info.name << ' ' << attribute.name();
    }
}

/// A cloud of no points, in every format whose header counts them.
TEST(IoFormats, EmptyCloudsAreReadAndWritten) {
    for (const io::FormatInfo& info : io::formats()) {
        if (!info.write) continue;
        Mesh mesh;
        mesh.vertices = PointCloud(0);
        add_normals(mesh.vertices);
        add_colors(mesh.vertices);
        std::vector<io::WriteOptions> kinds = {{}};
        if (info.format == Format::ply || info.format == Format::pcd || info.format == Format::stl)
            kinds.push_back({true, false});
        if (info.format == Format::pcd) kinds.push_back({false, true});
        for (const io::WriteOptions& kind : kinds) {
            if (!info.counts) {
                try {
                    to_bytes(mesh, info.format, kind);
                    ADD_FAILURE() << info.name << " wrote no points";
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), ErrorCode::bad_argument);
                    EXPECT_NE(error.message().find("cannot hold a cloud of no points"), std::string::npos)
                        << error.message();
                }
                continue;
            }
            io::Warnings warnings;
            const std::vector<std::byte> bytes = to_bytes(mesh, info.format, kind, &warnings);
            const Mesh again = from_bytes(bytes, info.format, &warnings);
            EXPECT_EQ(again.vertices.size(), 0) << info.name;
            EXPECT_NO_THROW(validate(again)) << info.name;
            for (const Attribute& attribute : mesh.vertices.attributes)
                EXPECT_TRUE(info.keeps != "*" || find(again.vertices.attributes, attribute.name())) << info.name;
            // What is cut off is still an error, except for ends that say nothing.
            for (size_t length = 0; length + 1 < bytes.size(); ++length)
                EXPECT_TRUE(!error_of({bytes.data(), length}, info.format).empty() ||
                            from_bytes({bytes.data(), length}, info.format).vertices.size() == 0)
                    << info.name;
        }
    }
}

TEST(IoFormats, EveryFormatHasATable) {
    for (const io::FormatInfo& info : io::formats()) {
        EXPECT_EQ(io::format_by_name(info.name), info.format);
        for (std::string_view extension : info.extensions)
            EXPECT_EQ(io::format_by_extension("x." + std::string(extension)), info.format);
    }
}

}  // namespace
}  // namespace stipple::test
