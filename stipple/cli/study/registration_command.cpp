#include <cmath>
#include <map>

#include "stipple/cli/study/commands.h"
#include "stipple/cli/study/registration_scenes.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/rng.h"
#include "stipple/picture/chart.h"
#include "stipple/tasks/registration_study/trials.h"
#include "stipple/tasks/upsampling_study/csv.h"

namespace stipple::cli {
namespace {

struct RegistrationArguments {
    std::string data, output = "runs/registration";
    std::vector<std::string> methods = {"global", "icp"};
    int64_t most = 0;
    bool rotate = false, pose_graph = false;
    study::PoseRules rules;
};

/// Other programs reach this recall on a set, as their authors or those who compared them report.
struct Published {
    const char *set, *method;
    double recall;
    bool by_rmse;
};
constexpr Published kPublished[] = {
    {"3DMatch", "SC2-PCR++, FPFH (published, 8 scenes)", 87.2, false},
    {"3DMatch", "SC2-PCR++, FCGF (published, 8 scenes)", 94.2, false},
    {"3DMatch", "GeoTransformer (published, 8 scenes)", 91.5, true},
    {"3DMatch", "GeoTransformer + MAC (published, 8 scenes)", 95.7, true},
    {"3DLoMatch", "GeoTransformer (published, 8 scenes)", 74.0, true},
    {"3DLoMatch", "GeoTransformer + MAC (published, 8 scenes)", 78.9, true},
};

study::ReportTable recall_table(const study::PoseRules& rules) {
    return {fmt::format("Registration of pairs with known poses. Right: within {:g} degrees and {:g}; by RMSE: the "
                        "pair's overlap is off by less than {:g} RMS. Verdicts are percentages of right and numbers of "
                        "wrong poses.",
                        rules.degrees, rules.distance, rules.rmse),
            {{"pairs of", "set"},
             {"scene"},
             {"method"},
             {"pairs", "", true},
             {"right (%)", "right_percent", true},
             {"by RMSE (%)", "right_by_rmse_percent", true},
             {"off (degrees)", "degrees", true},
             {"off (distance)", "distance", true},
             {"right: good (%)", "right_good_percent", true},
             {"doubtful (%)", "right_doubtful_percent", true},
             {"failed (%)", "right_failed_percent", true},
             {"wrong: good", "wrong_good", true},
             {"doubtful", "wrong_doubtful", true},
             {"failed", "wrong_failed", true},
             {"calibration error", "calibration_error", true},
             {"time (s)", "seconds", true}},
            {},
            {}};
}

std::vector<study::Cell> recall_row(const std::string& set, const std::string& scene, const std::string& method,
                                    const study::TrialSummary& s) {
    const auto share = [](int64_t part, int64_t whole) {
        return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : NAN;
    };
    const auto count = [](int64_t n) { return study::Cell(static_cast<double>(n), 0); };
    std::vector<study::Cell> row = {set, scene, method, count(s.pairs)};
    row.emplace_back(share(s.right, s.pairs), 1);
    row.emplace_back(share(s.right_by_rmse, s.pairs), 1);
    row.emplace_back(s.degrees, 2);
    row.emplace_back(s.translation, 3);
    for (const int64_t state : s.right_by_state) row.emplace_back(share(state, s.right), 1);
    for (const int64_t state : s.wrong_by_state) row.push_back(count(state));
    row.emplace_back(s.calibration_error, 3);
    row.emplace_back(s.seconds, 2);
    return row;
}

std::vector<study::Cell> published_row(const Published& published) {
    std::vector<study::Cell> row = {published.set, "all", published.method, ""};
    row.emplace_back(published.by_rmse ? NAN : published.recall, 1);
    row.emplace_back(published.by_rmse ? published.recall : NAN, 1);
    row.resize(16);
    return row;
}

/// A row for each trial.
study::Csv trial_columns() {
    study::Csv csv;
    csv.columns = {"set",     "scene",    "source", "target", "method", "given_overlap",
                   "degrees", "distance", "rmse",   "right",  "verdict"};
    csv.columns.insert(csv.columns.end(), std::begin(study::kEvidenceColumns), std::end(study::kEvidenceColumns));
    csv.columns.emplace_back("seconds");
    return csv;
}

void add_trial(const study::PairSet& set, const study::PosePair& pair, const std::string& method,
               const study::PairTrial& trial, study::Csv& csv) {
    std::vector<std::string> row = {set.name, pair.scene, pair.source, pair.target, method};
    const auto add = [&](double number) { row.push_back(study::csv_text(number)); };
    for (const double number : {pair.overlap, trial.degrees, trial.translation, trial.rmse}) add(number);
    row.emplace_back(trial.is_right ? "1" : "0");
    row.emplace_back(geometry::to_string(trial.registration.verdict.state));
    for (const double number : study::evidence_columns_of(trial.registration)) add(number);
    add(trial.seconds);
    csv.rows.push_back(std::move(row));
}

struct StudiedPair {
    const study::PairSet* set;
    const study::PosePair* pair;
};

/// A row of the study: a method of `stipple register`, with a start for --init where there is one.
enum class GivenStart { none, near, elsewhere };
struct StudiedMethod {
    tasks::RegisterMethod method;
    GivenStart start = GivenStart::none;
};

StudiedMethod studied_method(const std::string& name) {
    if (name == "init") return {tasks::RegisterMethod::automatic, GivenStart::near};
    if (name == "init-elsewhere") return {tasks::RegisterMethod::automatic, GivenStart::elsewhere};
    const tasks::RegisterMethod method = tasks::method_by_name(name);
    STIPPLE_REQUIRE(method != tasks::RegisterMethod::learned,
                    "--method learned is for single shapes: stipple evaluate judges it");
    return {method};
}

/// `most` of the pairs at random, in their order.
std::vector<StudiedPair> choose_pairs(const study::PairSet& set, int64_t most, uint64_t seed) {
    std::vector<StudiedPair> chosen;
    const Rng random(seed, 60);
    auto left = static_cast<int64_t>(set.pairs.size());
    int64_t wanted = most > 0 ? std::min(most, left) : left;
    for (const study::PosePair& pair : set.pairs) {  // selection sampling [Knuth, 3.4.2 S]
        const double draw = random.uniform(static_cast<uint64_t>(left));
        if (draw * static_cast<double>(left--) >= static_cast<double>(wanted)) continue;
        chosen.push_back({&set, &pair});
        --wanted;
    }
    return chosen;
}

using Trials = std::vector<const study::PairTrial*>;

picture::Series reliability_series(const std::string& name, const Trials& trials) {
    constexpr int64_t kFewest = 5;  // a share of fewer says little
    picture::Series series{.name = name, .markers = true};
    for (const study::ReliabilityBin& bin : study::reliability_of(trials)) {
        if (bin.trials < kFewest) continue;
        series.x.push_back(bin.confidence);
        series.y.push_back(static_cast<double>(bin.right) / static_cast<double>(bin.trials));
    }
    return series;
}

Result run_registration(const RegistrationArguments& arguments, const Arguments& app, const Common& common) {
    const study::PoseRules& rules = arguments.rules;
    STIPPLE_REQUIRE(rules.degrees > 0 && rules.distance > 0 && rules.rmse > 0 && rules.near > 0,
                    "--right-degrees, --right-distance, --right-rmse and --near must be above 0");
    STIPPLE_REQUIRE(arguments.most >= 0, "--most must be from 0, got {}", arguments.most);
    STIPPLE_REQUIRE(!arguments.methods.empty(), "--method wants one at least");
    if (arguments.pose_graph) {
        STIPPLE_REQUIRE(arguments.most == 0, "--most is for pairs: --pose-graph takes all fragments of a scene");
        return run_registration_scenes({arguments.data, arguments.output, arguments.methods, arguments.rotate}, app,
                                       common);
    }
    std::vector<StudiedMethod> methods;
    for (const std::string& name : arguments.methods) methods.push_back(studied_method(name));
    require_study_folder(arguments.output, common);
    const std::vector<study::PairSet> sets = study::load_pair_sets(arguments.data);
    std::vector<std::vector<StudiedPair>> chosen;
    int64_t pairs = 0;
    for (const study::PairSet& set : sets) {
        chosen.push_back(choose_pairs(set, arguments.most, common.seed));
        pairs += static_cast<int64_t>(chosen.back().size());
    }
    Result result;
    result.fields["data"] = arguments.data;
    if (common.dry_run) {
        result.text = fmt::format("would register {} pairs into {}\n", pairs, arguments.output);
        return result;
    }
    study::ReportTable table = recall_table(rules);
    study::Csv csv = trial_columns();
    picture::LineChart reliability{.title = "Right poses by confidence",
                                   .x = {.label = "confidence", .range = picture::AxisRange{0, 1}},
                                   .y = {.label = "share that is right", .range = picture::AxisRange{0, 1}}};
    reliability.series.push_back({.name = "as it should be", .x = {0, 1}, .y = {0, 1}, .dashed = true});
    Progress progress("study", pairs * static_cast<int64_t>(methods.size()), progress_mode(common), "registrations");
    study::PairScans scans;
    for (size_t s = 0; s < sets.size(); ++s) {
        std::vector<std::vector<study::PairTrial>> trials(methods.size());
        std::map<std::string, std::vector<size_t>> scenes;  // places in the list of pairs
        for (const StudiedPair& one : chosen[s]) {
            check_interrupted();
            PointCloud source = scans.load(*one.set, *one.pair, one.pair->source);
            const PointCloud target = scans.load(*one.set, *one.pair, one.pair->target);
            geometry::RigidTransform truth = one.pair->truth;
            const size_t number = trials[0].size();
            if (arguments.rotate) {
                const Rng random(common.seed + number, 61);
                const geometry::RigidTransform turn =
                    geometry::from_quaternion({random.normal(0), random.normal(1), random.normal(2), random.normal(3)});
                source = geometry::transformed(source, turn);
                truth = truth * geometry::inverse(turn);
            }
            scenes[one.pair->scene].push_back(number);
            for (size_t m = 0; m < methods.size(); ++m) {
                tasks::RegisterOptions options;
                options.method = methods[m].method;
                const uint64_t seed = common.seed + number;
                if (methods[m].start == GivenStart::near) options.initial = study::start_near(source, truth, seed);
                if (methods[m].start == GivenStart::elsewhere)
                    options.initial = study::start_elsewhere(source, target, truth, seed);
                trials[m].push_back(study::try_pair(source, target, truth, options, rules));
                add_trial(*one.set, *one.pair, arguments.methods[m], trials[m].back(), csv);
                progress.add();
            }
        }
        table.groups.push_back(table.rows.size());
        for (size_t m = 0; m < methods.size(); ++m) {
            Trials all;
            for (const study::PairTrial& trial : trials[m]) all.push_back(&trial);
            table.rows.push_back(recall_row(sets[s].name, "all", arguments.methods[m], study::summarise(all)));
            reliability.series.push_back(
                reliability_series(fmt::format("{}, {}", sets[s].name, arguments.methods[m]), all));
        }
        for (const Published& published : kPublished)
            if (sets[s].name == published.set) table.rows.push_back(published_row(published));
        if (scenes.size() < 2) continue;
        for (const auto& [scene, places] : scenes)
            for (size_t m = 0; m < methods.size(); ++m) {
                Trials some;
                for (const size_t place : places) some.push_back(&trials[m][place]);
                table.rows.push_back(recall_row(sets[s].name, scene, arguments.methods[m], study::summarise(some)));
            }
    }
    study::Report report{.title = "Registration of pairs with known poses", .command = command_line(app, common)};
    report.tables.push_back(std::move(table));
    study::make_folders(arguments.output);
    add_text(arguments.output, "pairs.csv", study::to_csv(csv), common, result);
    add_figure(
        arguments.output, "reliability.png",
        "Share of right poses by confidence, tenths of the confidence with five pairs or more",
        [&] { return picture::draw_chart(reliability, {.width = 700, .height = 600}).image; }, common, report, result);
    write_report(arguments.output, report, common, result);
    return result;
}

}  // namespace

Command add_study_registration(Arguments& group, Common& common) {
    auto arguments = std::make_shared<RegistrationArguments>();
    Arguments& app =
        group.command("registration", "Of pairs of scans with known poses: recall, errors, and whom to believe");
    Option data = app.option("--data", arguments->data, "A file of pairs, or a folder of them (*pairs.json)");
    app.option("-o,--output", arguments->output, "Folder of the report");
    app.option("--method", arguments->methods,
               "Ways to register; init: from a start up to 10 degrees and a tenth of the extent off; init-elsewhere: "
               "from a "
               "wrong one")
        .text("auto|icp|global|init|init-elsewhere...");
    app.option("--most", arguments->most, "Of each file so many pairs at random; 0: all").text("N");
    app.flag("--rotate", arguments->rotate, "Turn each source at random first");
    app.flag("--pose-graph", arguments->pose_graph,
             "All fragments of each scene into one frame, instead of pairs; --rotate turns them, in any order");
    app.option("--right-degrees", arguments->rules.degrees, "A right rotation is off by less").text("DEGREES");
    app.option("--right-distance", arguments->rules.distance, "A right translation is off by less").text("LENGTH");
    app.option("--right-rmse", arguments->rules.rmse, "The other rule: the overlap is off by less").text("LENGTH");
    app.option("--near", arguments->rules.near, "The overlap: points so near in the true pose").text("LENGTH");
    app.footer(
        "Files of pairs are those of 3DMatch, or name two scans and the matrix between (docs/studies.md).\n\n"
        "Example:\n  stipple study registration --data 3dmatch/ --most 100 -o runs/registration\n"
        "  stipple study registration --data 3dmatch/ --pose-graph --method global -o runs/rooms");
    return {&app, [arguments, &app, &common] { return run_registration(*arguments, app, common); }, {data}};
}

}  // namespace stipple::cli
