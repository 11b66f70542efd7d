#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/study/figures.h"
#include "stipple/core/program_files.h"
#include "stipple/tasks/upsampling_study/ablations.h"
#include "stipple/tasks/upsampling_study/conditions.h"
#include "stipple/tasks/upsampling_study/published.h"

namespace stipple::cli {
namespace {

struct SweepArguments {
    std::string data, output, stored, training, up = "z";
    std::vector<std::string> only;
    MethodArguments methods;
    int64_t shapes = 0, seeds = 5, size = 0;
    bool is_quick = false, inputs_only = false, retrain = false;
};

/// A study by conditions: what they are, and which figures it has.
struct Sweep {
    const char* name;     // behind "upsampling-"
    const char* summary;  // in the help
    const char* title;
    const char* axis;   // of the charts; "": it has none
    const char* shown;  // the condition of the figures that show one
    std::vector<study::Condition> (*conditions)();
    bool has_steps, has_sources, has_truths, is_ablation;
};

constexpr Sweep kSweeps[] = {
    {"noise", "By noise of the input", "Upsampling by noise", "noise, % of the radius", "noise-1",
     study::noise_conditions, true, false, false, false},
    {"density", "By the number of input points", "Upsampling by density", "input points", "points-1024",
     study::density_conditions, true, false, false, false},
    {"ratio", "By ratio, whole and not", "Upsampling by ratio", "ratio", "ratio-4", study::ratio_conditions, false,
     true, false, false},
    {"neighbours", "By neighbours of the interpolation", "Upsampling by neighbours", "neighbours", "own",
     study::neighbour_conditions, false, false, false, false},
    {"nonuniform", "Of uneven inputs", "Upsampling of uneven inputs", "", "gradient", study::nonuniform_conditions,
     false, false, true, false},
    {"ablation", "Of variants of the networks, with stored rows", "Variants of upsampling", "", "c",
     study::ablation_conditions, false, true, false, true},
};

/// --stored; or the file of the checkout, which has variants, measured on the shapes that others publish on; or none.
std::string stored_file(const Sweep& sweep, const SweepArguments& arguments, const study::StudyPlan& plan) {
    if (!arguments.stored.empty()) return arguments.stored;
    if (!sweep.is_ablation || !study::are_published_shapes(plan.shapes)) return "";
    for (const std::string& folder : shared_folders("bench/results", "STIPPLE_RESULTS"))
        if (is_file(folder + "/" + study::kStoredResults)) return folder + "/" + study::kStoredResults;
    return "";
}

study::StudyPlan plan_of(const Sweep& sweep, const SweepArguments& arguments, const Common& common, Result& result,
                         study::Report& report) {
    study::StudyPlan plan =
        shapes_plan(arguments.data, arguments.is_quick ? 2 : arguments.shapes, arguments.output, common, result);
    plan.methods = study::list_methods(arguments.methods.models, arguments.methods.compared);
    plan.seeds = arguments.is_quick ? 1 : arguments.seeds;
    plan.again = common.overwrite;
    plan.conditions = sweep.conditions();
    const size_t all = plan.conditions.size();
    if (const size_t dropped = drop_given_truths(plan); dropped > 0)
        report.paragraphs.push_back(
            fmt::format("{} of {} inputs are left out: no gt_8192 comes with the shapes.", dropped, all));
    return plan;
}

/// Measured rows, and behind those of an input what was published and stored for it.
std::vector<study::Mean> all_means(const study::StudyPlan& plan, const std::vector<study::Row>& rows,
                                   const std::string& stored_path, study::Report& report) {
    const std::vector<study::Mean> measured = study::means_of(rows);
    std::vector<study::Mean> stored;
    if (!stored_path.empty()) stored = study::load_stored(stored_path);
    const bool is_published = study::are_published_shapes(plan.shapes);
    bool has_published = false;
    std::vector<study::Mean> all;
    for (const study::Condition& condition : plan.conditions) {
        const auto take = [&](const study::Mean& mean) {
            all.push_back(mean);
            all.back().input = condition.id;
        };
        for (const study::Mean& mean : measured)
            if (mean.input == condition.id) take(mean);
        if (is_published)
            for (const study::Mean& mean : study::published_for(condition.published)) {
                take(mean);
                has_published = true;
            }
        for (const study::Mean& mean : stored)
            if (mean.input == condition.id || (!condition.published.empty() && mean.input == condition.published))
                take(mean);
    }
    if (has_published)
        report.paragraphs.push_back(
            fmt::format("Published: {}; this study has {} of them.", study::kPublishedSource, plan.shapes.size()));
    if (!is_published)
        report.paragraphs.push_back(
            "Published values are left out: they are of shapes of the PU-GAN test set, and some of these are others.");
    if (!stored_path.empty())
        report.paragraphs.push_back(fmt::format(
            "Stored: rows of {}, each with the commit and the command that made it.", stem_of(stored_path)));
    return all;
}

study::ReportTable table_of(const Sweep& sweep, const study::StudyPlan& plan, const std::vector<study::Mean>& means) {
    study::ReportTable table;
    table.caption = fmt::format(
        "{}: {} shapes, {} draws of each input. CD, HD, P2F and uniformity times 1000; raw: not normalised; uniformity "
        "and NUC of disks of 1 % of the area.",
        sweep.title, plan.shapes.size(), plan.seeds);
    table.columns = {{"input"}, {"method"}, {"source"}};
    for (const study::ScoreInfo& info : study::kScores) table.columns.push_back({info.title, info.name, true});
    table.columns.push_back({"+- CD raw", "cd_raw_deviation", true});
    table.columns.push_back({"time (s)", "seconds", true});
    for (const char* name : {"shapes", "seeds"}) table.columns.push_back({name, "", true, false});
    for (const char* name : {"commit", "command"}) table.columns.push_back({name, "", false, false});
    std::string before;
    for (const study::Mean& mean : means) {
        if (mean.input != before) table.groups.push_back(table.rows.size());
        before = mean.input;
        const auto condition = std::find_if(plan.conditions.begin(), plan.conditions.end(),
                                            [&](const study::Condition& one) { return one.id == mean.input; });
        std::vector<study::Cell>& row = table.rows.emplace_back();
        row = {condition->title, mean.method, mean.source};
        // Means over other shapes say little about these.
        if (mean.shapes > 0 && mean.shapes != static_cast<int64_t>(plan.shapes.size()))
            row.back() = {fmt::format("{}, {} shapes", mean.source, mean.shapes), mean.source};
        for (size_t s = 0; s < study::kScoreCount; ++s)
            row.emplace_back(study::kScores[s].scale * mean.mean[s], study::kScores[s].digits, study::kScores[s].scale);
        constexpr size_t kCdRaw = 2;
        row.emplace_back(1e3 * mean.deviation[kCdRaw], 4, 1e3);
        row.emplace_back(mean.seconds, 3);
        for (const int64_t count : {mean.shapes, mean.seeds})
            row.emplace_back(count > 0 ? static_cast<double>(count) : NAN, 0);
        row.emplace_back(mean.commit);
        row.emplace_back(mean.command);
    }
    return table;
}

void add_figures(const Sweep& sweep, const SweepArguments& arguments, const study::StudyPlan& plan,
                 const std::vector<study::Mean>& means, const Common& common, study::Report& report, Result& result) {
    const FigureSource source{&plan, arguments.up, arguments.size};
    const auto figure = [&](const std::string& name, const std::string& caption, const std::function<Image()>& draw) {
        add_figure(plan.folder, name, caption, draw, common, report, result);
    };
    const auto shown = std::find_if(plan.conditions.begin(), plan.conditions.end(),
                                    [&](const study::Condition& one) { return one.id == sweep.shown; });
    if (sweep.axis[0] != '\0')
        for (const size_t score : {size_t{2}, size_t{4}}) {
            const study::ScoreInfo& info = study::kScores[score];
            figure(fmt::format("{}.png", info.name), fmt::format("{} by {}", info.title, sweep.axis),
                   [&, score] { return draw_sweep(plan.conditions, means, score, sweep.axis); });
        }
    figure("errors.png", fmt::format("Distances to the true surface, {}; one scale", shown->title),
           [&] { return draw_error_grid(source, *shown, false); });
    figure("surfaces.png", fmt::format("Surfaces of the clouds, {}, by distance to the true one", shown->title),
           [&] { return draw_error_grid(source, *shown, true); });
    const size_t pictured = std::min<size_t>(2, plan.shapes.size());
    for (size_t i = 0; i < pictured && (sweep.has_steps || sweep.has_truths); ++i) {
        const study::Shape& shape = plan.shapes[i];
        if (sweep.has_steps)
            figure(fmt::format("steps-{}.png", shape.name),
                   fmt::format("{}: inputs above, {} below", shape.name, source.shown().name),
                   [&] { return draw_step_grid(source, shape); });
        if (sweep.has_truths)
            figure(fmt::format("truth-{}.png", shape.name), fmt::format("{}: input, output and truth", shape.name),
                   [&] { return draw_truth_grid(source, shape); });
    }
    if (sweep.has_sources)
        figure("sources.png", "Inputs, and outputs coloured by the nearest input point",
               [&] { return draw_source_grid(source, *shown); });
}

Result run_sweep(const Sweep& sweep, const SweepArguments& arguments, const Arguments& app, const Common& common) {
    if (arguments.retrain) return refuse_without_learn("study upsampling-ablation --retrain");
    STIPPLE_REQUIRE(arguments.training.empty() && arguments.only.empty(), "--training and --only are for --retrain");
    if (arguments.data.empty())
        throw Error(ErrorCode::bad_argument, "--data is missing", fmt::format("see: {}", app.help_call()));
    Result result;
    study::Report report{.title = sweep.title, .command = command_line(app, common)};
    require_study_folder(arguments.output, common);
    study::StudyPlan plan = plan_of(sweep, arguments, common, result, report);
    const std::string stored = stored_file(sweep, arguments, plan);
    if (!stored.empty()) study::load_stored(stored);  // its mistakes are told before hours are spent
    result.fields["inputs"] = Json::array({arguments.data});
    const int64_t inputs = static_cast<int64_t>(plan.conditions.size() * plan.shapes.size()) * plan.seeds;
    if (common.dry_run) {
        result.text = fmt::format("would make {} outputs of {} inputs into {}\n", grouped(study::study_rows(plan)),
                                  grouped(inputs), arguments.output);
        return result;
    }
    Progress progress("study", arguments.inputs_only ? inputs : study::study_rows(plan), progress_mode(common),
                      arguments.inputs_only ? "inputs" : "outputs");
    plan.advance = [&](int64_t rows) { progress.add(rows); };
    if (arguments.inputs_only) {
        study::write_inputs(plan);
        result.fields["outputs"] = Json::array({{{"path", plan.folder + "/inputs"}, {"written", true}}});
        result.text = fmt::format("wrote {}/inputs: {} clouds\n", plan.folder, grouped(inputs));
        return result;
    }
    const std::vector<study::Row> rows = study::run_study(plan);
    const std::vector<study::Mean> means = all_means(plan, rows, stored, report);
    if (sweep.is_ablation)
        if (const std::string missing = study::missing_ablations(means); !missing.empty())
            report.paragraphs.push_back(fmt::format("Not measured yet: {}.", missing));
    report.tables.push_back(table_of(sweep, plan, means));
    add_figures(sweep, arguments, plan, means, common, report, result);
    write_report(plan.folder, report, common, result);
    return result;
}

Command add_sweep(const Sweep& sweep, Arguments& group, Common& common) {
    auto arguments = std::make_shared<SweepArguments>();
    const std::string name = fmt::format("upsampling-{}", sweep.name);
    Arguments& app = group.command(name, sweep.summary);
    arguments->output = "runs/" + name;
    app.option("--data", arguments->data, "Folder with meshes/, and perhaps gt_8192/").text("FOLDER");
    app.option("-o,--output", arguments->output, "Folder; rows that are in it are kept");
    add_methods(app, arguments->methods);
    app.option("--shapes", arguments->shapes, "The first N; 0: all").from_zero().text("N");
    app.option("--seeds", arguments->seeds, "Draws of every input").between(1, 1000).text("N");
    app.flag("--quick", arguments->is_quick, "Two shapes and one draw");
    app.option("--stored", arguments->stored, "Rows with commit and command [bench/results]").text("FILE.csv");
    app.flag("--inputs-only", arguments->inputs_only, "Write the inputs, for other programs, and stop");
    if (sweep.is_ablation) {
        app.flag("--retrain", arguments->retrain, "Train variants and store their rows; needs stipple-learn");
        app.option("--training", arguments->training, "With --retrain: what is trained on").text("DIR");
        app.option("--only", arguments->only, "With --retrain: of the variants these")
            .separated_by(',')
            .text("NAME,...");
    }
    add_up(app, arguments->up);
    add_picture_size(app, arguments->size);
    app.footer(fmt::format(
        "Writes table.csv, table.tex, figures and index.html, and each row into results.csv: a study that was "
        "interrupted\ngoes on. --compare NAME=FOLDER: clouds named like the shapes, in folders named as in "
        "OUTPUT/inputs.\n\n"
        "Example:\n  stipple study {} --data upsample_dev --quick -o runs/{}",
        name, sweep.name));
    return {&app, [&sweep, arguments, &app, &common] { return run_sweep(sweep, *arguments, app, common); }, {}};
}

}  // namespace

std::vector<Command> add_sweep_studies(Arguments& group, Common& common) {
    std::vector<Command> commands;
    for (const Sweep& sweep : kSweeps) commands.push_back(add_sweep(sweep, group, common));
    return commands;
}

}  // namespace stipple::cli
