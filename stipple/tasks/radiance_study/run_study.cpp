#include "stipple/tasks/radiance_study/run_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/program_files.h"
#include "stipple/radiance/evaluate.h"
#include "stipple/radiance/train_keys.h"
#include "stipple/tasks/upsampling_study/csv.h"
#include "stipple/tasks/upsampling_study/run_study.h"

namespace stipple::tasks::study {
namespace {

using radiance::StepPath, radiance::TrainOptions;

struct NumberColumn {
    const char* name;
    double RadianceRow::*member;
};
constexpr NumberColumn kNumbers[] = {{"psnr", &RadianceRow::psnr},
                                     {"ssim", &RadianceRow::ssim},
                                     {"seconds", &RadianceRow::seconds},
                                     {"coarse_seconds", &RadianceRow::coarse_seconds},
                                     {"ms_per_fine_step", &RadianceRow::ms_per_fine_step},
                                     {"in_box", &RadianceRow::in_box},
                                     {"in_mask", &RadianceRow::in_mask},
                                     {"opaque", &RadianceRow::opaque},
                                     {"kept", &RadianceRow::kept}};

/// Errors name the file.
template <class Work>
void in_file(const std::string& path, const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        throw error.at_path(path);
    }
}

std::vector<std::string> key_cells(const RadianceRow& row) {
    return {row.scene, std::to_string(row.voxels), name_of(row.path), std::to_string(row.seed)};
}

bool is_same_run(const RadianceRow& a, const RadianceRow& b) {
    return a.scene == b.scene && a.voxels == b.voxels && a.path == b.path && a.seed == b.seed;
}

int64_t whole_cell(const std::string& text) {
    const double value = csv_number(text);
    if (!(value >= 0 && value < 1e15) || value != std::floor(value))
        throw Error(ErrorCode::bad_file, fmt::format("\"{}\" is no whole number", text));
    return static_cast<int64_t>(value);
}

/// Scene, voxels, path and seed.
RadianceRow key_of_cells(const Csv& csv, const std::vector<std::string>& cells) {
    RadianceRow row;
    row.scene = cells[csv.column("scene")];
    row.voxels = whole_cell(cells[csv.column("voxels")]);
    const std::optional<StepPath> path = radiance::step_path_by_name(cells[csv.column("row")]);
    if (!path) throw Error(ErrorCode::bad_file, fmt::format("there is no row \"{}\"", cells[csv.column("row")]));
    row.path = *path;
    row.seed = static_cast<uint64_t>(whole_cell(cells[csv.column("seed")]));
    return row;
}

std::vector<RadianceRow> runs_of(const RadiancePlan& plan, const RadianceScene& scene) {
    std::vector<RadianceRow> runs;
    for (const int64_t voxels : plan.voxels)
        for (const StepPath path : plan.paths)
            for (int64_t s = 0; s < plan.seeds; ++s) {
                RadianceRow& row = runs.emplace_back();
                row.scene = scene.name;
                row.voxels = voxels;
                row.path = path;
                row.seed = plan.first_seed + static_cast<uint64_t>(s);
            }
    return runs;
}

int64_t steps_of(const RadiancePlan& plan, int64_t voxels) {
    const TrainOptions options = plan.options(voxels);
    return int64_t{options.coarse.N_iters} + options.fine.N_iters;
}

std::string device_text(Device device) {
    for (const DeviceInfo& info : list_devices())
        if (info.device == device) return info.name;
    return to_string(device);
}

void train_row(RadianceRow& row, const RadiancePlan& plan, const radiance::Scene& scene) {
    TrainOptions options = plan.options(row.voxels);
    options.path = row.path;
    options.seed = row.seed;
    options.background = radiance::usual_background(scene);
    options.profile_steps = plan.device.type == DeviceType::cuda ? plan.profile_steps : 0;
    int64_t told = 0;
    radiance::TrainResult trained = radiance::train(scene, options, plan.device, [&](const radiance::TrainStep& step) {
        if (plan.advance) plan.advance(step.step - told);
        told = step.step;
    });
    const radiance::TrainTimes& t = trained.times;
    row.seconds = t.box + t.coarse_setup + t.coarse + t.fine_setup + t.fine + t.pack;
    row.coarse_seconds = t.box + t.coarse_setup + t.coarse;
    row.ms_per_fine_step = t.ms_per_fine_step;
    row.peak_bytes = t.peak_bytes;
    row.in_box = t.in_box, row.in_mask = t.in_mask, row.opaque = t.opaque, row.kept = t.kept;
    row.parts = std::move(trained.profile);
    radiance::Renderer renderer(trained.field, plan.device);
    const radiance::ViewScores scores =
        radiance::evaluate(renderer, scene.test, options.background, scene.alpha_is_unknown);
    row.psnr = scores.psnr;
    row.ssim = scores.ssim;
}

}  // namespace

