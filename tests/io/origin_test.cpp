// Digits of world coordinates: through readers, through PCD, and in text.

#include "stipple/io/las.h"
#include "stipple/io/text.h"
#include "tests/io/las_samples.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

/// A LAS file of points (integers), format 0.
Bytes las_of(const std::vector<std::array<int32_t, 3>>& points, double scale, const std::array<double, 3>& offset) {
    Bytes bytes = foreign(2, 0, points.size());
    for (size_t a = 0; a < 3; ++a) {
        put_at<double>(bytes, 131 + 8 * a, a == 2 ? 0.01 : scale);
        put_at<double>(bytes, 155 + 8 * a, offset[a]);
    }
    for (size_t i = 0; i < points.size(); ++i)
        for (size_t a = 0; a < 3; ++a) put_at<int32_t>(bytes, 227 + 20 * i + 4 * a, points[i][a]);
    return bytes;
}

TEST(IoOrigin, LongitudesAndLatitudesKeepTheirDigits) {
    // 3 km around 13.4 east, 52.5 north, in steps of 1e-7 degrees (1 cm), with heights in metres beside.
    std::vector<std::array<int32_t, 3>> points;
    for (int32_t i = 0; i < 1000; ++i) points.push_back({134'000'001 + 397 * i, 525'000'003 + 271 * i, 3000 + 7 * i});
    io::Warnings warnings;
    const Mesh mesh = parse(io::parse_las, las_of(points, 1e-7, {}), &warnings);
    EXPECT_TRUE(warnings.empty());
    std::string text;
    for (size_t i = 0; i < points.size(); ++i) {
        for (int a = 0; a < 2; ++a)
            ASSERT_NEAR(mesh.vertices.world(static_cast<int64_t>(i), a), points[i][static_cast<size_t>(a)] * 1e-7,
                        0.5e-8);
        text += fmt::format("{:.7f} {:.7f} {:.2f}\n", points[i][0] * 1e-7, points[i][1] * 1e-7, points[i][2] * 0.01);
    }
    // The same as text, which reads back to the same text.
    const Mesh typed = from_text(text, io::Format::xyz);
    const auto bytes = to_bytes(typed, io::Format::xyz);
    std::string expected;
    for (size_t i = 0; i < points.size(); ++i)
        for (int a = 0; a < 3; ++a) {
            io::append_number(expected, points[i][static_cast<size_t>(a)] * (a == 2 ? 0.01 : 1e-7));
            expected += a == 2 ? '\n' : ' ';
        }
    const Mesh wanted = from_text(expected, io::Format::xyz), found = from_bytes(bytes, io::Format::xyz);
    EXPECT_EQ(difference(wanted, found), "");
    for (int64_t i = 0; i < typed.vertices.size(); ++i)
        for (int a = 0; a < 2; ++a)
            ASSERT_NEAR(typed.vertices.world(i, a), points[static_cast<size_t>(i)][static_cast<size_t>(a)] * 1e-7,
                        1e-8);
}

TEST(IoOrigin, AStrayPointCostsNoDigits) {
    std::vector<std::array<int32_t, 3>> points;
    for (int32_t i = 0; i < 1000; ++i) points.push_back({50'000'000 + i, 464'977'600 + 3 * i, 1000 + i});
    points[500] = {0, 0, 0};
    for (const bool typed : {false, true}) {
        std::string text;
        for (const auto& p : points)
            text += fmt::format("{:.2f} {:.2f} {:.2f}\n", p[0] * 0.01, p[1] * 0.01, p[2] * 0.01);
        const Mesh mesh =
            typed ? from_text(text, io::Format::xyz) : parse(io::parse_las, las_of(points, 0.01, {0, 0, 0}));
        for (int64_t i = 0; i < 1000; ++i)
            for (int a = 0; a < 3; ++a) {
                const double world = points[static_cast<size_t>(i)][static_cast<size_t>(a)] * 0.01;
                // The stray one is as far away as float32 is coarse there.
                ASSERT_NEAR(mesh.vertices.world(i, a), world, i == 500 ? 0.3 : 1e-5) << typed << " " << i;
            }
    }
}

TEST(IoOrigin, TextOfDecimalOrigins) {
    const auto text = [](double origin, float position) {
        std::string out;
        io::append_world(out, origin, position);
        return out;
    };
    EXPECT_EQ(text(13.41, 0.0001234f), "13.4101234");
    EXPECT_EQ(text(13.41, -0.01f), "13.4");
    EXPECT_EQ(text(-0.5, 0.25f), "-0.25");
    EXPECT_EQ(text(0.5, -0.5f), "0");
    EXPECT_EQ(text(500000, 0.1f), "500000.1");
    EXPECT_EQ(text(500000, 10.0f), "500010");
    EXPECT_EQ(text(1.0 / 3, 0), "0.3333333333333333");
}

TEST(IoOrigin, PcdIsFloat32AboutAnOriginThatComesBack) {
    Mesh mesh = random_cloud(100);
    mesh.vertices.origin = {500000.25, 4649776, -12};
    mesh.vertices.facts.viewpoint = {500001, 4649770, -10, 1, 0, 0, 0};
    for (const io::WriteOptions& options : {io::WriteOptions{}, io::WriteOptions{true}, io::WriteOptions{false, true}})
        for (const bool at_origin : {false, true}) {
            if (at_origin)
                for (size_t a = 0; a < 3; ++a) (*mesh.vertices.facts.viewpoint)[a] = mesh.vertices.origin[a];
            io::Warnings warnings;
            const auto bytes = to_bytes(mesh, io::Format::pcd, options, &warnings);
            ASSERT_EQ(warnings.size(), 1u);
            EXPECT_EQ(warnings[0],
                      "PCD: coordinates are float32 about 500000.25 4649776 -12, which a comment keeps for stipple; "
                      "other programs see them without it");
            const std::string text(reinterpret_cast<const char*>(bytes.data()), 300);
            expect_contains(text, "\n# stipple origin 500000.25 4649776 -12\n");
            expect_contains(text, "SIZE 4 4 4\n");
            if (at_origin) expect_contains(text, "VIEWPOINT 0 0 0 1 0 0 0\n");
            const Mesh back = from_bytes(bytes, io::Format::pcd);
            EXPECT_EQ(difference(back, mesh), "");
            ASSERT_TRUE(back.vertices.facts.viewpoint);
            for (size_t k = 0; k < 7; ++k)
                EXPECT_NEAR((*back.vertices.facts.viewpoint)[k], (*mesh.vertices.facts.viewpoint)[k], 1e-9);
        }
    EXPECT_EQ(error_of("# .PCD v0.7\n# stipple origin 1 two 3\n", io::Format::pcd),
              "line 2: expected three finite numbers behind \"# stipple origin\"");
}

TEST(IoOrigin, MovingItMovesNoPoint) {
    Mesh mesh = random_cloud(50);
    mesh.vertices.origin = {1000, 0, -5};
    PointCloud moved = mesh.vertices.clone();
    const double worst = move_origin(moved, {0, 0.5, -5});
    EXPECT_GT(worst, 0);
    EXPECT_LT(worst, 1e-4);
    for (int64_t i = 0; i < 50; ++i)
        for (int a = 0; a < 3; ++a) EXPECT_NEAR(moved.world(i, a), mesh.vertices.world(i, a), worst);
    EXPECT_EQ(moved.origin[1], 0.5);
}

}  // namespace
}  // namespace stipple::test
