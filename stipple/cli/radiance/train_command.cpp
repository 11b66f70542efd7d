#include <chrono>

#include "stipple/cli/common/table.h"
#include "stipple/cli/radiance/commands.h"
#include "stipple/cli/radiance/scene_arguments.h"
#include "stipple/cli/radiance/train_keys.h"
#include "stipple/core/log.h"
#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

struct RadianceTrainOptions {
    SceneArguments scene;
    std::string output, mode = "auto", background = "auto";
    std::vector<std::string> settings;
    int64_t voxels = 0;
    bool deterministic = false;
};

/// The name of the mode: what is quick enough for the device.
std::string mode_of(const RadianceTrainOptions& options, Device device) {
    if (options.mode != "auto") return options.mode;
    return device.type == DeviceType::cuda ? "fast" : "small";
}

radiance::TrainOptions train_options(const RadianceTrainOptions& given, const std::string& mode, const Common& common) {
    radiance::TrainOptions options;
    if (mode == "small") {
        options = radiance::small_options();
        if (given.voxels > 0)
            options.fine.num_voxels = options.fine.num_voxels_base = given.voxels * given.voxels * given.voxels;
    } else if (mode == "parity") {
        options = radiance::parity_options(given.voxels > 0 ? given.voxels : 160);
    } else {
        options = mode == "fast" ? radiance::fast_options() : radiance::quality_options();
        if (given.voxels > 0) options.fine.num_voxels = given.voxels * given.voxels * given.voxels;
    }
    for (const std::string& assignment : given.settings) set_train_option(options, assignment);
    options.seed = common.seed;
    options.deterministic = given.deterministic;
    return options;
}

/// White where pictures have transparency, as the papers have it; photographs show all there is, also behind the box.
radiance::Background background_of(const RadianceTrainOptions& options, const radiance::Scene& scene) {
    if (options.background == "white") return radiance::Background::white;
    if (options.background == "random") return radiance::Background::random;
    if (options.background == "black") return radiance::Background::black;
    if (options.background == "learned") return radiance::Background::learned;
    return scene.has_alpha && !scene.alpha_is_unknown ? radiance::Background::white : radiance::Background::learned;
}

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

struct TimedPart {
    const char* name;
    const char* field;
    double seconds;
};

std::string times_text(const radiance::TrainTimes& times, double save, const std::string& style, Json& fields) {
    const TimedPart parts[] = {{"box", "box", times.box},
                               {"coarse, setup", "coarse_setup", times.coarse_setup},
                               {"coarse, loop", "coarse", times.coarse},
                               {"fine, setup", "fine_setup", times.fine_setup},
                               {"fine, loop", "fine", times.fine},
                               {"packing", "pack", times.pack}};
    Table table{{"part", "time (s)"}, {}};
    double total = 0;
    for (const TimedPart& part : parts) {
        table.rows.push_back({part.name, fmt::format("{:.2f}", part.seconds)});
        fields[part.field] = part.seconds;
        total += part.seconds;
    }
    table.rows.push_back({"total", fmt::format("{:.2f}", total)});
    fields["total"] = total;
    fields["save"] = save;
    fields["ms_per_fine_step"] = times.ms_per_fine_step;
    fields["peak_bytes"] = times.peak_bytes;
    fields["samples"] = {
        {"in_box", times.in_box}, {"in_mask", times.in_mask}, {"opaque", times.opaque}, {"kept", times.kept}};
    std::string text = format_table(table, style);
    if (!style.empty()) return text;
    const auto count = [](double samples) { return grouped(std::llround(samples)); };
    return text + "\n" +
           format_pairs({{"fine step", fmt::format("{:.2f} ms", times.ms_per_fine_step)},
                         {"peak memory", bytes_text(times.peak_bytes)},
                         {"samples of a step",
                          fmt::format("{} in the box, {} in occupied space, {} opaque, {} kept", count(times.in_box),
                                      count(times.in_mask), count(times.opaque), count(times.kept))},
                         {"saving", fmt::format("{:.2f} s", save)}},
                        0);
}

/// What the parts of a step took, where --set profile_steps asked for it.
std::string profile_text(const std::vector<radiance::StepPart>& parts, Json& fields, const std::string& style) {
    Table table{{"part of a step", "time (ms)"}, {}};
    for (const radiance::StepPart& part : parts) {
        table.rows.push_back({part.name, fmt::format("{:.4f}", part.milliseconds)});
        fields["profile"][part.name] = part.milliseconds;
    }
    return "\n" + format_table(table, style);
}

/// How it was trained, for who finds the file.
void add_notes(radiance::Field& field, const RadianceTrainOptions& options, const std::string& mode,
               const radiance::TrainOptions& training, Device device, const radiance::TrainStep& last) {
    field.notes["scene"] = stem_of(options.scene.folder);
    field.notes["mode"] = mode;
    field.notes["steps"] = fmt::format("{} + {}", training.coarse.N_iters, training.fine.N_iters);
    field.notes["seed"] = std::to_string(training.seed);
    field.notes["device"] = to_string(device);
    field.notes["seconds"] = fmt::format("{:.1f}", last.seconds);
    field.notes["training PSNR"] = fmt::format("{:.2f}", last.psnr);
}

