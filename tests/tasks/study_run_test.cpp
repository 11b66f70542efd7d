// A study as a whole: rows that are kept, methods, costs.

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/geometry/primitives.h"
#include "stipple/metrics/evaluate.h"
#include "stipple/tasks/upsampling_study/cost.h"
#include "stipple/tasks/upsampling_study/place_colors.h"
#include "stipple/tasks/upsampling_study/run_study.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks::study {
namespace {

using test::message_of;

std::string save_upsampler(const std::string& path, const std::string& name = "flow-upsampler") {
    const std::map<std::string, std::string> small = {{"layers", "1"}, {"width", "16"}, {"hidden", "16"}};
    const network::Network net =
        models::build_model(name, name == "puflow" ? std::map<std::string, std::string>() : small);
    network::save_weights(path, network::initial_weights(net, 3), network::WeightStorage::f32, Overwrite::refuse);
    return path;
}

class StudyRun : public testing::Test {
protected:
    StudyRun() {
        std::filesystem::create_directories(folder / "data/meshes");
        test::save_cloud(folder / "data/meshes/ball.off", geometry::sphere_mesh());
        test::save_cloud(folder / "data/meshes/ring.off", geometry::torus_mesh());
        plan.conditions = {{.id = "a", .title = "a", .points = 700}};
        plan.methods = list_methods({"net=" + save_upsampler(folder / "u.safetensors")}, {});
        plan.shapes = list_shapes(folder / "data", 0);
        plan.seeds = 1;
        plan.folder = folder / "out";
        plan.device = "cpu";
        plan.load_mesh = [](const std::string& path) {
            io::Warnings warnings;
            return io::load_mesh(path, {}, warnings);
        };
        plan.advance = [this](int64_t rows) { done += rows; };
    }
    PointCloud load(const std::string& path) const {
        io::Warnings warnings;
        return io::load_cloud(path, {}, warnings);
    }

    test::TemporaryFolder folder{test::Where::memory};
    StudyPlan plan;
    int64_t done = 0;
};

TEST_F(StudyRun, ScoresAreThoseOfMetrics) {
    plan.shapes.resize(1);
    const std::vector<Row> rows = run_study(plan);
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(done, 4);
    EXPECT_EQ(study_rows(plan), 4);
    const Mesh mesh = plan.load_mesh(plan.shapes[0].mesh);
    const PointCloud truth = load(output_path(plan, "truth", plan.conditions[0], plan.shapes[0], 0));
    for (const Row& row : rows) {
        const PointCloud output = load(output_path(plan, row.method, plan.conditions[0], plan.shapes[0], 0));
        EXPECT_EQ(row.points, row.method == "input" ? 700 : 2800);
        EXPECT_EQ(output.size(), row.points);
        metrics::EvaluateOptions options;
        options.extras = {metrics::Extra::uniformity, metrics::Extra::nuc};
        options.seed = 0;
        const metrics::Evaluation found = metrics::evaluate(output, truth, &mesh, metrics::Protocol::pu_gan, options);
        for (size_t s = 0; s < kScoreCount; ++s) {
            const metrics::Score* score = metrics::find(found.scores, kScores[s].name);
            ASSERT_NE(score, nullptr) << kScores[s].name;
            EXPECT_EQ(row.scores[s], score->value) << row.method << " " << kScores[s].name;
        }
        EXPECT_EQ(std::isnan(row.seconds), row.method == "input" || row.method == "floor");
    }
}

TEST_F(StudyRun, GoesOnWhereItWas) {
    const std::vector<Row> first = run_study(plan);
    std::vector<Row> kept = load_rows(folder / "out/results.csv");
    ASSERT_EQ(kept.size(), first.size());
    for (Row& row : kept) row.scores[0] = 7;  // a mark: what is computed again loses it
    kept.erase(kept.begin());
    write_text(folder / "out/results.csv", rows_to_csv(kept));
    const auto marked = [](const std::vector<Row>& rows) {
        return std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.scores[0] == 7; });
    };
    EXPECT_EQ(marked(run_study(plan)), 7);
    // Other weights of the same name are others.
    network::Weights weights = network::load_weights(folder / "u.safetensors");
    weights.tensors.begin()->second.values[0] += 1;
    network::save_weights(folder / "u.safetensors", weights, network::WeightStorage::f32, Overwrite::allow);
    EXPECT_EQ(marked(run_study(plan)), 5);
    plan.conditions[0].noise = 1;  // other inputs too
    EXPECT_EQ(marked(run_study(plan)), 0);
    plan.conditions[0].noise = 0;
    plan.again = true;
    EXPECT_EQ(marked(run_study(plan)), 0);
}

TEST_F(StudyRun, NeighboursAreForNetworks) {
    plan.shapes.resize(1);
    plan.conditions.push_back({.id = "k-4", .title = "k = 4", .points = 700, .neighbours = 4});
    const std::vector<Row> rows = run_study(plan);
    ASSERT_EQ(rows.size(), 5u);
    EXPECT_EQ(rows.back().method, "net");
    EXPECT_EQ(rows.back().input, "k-4");
    EXPECT_NE(rows.back().key, rows[2].key);
}

