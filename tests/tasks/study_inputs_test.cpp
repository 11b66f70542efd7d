// Inputs of studies: deterministic, and as they are described.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "stipple/geometry/primitives.h"
#include "stipple/metrics/density.h"
#include "stipple/tasks/upsampling_study/conditions.h"
#include "stipple/tasks/upsampling_study/inputs.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks::study {
namespace {

using test::message_of;

bool are_equal(const PointCloud& a, const PointCloud& b) {
    return a.size() == b.size() &&
           std::memcmp(a.positions.data(), b.positions.data(), static_cast<size_t>(12 * a.size())) == 0;
}

double variation_of(const PointCloud& cloud) {
    return metrics::density_of(metrics::in_frame(cloud, {})).spacing_variation;
}

TEST(StudyInputs, AreFunctionsOfShapeConditionAndSeed) {
    const Mesh mesh = geometry::torus_mesh();
    for (const Draw draw : {Draw::even, Draw::random, Draw::gradient, Draw::region}) {
        const Condition condition{.id = "x", .title = "x", .draw = draw, .points = 700, .noise = 0.5};
        const PointCloud first = draw_input(mesh, nullptr, condition, 3);
        EXPECT_EQ(first.size(), 700);
        EXPECT_TRUE(first.attributes.empty());
        EXPECT_TRUE(are_equal(first, draw_input(mesh, nullptr, condition, 3)));
        EXPECT_FALSE(are_equal(first, draw_input(mesh, nullptr, condition, 4)));
        EXPECT_EQ(fingerprint(first), fingerprint(draw_input(mesh, nullptr, condition, 3)));
        EXPECT_NE(fingerprint(first), fingerprint(draw_input(mesh, nullptr, condition, 4)));
        // Input, truth and floor have nothing in common.
        const PointCloud truth = draw_truth(mesh, nullptr, condition, 3), floor = draw_floor(mesh, condition, 3);
        EXPECT_EQ(truth.size(), 2800);
        EXPECT_EQ(floor.size(), 2800);
        EXPECT_FALSE(are_equal(truth, floor));
    }
    EXPECT_EQ((Condition{.points = 2048, .ratio = 3.7}.wanted()), 7578);
}

TEST(StudyInputs, EvenOnesAreEvenAndRandomOnesAreNot) {
    const Mesh mesh = geometry::torus_mesh();
    const auto drawn = [&](Draw draw) { return draw_input(mesh, nullptr, {.draw = draw, .points = 1000}, 0); };
    EXPECT_LT(variation_of(drawn(Draw::even)), 0.15);
    EXPECT_NEAR(variation_of(drawn(Draw::random)), 0.52, 0.06);
}

TEST(StudyInputs, NoiseHasItsSize) {
    const Mesh mesh = geometry::sphere_mesh(5, 5);
    for (const Condition& condition : noise_conditions()) {
        const PointCloud cloud = draw_input(mesh, nullptr, condition, 1);
        Condition without = condition;
        without.noise = 0;
        const PointCloud clean = draw_input(mesh, nullptr, without, 1);
        double sum = 0, squares = 0;
        const int64_t numbers = 3 * cloud.size();
        for (int64_t i = 0; i < numbers; ++i) {
            const double moved = double{cloud.positions.data()[i]} - clean.positions.data()[i];
            sum += moved, squares += moved * moved;
        }
        // 6144 numbers: their deviation is known to 1 %.
        const double deviation = 5 * condition.noise / 100;
        EXPECT_NEAR(std::sqrt(squares / static_cast<double>(numbers)), deviation, 0.03 * deviation + 1e-9);
        EXPECT_NEAR(sum / static_cast<double>(numbers), 0, 0.05 * deviation + 1e-9);
    }
}

TEST(StudyInputs, DensityGrowsAlongADirection) {
    // On a long thin cylinder every direction but a few is its axis, and a slice of it has the same area everywhere.
    const Mesh mesh = geometry::cylinder_mesh(0.001, 2, 32);
    const PointCloud cloud = draw_input(mesh, nullptr, {.draw = Draw::gradient, .points = 40000}, 2);
    double low = 0, high = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const double z = cloud.positions.data()[3 * i + 2];
        low += z<-0.9, high += z> 0.9;
    }
    // Means of the first and the last twentieth of 1 .. 8.
    const double expected = (8 - 7 * 0.025) / (1 + 7 * 0.025);
    EXPECT_NEAR(std::max(low, high) / std::min(low, high), expected, 0.1 * expected);
}