std::string settings_text(const TrainOptions& options) {
    TrainOptions same = options;  // rows and seeds differ in these
    same.path = TrainOptions().path;
    same.seed = 0;
    same.profile_steps = 0;
    std::string text = radiance::to_toml(same);
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

std::string radiance_rows_to_csv(const std::vector<RadianceRow>& rows) {
    Csv csv;
    csv.columns = {"scene", "voxels", "row", "seed", "peak_bytes"};
    for (const NumberColumn& column : kNumbers) csv.columns.push_back(column.name);
    csv.columns.push_back("settings");
    for (const RadianceRow& row : rows) {
        std::vector<std::string> cells = key_cells(row);
        cells.push_back(std::to_string(row.peak_bytes));
        for (const NumberColumn& column : kNumbers) cells.push_back(csv_text(row.*column.member));
        cells.push_back(row.settings);
        csv.rows.push_back(std::move(cells));
    }
    return to_csv(csv);
}

std::string radiance_parts_to_csv(const std::vector<RadianceRow>& rows) {
    Csv csv;
    csv.columns = {"scene", "voxels", "row", "seed", "part", "milliseconds"};
    for (const RadianceRow& row : rows)
        for (const radiance::StepPart& part : row.parts) {
            std::vector<std::string> cells = key_cells(row);
            cells.push_back(part.name);
            cells.push_back(csv_text(part.milliseconds));
            csv.rows.push_back(std::move(cells));
        }
    return to_csv(csv);
}

std::vector<RadianceRow> load_radiance_rows(const std::string& folder) {
    std::vector<RadianceRow> rows;
    const std::string file = folder + "/results.csv", parts_file = folder + "/parts.csv";
    in_file(file, [&] {
        const Csv csv = load_csv(file);
        for (const char* name : {"scene", "voxels", "row", "seed", "peak_bytes", "settings"}) csv.column(name);
        for (const std::vector<std::string>& cells : csv.rows) {
            RadianceRow row = key_of_cells(csv, cells);
            row.peak_bytes = whole_cell(cells[csv.column("peak_bytes")]);
            for (const NumberColumn& column : kNumbers) row.*column.member = csv_number(cells[csv.column(column.name)]);
            row.settings = cells[csv.column("settings")];
            rows.push_back(std::move(row));
        }
    });
    if (!is_file(parts_file)) return rows;
    in_file(parts_file, [&] {
        const Csv csv = load_csv(parts_file);
        for (const std::vector<std::string>& cells : csv.rows) {
            const RadianceRow key = key_of_cells(csv, cells);
            const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return is_same_run(r, key); });
            if (row == rows.end()) continue;  // of a field that was trained when the study was killed
            row->parts.push_back({cells[csv.column("part")], csv_number(cells[csv.column("milliseconds")])});
        }
    });
    return rows;
}

int64_t radiance_steps(const RadiancePlan& plan) {
    int64_t steps = 0;
    for (const int64_t voxels : plan.voxels)
        steps += steps_of(plan, voxels) * static_cast<int64_t>(plan.scenes.size() * plan.paths.size()) * plan.seeds;
    return steps;
}

std::vector<RadianceRow> run_radiance_study(const RadiancePlan& plan) {
    make_folders(plan.folder);
    std::vector<RadianceRow> stored, result;
    if (!plan.again && is_file(plan.folder + "/results.csv")) stored = load_radiance_rows(plan.folder);
    const auto save = [&] {
        // A row without parts would be taken for a finished one.
        write_text(plan.folder + "/parts.csv", radiance_parts_to_csv(stored));
        write_text(plan.folder + "/results.csv", radiance_rows_to_csv(stored));
    };
    const std::string device = device_text(plan.device);
    for (const RadianceScene& source : plan.scenes) {
        std::optional<radiance::Scene> scene;
        for (RadianceRow& row : runs_of(plan, source)) {
            check_interrupted();
            row.settings = fmt::format("{} {} {} {}", settings_text(plan.options(row.voxels)), source.folder,
                                       plan.load_settings, device);
            const auto kept =
                std::find_if(stored.begin(), stored.end(), [&](const auto& r) { return is_same_run(r, row); });
            if (kept != stored.end() && kept->settings == row.settings) {
                if (plan.advance) plan.advance(steps_of(plan, row.voxels));
                result.push_back(*kept);
                continue;
            }
            if (!scene) {
                scene = plan.load(source.folder);
                if (scene->test.empty())
                    throw Error(ErrorCode::bad_file, Place{source.folder}, "has no pictures to test on");
            }
            in_file(source.folder, [&] { train_row(row, plan, *scene); });
            if (kept != stored.end()) stored.erase(kept);
            stored.push_back(row);
            save();
            if (plan.report)
                plan.report(fmt::format("{} {}^3 {}, seed {}: {:.2f} dB in {:.1f} s", row.scene, row.voxels,
                                        name_of(row.path), row.seed, row.psnr, row.seconds));
            result.push_back(std::move(row));
        }
    }
    return result;
}

}  // namespace stipple::tasks::study
