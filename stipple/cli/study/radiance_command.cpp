#include "stipple/cli/radiance/scene_arguments.h"
#include "stipple/cli/study/commands.h"
#include "stipple/core/log.h"
#include "stipple/picture/chart.h"
#include "stipple/radiance/train_request.h"
#include "stipple/tasks/radiance_study/tables.h"

namespace stipple::cli {
namespace {

struct RadianceStudyArguments {
    std::vector<std::string> data, rows, settings;
    std::vector<int64_t> voxels;
    std::string output = "runs/radiance", mode = "auto";
    int64_t seeds = 3, profile_steps = 50;
    radiance::SceneOptions scene;
};

std::string all_row_names() {
    std::string names;
    for (int i = 0; i < radiance::kStepPaths; ++i)
        names += (i ? ", " : "") + std::string(radiance::name_of(static_cast<radiance::StepPath>(i)));
    return names;
}

std::vector<radiance::StepPath> rows_of(const RadianceStudyArguments& arguments, Device device, study::Report& report) {
    std::vector<radiance::StepPath> paths;
    const bool is_cpu = device.type == DeviceType::cpu;
    for (const std::string& name : arguments.rows) {
        const auto path = radiance::step_path_by_name(name);
        STIPPLE_REQUIRE(path, "--rows: there is no row {}; there are {}", in_quotes(name), all_row_names());
        STIPPLE_REQUIRE(!is_cpu || *path == radiance::StepPath::final,
                        "--rows {}: on a CPU there is the row final alone", name);
        STIPPLE_REQUIRE(std::find(paths.begin(), paths.end(), *path) == paths.end(), "--rows names {} twice", name);
        paths.push_back(*path);
    }
    if (is_cpu) report.paragraphs.push_back("On a CPU there is the row final alone, with the settings of mode small.");
    if (!paths.empty()) return paths;
    for (int i = is_cpu ? radiance::kStepPaths - 1 : 0; i < radiance::kStepPaths; ++i)
        paths.push_back(static_cast<radiance::StepPath>(i));
    return paths;
}

std::vector<study::RadianceScene> scenes_of(const std::vector<std::string>& folders) {
    std::vector<study::RadianceScene> scenes;
    for (const std::string& folder : folders) {
        std::string path = folder;
        while (path.size() > 1 && path.back() == '/') path.pop_back();
        const std::string name = path.substr(path.rfind('/') + 1);
        for (const study::RadianceScene& other : scenes)
            STIPPLE_REQUIRE(other.name != name, "--data: two folders are called {}", in_quotes(name));
        scenes.push_back({name, path});
    }
    return scenes;
}

Image draw_times(const std::vector<study::RadianceMean>& means, const study::RadiancePlan& plan) {
    picture::BarChart chart;
    chart.title = "Time of training";
    chart.y.label = "time";
    chart.y.unit = "s";
    for (const study::RadianceScene& scene : plan.scenes)
        for (const int64_t voxels : plan.voxels) chart.groups.push_back(fmt::format("{}, {}^3", scene.name, voxels));
    for (const radiance::StepPath path : plan.paths) {
        picture::BarSeries& series = chart.series.emplace_back();
        series.name = study::title_of(path);
        for (const study::RadianceMean& mean : means)
            if (mean.path == path) series.values.push_back(mean.seconds);
    }
    return picture::draw_chart(chart, {.width = 1100}).image;
}

study::RadiancePlan plan_of_radiance(const RadianceStudyArguments& arguments, const Common& common,
                                     study::Report& report) {
    study::RadiancePlan plan;
    plan.device = parse_device(common.device);
    plan.scenes = scenes_of(arguments.data);
    plan.paths = rows_of(arguments, plan.device, report);
    const bool is_cpu = plan.device.type == DeviceType::cpu;
    if (is_cpu && arguments.mode == "parity")
        throw Error(ErrorCode::bad_argument, "--mode parity takes days on a CPU", "--mode small takes minutes");
    const bool is_small = arguments.mode == "small" || is_cpu;
    plan.voxels = arguments.voxels;
    if (plan.voxels.empty()) plan.voxels = is_small ? std::vector<int64_t>{96} : std::vector<int64_t>{160, 256};
    for (const int64_t voxels : plan.voxels)
        STIPPLE_REQUIRE(voxels >= 8 && voxels <= 800 && std::count(plan.voxels.begin(), plan.voxels.end(), voxels) == 1,
                        "--voxels must be 8 to 800, each once, got {}", voxels);
    plan.options = [is_small, settings = arguments.settings](int64_t voxels) {
        radiance::TrainOptions options = is_small ? radiance::small_options() : radiance::parity_options(voxels);
        if (is_small) options.fine.num_voxels = options.fine.num_voxels_base = voxels * voxels * voxels;
        for (const std::string& assignment : settings) {
            STIPPLE_REQUIRE(!assignment.starts_with("path="), "--set path: rows are chosen with --rows");
            STIPPLE_REQUIRE(!assignment.starts_with("profile_steps="), "--set profile_steps: use --profile-steps");
            radiance::apply_setting(options, assignment);
        }
        return options;
    };
    plan.options(plan.voxels[0]);  // its mistakes are told before anything is read
    plan.first_seed = common.seed;
    plan.seeds = arguments.seeds;
    plan.folder = arguments.output;
    plan.again = common.overwrite;
    plan.profile_steps = static_cast<int>(arguments.profile_steps);
    plan.load_settings = fmt::format("reduce={} test_every={}", arguments.scene.reduce, arguments.scene.test_every);
    plan.load = [&common, scene = arguments.scene](const std::string& folder) {
        return load_photographs(folder, scene, common, false);
    };
    return plan;
}

Result run_study_radiance(const RadianceStudyArguments& arguments, const Arguments& app, const Common& common) {
    Result result;
    study::Report report{.title = "Training of radiance fields, step by step", .command = command_line(app, common)};
    require_study_folder(arguments.output, common);
    study::RadiancePlan plan = plan_of_radiance(arguments, common, report);
    result.fields["inputs"] = arguments.data;
    if (common.dry_run) {
        result.text =
            fmt::format("would train {} fields into {}\n",
                        plan.scenes.size() * plan.voxels.size() * plan.paths.size() * static_cast<size_t>(plan.seeds),
                        arguments.output);
        return result;
    }
    std::optional<Progress> progress;
    progress.emplace("study", study::radiance_steps(plan), progress_mode(common), "steps");
    plan.advance = [&](int64_t steps) { progress->add(steps); };
    plan.report = [&](const std::string& line) {
        if (progress_mode(common) != ProgressMode::never) log_info("{}", line);
    };
    const std::vector<study::RadianceRow> rows = study::run_radiance_study(plan);
    progress.reset();
    const std::vector<study::RadianceMean> means = study::radiance_means(rows);
    report.tables = {study::radiance_table(means, plan.options), study::radiance_parts_table(means)};
    if (report.tables[1].rows.empty()) report.tables.pop_back();
    add_figure(
        plan.folder, "times.png", "Time of training by scene, grid and row", [&] { return draw_times(means, plan); },
        common, report, result);
    std::string markdown;
    for (const study::ReportTable& table : report.tables)
        markdown += (markdown.empty() ? "" : "\n") + study::to_markdown(table);
    add_text(plan.folder, "table.md", markdown, common, result);
    write_report(plan.folder, report, common, result);
    return result;
}

}  // namespace

Command add_study_radiance(Arguments& group, Common& common) {
    auto arguments = std::make_shared<RadianceStudyArguments>();
    Arguments& app = group.command("radiance", "What made training of radiance fields fast, change by change");
    Option data =
        app.option("--data", arguments->data, "Folders of photographs, with test pictures").text("FOLDER").one_word();
    app.option("-o,--output", arguments->output, "Folder; rows that are in it are kept");
    app.option("--voxels", arguments->voxels, "Along an edge of a cube with as many [160,256; on a CPU 96]")
        .separated_by(',')
        .text("N,N,...");
    app.option("--seeds", arguments->seeds, "Fields of each row").between(1, 100).text("N");
    app.option("--rows", arguments->rows, "Of the rows these, the first to compare with [all]")
        .separated_by(',')
        .text("NAME,...");
    app.option("--mode", arguments->mode, "parity: as published, on a GPU; small: for CPUs; auto: by the device")
        .one_of({"auto", "parity", "small"})
        .text("auto|parity|small");
    app.option("--set", arguments->settings, "Options of training: fine.N_iters=5000").text("KEY=VALUE...");
    app.option("--profile-steps", arguments->profile_steps, "Steps after each training, for the times of its parts")
        .between(0, 100000)
        .text("N");
    add_scene_options(app, arguments->scene);
    app.footer(
        "Rows: " + all_row_names() +
        ".\nA row of a seed is stored in results.csv as soon as it is trained: a study that was killed goes on.\n\n"
        "Example:\n  stipple study radiance --data nerf_synthetic/lego -o runs/radiance");
    return {&app, [arguments, &app, &common] { return run_study_radiance(*arguments, app, common); }, {data}};
}

}  // namespace stipple::cli
