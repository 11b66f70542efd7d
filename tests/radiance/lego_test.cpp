// What is promised of the published scene lego: needs the data set and a GPU, a minute or two.

#include <gtest/gtest.h>

#include <filesystem>

#include "stipple/io/colmap.h"
#include "stipple/radiance/evaluate.h"
#include "stipple/radiance/export.h"
#include "stipple/radiance/march/ray.h"
#include "tests/radiance/short_training.h"
#include "tests/support/data_sets.h"
#include "tests/support/temporary_folder.h"

namespace stipple::radiance {
namespace {

/// The photographs of a Blender scene with their cameras as a COLMAP model, which is all that the folder has.
void write_as_colmap(const std::string& blender, const Scene& scene, io::ColmapForm form, const std::string& folder) {
    std::filesystem::create_directories(folder + "/sparse/0");
    std::filesystem::create_directory_symlink(std::filesystem::absolute(blender + "/train"), folder + "/images");
    const io::ColmapModel model = to_colmap(scene.train, scene.origin, [](const Photograph& photograph) {
        return std::filesystem::path(photograph.file).filename().string();
    });
    if (form == io::ColmapForm::text)
        io::write_colmap_text(folder + "/sparse/0", model, Overwrite::refuse);
    else
        io::write_colmap_binary(folder + "/sparse/0", model, Overwrite::refuse);
}

TEST(RadianceLego, ColmapModelsTrainAsTransformsDo) {
    const std::optional<Device> device = gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    STIPPLE_NEEDS_DATA("nerf_synthetic/lego");
    const std::string blender = *test::data_file("nerf_synthetic/lego");
    const Scene scene = load_scene(blender);
    const auto psnr_of = [&](const Scene& from) {
        const Field field = train(from, parity_options(160), *device).field;
        Renderer renderer(field, *device);
        EXPECT_EQ(from.origin, scene.origin);
        return evaluate(renderer, scene.test, Background::white).psnr;
    };
    const double by_transforms = psnr_of(scene);
    for (const auto form : {io::ColmapForm::text, io::ColmapForm::binary}) {
        const test::TemporaryFolder folder;
        write_as_colmap(blender, scene, form, folder.path());
        SceneOptions options;
        options.test_every = 0;
        const Scene colmap = load_scene(folder.path(), options);
        ASSERT_EQ(colmap.train.size(), scene.train.size());
        const double by_colmap = psnr_of(colmap);
        std::printf("%s: %.3f dB, transforms: %.3f dB\n", colmap.source.c_str(), by_colmap, by_transforms);
        EXPECT_NEAR(by_colmap, by_transforms, 0.05);
    }
}

TEST(RadianceLego, PointsLieOnTheDepthSurface) {
    const std::optional<Device> device = gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    STIPPLE_NEEDS_DATA("nerf_synthetic/lego");
    SceneOptions scene_options;
    scene_options.train_only = true;
    Field field;
    {
        const Scene scene = load_scene(*test::data_file("nerf_synthetic/lego"), scene_options);
        field = train(scene, parity_options(160), *device).field;
        for (const Photograph& photograph : scene.train) field.cameras.push_back(photograph.camera);
    }
    PointsOptions options;
    options.count = 300'000;
    const PointCloud cloud = export_points(field, options, *device);
    EXPECT_GE(cloud.size(), 200'000);

    // A view sees a point where its depth there is the point's, to two voxels along the ray.
    std::vector<uint8_t> is_on_surface(static_cast<size_t>(cloud.size()));
    Renderer renderer(field, *device);
    RenderOptions geometry;
    geometry.geometry = true;
    for (const Camera& camera : field.cameras) {
        const RenderedView view = renderer.render(camera, geometry);
        const CameraView rays = view_of(camera);
        const auto& m = camera.to_world;
        for (int64_t i = 0; i < cloud.size(); ++i) {
            double local[3] = {};
            for (int axis = 0; axis < 3; ++axis) {
                const double from_camera = cloud.world(i, axis) - field.origin[static_cast<size_t>(axis)] -
                                           m[static_cast<size_t>(4 * axis + 3)];
                for (int k = 0; k < 3; ++k) local[k] += m[static_cast<size_t>(4 * axis + k)] * from_camera;
            }
            const double depth = -local[2];
            if (!(depth > 0)) continue;
            const auto x = static_cast<int64_t>(std::floor(camera.fx * local[0] / depth + camera.cx));
            const auto y = static_cast<int64_t>(std::floor(-camera.fy * local[1] / depth + camera.cy));
            if (x < 0 || y < 0 || x >= camera.width || y >= camera.height) continue;
            const Ray ray = camera_ray(rays, static_cast<int>(x), static_cast<int>(y));
            const double length = std::sqrt(double{dot(ray.direction, ray.direction)});  // of a unit of depth
            const double gap = (view.depth.data()[y * camera.width + x] - depth) * length;
            if (std::abs(gap) <= 2 * field.grid.voxel) is_on_surface[static_cast<size_t>(i)] = 1;
        }
    }
    const auto on_surface = std::count(is_on_surface.begin(), is_on_surface.end(), 1);
    const double share = static_cast<double>(on_surface) / static_cast<double>(cloud.size());
    std::printf("%ld points, %.2f %% on the depth surface of a view\n", cloud.size(), 100 * share);
    EXPECT_GE(share, 0.95);
}

TEST(RadianceLego, CpuAndCudaAgreeOverTenSteps) {
    const std::optional<Device> device = gpu();
    if (!device) GTEST_SKIP() << "no GPU";
    STIPPLE_NEEDS_DATA("nerf_synthetic_small/lego_200");
    SceneOptions scene_options;
    scene_options.train_only = true;
    const Scene scene = load_scene(*test::data_file("nerf_synthetic_small/lego_200"), scene_options);
    TrainOptions options = few_steps();
    options.coarse.N_rand = options.fine.N_rand = 1024;
    options.coarse.num_voxels = options.coarse.num_voxels_base = 48 * 48 * 48;
    options.fine.num_voxels = options.fine.num_voxels_base = 64 * 64 * 64;
    expect_agreement(scene, options, *device);
}

}  // namespace
}  // namespace stipple::radiance
