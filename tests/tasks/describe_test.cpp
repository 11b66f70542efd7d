#include "stipple/tasks/describe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/io/image_file.h"
#include "stipple/tasks/sample.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using test::contains;
using test::message_of;
using test::random_cloud;
using test::save_cloud;

TEST(Describe, CloudsWithAttributes) {
    const test::TemporaryFolder folder;
    Mesh mesh = random_cloud(12);
    test::add_attribute(mesh.vertices, "intensity", DType::f32);
    mesh.vertices.attributes[0].as<float>()(3, 0) = NAN;
    mesh.vertices.positions.data()[2] = INFINITY;
    mesh.vertices.origin = {100, 0, 0};
    const std::string path = save_cloud(folder / "a.npz", mesh);
    io::Warnings warnings;
    const FileSummary file = describe_file(path, "", {}, warnings);
    EXPECT_EQ(file.format, "npz");
    EXPECT_EQ(file.bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
    const CloudSummary& cloud = std::get<CloudSummary>(file.content);
    EXPECT_EQ(cloud.points, 12);
    EXPECT_EQ(cloud.faces, 0);
    EXPECT_EQ(cloud.non_finite(), 1);
    EXPECT_GT(cloud.bounds.min[0], 90);  // of the world
    ASSERT_EQ(cloud.attributes.size(), 1u);
    EXPECT_EQ(cloud.attributes[0].name, "intensity");
    EXPECT_EQ(cloud.attributes[0].non_finite, 1);
    ASSERT_TRUE(cloud.attributes[0].min && cloud.attributes[0].max);
    EXPECT_LE(*cloud.attributes[0].min, *cloud.attributes[0].max);
    EXPECT_EQ(std::get<CloudSummary>(
                  describe_file(save_cloud(folder / "m.off", test::random_mesh(9)), "", {}, warnings).content)
                  .faces,
              6);
}

TEST(Describe, PicturesWeightsAndSets) {
    const test::TemporaryFolder folder;
    io::Warnings warnings;
    Image image(4, 3, 3);
    io::save_png(folder / "p.png", image, Overwrite::refuse);
    const FileSummary picture = describe_file(folder / "p.png", "", {}, warnings);
    EXPECT_EQ(picture.format, "PNG");
    EXPECT_EQ(std::get<ImageSummary>(picture.content).width, 4);
    EXPECT_EQ(std::get<ImageSummary>(picture.content).height, 3);
    const std::string model = test::save_model(folder / "m.safetensors", "pointnet-classifier", 3);
    const WeightsSummary weights = std::get<WeightsSummary>(describe_file(model, "", {}, warnings).content);
    EXPECT_GT(weights.tensors.size(), 10u);
    EXPECT_GT(weights.numbers, 1000);
    EXPECT_FALSE(weights.metadata.empty());
}

TEST(Describe, ErrorsNameTheFile) {
    const test::TemporaryFolder folder;
    io::Warnings warnings;
    test::write_file(folder / "bad.png", "no picture");
    EXPECT_TRUE(contains(message_of([&] { describe_file(folder / "bad.png", "", {}, warnings); }), "bad.png"));
    EXPECT_TRUE(contains(message_of([&] { describe_file(folder / "none.ply", "", {}, warnings); }), "none.ply"));
    test::write_file(folder / "a.png", "1 2 3\n");
    EXPECT_EQ(std::get<CloudSummary>(describe_file(folder / "a.png", "xyz", {}, warnings).content).points, 1);
}

TEST(Sample, EveryMethodKeepsAttributesAndCount) {
    Mesh mesh = random_cloud(200);
    test::add_colors(mesh.vertices);
    mesh.vertices.origin = {10, 20, 30};
    for (const char* name : {"random", "fps", "poisson", "inverse-density"}) {
        SampleSettings settings;
        settings.method = sample_method_by_name(name);
        EXPECT_EQ(name_of(settings.method), name);
        settings.count = 17;
        const PointCloud few = sample_cloud(mesh.vertices, settings, Device{});
        EXPECT_EQ(few.size(), 17) << name;
        EXPECT_EQ(few.origin, mesh.vertices.origin);
        EXPECT_EQ(few.attributes.size(), 1u);
        settings.count = 201;
        EXPECT_TRUE(contains(message_of([&] { sample_cloud(mesh.vertices, settings, Device{}); }), "201 of 200"));
    }
    SampleSettings voxels;
    voxels.method = SampleMethod::voxel;
    voxels.voxel = 1e6;
    EXPECT_LE(sample_cloud(mesh.vertices, voxels, Device{}).size(), 8);
    voxels.voxel = 0;
    EXPECT_TRUE(contains(message_of([&] { sample_cloud(mesh.vertices, voxels, Device{}); }), "voxel must be above 0"));
    EXPECT_TRUE(contains(message_of([&] { sample_method_by_name("best"); }), "unknown method"));
}

}  // namespace
}  // namespace stipple::tasks
