#include <map>
#include <set>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/interrupt.h"
#include "stipple/data/class_names.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/segment.h"

namespace stipple::cli {
namespace {

struct SegmentOptions {
    std::string model, names, category, picture, up = "z";
    std::vector<std::string> inputs;
    OutputFile output;
    CloudArguments clouds;
    PrecisionArgument precision;
};

/// The category that the network asks for, as an index.
size_t category_of(const tasks::Segmenter& segmenter, const std::string& text) {
    if (segmenter.categories().empty()) {
        STIPPLE_REQUIRE(text.empty(), "--category: {} takes none", segmenter.runner().source().name());
        return 0;
    }
    try {
        return data::find_category(segmenter.categories(), text);
    } catch (const Error& error) {
        throw Error(ErrorCode::bad_argument,
                    text.empty() ? "this network wants to know what it sees: --category is missing"
                                 : fmt::format("--category {}", error.message()),
                    error.hint());
    }
}

/// Where the clouds go: one file, or a folder for many.
std::vector<OutputFile> outputs_of(const SegmentOptions& options, const std::vector<data::CloudEntry>& entries) {
    const std::string& path = options.output.path;
    const bool folder = !path.empty() && path != "-" && (path.back() == '/' || is_folder(path));
    if (!folder) {
        STIPPLE_REQUIRE(entries.size() == 1, "{} clouds need a folder as output, got {}", entries.size(), path);
        return {options.output};
    }
    std::vector<OutputFile> outputs;
    std::set<std::string> taken;
    const std::string extension(
        io::info_of(io::format_by_name(options.output.format.empty() ? "ply" : options.output.format)).extensions[0]);
    for (const data::CloudEntry& entry : entries) {
        OutputFile output = options.output;
        output.path = fmt::format("{}{}{}{}.{}", path, path.back() == '/' ? "" : "/", stem_of(entry.path),
                                  entry.item < 0 ? "" : fmt::format("_{}", entry.item), extension);
        STIPPLE_REQUIRE(taken.insert(output.path).second, "two clouds would both become {}", output.path);
        outputs.push_back(std::move(output));
    }
    return outputs;
}

Image draw(const PointCloud& cloud, const SegmentOptions& options, const std::vector<std::string>& names) {
    const picture::Panel panel{.cloud = &cloud, .caption = {}, .color_by = "label"};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 1024;
    style.legend_title = "part";
    style.viewpoint.up = options.up == "y" ? picture::UpAxis::y : picture::UpAxis::z;
    for (size_t i = 0; i < names.size(); ++i) style.label_names[static_cast<int64_t>(i)] = names[i];
    return picture::draw_figure({&panel, 1}, style).image;
}

/// What all clouds of a call share, and what is found about them.
struct Job {
    tasks::Segmenter segmenter;
    size_t category = 0;
    tasks::CloudOptions clouds;
    data::ReadClouds how;
    std::vector<std::string> names = {};
    Table table{{"file", "points", "parts", "written"}, {}};
    Json files = Json::array();
};

/// One cloud: read, labelled, written, reported.
void segment_entry(Job& job, const data::CloudEntry& entry, const OutputFile& output, io::Format format,
                   const SegmentOptions& options, const Common& common, Result& result) {
    Mesh mesh;
    mesh.vertices = tasks::load_points(entry, job.clouds, job.how, result.warnings);
    const std::vector<int32_t> labels = about_file(
        entry.name(), [&] { return tasks::segment(job.segmenter, mesh.vertices, job.clouds, job.category); });
    tasks::put_labels(mesh.vertices, labels);
    std::map<int32_t, int64_t> counts;
    for (const int32_t label : labels) ++counts[label];
    Json parts = Json::array();
    for (const auto& [label, count] : counts)
        parts.push_back({{"label", label}, {"name", job.names[static_cast<size_t>(label)]}, {"points", count}});
    job.files.push_back({{"path", entry.name()}, {"points", mesh.vertices.size()}, {"parts", std::move(parts)}});
    save_output(mesh, output, format,
                fmt::format("{} points in {} parts", grouped(mesh.vertices.size()), counts.size()), common, result);
    job.table.rows.push_back({output.path, mesh.vertices.size(), counts.size(), !common.dry_run});
    save_picture(
        options.picture, [&] { return draw(mesh.vertices, options, job.names); }, common, result);
}

Result run_segment(const SegmentOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    tasks::CloudOptions clouds = cloud_options(options.clouds, common);
    clouds.sample_faces = false;  // the file's own points get labels
    const std::vector<data::CloudEntry> entries = data::list_clouds(options.inputs);
    const std::vector<OutputFile> outputs = outputs_of(options, entries);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common, "label"));
    STIPPLE_REQUIRE(options.picture.empty() || entries.size() == 1, "--picture is for one cloud, not {}",
                    entries.size());
    require_picture(options.picture, common);
    FileProgress file_progress(common);
    Job job{.segmenter = tasks::Segmenter(tasks::load_model_or_engine(options.model),
                                          {.device = common.device,
                                           .precision = options.precision.wanted(),
                                           .points = clouds.points > 0 ? clouds.points : 2048}),
            .clouds = clouds,
            .how = reading(options.clouds, file_progress)};
    job.category = category_of(job.segmenter, options.category);
    const tasks::NetworkRunner& runner = job.segmenter.runner();
    job.names = data::class_names(runner.source().metadata(), options.names, job.segmenter.parts());

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
    if (!common.table.empty()) result.text = format_table(job.table, common.table);
    return result;
}

}  // namespace

Command add_segment(Arguments& root, Common& common) {
    auto options = std::make_shared<SegmentOptions>();
    options->clouds.clouds.points = 0;
    Arguments& app = root.command("segment", "Label the parts of clouds");
    Option model = app.option("--model", options->model, "Weights (.safetensors), by path or name, or an engine");
    Option input = app.option("INPUT", options->inputs, "Clouds, folders of them, HDF5 sets");
    Option output = app.option("-o,--output", options->output.path, "File, or folder for many; - is standard output");
    app.option("--category", options->category, "What the clouds show, for networks that ask: chair");
    app.option("--picture", options->picture, "Draw the parts into this .png");
    add_up(app, options->up);
    app.option("--names", options->names, "Names of the parts, one a line; else those in the model").text("FILE");
    add_cloud_options(app, options->clouds);
    add_precision(app, options->precision);
    add_output_format(app, options->output);
    app.footer(
        "With --points, every point gets the label of the nearest one that the network saw.\n\n"
        "Example:\n  stipple segment --model parts.safetensors chair.ply -o parts.ply --category chair --picture "
        "parts.png");
    return {&app, [options, &common] { return run_segment(*options, common); }, {model, input, output}};
}

}  // namespace stipple::cli
