#include "stipple/io/kitti.h"

#include "tests/io/binary_samples.h"
#include "tests/support/python.h"

namespace stipple::test {
namespace {

Mesh sample(int64_t n) {
    Mesh mesh = dyadic_cloud(n);
    mesh.vertices.attributes.push_back(
        make_attribute<float>("intensity", n, 1, [](int64_t i) { return static_cast<float>(i) / 7; }));
    return mesh;
}

TEST(Kitti, ReadsWhatItWrites) {
    for (const int64_t n : {1, 5, 300'000}) {
        const Mesh mesh = sample(n);
        io::Warnings warnings;
        const Bytes bytes = write(io::write_kitti, mesh, &warnings);
        EXPECT_TRUE(warnings.empty());
        EXPECT_EQ(bytes.size(), static_cast<size_t>(16 * n));
        expect_equal(parse(io::parse_kitti, bytes), mesh);
    }
    const Mesh mesh = sample(10'000);
    expect_equal(parse_pipe(io::parse_kitti, write(io::write_kitti, mesh)), mesh);
}

TEST(Kitti, KeepsNonFinite) {
    Mesh mesh = sample(3);
    mesh.vertices.positions.data()[4] = NAN;
    mesh.vertices.positions.data()[5] = -INFINITY;
    expect_equal(parse(io::parse_kitti, write(io::write_kitti, mesh)), mesh);
}

TEST(Kitti, PrefixesAreWholePointsOrErrors) {
    const Bytes bytes = write(io::write_kitti, sample(4));
    for (size_t length = 0; length < bytes.size(); ++length) {
        const Bytes prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        if (length > 0 && length % 16 == 0)
            EXPECT_EQ(parse(io::parse_kitti, prefix).vertices.size(), static_cast<int64_t>(length) / 16);
        else
            expect_contains(refusal(io::parse_kitti, prefix), length ? "no whole number of points" : "holds no points");
    }
}

TEST(Kitti, Limits) {
    io::ReadOptions options;
    options.limits.max_points = 3;
    expect_contains(refusal(io::parse_kitti, write(io::write_kitti, sample(4)), options), "4 points, the limit is 3");
}

TEST(Kitti, TellsWhatItDrops) {
    Mesh mesh = dyadic_cloud(2);
    mesh.vertices.origin = {500000.125, 0, 0};
    mesh.vertices.attributes.push_back(make_attribute<uint16_t>("time", 2, 1, [](int64_t) { return uint16_t{7}; }));
    io::Warnings warnings;
    const Mesh back = parse(io::parse_kitti, write(io::write_kitti, mesh, &warnings));
    ASSERT_EQ(warnings.size(), 3u);
    EXPECT_EQ(warnings[0], "KITTI cannot hold attribute time: dropped");
    EXPECT_EQ(warnings[1], "KITTI needs an intensity and the cloud has none: written as 0");
    expect_contains(warnings[2], "KITTI holds world coordinates in float32: rounded by up to 0.0");
    EXPECT_EQ(back.vertices.attributes[0].value(1), 0);

    mesh = dyadic_cloud(2);
    mesh.vertices.attributes.push_back(
        make_attribute<uint16_t>("intensity", 2, 1, [](int64_t) { return uint16_t{7}; }));
    warnings.clear();
    EXPECT_EQ(parse(io::parse_kitti, write(io::write_kitti, mesh, &warnings)).vertices.attributes[0].value(1), 7);
    EXPECT_EQ(warnings.at(0), "KITTI holds intensity in float32: converted from uint16");
}

TEST(Kitti, AgreesWithNumpy) {
    const TemporaryFolder folder;
    const Mesh mesh = sample(100);
    write_bytes(folder / "ours.bin", write(io::write_kitti, mesh));
    run_python(folder,
               "import numpy as np\n"
               "a = np.fromfile('ours.bin', np.float32).reshape(-1, 4)\n"
               "assert a.shape == (100, 4) and a[7, 3] == np.float32(1)\n"
               "a.tofile('theirs.bin')\n");
    expect_equal(parse(io::parse_kitti, read_bytes(folder / "theirs.bin")), mesh);
}

}  // namespace
}  // namespace stipple::test
