#include "stipple/cli/radiance/train_report.h"

#include <cmath>

#include "stipple/cli/command.h"
#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

struct TimedPart {
    const char* name;
    double seconds;
};

}  // namespace

std::string scene_text(const radiance::Scene& scene, Json& fields) {
    const auto used = static_cast<int64_t>(scene.train.size());
    const Image& first = scene.train[0].pixels;
    std::vector<std::pair<std::string, std::string>> pairs = {
        {"scene", scene.source},
        {"images", fmt::format("{} to train on, {} listed, the first {} x {}", grouped(used),
                               grouped(scene.listed_images), first.width(), first.height())},
        {"depths", fmt::format("{:.4g} to {:.4g}", scene.near, scene.far)}};
    std::string box = "by cameras and depths";
    if (scene.box) {
        const Box<float>& b = *scene.box;
        box = fmt::format("{:.4g} {:.4g} {:.4g} to {:.4g} {:.4g} {:.4g}", b.low[0], b.low[1], b.low[2], b.high[0],
                          b.high[1], b.high[2]);
    }
    pairs.push_back({"box", box});
    fields = {{"source", scene.source}, {"train_images", used},        {"listed_images", scene.listed_images},
              {"width", first.width()}, {"height", first.height()},    {"near", scene.near},
              {"far", scene.far},       {"has_alpha", scene.has_alpha}};
    return format_pairs(pairs, 0);
}

std::string times_text(const radiance::TrainTimes& times, double save, const std::string& style, Json& fields) {
    const TimedPart parts[] = {{"box", times.box},
                               {"coarse, setup", times.coarse_setup},
                               {"coarse, loop", times.coarse},
                               {"fine, setup", times.fine_setup},
                               {"fine, loop", times.fine},
                               {"packing", times.pack}};
    Table table{{"part", "time (s)"}, {}};
    for (const TimedPart& part : parts) table.rows.push_back({part.name, fmt::format("{:.2f}", part.seconds)});
    table.rows.push_back({"total", fmt::format("{:.2f}", times.total())});
    fields = to_json(radiance::train_times_fields(), &times);
    fields["total"] = times.total();
    fields["save"] = save;
    std::string text = format_table(table, style);
    if (!style.empty()) return text;
    const auto count = [](double samples) { return grouped(std::llround(samples)); };
    std::vector<std::pair<std::string, std::string>> pairs = {
        {"fine step", fmt::format("{:.2f} ms", times.ms_per_fine_step)},
        {"peak memory", bytes_text(times.peak_bytes)},
        {"samples of a step",
         fmt::format("{} in the box, {} in occupied space, {} opaque, {} kept", count(times.in_box),
                     count(times.in_mask), count(times.opaque), count(times.kept))},
        {"saving", fmt::format("{:.2f} s", save)}};
    if (times.checkpoints > 0) pairs.push_back({"checkpoints", fmt::format("{:.2f} s", times.checkpoints)});
    if (times.test_views > 0) pairs.push_back({"test views", fmt::format("{:.2f} s", times.test_views)});
    return text + "\n" + format_pairs(pairs, 0);
}

std::string profile_text(const std::vector<radiance::StepPart>& parts, Json& fields, const std::string& style) {
    Table table{{"part of a step", "time (ms)"}, {}};
    for (const radiance::StepPart& part : parts) {
        table.rows.push_back({part.name, fmt::format("{:.4f}", part.milliseconds)});
        fields["profile"][part.name] = part.milliseconds;
    }
    return "\n" + format_table(table, style);
}

std::string step_note(const radiance::TrainStep& step) {
    std::string note = fmt::format("{}, {:.2f} dB", step.stage, step.psnr);
    if (step.test_psnr) note += fmt::format(", test {:.2f} dB", *step.test_psnr);
    return note;
}

}  // namespace stipple::cli