TEST(StudyInputs, ARegionIsThin) {
    const Mesh mesh = geometry::sphere_mesh(1, 5);
    const PointCloud cloud = draw_input(mesh, nullptr, {.draw = Draw::region, .points = 20000}, 7);
    // The mean of the points lies away from the region's middle; a cap of a fifth of a sphere is 0.4 high.
    double mean[3] = {}, length = 0;
    for (int64_t i = 0; i < cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) mean[axis] -= cloud.positions.data()[3 * i + axis];
    length = std::hypot(mean[0], mean[1], mean[2]);
    int64_t inside = 0;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const float* p = cloud.positions.data() + 3 * i;
        inside += (mean[0] * p[0] + mean[1] * p[1] + mean[2] * p[2]) / length > 0.6;
    }
    const double share = static_cast<double>(inside) / 20000, expected = 0.2 * 0.1 / (0.2 * 0.1 + 0.8);
    EXPECT_NEAR(share, expected, 0.006);
}

TEST(StudyInputs, GivenTruths) {
    const Mesh mesh = geometry::sphere_mesh();
    const PointCloud given = even_points(mesh, 600, 1);
    const Condition condition{.title = "(r)", .draw = Draw::given, .points = 150, .given_truth = true};
    EXPECT_EQ(draw_input(mesh, &given, condition, 0).size(), 150);
    EXPECT_TRUE(are_equal(draw_truth(mesh, &given, condition, 0), given));
    EXPECT_TRUE(test::contains(message_of([&] { draw_input(mesh, nullptr, condition, 0); }), "gt_8192"));
    const Condition many{.title = "(r)", .draw = Draw::given, .points = 601};
    EXPECT_TRUE(test::contains(message_of([&] { draw_input(mesh, &given, many, 0); }), "601 points of a truth of 600"));
}

TEST(StudyInputs, ConditionsAreThoseOfTheStudies) {
    EXPECT_EQ(noise_conditions().size(), 4u);
    EXPECT_EQ(noise_conditions()[1].id, "noise-0.5");
    std::vector<int64_t> sizes, neighbours;
    for (const Condition& condition : density_conditions()) sizes.push_back(condition.points);
    for (const Condition& condition : neighbour_conditions()) neighbours.push_back(condition.neighbours);
    EXPECT_EQ(sizes, (std::vector<int64_t>{512, 1024, 2048, 4096}));
    EXPECT_EQ(neighbours, (std::vector<int64_t>{0, 4, 6, 8, 12, 16}));
    EXPECT_EQ(ratio_conditions().back().published, "x16");
    EXPECT_EQ(nonuniform_conditions().size(), 4u);
    EXPECT_EQ(ablation_conditions().size(), 3u);
}

TEST(StudyInputs, ShapesOfAFolder) {
    const test::TemporaryFolder folder;
    std::filesystem::create_directories(folder / "meshes");
    std::filesystem::create_directories(folder / "gt_8192");
    test::save_cloud(folder / "meshes/b.off", geometry::cube_mesh());
    test::save_cloud(folder / "meshes/a.off", geometry::sphere_mesh());
    test::save_cloud(folder / "gt_8192/b.xyz", test::random_cloud(10));
    const std::vector<Shape> shapes = list_shapes(folder.path(), 0);
    ASSERT_EQ(shapes.size(), 2u);
    EXPECT_EQ(shapes[0].name, "a");
    EXPECT_EQ(shapes[0].truth, "");
    EXPECT_EQ(shapes[1].truth, folder / "gt_8192/b.xyz");
    EXPECT_EQ(list_shapes(folder.path(), 1).size(), 1u);
    EXPECT_EQ(list_shapes(folder / "meshes", 0).size(), 2u);
    test::save_cloud(folder / "meshes/a.ply", geometry::sphere_mesh());
    EXPECT_TRUE(test::contains(message_of([&] { list_shapes(folder.path(), 0); }), "would be one shape"));
    EXPECT_TRUE(test::contains(message_of([&] { list_shapes(folder / "none", 0); }), "no such folder"));
}

}  // namespace
}  // namespace stipple::tasks::study