TEST_F(StudyRun, FilesOfOthers) {
    write_inputs(plan);
    EXPECT_EQ(done, 2);
    const std::string ball = input_path(plan, plan.conditions[0], plan.shapes[0], 0);
    EXPECT_EQ(ball, folder / "out/inputs/a-0/ball.ply");
    // The input itself as another's output: the same scores.
    std::filesystem::create_directories(folder / "other/a-0");
    std::filesystem::copy(ball, folder / "other/a-0/ball.ply");
    plan.methods = list_methods({"net=" + (folder / "u.safetensors")}, {"theirs=" + (folder / "other")});
    const std::string message = message_of([&] { run_study(plan); });
    EXPECT_TRUE(test::contains(message, "theirs has no cloud of ring")) << message;
    plan.shapes.resize(1);
    std::vector<Row> rows = run_study(plan);
    ASSERT_EQ(rows.size(), 5u);
    EXPECT_EQ(rows[3].method, "theirs");
    EXPECT_EQ(rows[3].scores, rows[0].scores);
    // Of one input the files may lie in the folder itself.
    std::filesystem::rename(folder / "other/a-0/ball.ply", folder / "other/ball.ply");
    std::filesystem::remove(folder / "other/a-0");
    EXPECT_EQ(run_study(plan).size(), 5u);
    plan.seeds = 2;
    EXPECT_TRUE(test::contains(message_of([&] { run_study(plan); }), "theirs has nothing for a, seed 0"));
}

TEST(StudyMethods, Names) {
    const std::vector<Method> methods = list_methods({"a=x.safetensors", "dir/b.safetensors"}, {});
    ASSERT_EQ(methods.size(), 5u);
    EXPECT_EQ(methods[2].name, "a");
    EXPECT_EQ(methods[3].name, "b");
    EXPECT_EQ(methods[3].path, "dir/b.safetensors");
    EXPECT_EQ(list_methods({}, {})[2].name, "upsampler");
    EXPECT_TRUE(test::contains(message_of([] { list_methods({"a=x", "a=y"}, {}); }), "two methods are called a"));
    EXPECT_TRUE(test::contains(message_of([] { list_methods({"a/b=x"}, {}); }), "\"a/b\""));
    EXPECT_TRUE(test::contains(message_of([] { list_methods({"floor=x"}, {}); }), "two methods are called floor"));
    EXPECT_TRUE(test::contains(message_of([] { list_methods({}, {"x"}); }), "NAME=FOLDER"));
    EXPECT_TRUE(test::contains(message_of([] { list_methods({}, {"x=/none"}); }), "no such folder"));
}

TEST(StudyCost, StagesOfBothFamilies) {
    const test::TemporaryFolder folder;
    for (const char* name : {"flow-upsampler", "puflow"}) {
        SCOPED_TRACE(name);
        const std::string path = save_upsampler(folder / (std::string(name) + ".safetensors"), name);
        const Cost cost = measure_cost({"x", path}, 4, sphere_points(300), 4, "cpu", 1);
        EXPECT_EQ(cost.family, name);
        EXPECT_EQ(cost.neighbours, 4);
        int64_t parameters = 0;
        double seconds = 0;
        for (size_t s = 0; s < kStages; ++s) {
            EXPECT_GT(cost.stage_seconds[s], 0);
            EXPECT_GT(cost.stage_bytes[s], 0);
            parameters += cost.stage_parameters[s], seconds += cost.stage_seconds[s];
        }
        EXPECT_EQ(parameters, cost.parameters);
        EXPECT_LE(seconds, cost.network_seconds * 1.001);
        EXPECT_GE(cost.seconds, cost.network_seconds);
        EXPECT_GT(cost.network_bytes, 0);
        if (std::string(name) == "puflow") {
            EXPECT_EQ(cost.parameters, 806103);  // as published
        }
    }
    const std::vector<CostSubject> families = all_families();
    ASSERT_GE(families.size(), 2u);
    EXPECT_EQ(families[0].name, "upsampler");
    EXPECT_EQ(families[1].family, "puflow");
    EXPECT_EQ(measure_cost(families[1], 0, sphere_points(300), 4, "cpu", 1).neighbours, 8);
    EXPECT_EQ(stage_of("flow-upsampler", "edge1.linear"), Stage::forward);
    EXPECT_EQ(stage_of("flow-upsampler", "step1.flow2.mix"), Stage::forward);
    EXPECT_EQ(stage_of("flow-upsampler", "query.step1.flow2.mix"), Stage::forward);
    EXPECT_EQ(stage_of("flow-upsampler", "step2.attention"), Stage::interpolate);
    EXPECT_EQ(stage_of("flow-upsampler", "decode.step1.flow2.mix"), Stage::inverse);
    EXPECT_EQ(stage_of("puflow", "feat_convs.1.edge"), Stage::forward);
    EXPECT_EQ(stage_of("puflow", "interp.weight_unit.mlp.0"), Stage::interpolate);
    EXPECT_EQ(stage_of("puflow", "decode.flow_blocks.0.actnorm"), Stage::inverse);
}

TEST(StudyCost, PeakMemoryIsMeasured) {
    if (!reset_peak_memory()) GTEST_SKIP() << "this system does not tell";
    const int64_t before = peak_memory();
    {
        std::vector<char> much(64 << 20);
        for (size_t i = 0; i < much.size(); i += 4096) much[i] = 1;
        EXPECT_GE(peak_memory(), before + (60 << 20));
    }
    ASSERT_TRUE(reset_peak_memory());
    EXPECT_LT(peak_memory(), before + (32 << 20));
}

TEST(StudyScans, Colours) {
    const PointCloud input = sphere_points(500);
    PointCloud moved = input.clone(), colored = input.clone();
    for (float& x : moved.positions.span()) x *= 1.001f;
    color_by_place(colored);
    color_by_nearest(moved, colored);
    EXPECT_TRUE(*find(moved.attributes, "color") == *find(colored.attributes, "color"));
    EXPECT_NE(message_of([&] { color_by_nearest(moved, input); }), "");
}

}  // namespace
}  // namespace stipple::tasks::study
