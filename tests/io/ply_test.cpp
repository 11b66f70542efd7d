#include "stipple/io/ply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using io::Format;

void expect_round_trip(const Mesh& mesh, const io::WriteOptions& options) {
    io::Warnings warnings;
    const Mesh again = from_bytes(to_bytes(mesh, Format::ply, options, &warnings), Format::ply);
    EXPECT_EQ(difference(mesh, again), "");
    EXPECT_TRUE(warnings.empty()) << warnings[0];
}

class IoPlyRoundTrip : public testing::TestWithParam<bool> {
protected:
    io::WriteOptions options() const { return {GetParam()}; }
};

TEST_P(IoPlyRoundTrip, Positions) {
    expect_round_trip(random_cloud(1000), options());
}
TEST_P(IoPlyRoundTrip, OnePoint) {
    expect_round_trip(random_cloud(1), options());
}
TEST_P(IoPlyRoundTrip, ManyPoints) {
    expect_round_trip(random_cloud(300'001), options());
}
TEST_P(IoPlyRoundTrip, Faces) {
    expect_round_trip(random_mesh(999), options());
}

TEST_P(IoPlyRoundTrip, EveryType) {
    Mesh mesh = random_mesh(1000);
    add_normals(mesh.vertices);
    add_colors(mesh.vertices, 4);
    for (DType dtype : {DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::i32, DType::f32, DType::f64})
        add_attribute(mesh.vertices, std::string("a_") + std::string(name_of(dtype)), dtype);
    add_attribute(mesh.vertices, "feature", DType::f32, 5);
    PointCloud faces;
    faces.positions = Array<float, 2>({mesh.faces(), 3});
    add_attribute(faces, "material", DType::i32);
    mesh.face_attributes = std::move(faces.attributes);
    expect_round_trip(mesh, options());
}

TEST_P(IoPlyRoundTrip, NonFinite) {
    Mesh mesh = random_cloud(5);
    mesh.vertices.positions.data()[0] = NAN;
    mesh.vertices.positions.data()[4] = INFINITY;
    mesh.vertices.positions.data()[8] = -INFINITY;
    mesh.vertices.positions.data()[9] = 1e-42f;
    mesh.vertices.positions.data()[10] = -0.0f;
    expect_round_trip(mesh, options());
}

TEST_P(IoPlyRoundTrip, WorldCoordinates) {
    Mesh mesh = random_cloud(1000);
    mesh.vertices.origin = {500000, 5400000, 120};
    const Mesh again = from_bytes(to_bytes(mesh, Format::ply, options()), Format::ply);
    EXPECT_EQ(again.vertices.origin, mesh.vertices.origin);
    // Binary keeps the float64 sum; text keeps the shortest decimal of the float32 part, good to one of its last bits.
    const double tolerance = GetParam() ? 6e-8 / 2 : 1e-9;
    for (int64_t i = 0; i < 1000; ++i)
        for (int axis = 0; axis < 3; ++axis)
            ASSERT_NEAR(again.vertices.world(i, axis), mesh.vertices.world(i, axis), tolerance);
}

INSTANTIATE_TEST_SUITE_P(BinaryAndAscii, IoPlyRoundTrip, testing::Bool());

TEST(IoPly, BigEndianEqualsLittleEndian) {
    Mesh mesh = random_mesh(100);
    add_attribute(mesh.vertices, "label", DType::u16);
    const std::vector<std::byte> little = to_bytes(mesh, Format::ply);
    std::string text(reinterpret_cast<const char*>(little.data()), little.size());
    const size_t header = text.find("end_header\n") + 11;
    text.replace(text.find("little"), 6, "big");
    size_t at = header - 3;
    const auto reverse = [&](size_t bytes) {
        std::reverse(text.begin() + static_cast<ptrdiff_t>(at), text.begin() + static_cast<ptrdiff_t>(at + bytes));
        at += bytes;
    };
    for (int i = 0; i < 100; ++i) {
        for (int axis = 0; axis < 3; ++axis) reverse(4);
        reverse(2);
    }
    for (int64_t i = 0; i < mesh.faces(); ++i) {
        reverse(1);
        for (int corner = 0; corner < 3; ++corner) reverse(4);
    }
    ASSERT_EQ(at, text.size());
    EXPECT_EQ(difference(mesh, from_text(text, Format::ply)), "");
}

TEST(IoPly, FloatColumnsOfUtmTextKeepTheirDigits) {
    const Mesh mesh = from_text(
        "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
        "500000.125 5400000.25 10\n500001.126 5400001.375 11\n",
        Format::ply);
    EXPECT_NEAR(mesh.vertices.world(1, 0), 500001.126, 1e-6);
    EXPECT_EQ(mesh.vertices.world(1, 1), 5400001.375);
}

TEST(IoPly, DoubleNormalsBecomeFloat) {
    const Mesh mesh = from_text(
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty double x\nproperty double y\nproperty double z\n"
        "property double nx\nproperty double ny\nproperty double nz\nend_header\n0 0 0 0.1 0.2 0.3\n",
        Format::ply);
    ASSERT_EQ(mesh.vertices.attributes.size(), 1u);
    EXPECT_EQ(mesh.vertices.attributes[0].as<float>()(0, 2), 0.3f);
}

TEST(IoPly, NamesOfOtherProgramsBecomeTheUsualOnes) {
    const std::string header =
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n";
    const auto names = [&](const std::string& properties, const std::string& row) {
        std::string text;
        for (const Attribute& a :
             from_text(header + properties + "end_header\n0 0 0 " + row + "\n", Format::ply).vertices.attributes)
            text += a.name() + " ";
        return text;
    };
    EXPECT_EQ(names("property float scalar_Intensity\nproperty int classification\n", "1 2"), "intensity label ");
    EXPECT_EQ(names("property float scalar_Intensity\nproperty float intensity\n", "1 2"),
              "scalar_Intensity intensity ");
    EXPECT_EQ(names("property float scalar_Roughness\n", "1"), "scalar_Roughness ");
}

TEST(IoPly, PolygonsBecomeFansWithTheirAttributes) {
    const Mesh mesh = from_text(
        "ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\nproperty float z\n"
        "element face 4\nproperty int id\nproperty list uchar int vertex_indices\nend_header\n"
        "0 0 0\n1 0 0\n1 1 0\n0 1 0\n2 2 2\n7 3 0 1 2\n8 5 0 1 2 3 4\n9 2 0 1\n10 4 1 2 3 4\n",
        Format::ply);
    ASSERT_EQ(mesh.faces(), 6);
    const auto id = mesh.face_attributes[0].as<int32_t>();
    const int32_t expected[] = {7, 8, 8, 8, 10, 10};
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(id(i, 0), expected[i]);
}

TEST(IoPly, WideIntegersAreStoredNarrowOrRefused) {
    Mesh mesh = random_cloud(3);
    Attribute label("label", DType::i64, 3, 1);
    for (int64_t i = 0; i < 3; ++i) label.as<int64_t>()(i, 0) = i - 1;
    mesh.vertices.attributes.push_back(std::move(label));
    io::Warnings warnings;
    const Mesh again = from_bytes(to_bytes(mesh, Format::ply, {}, &warnings), Format::ply);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("label (int64) is stored as int32"), std::string::npos);
    EXPECT_EQ(again.vertices.attributes[0].as<int32_t>()(0, 0), -1);
    mesh.vertices.attributes[0].as<int64_t>()(0, 0) = int64_t{1} << 60;
    EXPECT_THROW(to_bytes(mesh, Format::ply), Error);
}

TEST(IoPly, HeaderIsWhatOthersExpect) {
    Mesh mesh = random_cloud(1);
    add_normals(mesh.vertices);
    add_colors(mesh.vertices);
    const std::vector<std::byte> bytes = to_bytes(mesh, Format::ply, {true});
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(text.substr(0, text.find("end_header")),
              "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
              "property float nx\nproperty float ny\nproperty float nz\n"
              "property uchar red\nproperty uchar green\nproperty uchar blue\n");
}

}  // namespace
}  // namespace stipple::test
