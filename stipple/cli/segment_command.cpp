#include <algorithm>
#include <cmath>
#include <map>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/interrupt.h"
#include "stipple/data/class_names.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/segment.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

struct SegmentOptions {
    std::string model, names, category, picture, profile, shard;
    std::vector<std::string> inputs;
    OutputFile output;
    CloudArguments clouds;
    PoseArguments pose;
    PrecisionArgument precision;
    int64_t size = 0;
};

/// The categories that the clouds may be of: the one that is named, else all.
std::vector<size_t> categories_of(const tasks::Segmenter& segmenter, const std::string& text) {
    const size_t count = segmenter.categories().size();
    STIPPLE_REQUIRE(count > 0 || text.empty(), "--category: {} takes none", segmenter.runner().source().name());
    if (text.empty()) {
        std::vector<size_t> all(std::max<size_t>(1, count));
        for (size_t i = 0; i < all.size(); ++i) all[i] = i;
        return all;
    }
    try {
        return {data::find_category(segmenter.categories(), text)};
    } catch (const Error& error) {
        throw Error(ErrorCode::bad_argument, fmt::format("--category {}", error.message()), error.hint());
    }
}

/// What all clouds of a call share, and what is found about them.
struct Job {
    tasks::Segmenter segmenter;
    tasks::CloudOptions clouds;
    data::ReadClouds how;
    std::vector<size_t> categories = {};
    std::vector<tasks::Pose> poses = {};
    std::vector<std::string> names = {};
    Table table{{"file", "points", "category", "part", "share (%)", "confidence"}, {}};
    Json files = Json::array();
};

/// Colours by part, the same for a part whichever others a cloud has.
void put_colors(PointCloud& cloud, const std::vector<int32_t>& labels, int64_t first_label) {
    Attribute colors("color", DType::u8, cloud.size(), 3);
    uint8_t* to = colors.as<uint8_t>().data();
    for (const int32_t label : labels) {
        const picture::Rgb color = picture::category_color(label - first_label);
        *to++ = color.r, *to++ = color.g, *to++ = color.b;
    }
    std::erase_if(cloud.attributes, [](const Attribute& attribute) { return attribute.name() == "color"; });
    cloud.attributes.push_back(std::move(colors));
}

Image draw(const PointCloud& cloud, const Job& job, const tasks::PartsView& view, int64_t size) {
    PointCloud shown = upright(cloud, job.poses[view.pose], job.segmenter.up());
    shown.attributes.push_back(find(cloud.attributes, "label")->clone());
    const data::PartCategory parts = job.segmenter.parts_of(view.category);
    const picture::Panel panel{.cloud = &shown, .caption = {}, .color_by = "label"};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = size > 0 ? size : 1024;
    style.legend_title = parts.name.empty() ? "part" : parts.name;
    for (int64_t part = parts.begin; part < parts.end; ++part) {
        style.labels.push_back(part);
        style.label_names[part] = job.names[static_cast<size_t>(part)];
    }
    return picture::draw_figure({&panel, 1}, style).image;
}

/// Points and mean probability of a part.
struct PartSummary {
    int64_t points = 0;
    double confidence = 0;
};

std::map<int32_t, PartSummary> summarise(const tasks::Segments& segments) {
    std::map<int32_t, PartSummary> parts;
    for (size_t i = 0; i < segments.labels.size(); ++i) {
        PartSummary& part = parts[segments.labels[i]];
        ++part.points;
        part.confidence += segments.probabilities[i];
    }
    for (auto& [label, part] : parts) part.confidence /= static_cast<double>(part.points);
    return parts;
}

/// Of one cloud, for people and for --json.
void report_parts(Job& job, const data::CloudEntry& entry, const std::map<int32_t, PartSummary>& parts, int64_t points,
                  const tasks::PartsView& view, const SegmentOptions& options) {
    const std::string category = job.segmenter.parts_of(view.category).name;
    const auto rounded = [](double x) { return std::round(1e4 * x) / 1e4; };
    Json list = Json::array();
    for (const auto& [label, part] : parts) {
        const std::string& name = job.names[static_cast<size_t>(label)];
        list.push_back({{"label", label}, {"name", name}, {"points", part.points}, {"confidence", part.confidence}});
        job.table.rows.push_back({entry.name(), part.points, category, name,
                                  rounded(100.0 * static_cast<double>(part.points) / static_cast<double>(points)),
                                  rounded(part.confidence)});
    }
    Json file = {{"path", entry.name()}, {"points", points}, {"parts", std::move(list)}};
    if (!category.empty()) {
        file["category"] = category;
        file["category_guessed"] = options.category.empty();
    }
    if (options.pose.all || !options.pose.up.empty()) {
        const tasks::Pose& pose = job.poses[view.pose];
        file["up"] = tasks::name_of(tasks::taken_up(pose, job.segmenter.up()));
        file["rotation"] = tasks::matrix_of(pose);
    }
    job.files.push_back(std::move(file));
}

