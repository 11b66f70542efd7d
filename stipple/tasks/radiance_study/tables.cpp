#include "stipple/tasks/radiance_study/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stipple::tasks::study {
namespace {

using radiance::StepPart, radiance::StepPath;

double mean_of_rows(const std::vector<const RadianceRow*>& rows, double RadianceRow::*member) {
    double sum = 0;
    for (const RadianceRow* row : rows) sum += row->*member;
    return sum / static_cast<double>(rows.size());
}

double deviation_of_rows(const std::vector<const RadianceRow*>& rows, double RadianceRow::*member) {
    if (rows.size() < 2) return NAN;
    const double mean = mean_of_rows(rows, member);
    double sum = 0;
    for (const RadianceRow* row : rows) sum += (row->*member - mean) * (row->*member - mean);
    return std::sqrt(sum / static_cast<double>(rows.size() - 1));
}

std::vector<StepPart> mean_parts(const std::vector<const RadianceRow*>& rows) {
    std::vector<StepPart> parts;
    for (const RadianceRow* row : rows)
        for (const StepPart& part : row->parts) {
            auto at = std::find_if(parts.begin(), parts.end(), [&](const StepPart& p) { return p.name == part.name; });
            if (at == parts.end()) at = parts.insert(at, {part.name, 0});
            at->milliseconds += part.milliseconds / static_cast<double>(rows.size());
        }
    return parts;
}

RadianceMean mean_of_seeds(const std::vector<const RadianceRow*>& rows) {
    RadianceMean mean;
    mean.scene = rows[0]->scene;
    mean.voxels = rows[0]->voxels;
    mean.path = rows[0]->path;
    mean.seeds = static_cast<int64_t>(rows.size());
    mean.psnr = mean_of_rows(rows, &RadianceRow::psnr);
    mean.psnr_deviation = deviation_of_rows(rows, &RadianceRow::psnr);
    mean.ssim = mean_of_rows(rows, &RadianceRow::ssim);
    mean.seconds = mean_of_rows(rows, &RadianceRow::seconds);
    mean.seconds_deviation = deviation_of_rows(rows, &RadianceRow::seconds);
    mean.coarse_seconds = mean_of_rows(rows, &RadianceRow::coarse_seconds);
    mean.ms_per_fine_step = mean_of_rows(rows, &RadianceRow::ms_per_fine_step);
    mean.in_box = mean_of_rows(rows, &RadianceRow::in_box);
    mean.in_mask = mean_of_rows(rows, &RadianceRow::in_mask);
    mean.opaque = mean_of_rows(rows, &RadianceRow::opaque);
    mean.kept = mean_of_rows(rows, &RadianceRow::kept);
    for (const RadianceRow* row : rows)
        mean.peak_bytes = std::max(mean.peak_bytes, static_cast<double>(row->peak_bytes));
    mean.parts = mean_parts(rows);
    return mean;
}

std::string list_text(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
}

}  // namespace

std::string minutes_text(double seconds) {
    if (!(seconds >= 0 && seconds < 1e9)) return "";
    const auto whole = std::llround(seconds);
    return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
}

const char* title_of(StepPath path) {
    switch (path) {
        case StepPath::reference: return "reference";
        case StepPath::fused_adam: return "+ fused Adam";
        case StepPath::fused_rendering: return "+ fused rendering";
        case StepPath::per_ray_weights: return "+ per-ray weights";
        case StepPath::final: return "final";
    }
    return "";
}

std::vector<RadianceMean> radiance_means(const std::vector<RadianceRow>& rows) {
    std::vector<std::vector<const RadianceRow*>> groups;
    for (const RadianceRow& row : rows) {
        const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
            return g[0]->scene == row.scene && g[0]->voxels == row.voxels && g[0]->path == row.path;
        });
        if (group == groups.end())
            groups.push_back({&row});
        else
            group->push_back(&row);
    }
    std::vector<RadianceMean> means;
    for (const auto& group : groups) {
        RadianceMean mean = mean_of_seeds(group);
        const auto first = std::find_if(means.begin(), means.end(), [&](const RadianceMean& m) {
            return m.scene == mean.scene && m.voxels == mean.voxels;
        });
        if (first != means.end()) mean.speedup = first->seconds / mean.seconds;
        means.push_back(std::move(mean));
    }
    return means;
}

