// stipple study registration --pose-graph: all fragments of a scene in one frame.

#include "stipple/cli/study/registration_scenes.h"

#include <chrono>

#include "stipple/cli/study/commands.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"
#include "stipple/tasks/registration_study/scenes.h"

namespace stipple::cli {
namespace {

study::ReportTable scene_table(const study::SceneRules& rules) {
    return {fmt::format("All fragments of a scene in one frame. Right: of those that share {:g} % with another, within "
                        "{:g} degrees and {:g} of the true pose, after the rigid motion that fits best.",
                        100 * rules.overlap, rules.degrees, rules.distance),
            {{"scene"},
             {"method"},
             {"fragments", "", true},
             {"that count", "counted", true},
             {"placed", "placed", true},
             {"right (%)", "right_percent", true},
             {"off (degrees)", "degrees", true},
             {"off (distance)", "distance", true},
             {"off (points, RMS)", "rms", true},
             {"the worst", "worst", true},
             {"pairs tried", "tried", true},
             {"of", "all_pairs", true},
             {"edges", "edges", true},
             {"wrong", "wrong_edges", true},
             {"dropped", "dropped", true},
             {"time (s)", "seconds", true}},
            {},
            {}};
}

std::vector<study::Cell> scene_row(const study::PoseScene& scene, const std::string& method,
                                   const study::SceneScore& score, const tasks::RegisteredScans& found,
                                   double seconds) {
    std::vector<study::Cell> row = {scene.name, method};
    const auto count = [&](int64_t n) { row.emplace_back(static_cast<double>(n), 0); };
    count(score.fragments);
    count(score.counted);
    count(score.placed);
    row.emplace_back(
        score.counted > 0 ? 100 * static_cast<double>(score.right) / static_cast<double>(score.counted) : NAN, 1);
    row.emplace_back(score.degrees, 2);
    for (const double length : {score.distance, score.rms, score.worst}) row.emplace_back(length, 3);
    count(static_cast<int64_t>(found.pairs.size()));
    count(found.all_pairs);
    count(score.edges);
    count(score.wrong_edges);
    count(score.dropped);
    row.emplace_back(seconds, 1);
    return row;
}

/// The fragments in an order, and each in any pose, by the seed.
void shuffle(study::PoseScene& scene, uint64_t seed) {
    const Rng random(seed, 62);
    for (size_t i = scene.names.size(); i-- > 1;) {
        const auto j = static_cast<size_t>(random.uniform(i) * static_cast<double>(i + 1));
        std::swap(scene.names[i], scene.names[j]);
        std::swap(scene.truth[i], scene.truth[j]);
        std::swap(scene.overlap[i], scene.overlap[j]);
    }
}

PointCloud turned(const PointCloud& cloud, uint64_t seed, geometry::RigidTransform& truth) {
    const Rng random(seed, 61);
    const geometry::RigidTransform turn =
        geometry::from_quaternion({random.normal(0), random.normal(1), random.normal(2), random.normal(3)});
    truth = truth * geometry::inverse(turn);
    return geometry::transformed(cloud, turn);
}

}  // namespace

Result run_registration_scenes(const FragmentArguments& arguments, const Arguments& app, const Common& common) {
    require_study_folder(arguments.output, common);
    const std::vector<study::PairSet> sets = study::load_pair_sets(arguments.data);
    std::vector<study::PoseScene> scenes = study::scenes_of(sets);
    STIPPLE_REQUIRE(!scenes.empty(), "--pose-graph wants scenes of fragments: {} has pairs of files", arguments.data);
    Result result;
    result.fields["data"] = arguments.data;
    if (common.dry_run) {
        result.text = fmt::format("would register {} scenes into {}\n", scenes.size(), arguments.output);
        return result;
    }
    const study::SceneRules rules;
    study::ReportTable table = scene_table(rules);
    Progress progress("study", 0, progress_mode(common), "pairs");
    study::PairScans scans;
    for (study::PoseScene& scene : scenes) {
        if (arguments.rotate) shuffle(scene, common.seed);
        std::vector<PointCloud> clouds;
        for (size_t i = 0; i < scene.names.size(); ++i) {
            clouds.push_back(scans.load(*scene.set, scene.pairs[0], scene.names[i]));
            if (arguments.rotate) clouds.back() = turned(clouds.back(), common.seed + i, scene.truth[i]);
        }
        std::vector<const PointCloud*> fragments;
        for (const PointCloud& cloud : clouds) fragments.push_back(&cloud);
        for (const std::string& method : arguments.methods) {
            tasks::ScansOptions options;
            options.pairs.method = tasks::method_by_name(method);
            STIPPLE_REQUIRE(options.pairs.method != tasks::RegisterMethod::learned,
                            "--method learned is for single shapes: stipple evaluate judges it");
            using Clock = std::chrono::steady_clock;
            const auto begin = Clock::now();
            const tasks::RegisteredScans found = tasks::register_scans(fragments, options, [&] { progress.add(); });
            const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
            const study::SceneScore score = study::score_scene(scene, fragments, found, rules);
            table.rows.push_back(scene_row(scene, method, score, found, seconds));
            check_interrupted();
        }
    }
    study::Report report{.title = "Fragments of scenes in one frame", .command = command_line(app, common)};
    report.tables.push_back(std::move(table));
    study::make_folders(arguments.output);
    write_report(arguments.output, report, common, result);
    return result;
}

}  // namespace stipple::cli
