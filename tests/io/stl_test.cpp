#include "stipple/io/stl.h"

#include "tests/io/binary_samples.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

/// A fan whose vertices are numbered by first occurrence, as a reader numbers them.
Mesh fan(int64_t faces) {
    Mesh mesh = dyadic_cloud(faces + 2);
    mesh.triangles = Array<int32_t, 2>({faces, 3});
    for (int64_t f = 0; f < faces; ++f) {
        mesh.triangles.data()[3 * f] = 0;
        mesh.triangles.data()[3 * f + 1] = static_cast<int32_t>(f + 1);
        mesh.triangles.data()[3 * f + 2] = static_cast<int32_t>(f + 2);
    }
    return mesh;
}

Bytes binary(uint32_t count, size_t facets, const std::string& header = "") {
    std::string text = header;
    text.resize(80, '\0');
    text.append(reinterpret_cast<const char*>(&count), 4);
    return bytes_of(text + std::string(50 * facets, '\1'));
}

constexpr io::WriteOptions kAscii = {true};

TEST(Stl, ReadsWhatItWrites) {
    for (const int64_t faces : {1, 2, 100'000}) {
        const Mesh mesh = fan(faces);
        io::Warnings warnings;
        const Bytes bytes = write(io::write_stl, mesh, &warnings);
        EXPECT_EQ(bytes.size(), static_cast<size_t>(84 + 50 * faces));
        expect_equal(parse(io::parse_stl, bytes, &warnings), mesh);
        const Bytes text = write(io::write_stl, mesh, &warnings, kAscii);
        expect_equal(parse(io::parse_stl, text, &warnings), mesh);
        EXPECT_TRUE(warnings.empty());
        if (faces > 2) continue;
        expect_equal(parse_pipe(io::parse_stl, bytes), mesh);
        expect_equal(parse_pipe(io::parse_stl, text), mesh);
    }
}

TEST(Stl, KeepsNonFiniteAndDegenerate) {
    Mesh mesh = fan(2);
    mesh.vertices.positions.data()[0] = INFINITY;
    mesh.vertices.positions.data()[4] = -0.0f;
    mesh.triangles.data()[5] = 0;
    const int32_t used[] = {0, 1, 2, 0, 2, 0};
    std::memcpy(mesh.triangles.data(), used, sizeof used);
    mesh.vertices.positions = [&] {
        Array<float, 2> three({3, 3});
        std::memcpy(three.data(), mesh.vertices.positions.data(), 36);
        return three;
    }();
    expect_equal(parse(io::parse_stl, write(io::write_stl, mesh)), mesh);
    expect_equal(parse(io::parse_stl, write(io::write_stl, mesh, nullptr, kAscii)), mesh);
}

TEST(Stl, BinaryThatBeginsWithSolid) {
    Bytes bytes = write(io::write_stl, fan(3));
    std::memcpy(bytes.data(), "solid but binary", 17);
    expect_equal(parse(io::parse_stl, bytes), fan(3));
    expect_equal(parse_pipe(io::parse_stl, bytes), fan(3));
}

TEST(Stl, AsciiOfOthers) {
    const char* text =
        "  SOLID one two three\r\n"
        "facet NORMAL 0 0 1\r\n"
        "  Outer Loop\r\n\r\n"
        "    vertex 0 0 0\r\n    vertex +1e0 0 0\r\n    vertex\t0 1.0 -0\r\n"
        "  endloop\r\n endfacet\r\nendsolid one two three\r\n"
        "solid\nfacet normal nan nan nan\nouter loop\nvertex 0 1 0\nvertex 1 0 0\nvertex 1 1 1e-60\nendloop\nendfacet\n"
        "endsolid";
    const Mesh mesh = parse(io::parse_stl, bytes_of(text));
    EXPECT_EQ(mesh.vertices.size(), 4);
    ASSERT_EQ(mesh.faces(), 2);
    EXPECT_EQ(mesh.triangles.data()[3], 2);
    EXPECT_EQ(mesh.triangles.data()[4], 1);
    EXPECT_EQ(mesh.vertices.positions.data()[11], 0);
}

TEST(Stl, EveryPrefixIsAnError) {
    expect_no_prefix(io::parse_stl, write(io::write_stl, fan(2)));
    Bytes text = write(io::write_stl, fan(2), nullptr, kAscii);
    text.resize(text.size() - std::string_view(" stipple\n").size());  // what follows endsolid is a name
    expect_no_prefix(io::parse_stl, text);
}

TEST(Stl, RefusesMalformedFiles) {
    const auto ascii = [](const std::string& body) { return refusal(io::parse_stl, bytes_of("solid x\n" + body)); };
    expect_contains(refusal(io::parse_stl, {}), "empty file");
    expect_contains(refusal(io::parse_stl, bytes_of("x")), "neither an ascii STL");
    EXPECT_EQ(parse(io::parse_stl, binary(0, 0)).vertices.size(), 0);
    expect_contains(refusal(io::parse_stl, binary(4000000000u, 1)), "4000000000 facets, the limit is");
    expect_contains(refusal(io::parse_stl, binary(40000000u, 1)), "2000000000 bytes needed, the file has 50 left");
    expect_contains(refusal(io::parse_stl, binary(1, 2)), "bytes after the last of 1 facets");
    EXPECT_EQ(parse(io::parse_stl, bytes_of("solid x\nendsolid x\n")).faces(), 0);
    expect_contains(ascii("facet normal 0 0\n"), "line 2: a facet normal: expected a number, got \"\"");
    expect_contains(ascii("facet normal 0 0 1\nouter loop\nvertex 0 0 zero\n"),
                    "line 4: a vertex: expected a number, got \"zero\"");
    expect_contains(ascii("facet normal 0 0 1\nouter loop\nvertex 0 0 0 0\n"), "line 4: unexpected \"0\"");
    expect_contains(ascii("facet normal 0 0 1\nouter loop\nvertex 0 0 0\nendloop\n"),
                    "expected vertex, got \"endloop\"");
    expect_contains(ascii("banana\n"), "expected facet or endsolid, got \"banana\"");
    expect_contains(ascii("facet normal 0 0 " + std::string(300, '1') + "\n"), "longer than 256 characters");
    expect_contains(ascii("facet normal 0 0 1e999\n"), "out of range");
    io::ReadOptions options;
    options.limits.max_points = 3;
    expect_contains(refusal(io::parse_stl, write(io::write_stl, fan(3)), options), "the limit");
}

TEST(Stl, TellsWhatItDrops) {
    Mesh mesh = dyadic_cloud(3);
    EXPECT_THROW(write(io::write_stl, mesh), Error);
    mesh = fan(2);
    mesh.triangles.data()[5] = 0;
    mesh.vertices.origin[2] = 1e7;
    mesh.vertices.attributes.push_back(make_attribute<uint8_t>("label", 4, 1, [](int64_t) { return uint8_t{1}; }));
    mesh.face_attributes.push_back(make_attribute<uint8_t>("color", 2, 3, [](int64_t) { return uint8_t{1}; }));
    io::Warnings warnings;
    Bytes bytes = write(io::write_stl, mesh, &warnings);
    ASSERT_EQ(warnings.size(), 2u);
    EXPECT_EQ(warnings[0], "STL cannot hold attribute label, face attribute color and 1 vertices of no face: dropped");
    expect_contains(warnings[1], "STL holds world coordinates in float32: rounded by up to");
    warnings.clear();
    bytes[84 + 48] = std::byte{1};
    parse(io::parse_stl, bytes, &warnings);
    ASSERT_EQ(warnings.size(), 1u);
    expect_contains(warnings[0], "attribute bytes");
}

TEST(Stl, AgreesWithNumpy) {
    const TemporaryFolder folder;
    write_bytes(folder / "ours.stl", write(io::write_stl, fan(20)));
    run_python(folder, R"(
import numpy as np
t = np.dtype([('normal', '<f4', 3), ('corners', '<f4', (3, 3)), ('attribute', '<u2')])
f = np.fromfile('ours.stl', t, offset=84)
assert len(f) == 20 == np.fromfile('ours.stl', '<u4', 1, offset=80)[0]
c = f['corners'].astype('f8')
n = np.cross(c[:, 1] - c[:, 0], c[:, 2] - c[:, 0])
n /= np.linalg.norm(n, axis=1, keepdims=True)
assert np.abs(n - f['normal']).max() < 1e-6
with open('theirs.stl', 'wb') as o: o.write(b'\0' * 80 + np.uint32(20).tobytes() + f.tobytes())
)");
    expect_equal(parse(io::parse_stl, read_bytes(folder / "theirs.stl")), fan(20));
}

}  // namespace
}  // namespace stipple::test