ReportTable radiance_table(const std::vector<RadianceMean>& means,
                           const std::function<radiance::TrainOptions(int64_t voxels)>& options) {
    ReportTable table;
    table.caption =
        "What each change of a fine training step gives. PSNR: of the test photographs, mean of seeds and standard "
        "deviation. Time: box, coarse stage, fine stage and packing, without reading pictures; the coarse stage is the "
        "same in all rows. Speed-up: of the time, against the first row of the scene and grid. Memory: the most that "
        "training allocates on the device.";
    table.columns = {{"scene"},
                     {"num_voxels", "", true},
                     {"row"},
                     {"seeds", "", true},
                     {"PSNR (dB)", "psnr", true},
                     {"+-", "psnr_deviation", true},
                     {"mm:ss", "minutes", true},
                     {"time (s)", "seconds", true},
                     {"+- (s)", "seconds_deviation", true},
                     {"speed-up", "speedup", true},
                     {"fine step (ms)", "ms_per_fine_step", true},
                     {"memory (GB)", "gigabytes", true},
                     {"SSIM", "ssim", true, false},
                     {"coarse (s)", "coarse_seconds", true, false},
                     {"samples in the box", "in_box", true, false},
                     {"in the mask", "in_mask", true, false},
                     {"opaque", "opaque", true, false},
                     {"seen", "kept", true, false},
                     {"coarse N_iters", "coarse_N_iters", true, false},
                     {"fine N_iters", "fine_N_iters", true, false},
                     {"fine pg_scale", "fine_pg_scale", false, false}};
    for (const RadianceMean& m : means) {
        if (table.rows.empty() || means[table.rows.size() - 1].scene != m.scene ||
            means[table.rows.size() - 1].voxels != m.voxels)
            table.groups.push_back(table.rows.size());
        const radiance::TrainOptions o = options(m.voxels);
        table.rows.push_back({m.scene,
                              {fmt::format("{}^3", m.voxels), std::to_string(o.fine.num_voxels)},
                              title_of(m.path),
                              {static_cast<double>(m.seeds), 0},
                              {m.psnr, 2},
                              {m.psnr_deviation, 2},
                              {minutes_text(m.seconds), std::to_string(m.seconds / 60)},
                              {m.seconds, 1},
                              {m.seconds_deviation, 1},
                              {fmt::format("{:.1f}x", m.speedup), fmt::format("{}", m.speedup)},
                              {m.ms_per_fine_step, 3},
                              {m.peak_bytes / 1e9, 2},
                              {m.ssim, 4},
                              {m.coarse_seconds, 2},
                              {m.in_box, 0},
                              {m.in_mask, 0},
                              {m.opaque, 0},
                              {m.kept, 0},
                              {static_cast<double>(o.coarse.N_iters), 0},
                              {static_cast<double>(o.fine.N_iters), 0},
                              list_text(o.fine.pg_scale)});
    }
    return table;
}

ReportTable radiance_parts_table(const std::vector<RadianceMean>& means) {
    ReportTable table;
    table.caption =
        "Times of the parts of a fine step after training, each alone on its stream, mean of seeds. What the host "
        "needs to learn the number of samples is a part of the step-by-step rows; the final row needs no such number.";
    table.columns = {{"scene"},
                     {"num_voxels"},
                     {"row"},
                     {"part"},
                     {"time (ms)", "milliseconds", true},
                     {"share (%)", "percent", true}};
    for (const RadianceMean& m : means) {
        double all = 0;
        for (const StepPart& part : m.parts) all += part.milliseconds;
        if (!m.parts.empty()) table.groups.push_back(table.rows.size());
        for (const StepPart& part : m.parts)
            table.rows.push_back({m.scene,
                                  fmt::format("{}^3", m.voxels),
                                  title_of(m.path),
                                  part.name,
                                  {part.milliseconds, 4},
                                  {100 * part.milliseconds / all, 1}});
    }
    return table;
}

}  // namespace stipple::tasks::study
