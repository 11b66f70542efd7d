#include "tests/learn/solid_patches.h"

#include <algorithm>
#include <cmath>
#include <torch/torch.h>

#include "stipple/geometry/primitives.h"
#include "tests/support/margin.h"

namespace stipple::test {

using learn::kFrameNumbers;
using learn::make_surfaces;
using learn::PatchFrame;
using learn::PatchKey;
using learn::PatchOptions;
using learn::PatchScratch;
using learn::Recipe;
using learn::SurfaceIndex;
using learn::SurfaceSet;

namespace {

/// The point of a triangle that is nearest to p, by trying the plane and all edges.
Vec3d nearest_on_triangle(Vec3d p, Vec3d a, Vec3d b, Vec3d c) {
    const Vec3d normal = unit(cross(b - a, c - a));
    const Vec3d foot = p - dot(p - a, normal) * normal;
    const auto is_left = [&](Vec3d from, Vec3d to) { return dot(cross(to - from, foot - from), normal) >= 0; };
    if (is_left(a, b) && is_left(b, c) && is_left(c, a)) return foot;
    Vec3d best = a;
    const Vec3d corners[] = {a, b, c};
    for (int edge = 0; edge < 3; ++edge) {
        const Vec3d from = corners[edge], along = corners[(edge + 1) % 3] - from;
        const double t = std::clamp(dot(p - from, along) / dot(along, along), 0.0, 1.0);
        const Vec3d at = from + t * along;
        if (length(p - at) < length(p - best)) best = at;
    }
    return best;
}

SurfaceSet solids() {
    std::vector<Mesh> meshes;
    meshes.push_back(geometry::cube_mesh(1, 2, 1));
    meshes.push_back(geometry::sphere_mesh(1, 1));
    meshes.push_back(geometry::torus_mesh(1, 0.4, 12, 8));
    return make_surfaces(std::move(meshes), {"box", "ball", "ring"}, {.samples = 512, .seed = 2}, ProgressMode::never);
}

}  // namespace

Recipe small_upsampler() {
    Recipe recipe;
    recipe.name = "small-upsampler";
    recipe.task = learn::TrainingTask::upsampling;
    recipe.model = "flow-upsampler";
    recipe.options = {{"neighbours", "8"},      {"layers", "2"},  {"width", "16"}, {"query_neighbours", "8"},
                      {"flow_neighbours", "8"}, {"hidden", "16"}, {"blocks", "2"}, {"flow_hidden", "8"}};
    recipe.data.points = 96;
    recipe.data.held_out = 0.5;
    recipe.data.items = 200;
    recipe.data.validation_items = 24;
    recipe.patch.queries = 96;
    recipe.patch.truth = 48;
    recipe.patch.samples = 2048;
    recipe.patch.cloud_min = 192;
    recipe.patch.cloud_max = 512;
    recipe.patch.noise_max = 0.03;
    recipe.patch.midpoint_share = 0.6;
    recipe.patch.noise_share = 0.5;
    recipe.optimizer.kind = learn::OptimizerKind::adamw;
    recipe.schedule = {.kind = learn::ScheduleKind::cosine, .rate = 4e-3, .warmup = 0.1};
    recipe.run.epochs = 4;
    recipe.run.batch = 4;
    recipe.run.average_decay = 0.9;
    recipe.run.storage = network::WeightStorage::f32;
    recipe.run.loader_threads = 1;
    recipe.run.seed = trial();
    return recipe;
}

SurfaceSet round_bodies(const Recipe& recipe) {
    std::vector<Mesh> meshes;
    meshes.push_back(geometry::sphere_mesh(1, 4));
    meshes.push_back(geometry::sphere_mesh(1, 4));
    for (int64_t i = 0; i < meshes[1].vertices.size(); ++i) meshes[1].vertices.positions.view()(i, 2) *= 0.7f;
    meshes.push_back(geometry::torus_mesh(1, 0.5));
    meshes.push_back(geometry::torus_mesh(1, 0.4));
    return make_surfaces(std::move(meshes), {"sphere", "egg", "torus", "thinner torus"},
                         {.held_out = recipe.data.held_out,
                          .pools = recipe.patch.pools,
                          .samples = recipe.patch.samples,
                          .seed = recipe.run.seed},
                         ProgressMode::never);
}

Vec3d row_of_tensor(const torch::Tensor& rows, int64_t i) {
    const float* row = rows.data_ptr<float>() + 3 * i;
    return {row[0], row[1], row[2]};
}

SolidPatches::SolidPatches()
    : set(solids()),
      frames(torch::zeros({kPatches, kFrameNumbers})),
      queries(torch::zeros({kPatches * kQueries, 3})),
      truth(torch::zeros({kPatches * kTruth, 3})) {
    const PatchOptions options = {
        .queries = kQueries, .truth = kTruth, .samples = 512, .cloud_min = 64, .cloud_max = 128};
    const SurfaceIndex index(set, torch::kCPU);
    PatchScratch scratch;
    for (int64_t p = 0; p < kPatches; ++p) {
        Array<float, 2> points({32, 3});
        const PatchKey key = {1, 0, p};
        patch_frames.push_back(make_patch(set.shapes[static_cast<size_t>(p)], options,
                                          plan_patch(set.train, options, key), key,
                                          {points.view(),
                                           {queries.data_ptr<float>() + 3 * p * kQueries, {kQueries, 3}},
                                           {truth.data_ptr<float>() + 3 * p * kTruth, {kTruth, 3}}},
                                          scratch));
        index.write_frame(p, patch_frames.back(), frames.data_ptr<float>() + p * kFrameNumbers);
    }
}

Vec3d SolidPatches::slow_closest(int64_t patch, Vec3d place) const {
    const Mesh& mesh = set.shapes[static_cast<size_t>(patch)].mesh;
    const PatchFrame& frame = patch_frames[static_cast<size_t>(patch)];
    const auto turned = [&](Vec3d v, bool is_back) {
        Vec3d result;
        for (int row = 0; row < 3; ++row)
            for (int column = 0; column < 3; ++column)
                result[row] += double{frame.rotation[is_back ? 3 * column + row : 3 * row + column]} * v[column];
        return result;
    };
    const Vec3d centre = {frame.centre[0], frame.centre[1], frame.centre[2]};
    const Vec3d x = double{frame.scale} * turned(place, true) + centre;
    Vec3d best = {INFINITY, 0, 0};
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        Vec3d corner[3];
        for (int i = 0; i < 3; ++i) {
            const float* row = mesh.vertices.positions.data() + 3 * int64_t{mesh.triangles.view()(face, i)};
            corner[i] = {row[0], row[1], row[2]};
        }
        const Vec3d found = nearest_on_triangle(x, corner[0], corner[1], corner[2]);
        if (length(found - x) < length(best - x)) best = found;
    }
    return turned((1 / double{frame.scale}) * (best - centre), false);
}

}  // namespace stipple::test
