// Tasks of clouds that need no network: clean, normals, labels of a scan, edits, measures. What the program adds to
// them is tested in tests/cli.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/tasks/clean.h"
#include "stipple/tasks/edit.h"
#include "stipple/tasks/label_scan.h"
#include "stipple/tasks/measure.h"
#include "stipple/tasks/normals.h"

namespace stipple::tasks {
namespace {

using Places = std::vector<std::array<float, 3>>;

PointCloud cloud_at(const Places& places) {
    PointCloud cloud(static_cast<int64_t>(places.size()));
    for (size_t i = 0; i < places.size(); ++i)
        std::copy_n(places[i].begin(), 3, cloud.positions.data() + 3 * static_cast<int64_t>(i));
    return cloud;
}

/// `side` x `side` points, 1 apart, at this height.
Places sheet(int side, float z, float x0 = 0) {
    Places places;
    for (int i = 0; i < side; ++i)
        for (int j = 0; j < side; ++j) places.push_back({x0 + static_cast<float>(i), static_cast<float>(j), z});
    return places;
}

template <class Call>
std::string refusal(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.message();
    }
    return "";
}

TEST(CleanTask, StepsComeInOrderWithTheirNumbers) {
    Places places = {{NAN, 0, 0}, {500, 0, 0}};
    for (int i = 0; i < 30; ++i) places.push_back({static_cast<float>(i), 0, 0});
    places.push_back({7, 0, 0});
    const PointCloud cloud = cloud_at(places);
    const Cleaned done = clean(cloud, {.method = {CleanMethod::duplicates, CleanMethod::statistical}, .k = 4});
    ASSERT_EQ(done.steps.size(), 3u);  // points that are not finite go first, as outliers are looked for
    EXPECT_EQ(done.steps[0].method, CleanMethod::nonfinite);
    EXPECT_EQ(done.removed_points, (std::vector<int32_t>{0, 1, 32}));
    EXPECT_EQ(done.kept_points.size(), 30u);
    EXPECT_EQ(removed_text(done.steps), "nonfinite 1, duplicates 1, statistical 1");
    EXPECT_EQ(
        to_json(clean_step_fields(), &done.steps[1]).compact(),
        "{\"method\":\"duplicates\",\"distance\":0.0,\"k\":null,\"ratio\":null,\"threshold\":null,\"radius\":null,"
        "\"neighbours\":null,\"removed\":1}");
    EXPECT_EQ(done.steps[2].k, 4);
    EXPECT_EQ(done.steps[2].left, 30);
    EXPECT_EQ(refusal([&] { clean(cloud, {.method = {CleanMethod::radius}}); }), "--method radius needs --radius R");
    EXPECT_EQ(refusal([&] { clean(cloud, {.method = {CleanMethod::radius}, .radius = 1e-4}); }),
              "no point is left; removed: nonfinite 1, radius 32");
    EXPECT_EQ(refusal([&] { clean(cloud, {.k = 1}); }), "k must be 2 to 128, got 1");
}

TEST(NormalsTask, TurnAsTheyAreTold) {
    PointCloud cloud = cloud_at(sheet(6, 0));
    const auto first_z = [&](const NormalsOptions& options) {
        add_normals(cloud, options);
        return find(cloud.attributes, "normal")->value(0, 2);
    };
    EXPECT_EQ(first_z({.orient = Orientation::none}), 1);
    EXPECT_EQ(first_z({.viewpoint = std::array<double, 3>{0, 0, -9}}), -1);
    cloud.facts.viewpoint = {2, 2, -5, 1, 0, 0, 0};
    EXPECT_EQ(first_z({}), -1);
    const NormalsFound found = add_normals(cloud, {.k = 8, .curvature = true});
    EXPECT_EQ(to_json(normals_found_fields(), &found).compact(),
              "{\"points\":36,\"without_normal\":0,\"k\":8,\"radius\":null,\"orient\":\"viewpoint\"}");
    EXPECT_EQ(find(cloud.attributes, "curvature")->rows(), 36);
    EXPECT_EQ(cloud.attributes.size(), 2u);  // in the place of those before
    cloud.facts.viewpoint.reset();
    EXPECT_NE(refusal([&] { add_normals(cloud, {.orient = Orientation::viewpoint}); }), "");
    EXPECT_EQ(refusal([&] { add_normals(cloud, {.k = 2}); }), "k must be 3 to 128, got 2");
}

TEST(LabelScan, GroundAgainstLabelsThatWereThere) {
    Places places = sheet(40, 0);
    for (const auto& place : sheet(8, 5, 12)) places.push_back(place);
    PointCloud cloud = cloud_at(places);
    const int64_t n = cloud.size();
    Attribute label("label", DType::u16, n, 1);
    for (int64_t i = 0; i < n; ++i) label.as<uint16_t>()(i, 0) = i < 10 ? 9 : i < 1600 ? 2 : 6;
    label.as<uint16_t>()(n - 1, 0) = 2;
    cloud.attributes.push_back(std::move(label));
    const GroundLabels found = label_ground(cloud, {});
    EXPECT_EQ(found.ground, 1600);
    ASSERT_TRUE(found.labels_before);
    EXPECT_EQ(found.labels_before->ground, 1591);
    EXPECT_EQ(found.labels_before->only_now, 10);
    EXPECT_EQ(found.labels_before->only_before, 1);
    EXPECT_DOUBLE_EQ(found.labels_before->agree, static_cast<double>(n - 11) / static_cast<double>(n));
    const Attribute& now = *find(cloud.attributes, "label");
    EXPECT_EQ(now.value(0), 2);
    EXPECT_EQ(now.value(1601), 6);   // keeps what it was
    EXPECT_EQ(now.value(n - 1), 1);  // was called ground
    EXPECT_NEAR(find(cloud.attributes, "height_above_ground")->value(n - 1), 5, 0.1);
    PointCloud bare = cloud_at(places);
    const GroundLabels without = label_ground(bare, {});
    EXPECT_TRUE(to_json(ground_labels_fields(), &without).value("labels_before").is_null());
    EXPECT_EQ(refusal([&] { label_ground(bare, {.ground = {.cell = 0}}); }), "cell must be above 0, got 0");
}

TEST(LabelScan, PlanesAndClusters) {
    Places places = sheet(10, 0);
    for (const auto& place : sheet(10, 8)) places.push_back(place);
    places.push_back({50, 50, 50});
    PointCloud cloud = cloud_at(places);
    const PlaneLabels planes = label_planes(cloud, {.planes = {.distance = 0.1, .min_points = 0}});
    ASSERT_EQ(planes.planes.size(), 2u);
    EXPECT_EQ(planes.min_points, 3);  // a hundredth, but at least 3
    EXPECT_EQ(planes.planes[1].plane, 1);
    EXPECT_EQ(planes.planes[0].segment.points + planes.planes[1].segment.points, 200);
    EXPECT_EQ(find(cloud.attributes, "plane")->value(200), -1);
    const ClusterLabels clusters = label_clusters(cloud, {.radius = 1.5, .min_points = 4, .attribute = "c"});
    EXPECT_EQ(clusters.clusters, 2);
    EXPECT_EQ(clusters.noise, 1);
    EXPECT_EQ(clusters.sizes, (std::vector<int64_t>{100, 100}));
    EXPECT_EQ(find(cloud.attributes, "c")->value(150), 1);
    EXPECT_NE(refusal([&] { label_planes(cloud, {}); }).find("Give --distance D"), std::string::npos);
    EXPECT_NE(refusal([&] { label_planes(cloud, {.planes = {.distance = 1, .min_points = 2}}); }), "");
    EXPECT_NE(refusal([&] { label_clusters(cloud, {}); }).find("Give --radius R"), std::string::npos);
    EXPECT_EQ(refusal([&] { label_clusters(cloud, {.radius = -1}); }), "radius must be above 0, got -1");
}

TEST(EditTasks, TransformsAreDoneInTheOrderOfTheFields) {
    const TransformOptions options{.scale = {2},
                                   .rotate = {"z", "90"},
                                   .translate = std::array<double, 3>{10, 0, 0},
                                   .about = std::array<double, 3>{1, 0, 0}};
    const auto none = [](const geometry::AffineTransform&) { return Bounds{}; };
    const geometry::AffineTransform made = transform_of(options, {}, none);
    const geometry::Vector3 moved = made({2, 0, 0});  // 1 beside the point: 2 beside it, turned, moved
    EXPECT_NEAR(moved[0], 11, 1e-12);
    EXPECT_NEAR(moved[1], 2, 1e-12);
    TransformOptions back = options;
    back.invert = true;
    const geometry::Vector3 again = transform_of(back, {}, none)(moved);
    EXPECT_NEAR(again[0], 2, 1e-12);
    EXPECT_NEAR(again[1], 0, 1e-12);
    const Transformed report = transformed_of(5, made);
    EXPECT_EQ(report.transform[3], (std::array<double, 4>{0, 0, 0, 1}));
    EXPECT_EQ(report.transform[0][3], made.translation[0]);
    const Bounds box{.min = {0, 0, 0}, .max = {4, 6, 8}, .finite = 2};
    const auto centred = transform_of({.centre = true}, {}, [&](const geometry::AffineTransform&) { return box; });
    EXPECT_EQ(centred.translation, (geometry::Vector3{-2, -3, -4}));
    EXPECT_NE(refusal([] { check_options(TransformOptions{}); }), "");
    EXPECT_NE(refusal([] { check_options(TransformOptions{.scale = {1, 2}}); }), "");
    EXPECT_NE(refusal([] { check_options(TransformOptions{.scale = {NAN}}); }), "");
}

TEST(EditTasks, CropSplitAndConvert) {
    const PointCloud cloud = cloud_at({{0, 0, 0}, {5, 0, 0}, {NAN, 0, 0}, {9, 9, 9}});
    const CropOptions crop{.box = std::array<double, 6>{INFINITY, -1, -1, 6, 1, INFINITY}};
    Cropped cropped;
    EXPECT_EQ(crop_mask(cloud, region_of(crop), false, cropped), (std::vector<uint8_t>{1, 1, 0, 0}));
    EXPECT_EQ(crop_mask(cloud, region_of(crop), true, cropped), (std::vector<uint8_t>{0, 0, 0, 1}));
    EXPECT_EQ(cropped.non_finite, 2);  // of two pieces
    EXPECT_NE(refusal([] { region_of({}); }), "");
    EXPECT_NE(refusal([] { region_of({.sphere = std::array<double, 4>{0, 0, 0, -1}}); }), "");
    EXPECT_EQ(splitter_of({.count = 3}).assign(cloud, 9), (std::vector<int32_t>{0, 0, 0, 1}));
    EXPECT_NE(refusal([] { splitter_of({}); }), "");
    EXPECT_NE(refusal([] { splitter_of({.by = "label", .count = 3}); }), "");
    EXPECT_NE(refusal([] { splitter_of({.tile = -1}); }), "");
    Mesh mesh;
    mesh.vertices = cloud.clone();
    io::Warnings of_input, of_output;
    convert(mesh, {.drop_nonfinite = true, .shift = std::array<double, 3>{1, 2, 3}}, io::Format::ply, of_input,
            of_output);
    EXPECT_EQ(mesh.vertices.size(), 3);
    EXPECT_EQ(mesh.vertices.world(1, 0), 6);
    ASSERT_EQ(of_input.size(), 1u);
    EXPECT_EQ(of_input[0], "1 of 4 points not finite, dropped");
    EXPECT_TRUE(of_output.empty());
    EXPECT_EQ(writing_of({.scale = {0.5}}).scale, (std::array<double, 3>{0.5, 0.5, 0.5}));
    EXPECT_EQ(writing_of({.scale = {1, 2, 3}}).scale, (std::array<double, 3>{1, 2, 3}));
    EXPECT_FALSE(writing_of({}).scale);
    EXPECT_EQ(refusal([] { writing_of({.scale = {1, 0, 1}}); }), "scale must be above 0, got 0");
}

TEST(MeasureTasks, DistancesToPointsAndToASurface) {
    Mesh reference;
    reference.vertices = cloud_at({{0, 0, 0}, {4, 0, 0}, {0, 4, 0}});
    PointCloud cloud = cloud_at({{3, 0, 4}, {4, 0, 0}});
    const Distances to_points = measure_distances(reference, cloud, {});
    EXPECT_NEAR(to_points.distance.max, std::sqrt(17.0), 1e-6);
    EXPECT_EQ(to_points.distance.min, 0);
    EXPECT_FALSE(to_points.inside);
    EXPECT_EQ(find(cloud.attributes, "nearest")->value(0), 1);
    EXPECT_TRUE(to_json(distances_fields(), &to_points).value("distance").value("mean of |d|").is_null());
    EXPECT_NE(refusal([&] { measure_distances(reference, cloud, {.is_signed = true}); }), "");
    reference.triangles = Array<int32_t, 2>({1, 3});
    std::copy_n(std::array<int32_t, 3>{0, 1, 2}.begin(), 3, reference.triangles.data());
    const Distances to_surface = measure_distances(reference, cloud, {});
    EXPECT_NEAR(to_surface.distance.max, 4, 1e-6);  // above the face
    EXPECT_EQ(find(cloud.attributes, "face")->value(0), 0);
    EXPECT_NEAR(measure_distances(reference, cloud, {.to = DistanceTo::points}).distance.max, std::sqrt(17.0), 1e-6);
}

TEST(MeasureTasks, ValuesOfCoordinatesAndAttributes) {
    PointCloud cloud = cloud_at({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}});
    cloud.origin = {100, 0, 0};
    put_attribute(cloud.attributes, attribute_of<float>("v", std::vector<float>(4, NAN)));
    const CloudStats stats = describe_values(cloud, {.of = {"x", "v"}, .bins = 2});
    ASSERT_EQ(stats.values.size(), 2u);
    EXPECT_EQ(stats.values[0].mean, 101.5);
    EXPECT_EQ(stats.values[0].percentiles.p50, 101);
    EXPECT_EQ(stats.values[0].histogram.counts, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(stats.values[1].non_finite, 4);
    const Json values = to_json(value_summary_fields(), &stats.values[1]);
    EXPECT_TRUE(values.value("mean").is_null());
    EXPECT_TRUE(values.value("percentiles").value("99").is_null());
    EXPECT_EQ(refusal([&] { describe_values(cloud, {.of = {"w"}}); }), "no attribute \"w\"");
    EXPECT_EQ(refusal([&] { describe_values(cloud, {.bins = 0}); }), "bins must be 1 to 10000, got 0");
}

}  // namespace
}  // namespace stipple::tasks
