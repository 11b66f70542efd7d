#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/orient.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/interrupt.h"
#include "stipple/data/upsampling_points.h"
#include "stipple/geometry/normals.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/upsample.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

const std::vector<std::string> kRingsNames = {"auto", "ignore"};

struct UpsampleArguments {
    std::string model, from, picture, profile, shard, holes = tasks::holes_names()[0], rings = "auto";
    std::vector<std::string> inputs, settings;
    OutputFile output;
    PrecisionArgument precision;
    tasks::UpsampleOptions how;
    bool normals = false;
    int64_t size = 0;
};

/// What all clouds of a call share, and what is found about them.
struct UpsampleJob {
    tasks::Upsampler upsampler;
    data::ReadClouds reading;
    Table table{{"file", "points", "upsampled", "spacing", "spacing after"}, {}};
    Json files = Json::array();
};

Image draw_both(const PointCloud& before, const PointCloud& after, int64_t size) {
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))},
        {.cloud = &after, .caption = fmt::format("upsampled, {} points", grouped(after.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = size > 0 ? size : 768;
    return picture::draw_figure(panels, style).image;
}

/// Of a cloud whose file had none.
void add_normals(PointCloud& cloud) {
    if (find(cloud.attributes, "normal")) return;
    Attribute normals("normal", DType::f32, cloud.size(), 3);
    geometry::estimate_normals(cloud.positions.view(), normals.as<float>(), {});
    orient_normals(cloud, normals.as<float>());
    cloud.attributes.push_back(std::move(normals));
}

/// How many points are the input's own, and what was left out.
std::string told_of(const tasks::Upsampled& upsampled) {
    std::string text;
    if (upsampled.rings > 0)
        text +=
            fmt::format("; a sweep of {} rings: {} points between them", upsampled.rings, grouped(upsampled.between));
    if (upsampled.measured > 0) text += fmt::format("; {} as measured", grouped(upsampled.measured));
    if (upsampled.dropped > 0)
        text += fmt::format("; {} places beyond rims and in holes left empty", grouped(upsampled.dropped));
    return text;
}

/// One cloud: read, upsampled, written, reported.
void upsample_entry(UpsampleJob& job, const data::CloudEntry& entry, const OutputFile& output, io::Format format,
                    const UpsampleArguments& arguments, const Common& common, Result& result) {
    PointCloud cloud =
        tasks::load_points(entry, {.normalise = false, .sample_faces = false}, job.reading, result.warnings);
    recentre(cloud);
    Mesh made;
    const tasks::Upsampled upsampled = about_file(entry.name(), [&] {
        const int64_t count = tasks::upsampled_count(cloud, arguments.how);
        Progress progress("upsample", tasks::upsampling_work(job.upsampler, cloud, count), progress_mode(common),
                          "points");
        tasks::UpsampleOptions how = arguments.how;
        how.seed = common.seed;
        how.holes = arguments.holes == tasks::holes_names()[0] ? tasks::Holes::keep : tasks::Holes::fill;
        how.finds_rings = arguments.rings == kRingsNames[0];
        how.advance = [&](int64_t points) { progress.add(points); };
        tasks::Upsampled done = tasks::upsample(job.upsampler, cloud, how);
        made.vertices = std::move(done.cloud);
        if (arguments.normals) add_normals(made.vertices);
        return done;
    });
    if (upsampled.duplicates > 0)
        result.warnings.push_back(fmt::format("{}: {} points lie at the place of another one and were passed over",
                                              entry.name(), grouped(upsampled.duplicates)));
    const double before = data::mean_spacing(cloud.positions.view()),
                 after = data::mean_spacing(made.vertices.positions.view());
    job.files.push_back({{"path", entry.name()},
                         {"points", cloud.size()},
                         {"upsampled", made.vertices.size()},
                         {"measured", upsampled.measured},
                         {"dropped", upsampled.dropped},
                         {"rings", upsampled.rings},
                         {"between_rings", upsampled.between},
                         {"duplicates", upsampled.duplicates},
                         {"spacing", before},
                         {"spacing_after", after}});
    job.table.rows.push_back({entry.name(), cloud.size(), made.vertices.size(), fmt::format("{:.4g}", before),
                              fmt::format("{:.4g}", after)});
    save_output(made, output, format,
                fmt::format("{} points of {}, spacing {:.4g} (was {:.4g}){}", grouped(made.vertices.size()),
                            grouped(cloud.size()), after, before, told_of(upsampled)),
                common, result);
    save_picture(
        arguments.picture, [&] { return draw_both(cloud, made.vertices, arguments.size); }, common, result);
}

tasks::Upsampler load_upsampler(const UpsampleArguments& arguments, const Common& common, Profile& profile) {
    std::map<std::string, std::string> options = model_options(arguments.settings);
    if (arguments.model == tasks::kMidpoints) {
        STIPPLE_REQUIRE(options.empty(), "--set is for networks: midpoints have no options");
        return {};
    }
    const std::string path =
        arguments.model.empty() ? tasks::shipped_weights(tasks::kUpsamplerWeights) : arguments.model;
    tasks::ModelOrEngine source = tasks::load_model_or_engine(path, options);
    if (arguments.how.temperature > 0 && source.model) {
        STIPPLE_REQUIRE(source.model->network.name == "puflow",
                        "--temperature: {} takes no noise; models of PU-Flow do (--model)", path);
        options.emplace("noise", "true");
        source = tasks::load_model_or_engine(path, options);
    }
    return {std::move(source),
            {.device = common.device,
             .precision = arguments.precision.wanted(),
             .profile = arguments.profile.empty() ? nullptr : &profile}};
}

Result run_upsample(const UpsampleArguments& arguments, const Common& common) {
    require_one_stdin(arguments.inputs);
    const Shard shard = parse_shard(arguments.shard);
    std::vector<data::CloudEntry> entries = data::list_clouds(arguments.inputs);
    std::vector<OutputFile> outputs = outputs_of(arguments.output, entries);
    const size_t all = entries.size();
    keep_shard(shard, entries, outputs);
    if (entries.empty()) return nothing_of_shard(arguments.shard, all);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common));
    STIPPLE_REQUIRE(arguments.picture.empty() || entries.size() == 1, "--picture is for one cloud, not {}",
                    entries.size());
    require_picture(arguments.picture, common);
    require_picture_size(arguments.size);
    require_profile(arguments.profile, common);
    // Of the numbers as far as they can be judged without the cloud.
    STIPPLE_REQUIRE(arguments.how.hole_size == 0 || arguments.holes != tasks::holes_names()[0],
                    "--hole-size is for holes that are filled: --holes fill");
    STIPPLE_REQUIRE((arguments.how.ratio != 0) + (arguments.how.count != 0) + (arguments.how.spacing != 0) == 1,
                    "how many points? Give --ratio R, --count N or --spacing D");
    tasks::upsampled_count(
        PointCloud(0), {.ratio = arguments.how.ratio, .count = arguments.how.count, .spacing = arguments.how.spacing});
    Profile profile;
    FileProgress file_progress(common);
    UpsampleJob job{.upsampler = load_upsampler(arguments, common, profile),
                    .reading = reading({.clouds = {}, .from = arguments.from}, file_progress)};

    Result result;
    result.fields["inputs"] = arguments.inputs;
    result.fields["model"] = arguments.model;
    if (job.upsampler.has_network()) {
        result.fields["model"] = job.upsampler.runner()->source().name();
        result.fields["precision"] = name_of(job.upsampler.runner()->precision());
    }
    for_each_input(entries.size(), "clouds", result, [&](size_t i) {
        check_interrupted();
        try {
            upsample_entry(job, entries[i], outputs[i], formats[i], arguments, common, result);
        } catch (const Error& error) {
            job.files.push_back({{"path", entries[i].name()}, {"error", error.message()}});
            throw;
        }
    });
    result.fields["files"] = std::move(job.files);
    if (!common.table.empty()) result.text = format_table(job.table, common.table);
    report_profile(profile, arguments.profile, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace

Command add_upsample(Arguments& root, Common& common) {
    auto arguments = std::make_shared<UpsampleArguments>();
    Arguments& app = root.command("upsample", "Make clouds denser");
    Option input = app.option("INPUT", arguments->inputs, "Clouds, folders of them, data sets");
    Option output = app.option("-o,--output", arguments->output.path, "File, or folder for many; - is standard output");
    app.option("--model", arguments->model, "Weights by path or name, an engine, or midpoints: no network");
    app.option("--ratio", arguments->how.ratio, "Points for each point: 4, 3.7, 16").text("R").no_default();
    app.option("--count", arguments->how.count, "Instead: points in all").text("N").no_default();
    app.option("--spacing", arguments->how.spacing, "Instead: a point for each square of this edge")
        .text("D")
        .no_default();
    app.option("--temperature", arguments->how.temperature, "Noise in the latents: another cloud for each --seed")
        .text("T");
    app.option("--set", arguments->settings, "Options that training does not fix, e.g. interpolation_neighbours=12")
        .text("KEY=VALUE...");
    app.option("--holes", arguments->holes,
               "Holes of the scan: keep, no points there and beyond rims; fill, as far as known")
        .one_of(tasks::holes_names());
    app.option("--hole-size", arguments->how.hole_size, "With --holes fill: the widest hole, in the unit of the cloud")
        .text("D")
        .no_default();
    app.option("--rings", arguments->rings,
               "Of a spinning LiDAR: auto, new points lie between the rings of a sweep; ignore, as in any cloud")
        .one_of(kRingsNames);
    app.flag("--keep-input", arguments->how.keeps_input, "Of midpoints and PU-Flow: the points of the input stay too");
    app.flag("--denoise", arguments->how.denoises, "Points of the input that lie beside the surface are moved onto it");
    app.flag("--normals", arguments->normals, "Oriented normals: the input's, else estimated");
    app.option("--picture", arguments->picture, "Draw input and result into this .png");
    add_picture_size(app, arguments->size);
    app.option("--tile", arguments->how.tile_points, "Points that are worked on at a time").text("N");
    app.option("--from", arguments->from, "Format of the inputs, when names do not tell");
    add_precision(app, arguments->precision);
    add_output_format(app, arguments->output);
    add_shard(app, arguments->shard);
    add_profile(app, arguments->profile);
    app.footer(
        "The count is exact. Colours, normals, intensities and labels come along. Large clouds are worked on in "
        "tiles,\n"
        "whose borders do not show.\n\n"
        "Example:\n  stipple upsample scan.ply --ratio 4 -o dense.ply --picture dense.png\n"
        "  stipple upsample scans/ --ratio 4 --model puflow.safetensors -o dense/");
    return {&app, [arguments, &common] { return run_upsample(*arguments, common); }, {input, output}};
}

}  // namespace stipple::cli