Result run_radiance_train(const RadianceTrainOptions& options, const Common& common) {
    STIPPLE_REQUIRE(options.voxels == 0 || (options.voxels >= 8 && options.voxels <= 800),
                    "--voxels must be 8 to 800, got {}", options.voxels);
    const Device device = parse_device(common.device);
    const std::string mode = mode_of(options, device);
    radiance::TrainOptions training = train_options(options, mode, common);
    require_writable(options.output, common.overwrite_mode());
    Result result;
    result.fields["inputs"] = Json::array({options.scene.folder});
    const radiance::Scene scene = load_photographs(options.scene, common, true);
    if (scene.train.empty())
        throw Error(ErrorCode::bad_file, Place{options.scene.folder}, "has no pictures to train on");
    training.background = background_of(options, scene);
    Json scene_fields = Json::object(), time_fields = Json::object();
    const std::string facts = scene_text(scene, scene_fields);
    result.fields["scene"] = scene_fields;
    result.fields["mode"] = mode;
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    if (common.dry_run) {
        result.text = facts + fmt::format("would write {}\n", printable(options.output));
        return result;
    }
    const int64_t estimate = radiance::estimate_bytes(scene, training);
    result.fields["estimated_bytes"] = estimate;
    if (!common.quiet && !common.json && common.table.empty())
        print(facts + fmt::format("memory at most {}\n\n", bytes_text(estimate)));

    radiance::TrainStep last;
    std::optional<Progress> bar;
    radiance::TrainResult trained = about_file(options.scene.folder, [&] {
        const int64_t steps = int64_t{training.coarse.N_iters} + training.fine.N_iters;
        bar.emplace("train", steps, progress_mode(common), "steps");
        return radiance::train(scene, training, device, [&](const radiance::TrainStep& step) {
            bar->add(step.step - last.step);
            // A tenth of the way, again and again: how good it has become.
            if (progress_mode(common) != ProgressMode::never && 10 * step.step / steps > 10 * last.step / steps)
                log_info("{}: step {} of {}, {:.2f} dB", step.stage, grouped(step.step), grouped(steps), step.psnr);
            last = step;
        });
    });
    bar.reset();
    radiance::Field& field = trained.field;
    if (field.cameras.empty())
        for (const radiance::Photograph& photograph : scene.train) field.cameras.push_back(photograph.camera);
    add_notes(field, options, mode, training, device, last);
    const auto start = std::chrono::steady_clock::now();
    radiance::save_field(options.output, field, common.overwrite_mode());
    const double save = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.text = times_text(trained.times, save, common.table, time_fields);
    if (!trained.profile.empty()) result.text += profile_text(trained.profile, time_fields, common.table);
    result.fields["times"] = time_fields;
    result.fields["psnr"] = last.psnr;
    result.fields["field"] = describe_field(options.output, field).fields;
    if (common.table.empty())
        result.text +=
            fmt::format("\nwrote {}: {} x {} x {} nodes, {} bricks, {:.2f} dB on the pictures it learned from\n",
                        printable(options.output), field.grid.size[0], field.grid.size[1], field.grid.size[2],
                        grouped(field.stored_bricks()), last.psnr);
    return result;
}

}  // namespace

Command add_radiance_train(Arguments& group, Common& common) {
    auto options = std::make_shared<RadianceTrainOptions>();
    Arguments& app = group.command("train", "Learn a field from photographs with cameras");
    Option data = app.option("FOLDER", options->scene.folder, "transforms_train.json, transforms.json, a COLMAP model");
    Option output = app.option("-o,--output", options->output, "The field").text("FILE");
    app.option("--mode", options->mode, "parity: as published; small: for CPUs; auto: fast or small, by the device")
        .one_of({"auto", "fast", "quality", "parity", "small"})
        .text("auto|fast|quality|parity|small");
    app.option("--voxels", options->voxels, "Along an edge of a cube with as many; 0: by the mode").from_zero();
    app.option("--background", options->background,
               "Behind everything; auto: white where pictures are transparent, else learned by direction")
        .one_of({"auto", "white", "black", "random", "learned"})
        .text("auto|white|black|random|learned");
    app.option("--set", options->settings, "Options of training: fine.N_iters=5000").text("KEY=VALUE...");
    app.flag("--deterministic", options->deterministic, "The same bits in every run, for some time more");
    add_scene_options(app, options->scene);
    app.footer(train_keys_text() +
               "\n\nExample:\n  stipple radiance train nerf_synthetic/lego -o lego.field\n"
               "  stipple radiance train garden/ --reduce 4 --mode small -o garden.field");
    return {&app, [options, &common] { return run_radiance_train(*options, common); }, {data, output}};
}

}  // namespace stipple::cli