/// One cloud: read, labelled, written, reported.
void segment_entry(Job& job, const data::CloudEntry& entry, const OutputFile& output, io::Format format,
                   const SegmentOptions& options, const Common& common, Result& result) {
    Mesh mesh;
    mesh.vertices = tasks::load_points(entry, job.clouds, job.how, result.warnings);
    tasks::PartsView view{job.categories[0], 0, 0};
    const tasks::Segments segments = about_file(entry.name(), [&] {
        if (job.categories.size() * job.poses.size() > 1)
            view = tasks::choose_view(job.segmenter, mesh.vertices, job.clouds, job.categories, job.poses);
        return tasks::segment(job.segmenter, mesh.vertices, job.clouds, view.category, job.poses[view.pose]);
    });
    const data::PartCategory category = job.segmenter.parts_of(view.category);
    if (job.categories.size() > 1)
        result.warnings.push_back(fmt::format("{}: taken for category {}, the most confident; --category names another",
                                              entry.name(), category.name));
    tasks::put_labels(mesh.vertices, segments.labels);
    put_colors(mesh.vertices, segments.labels, category.begin);
    const std::map<int32_t, PartSummary> parts = summarise(segments);
    report_parts(job, entry, parts, mesh.vertices.size(), view, options);
    const std::string pose =
        options.pose.all ? ", " + describe(job.poses[view.pose], job.segmenter.up()) : std::string();
    save_output(mesh, output, format,
                fmt::format("{} points in {} parts{}", grouped(mesh.vertices.size()), parts.size(), pose), common,
                result);
    save_picture(
        options.picture, [&] { return draw(mesh.vertices, job, view, options.size); }, common, result);
}

Result run_segment(const SegmentOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    tasks::CloudOptions clouds = cloud_options(options.clouds, common);
    clouds.sample_faces = false;  // the file's own points get labels
    const Shard shard = parse_shard(options.shard);
    std::vector<data::CloudEntry> entries = data::list_clouds(options.inputs);
    std::vector<OutputFile> outputs = outputs_of(options.output, entries);
    const size_t all = entries.size();
    keep_shard(shard, entries, outputs);
    if (entries.empty()) return nothing_of_shard(options.shard, all);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common, "label"));
    STIPPLE_REQUIRE(options.picture.empty() || entries.size() == 1, "--picture is for one cloud, not {}",
                    entries.size());
    require_picture(options.picture, common);
    require_picture_size(options.size);
    require_profile(options.profile, common);
    Profile profile;
    FileProgress file_progress(common);
    Job job{.segmenter = tasks::Segmenter(
                tasks::load_model_or_engine(options.model.empty() ? tasks::shipped_weights(tasks::kPartsWeights)
                                                                  : options.model),
                {.device = common.device,
                 .precision = options.precision.wanted(),
                 .points = clouds.points > 0 ? clouds.points : 2048,
                 .profile = options.profile.empty() ? nullptr : &profile}),
            .clouds = clouds,
            .how = reading(options.clouds, file_progress)};
    job.categories = categories_of(job.segmenter, options.category);
    job.poses = options.pose.poses(job.segmenter.up());
    const tasks::NetworkRunner& runner = job.segmenter.runner();
    job.names = data::part_names(runner.source().metadata(), options.names, job.segmenter.parts());

    Result result;
    result.fields["inputs"] = options.inputs;
    result.fields["model"] = runner.source().name();
    result.fields["precision"] = name_of(runner.precision());
    Progress progress("segment", static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    for_each_input(entries.size(), "clouds", result, [&](size_t i) {
        check_interrupted();
        try {
            segment_entry(job, entries[i], outputs[i], formats[i], options, common, result);
        } catch (const Error& error) {
            job.files.push_back({{"path", entries[i].name()}, {"error", error.message()}});
            progress.add();
            throw;
        }
        progress.add();
    });
    progress.finish();
    result.fields["files"] = std::move(job.files);
    result.text = format_table(job.table, common.table) + (common.table.empty() ? result.text : "");
    report_profile(profile, options.profile, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace

Command add_segment(Arguments& root, Common& common) {
    auto options = std::make_shared<SegmentOptions>();
    options->clouds.clouds.points = 0;
    Arguments& app = root.command("segment", "Label the parts of clouds");
    Option input = app.option("INPUT", options->inputs, "Clouds, folders of them, data sets");
    Option output = app.option("-o,--output", options->output.path, "File, or folder for many; - is standard output");
    app.option("--model", options->model,
               fmt::format("Weights by path or name, or an engine; else {}", tasks::kPartsWeights));
    app.option("--category", options->category, "What the clouds show: chair; else what fits best");
    app.option("--picture", options->picture, "Draw the parts into this .png");
    add_picture_size(app, options->size);
    add_pose_options(app, options->pose);
    app.option("--names", options->names, "Names of the parts, one a line; else those in the model").text("FILE");
    add_cloud_options(app, options->clouds);
    add_precision(app, options->precision);
    add_output_format(app, options->output);
    add_shard(app, options->shard);
    add_profile(app, options->profile);
    app.footer(
        "Points get a label and the colour of their part. With --points, every point gets the label of the nearest\n"
        "one that the network saw.\n\n"
        "Example:\n  stipple segment chair.ply -o parts.ply --category chair --picture parts.png");
    return {&app, [options, &common] { return run_segment(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
