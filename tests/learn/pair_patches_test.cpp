// Pairs of patches from files: what is made of them, their surface, and networks that learn from them.

#include "stipple/learn/upsampling/pair_patches.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <torch/torch.h>

#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/io/hdf5.h"
#include "stipple/learn/task.h"
#include "stipple/learn/train.h"
#include "stipple/learn/upsampling/surface_objective.h"
#include "stipple/learn/upsampling/upsampling.h"
#include "tests/support/expect_error.h"
#include "tests/support/margin.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tfrecord_files.h"

namespace stipple::learn {
namespace {

constexpr int64_t kSparse = 48, kDense = 192;

/// Points of a cap of a sphere of radius 2 about (5, 0, 0), evenly spread: those of a spiral, turned by `phase`.
std::vector<float> cap_of_sphere(int64_t n, double phase) {
    std::vector<float> points;
    for (int64_t i = 0; i < n; ++i) {
        const double z = 1 - 0.1 * (static_cast<double>(i) + 0.5) / static_cast<double>(n);
        const double angle = 2.399963229728653 * static_cast<double>(i) + phase, r = std::sqrt(1 - z * z);
        for (const double x : {5 + 2 * r * std::cos(angle), 2 * r * std::sin(angle), 2 * z})
            points.push_back(static_cast<float>(x));
    }
    return points;
}

PatchPairs sphere_pairs(int64_t count) {
    PatchPairs pairs;
    for (int64_t i = 0; i < count; ++i) {
        for (const auto& [clouds, n] : {std::pair{&pairs.sparse, kSparse}, {&pairs.dense, kDense}}) {
            const std::vector<float> points = cap_of_sphere(n, static_cast<double>(i));
            clouds->points.insert(clouds->points.end(), points.begin(), points.end());
            clouds->offsets.push_back(clouds->offsets.back() + n);
        }
    }
    return pairs;
}

struct MadePair {
    Array<float, 2> points{{kSparse, 3}}, queries{{64, 3}}, truth{{kDense, 3}}, surface{{kDense, 3}},
        normals{{kDense, 3}};
    PatchFrame frame;
};

MadePair make_pair_of(const PatchPairs& pairs, const PatchOptions& options, PatchPlan plan, int64_t item = 0) {
    MadePair made;
    PatchScratch scratch;
    made.frame = make_pair_patch(
        pairs, options, plan, {1, 0, item},
        {made.points.view(), made.queries.view(), made.truth.view(), made.surface.view(), made.normals.view()},
        scratch);
    return made;
}

Vec3d vector_at(const Array<float, 2>& rows, int64_t i) {
    return {rows.data()[3 * i], rows.data()[3 * i + 1], rows.data()[3 * i + 2]};
}

/// The pairwise distances of a patch, in its unit, are those of the file.
TEST(LearnPairPatches, HoldThePairsTurnedAndScaled) {
    const PatchPairs pairs = sphere_pairs(3);
    PatchOptions options;
    options.inner_share = options.truth_radius = 1;
    options.scale_min = options.scale_max = 1;
    const MadePair made = make_pair_of(pairs, options, {.shape = 2});
    EXPECT_EQ(length(vector_at(made.points, 0)), 0);
    const View<const float, 2> dense = pairs.dense.of(2);
    const auto stored = [&](int64_t i) { return Vec3d{dense(i, 0), dense(i, 1), dense(i, 2)}; };
    const double scale =
        length(vector_at(made.surface, 0) - vector_at(made.surface, 1)) / length(stored(0) - stored(1));
    for (int64_t i = 0; i < kDense; i += 7) {
        EXPECT_NEAR(length(vector_at(made.surface, i) - vector_at(made.surface, 100)),
                    scale * length(stored(i) - stored(100)), 1e-3);
        EXPECT_NEAR(length(vector_at(made.truth, i) - vector_at(made.surface, i)), 0, 1e-6);  // all of it, as stored
        EXPECT_NEAR(length(vector_at(made.normals, i)), 1, 1e-5);
    }
    // Normals point to the middle of the sphere, whose radius in spacings is 2 / spacing.
    const double spacing = 1 / scale;
    EXPECT_NEAR(spacing, std::sqrt(4 * M_PI * 0.2 / kSparse), 0.15);
    // The inner half has its own truth alone.
    options.inner_share = 0.5, options.truth_radius = 0.9;
    const MadePair inner = make_pair_of(pairs, options, {.shape = 2});
    for (int64_t i = 0; i < kDense; ++i)
        EXPECT_LE(length(vector_at(inner.truth, i)), 0.9 * length(vector_at(inner.points, kSparse / 2 - 1)) + 1e-4);
    EXPECT_EQ(inner.surface.span()[5], made.surface.span()[5]);
}

TEST(LearnPairPatches, OtherSamplingsAreOfTheDensePatch) {
    const PatchPairs pairs = sphere_pairs(1);
    PatchOptions options;
    for (const PatchSampling sampling : {PatchSampling::random, PatchSampling::gradient, PatchSampling::scan}) {
        const MadePair made = make_pair_of(pairs, options, {.sampling = sampling});
        std::set<int64_t> used;
        for (int64_t i = 0; i < kSparse; ++i)
            for (int64_t j = 0; j < kDense; ++j)
                if (length(vector_at(made.points, i) - vector_at(made.surface, j)) < 1e-3) used.insert(j);
        EXPECT_EQ(static_cast<int64_t>(used.size()), kSparse);
        const MadePair again = make_pair_of(pairs, options, {.sampling = sampling});
        EXPECT_TRUE(std::equal(made.points.span().begin(), made.points.span().end(), again.points.span().begin()));
        const MadePair other = make_pair_of(pairs, options, {.sampling = sampling}, 1);
        EXPECT_FALSE(std::equal(made.points.span().begin(), made.points.span().end(), other.points.span().begin()));
    }
    // Noise is a share of the patch's radius.
    options.scale_min = options.scale_max = 1;
    const MadePair still = make_pair_of(pairs, options, {}), noisy = make_pair_of(pairs, options, {.noise = 0.05});
    EXPECT_NE(still.points.span()[4], noisy.points.span()[4]);
    MadePair wrong;
    PatchScratch scratch;
    EXPECT_ERROR(make_pair_patch(pairs, options, {.shape = 1}, {}, {}, scratch), bad_argument, "pair 1 of 1");
    EXPECT_ERROR(make_pair_patch(pairs, options, {}, {}, {wrong.queries.view(), {}, {}}, scratch), bad_argument,
                 "for a pair of 48 and 192");
}

TEST(LearnPairPatches, DiscsFindTheSphereBetweenTheirPoints) {
    const PatchPairs pairs = sphere_pairs(1);
    PatchOptions options;
    options.scale_min = options.scale_max = 1;
    const MadePair made = make_pair_of(pairs, options, {});
    const auto tensor = [](const Array<float, 2>& rows) {
        return torch::from_blob(const_cast<float*>(rows.data()), {rows.size(0), 3}).clone();
    };
    const DiscTruth discs(tensor(made.surface), tensor(made.normals), 1);
    // The inner queries, moved off by half a spacing along the normal of their place and back.
    const torch::Tensor points = tensor(made.points).narrow(0, 0, 16).unsqueeze(0),
                        frames = torch::zeros({1, kFrameNumbers});
    const torch::Tensor on = discs.closest(points, frames);
    EXPECT_LT((on - points).square().sum(2).sqrt().max().item<double>(), 0.04);  // sparse points lie on the sphere too
    const torch::Tensor normal = tensor(made.normals).narrow(0, 0, 1);
    const torch::Tensor off = tensor(made.surface).narrow(0, 0, 1) + 0.5 * normal;
    const torch::Tensor back = discs.closest(off.unsqueeze(0), frames)[0];
    EXPECT_LT((back - tensor(made.surface).narrow(0, 0, 1)).abs().max().item<double>(), 1e-5);
    // Far beyond the border it is the rim of the last disc; of what is not finite nothing.
    const torch::Tensor far = discs.closest(torch::full({1, 1, 3}, 1000.0f), frames);
    EXPECT_LT((far - tensor(made.surface)).square().sum(2).sqrt().min().item<double>(), 1.001);
    EXPECT_TRUE(torch::isnan(discs.closest(torch::full({1, 1, 3}, NAN), frames)).all().item<bool>());
    // Without a normal a disc is its point.
    const DiscTruth dots(tensor(made.surface), torch::zeros({kDense, 3}), 1);
    EXPECT_LT(
        (dots.closest(off.unsqueeze(0), frames)[0] - tensor(made.surface).narrow(0, 0, 1)).abs().max().item<double>(),
        1e-6);
}

Recipe pair_recipe(const std::string& model) {
    Recipe recipe;
    recipe.name = "small-pairs";
    recipe.task = learn::TrainingTask::upsampling;
    recipe.model = model;
    if (model == "puflow")
        recipe.options = {{"ratio", "4"}, {"neighbours", "8"}};
    else
        recipe.options = {{"neighbours", "8"},      {"layers", "2"},  {"width", "16"}, {"query_neighbours", "8"},
                          {"flow_neighbours", "8"}, {"hidden", "16"}, {"blocks", "2"}, {"flow_hidden", "8"}};
    recipe.data.points = kSparse;
    recipe.data.held_out = 0.25;
    recipe.data.items = 24;
    recipe.data.validation_items = 6;
    recipe.patch.truth = kDense;
    recipe.patch.queries = 64;
    if (model == "puflow") recipe.patch.inner_share = recipe.patch.truth_radius = 1;
    recipe.patch.noise_max = 0.02;
    recipe.optimizer.kind = OptimizerKind::adamw;
    recipe.schedule = {.kind = ScheduleKind::cosine, .rate = 3e-3, .warmup = 0.1};
    recipe.run.epochs = model == "puflow" ? 4 : 20;
    recipe.run.batch = 4;
    recipe.run.storage = network::WeightStorage::f32;
    recipe.run.seed = test::trial();
    recipe.run.loader_threads = 1;
    return recipe;
}

/// As PU-Net's files, with three more columns.
void save_pairs(const PatchPairs& pairs, const std::string& path) {
    std::vector<io::NamedArray> arrays;
    for (const auto& [name, clouds] : {std::pair{"poisson_48", &pairs.sparse}, {"poisson_192", &pairs.dense}}) {
        Array<float, 3> values({clouds->size(), clouds->common_size(), 6});
        std::fill(values.span().begin(), values.span().end(), 9.0f);
        for (size_t i = 0; i < clouds->points.size(); ++i) values.data()[6 * (i / 3) + i % 3] = clouds->points[i];
        arrays.push_back({name, std::move(values)});
    }
    io::save_hdf5_arrays(path, arrays, Overwrite::refuse);
}

TEST(LearnPairPatches, BothKindsOfUpsamplersLearnFromFiles) {
    const test::TemporaryFolder folder(test::Where::memory);
    const PatchPairs pairs = sphere_pairs(8);
    for (const std::string model : {"puflow", "flow-upsampler"}) {
        std::string path = folder / "pairs.tfrecord";
#ifdef STIPPLE_WITH_HDF5
        if (model == "puflow") path = folder / "pairs.h5";
#endif
        std::string text;
        for (int64_t i = 0; i < 8; ++i) {
            const auto list = [&](const data::Clouds& clouds) {
                return std::vector<float>(clouds.of(i).data(), clouds.of(i).data() + 3 * clouds.size_of(i));
            };
            text += test::tfrecord(
                test::example_message({{"res_5000", list(pairs.sparse)}, {"res_20000", list(pairs.dense)}}));
        }
        if (path.ends_with(".h5"))
            save_pairs(pairs, path);
        else
            test::write_file(path, text);
        Recipe recipe = pair_recipe(model);
        recipe.data.folder = path;
        std::vector<std::string> warnings;
        const LoadedTask task = load_task(recipe, warnings, ProgressMode::never);
        EXPECT_EQ(task.surfaces->train.size(), 6u);
        EXPECT_EQ(task.surfaces->held_out, (std::vector<int64_t>{3, 7}));
        EXPECT_NE(task.objective->describe(std::vector<int64_t>{0}).find("pair 0"), std::string::npos);
        task.objective->prepare(recipe.run.batch, 1, 1, torch::kCPU);
        Module untrained(task.objective->network(),
                         network::initial_weights(task.objective->network(), recipe.run.seed));
        const double before = task.objective->evaluate(untrained).front().second;
        RunFolder run = RunFolder::create(folder / ("run-" + model), to_toml(recipe));
        TrainOptions options;
        options.progress = ProgressMode::never;
        const TrainReport report = train(recipe, *task.objective, run, options);
        const std::map<std::string, double> scores(report.scores.begin(), report.scores.end());
        // Norms that settle alone give a puflow 0.05.
        EXPECT_ABOVE(scores.at("validation_gain"), before + (model == "puflow" ? 0.2 : 0.05)) << model;
    }
}

TEST(LearnPairPatches, MisfitsAreTold) {
    const test::TemporaryFolder folder(test::Where::memory);
    std::vector<std::string> warnings;
    EXPECT_TRUE(names_pairs("a/b.h5") && names_pairs("x.hdf5") && names_pairs("x.tfrecord") &&
                names_pairs("x.tfrecords"));
    EXPECT_FALSE(names_pairs("x.ply"));
    EXPECT_FALSE(names_pairs(folder / ""));
    const SurfaceSet set = make_pairs(sphere_pairs(4), 0);
    EXPECT_EQ(set.train.size(), 4u);
    Recipe recipe = pair_recipe("puflow");
    recipe.data.points = 40;
    EXPECT_ERROR(make_upsampling_objective(recipe, set), bad_config, "patches of 48 and 192 points");
    PatchPairs uneven = sphere_pairs(2);
    uneven.dense.offsets[1] -= 1;
    EXPECT_ERROR(make_pairs(std::move(uneven), 0), bad_file, "of one size");
    EXPECT_ERROR(load_pairs(folder / "none.h5", 0, warnings, ProgressMode::never), bad_file, "none.h5");
    test::write_file(folder / "x.tfrecord", "text");
    test::write_file(folder / "y.ply", "ply");
    EXPECT_TRUE(names_pairs(folder / ""));
    EXPECT_ERROR(load_pairs(folder / "", 0, warnings, ProgressMode::never), bad_file,
                 "has patches and meshes (\"y.ply\")");
    test::write_file(folder / "y.ply", "");
    std::filesystem::remove(folder / "y.ply");
    test::write_file(folder / "z.h5", "");
    EXPECT_ERROR(load_pairs(folder / "", 0, warnings, ProgressMode::never), bad_file, "one kind a folder");
}

}  // namespace
}  // namespace stipple::learn
