// Patches of meshes: on the surface, in units of spacings, and a function of (seed, epoch, item).

#include "stipple/learn/upsampling/surface_patches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stipple/core/vec3.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/primitives.h"
#include "stipple/io/format.h"
#include "stipple/ops/knn.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace stipple::learn {
namespace {

constexpr PatchOptions kSmallPatches = {
    .queries = 100, .truth = 64, .samples = 4096, .cloud_min = 256, .cloud_max = 1024};
constexpr int64_t kPatchPoints = 128;

SurfaceSet sphere_and_torus(double held_out = 0) {
    std::vector<Mesh> meshes;
    meshes.push_back(geometry::sphere_mesh(3, 4));
    meshes.push_back(geometry::torus_mesh(1, 0.4));
    return make_surfaces(std::move(meshes), {"sphere", "torus"},
                         {.held_out = held_out, .samples = kSmallPatches.samples, .seed = 5}, ProgressMode::never);
}

struct MadePatch {
    Array<float, 2> points{{kPatchPoints, 3}}, queries{{kSmallPatches.queries, 3}}, truth{{kSmallPatches.truth, 3}};
    PatchFrame frame;
    PatchPlan plan;
};

MadePatch make(const SurfaceSet& set, const PatchOptions& options, const PatchKey& key, PatchScratch& scratch,
               const std::function<void(PatchPlan&)>& change = {}) {
    MadePatch made;
    made.plan = plan_patch(set.train, options, key);
    if (change) change(made.plan);
    made.frame = make_patch(set.shapes[static_cast<size_t>(made.plan.shape)], options, made.plan, key,
                            {made.points.view(), made.queries.view(), made.truth.view()}, scratch);
    return made;
}

/// In the coordinates of the shape.
Array<float, 2> mapped_back(const PatchFrame& frame, const Array<float, 2>& rows) {
    Array<float, 2> back({rows.size(0), 3});
    for (int64_t i = 0; i < rows.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis) {
            double x = frame.centre[axis];
            for (int row = 0; row < 3; ++row)
                x += double{frame.scale} * frame.rotation[3 * row + axis] * rows.data()[3 * i + row];
            back.data()[3 * i + axis] = static_cast<float>(x);
        }
    return back;
}

float farthest_from(const geometry::MeshIndex& index, const Array<float, 2>& points) {
    Array<float, 1> distances({points.size(0)});
    geometry::ClosestPoints found;
    found.distances = distances.view();
    geometry::closest_point(index, points.view(), found);
    return *std::max_element(distances.span().begin(), distances.span().end());
}

double norm_of_row(const Array<float, 2>& rows, int64_t i) {
    return std::hypot(rows.data()[3 * i], rows.data()[3 * i + 1], rows.data()[3 * i + 2]);
}

bool same_rows(const Array<float, 2>& a, const Array<float, 2>& b) {
    return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
}

TEST(SurfacePatches, ShapesHaveRadiusOneAndEvenOrders) {
    const SurfaceSet set = sphere_and_torus();
    ASSERT_EQ(set.shapes.size(), 2u);
    EXPECT_NEAR(set.shapes[0].area, 4 * M_PI, 0.05);
    for (const SurfaceShape& shape : set.shapes) {
        double radius = 0;
        for (int64_t i = 0; i < shape.mesh.vertices.size(); ++i)
            radius = std::max(radius, norm_of_row(shape.mesh.vertices.positions, i));
        EXPECT_NEAR(radius, 1, 1e-6);
        ASSERT_EQ(shape.pools.size(), 3u);
        for (const SurfacePool& pool : shape.pools) {
            EXPECT_EQ(std::set<int32_t>(pool.order.begin(), pool.order.end()).size(), 4096u);
            // 256 farthest points keep their distance, which random ones do not.
            Array<float, 2> first({256, 3});
            for (int64_t i = 0; i < 256; ++i)
                std::copy_n(pool.points.data() + 3 * pool.order[static_cast<size_t>(i)], 3, first.data() + 3 * i);
            Array<int32_t, 2> near({256, 2});
            Array<float, 2> squares({256, 2});
            ops::knn(ops::PointIndex(first.view()), first.view(), near.view(), squares.view());
            for (int64_t i = 0; i < 256; ++i)
                EXPECT_GT(std::sqrt(squares.view()(i, 1)), 0.6 * std::sqrt(shape.area / 256));
        }
    }
    EXPECT_FALSE(same_rows(set.shapes[0].pools[0].points, set.shapes[0].pools[1].points));
}

TEST(SurfacePatches, LieOnTheSurfaceInUnitsOfSpacings) {
    const SurfaceSet set = sphere_and_torus();
    const geometry::MeshIndex indices[] = {geometry::MeshIndex(set.shapes[0].mesh),
                                           geometry::MeshIndex(set.shapes[1].mesh)};
    PatchOptions options = kSmallPatches;
    options.noise_share = 0;
    options.query_noise_share = 0;
    PatchScratch scratch;
    for (const PatchSampling sampling : {PatchSampling::uniform, PatchSampling::random, PatchSampling::gradient,
                                         PatchSampling::scan, PatchSampling::voxel})
        for (int64_t item = 0; item < 20; ++item) {
            const MadePatch made =
                make(set, options, {1, 2, item}, scratch, [&](PatchPlan& plan) { plan.sampling = sampling; });
            const geometry::MeshIndex& index = indices[item % 2];
            EXPECT_EQ(made.plan.shape, item % 2);
            EXPECT_LT(farthest_from(index, mapped_back(made.frame, made.points)), 1e-5);
            EXPECT_LT(farthest_from(index, mapped_back(made.frame, made.truth)), 1e-5);
            const float spacing = data::mean_spacing(made.points.view());
            EXPECT_GE(spacing, 1 / 1.251);
            EXPECT_LE(spacing, 1 / 0.799);
            EXPECT_EQ(norm_of_row(made.points, 0), 0);
            for (int64_t i = 1; i < kPatchPoints; ++i)
                EXPECT_GE(norm_of_row(made.points, i), norm_of_row(made.points, i - 1) - 1e-4);
            for (int64_t i = 0; i < kSmallPatches.truth; ++i)
                EXPECT_LE(norm_of_row(made.truth, i), 0.9 * norm_of_row(made.points, kPatchPoints / 2 - 1) + 1e-4);
        }
}

TEST(SurfacePatches, QueriesLieAmongNeighboursOfTheInnerHalf) {
    const SurfaceSet set = sphere_and_torus();
    PatchOptions options = kSmallPatches;
    options.query_noise_share = 0;
    PatchScratch scratch;
    for (int64_t item = 0; item < 10; ++item) {
        const MadePatch made = make(set, options, {1, 0, item}, scratch);
        Array<int32_t, 2> near({kPatchPoints, data::kQueryNeighbours});
        Array<float, 2> squares({kPatchPoints, data::kQueryNeighbours});
        ops::knn(ops::PointIndex(made.points.view()), made.points.view(), near.view(), squares.view());
        // 100 queries of 64 points: one of each, then 36 of different ones.
        std::set<int32_t> odd(scratch.which.begin(), scratch.which.end());
        ASSERT_EQ(odd.size(), 36u);
        for (int64_t i = 0; i < kSmallPatches.queries; ++i) {
            const int64_t point = i < 64 ? i : scratch.which[static_cast<size_t>(i - 64)];
            ASSERT_LT(point, 64);
            double square = 0;
            for (int axis = 0; axis < 3; ++axis)
                square += std::pow(made.queries.data()[3 * i + axis] - made.points.data()[3 * point + axis], 2);
            EXPECT_LE(square, squares.view()(point, data::kQueryNeighbours - 1) + 1e-4);
        }
        options.query_noise_share = 1;
        const MadePatch noisy = make(set, options, {1, 0, item}, scratch);
        options.query_noise_share = 0;
        EXPECT_TRUE(same_rows(made.points, noisy.points));
        double moved = 0;
        for (int64_t i = 0; i < 3 * kSmallPatches.queries; ++i)
            moved += std::pow(noisy.queries.data()[i] - made.queries.data()[i], 2) / (3 * kSmallPatches.queries);
        EXPECT_NEAR(moved, 0.25 / 3, 0.04);  // the mean square of sigma uniform in 0 to 0.5
        options.midpoint_share = 0, options.input_share = 1;
        const MadePatch inputs = make(set, options, {1, 0, item}, scratch);
        options.midpoint_share = 1, options.input_share = 0;
        const MadePatch middles = make(set, options, {1, 0, item}, scratch);
        options.midpoint_share = kSmallPatches.midpoint_share, options.input_share = kSmallPatches.input_share;
        for (int64_t i = 0; i < 64; ++i) {  // the point that it is the middle of, from the other side of it
            float other[3];
            for (int axis = 0; axis < 3; ++axis)
                other[axis] = 2 * middles.queries.data()[3 * i + axis] - middles.points.data()[3 * i + axis];
            double nearest = INFINITY;
            for (int64_t j = 1; j <= 8; ++j)
                nearest = std::min<double>(nearest, distance_sq(other, made.points.data() + 3 * near.view()(i, j)));
            EXPECT_LT(nearest, 1e-8);
        }
        EXPECT_TRUE(std::equal(inputs.points.data(), inputs.points.data() + 3 * 64, inputs.queries.data()));
    }
}

TEST(SurfacePatches, AreFunctionsOfTheirKey) {
    const SurfaceSet set = sphere_and_torus();
    PatchScratch scratch, other;
    std::vector<MadePatch> first;
    for (int64_t item = 0; item < 8; ++item) first.push_back(make(set, kSmallPatches, {7, 1, item}, scratch));
    for (int64_t item = 7; item >= 0; --item) {
        const MadePatch again = make(set, kSmallPatches, {7, 1, item}, other);
        const MadePatch& before = first[static_cast<size_t>(item)];
        EXPECT_TRUE(same_rows(again.points, before.points));
        EXPECT_TRUE(same_rows(again.queries, before.queries));
        EXPECT_TRUE(same_rows(again.truth, before.truth));
        EXPECT_EQ(again.frame.rotation, before.frame.rotation);
        EXPECT_EQ(again.frame.scale, before.frame.scale);
        EXPECT_FALSE(same_rows(make(set, kSmallPatches, {7, 2, item}, other).points, before.points));
        EXPECT_FALSE(same_rows(make(set, kSmallPatches, {8, 1, item}, other).points, before.points));
    }
    const SurfaceSet again = sphere_and_torus();
    EXPECT_TRUE(same_rows(set.shapes[1].pools[2].points, again.shapes[1].pools[2].points));
    EXPECT_EQ(set.shapes[1].pools[2].order, again.shapes[1].pools[2].order);
}

TEST(SurfacePatches, PlansHaveTheSharesOfTheOptions) {
    const PatchOptions options;
    const int64_t shapes[] = {4, 9, 2};
    constexpr int64_t kPlans = 6000;
    double kinds[5] = {}, noisy = 0, small = 0;
    for (int64_t item = 0; item < kPlans; ++item) {
        const PatchPlan plan = plan_patch(shapes, options, {3, 0, item});
        EXPECT_EQ(plan.shape, shapes[item % 3]);
        EXPECT_NE(plan.pool, plan.truth_pool);
        EXPECT_GE(plan.cloud, options.cloud_min);
        EXPECT_LE(plan.cloud, options.cloud_max);
        EXPECT_LT(std::max(plan.pool, plan.truth_pool), options.pools);
        EXPECT_LE(plan.noise, options.noise_max);
        kinds[static_cast<int>(plan.sampling)] += 1.0 / kPlans;
        noisy += plan.noise > 0 ? 1.0 / kPlans : 0;
        small += plan.cloud < 2508 ? 1.0 / kPlans : 0;  // the geometric mean
    }
    EXPECT_NEAR(kinds[0], 1 - options.random_share - options.gradient_share - options.scan_share - options.voxel_share,
                0.03);
    EXPECT_NEAR(kinds[1], options.random_share, 0.03);
    EXPECT_NEAR(kinds[2], options.gradient_share, 0.03);
    EXPECT_NEAR(kinds[3], options.scan_share, 0.03);
    EXPECT_NEAR(kinds[4], options.voxel_share, 0.03);
    EXPECT_NEAR(noisy, options.noise_share, 0.03);
    EXPECT_NEAR(small, 0.5, 0.03);
}

TEST(SurfacePatches, CloudsAreEvenRandomOrDenserOnOneSide) {
    const SurfaceSet set = sphere_and_torus();
    PatchOptions options = kSmallPatches;
    options.noise_share = 0;
    PatchScratch scratch;
    const auto measure = [&](PatchSampling sampling, double& off_centre, double& least_gap) {
        off_centre = least_gap = 0;
        for (int64_t item = 0; item < 20; item += 2) {  // of the sphere
            make(set, options, {1, 0, item}, scratch, [&](PatchPlan& plan) { plan.sampling = sampling; });
            const auto n = static_cast<int64_t>(scratch.cloud.size() / 3);
            Vec3d mean;
            for (int64_t i = 0; i < n; ++i)
                mean = mean + (1.0 / static_cast<double>(n)) *
                                  Vec3d{scratch.cloud[3 * i], scratch.cloud[3 * i + 1], scratch.cloud[3 * i + 2]};
            const View<const float, 2> cloud(scratch.cloud.data(), {n, 3});
            Array<int32_t, 2> near({n, 2});
            Array<float, 2> squares({n, 2});
            ops::knn(ops::PointIndex(cloud), cloud, near.view(), squares.view());
            float least = INFINITY;
            for (int64_t i = 0; i < n; ++i) least = std::min(least, squares.view()(i, 1));
            off_centre += length(mean) / 10;
            least_gap += std::sqrt(least * static_cast<double>(n) / set.shapes[0].area) / 10;
        }
    };
    double off_centre, least_gap;
    measure(PatchSampling::uniform, off_centre, least_gap);
    EXPECT_LT(off_centre, 0.05);
    EXPECT_GT(least_gap, 0.5);
    measure(PatchSampling::random, off_centre, least_gap);
    EXPECT_LT(off_centre, 0.08);
    EXPECT_LT(least_gap, 0.15);
    measure(PatchSampling::gradient, off_centre, least_gap);
    EXPECT_NEAR(off_centre, 0.324, 0.06);  // coth a - 1 / a with a = 1.5 log 2, less what thinning saturates
    measure(PatchSampling::scan, off_centre, least_gap);
    EXPECT_GT(off_centre, 0.1);
    measure(PatchSampling::voxel, off_centre, least_gap);
    EXPECT_LT(off_centre, 0.06);
}

TEST(SurfacePatches, FoldersAreReadByTheirManifest) {
    const test::TemporaryFolder folder(test::Where::memory);
    io::Warnings warnings;
    for (const char* name : {"c.ply", "a.off", "b.ply"})
        io::save(folder / name, geometry::cube_mesh(1, 2, 3), Overwrite::refuse, {}, warnings);
    test::write_file(folder / "notes.txt", "no mesh");
    const SurfaceOptions options = {.held_out = 0.34, .samples = 256};
    const auto names_of = [](const SurfaceSet& set) {
        std::vector<std::string> names;
        for (const SurfaceShape& shape : set.shapes) names.push_back(shape.name);
        return names;
    };
    const SurfaceSet sorted = load_surfaces(folder / "", options, warnings, ProgressMode::never);
    EXPECT_EQ(names_of(sorted), (std::vector<std::string>{"a.off", "b.ply", "c.ply"}));
    EXPECT_EQ(sorted.train, (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(sorted.held_out, (std::vector<int64_t>{2}));
    test::write_file(folder / "manifest.tsv", "file\tsource\nc.ply\tx\nb.ply\ty\n");
    EXPECT_EQ(names_of(load_surfaces(folder / "", options, warnings, ProgressMode::never)),
              (std::vector<std::string>{"c.ply", "b.ply"}));
    test::write_file(folder / "manifest.tsv", "file\tsource\n");
    EXPECT_ERROR(load_surfaces(folder / "", options, warnings, ProgressMode::never), bad_file,
                 "without meshes or clouds");
    std::vector<Mesh> flat;
    flat.push_back(geometry::cube_mesh());
    std::fill(flat[0].vertices.positions.span().begin(), flat[0].vertices.positions.span().end(), 1.0f);
    EXPECT_ERROR(make_surfaces(std::move(flat), {"flat"}, options, ProgressMode::never), bad_file, "flat");
}

TEST(SurfacePatches, OptionsOutOfRangeAreNamed) {
    const auto expect = [](const char* message, const std::function<void(PatchOptions&)>& change) {
        PatchOptions options;
        change(options);
        EXPECT_ERROR(validate(options, 512), bad_config, message);
    };
    EXPECT_NO_THROW(validate(PatchOptions(), 512));
    expect("patch.pools", [](PatchOptions& o) { o.pools = 1; });
    expect("data.points", [](PatchOptions& o) { o.cloud_min = 511; });
    expect("twice patch.cloud_max", [](PatchOptions& o) { o.cloud_max = 8193; });
    expect("scan_share", [](PatchOptions& o) { o.scan_share = 0.6; });
    expect("patch.scale_min", [](PatchOptions& o) { o.scale_min = 2; });
}

}  // namespace
}  // namespace stipple::learn
