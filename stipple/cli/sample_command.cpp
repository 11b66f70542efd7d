#include <cmath>

#include "stipple/cli/command.h"
#include "stipple/cli/sample_methods.h"
#include "stipple/cli/table.h"
#include "stipple/core/terminal.h"
#include "stipple/io/image_file.h"
#include "stipple/io/text.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

struct Options {
    std::string input, output, format, from, method = "fps", keep = "centroid", picture;
    int64_t count = 0, start = 0, item = -1;
    double ratio = 0, voxel = 0, radius = 0;
    int k = 16, dimension = 2;
    bool ascii = false, progressive = false;
};

/// Options of other methods than the chosen one are mistakes, unless they say what holds anyway (as --print-config
/// does).
void require_own_options(const Options& options, SampleMethod method) {
    const Options defaults;
    const struct {
        bool changed;
        const char* name;
        SampleMethod method;
    } owned[] = {{options.start != defaults.start, "start", SampleMethod::fps},
                 {options.voxel != defaults.voxel, "voxel", SampleMethod::voxel},
                 {options.keep != defaults.keep, "keep", SampleMethod::voxel},
                 {options.radius != defaults.radius, "radius", SampleMethod::poisson},
                 {options.progressive, "progressive", SampleMethod::poisson},
                 {options.k != defaults.k, "k", SampleMethod::inverse_density},
                 {options.dimension != defaults.dimension, "dimension", SampleMethod::inverse_density}};
    for (const auto& option : owned)
        STIPPLE_REQUIRE(!option.changed || option.method == method, "--{} is for --method {}", option.name,
                        name_of(option.method));
}

SampleSettings settings_of(const Options& options, const Common& common) {
    SampleSettings settings;
    settings.method = sample_method_by_name(options.method);
    settings.seed = common.seed;
    settings.start = options.start;
    settings.voxel = options.voxel;
    settings.nearest = options.keep == "nearest";
    settings.radius = options.radius;
    settings.progressive = options.progressive;
    settings.k = options.k;
    settings.dimension = options.dimension;
    require_own_options(options, settings.method);
    if (settings.method == SampleMethod::voxel) {
        STIPPLE_REQUIRE(options.count == 0 && options.ratio == 0, "--method voxel takes no count: --voxel decides");
        STIPPLE_REQUIRE(options.voxel != 0, "--method voxel needs --voxel SIZE");
        STIPPLE_REQUIRE(options.voxel > 0 && std::isfinite(options.voxel), "--voxel must be above 0, got {}",
                        options.voxel);
    } else {
        STIPPLE_REQUIRE((options.count == 0) != (options.ratio == 0), "how many points? Give -n COUNT or --ratio R");
        STIPPLE_REQUIRE(options.ratio >= 0 && options.ratio <= 1, "--ratio must be above 0, to 1, got {}",
                        options.ratio);
    }
    STIPPLE_REQUIRE(options.radius >= 0 && std::isfinite(options.radius), "--radius must be from 0, got {}",
                    options.radius);
    STIPPLE_REQUIRE(options.k >= 1 && options.k <= 127, "--k must be 1 to 127, got {}", options.k);
    STIPPLE_REQUIRE(options.dimension >= 1 && options.dimension <= 3, "--dimension must be 1 to 3, got {}",
                    options.dimension);
    return settings;
}

io::Format output_format(const Options& options) {
    STIPPLE_REQUIRE(!options.output.empty(), "the output path is empty");
    STIPPLE_REQUIRE(options.output != "-" || !options.format.empty(), "-o - needs --format");
    try {
        const io::Format format =
            options.format.empty() ? io::format_by_extension(options.output) : io::format_by_name(options.format);
        STIPPLE_REQUIRE(options.output != "-" || io::info_of(format).write,
                        "HDF5 cannot be written to standard output");
        return format;
    } catch (const Error& error) {  // an output that cannot be told is a wrong argument, not a bad file
        throw Error(ErrorCode::bad_argument, error.place(), error.message(), error.hint());
    }
}

/// The points of the input that have a place, and what was left out.
PointCloud load_points(const Options& options, const Common& common, Result& result) {
    Mesh mesh = load_with_progress(options.input, options.from, options.item, common, result.warnings);
    const int64_t before = mesh.vertices.size();
    if (mesh.faces() > 0)
        result.warnings.push_back(fmt::format("{}: the {} faces are left out", options.input, grouped(mesh.faces())));
    PointCloud cloud = drop_nonfinite(mesh.vertices);
    if (cloud.size() == 0) throw Error(ErrorCode::bad_file, Place{options.input}, "has no finite points");
    const int64_t dropped = before - cloud.size();
    if (dropped > 0)
        result.warnings.push_back(
            fmt::format("{}: {} of {} points not finite, dropped", options.input, grouped(dropped), grouped(before)));
    result.fields["points"] = before;
    result.fields["non_finite"] = dropped;
    return cloud;
}

void write_cloud(const Mesh& mesh, const Options& options, const io::Format format, const Common& common,
                 Result& result) {
    const io::WriteOptions write_options{options.ascii, false};
    io::Warnings found;
    try {
        if (options.output == "-") {
            StdoutSink sink;
            io::info_of(format).write(mesh, sink, write_options, found);
        } else {
            io::save(options.output, mesh, common.overwrite_mode(), write_options, found, &format);
        }
    } catch (const Error& error) {
        if (!error.place().path.empty() || error.code() != ErrorCode::bad_argument) throw;
        throw error.at_path(options.output);
    }
    for (const std::string& warning : found) result.warnings.push_back(fmt::format("{}: {}", options.output, warning));
}

Image before_and_after(const PointCloud& before, const PointCloud& after, const std::string& method) {
    const picture::Panel panels[] = {
        {.cloud = &before, .caption = fmt::format("input, {} points", grouped(before.size()))},
        {.cloud = &after, .caption = fmt::format("{}, {} points", method, grouped(after.size()))}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

Result run_sample(const Options& options, const Common& common) {
    SampleSettings settings = settings_of(options, common);
    require_free_stdout(options.output, common);
    // Everything about the outputs is settled before the first byte is read.
    const io::Format format = output_format(options);
    if (options.output != "-") require_writable(options.output, common.overwrite_mode());
    if (!options.picture.empty()) {
        const size_t dot = options.picture.rfind('.');
        STIPPLE_REQUIRE(dot != std::string::npos && io::lower_case(options.picture.substr(dot)) == ".png",
                        "{}: pictures are PNG, name it .png", options.picture);
        require_writable(options.picture, common.overwrite_mode());
    }
    Result result;
    result.fields["inputs"] = Json::array({options.input});
    const PointCloud cloud = load_points(options, common, result);
    settings.count = options.count;
    if (options.ratio > 0)
        settings.count = std::max<int64_t>(1, std::llround(options.ratio * static_cast<double>(cloud.size())));
    Mesh sampled;
    try {
        sampled.vertices = sample_cloud(cloud, settings, parse_device(common.device));
    } catch (const Error& error) {  // the operations do not know the file
        if (error.code() != ErrorCode::bad_argument) throw;
        throw error.at_path(options.input);
    }
    const int64_t points = sampled.vertices.size();
    const std::string method(name_of(settings.method)), format_name(io::info_of(format).name);
    result.fields["method"] = method;
    result.fields["sampled"] = points;
    if (settings.method == SampleMethod::voxel) result.fields["voxel"] = settings.voxel;
    result.fields["outputs"] = Json::array(
        {{{"path", options.output}, {"format", format_name}, {"points", points}, {"written", !common.dry_run}}});
    result.text = fmt::format("{} {}: {} of {} points by {}\n", common.dry_run ? "would write" : "wrote",
                              printable(options.output), grouped(points), grouped(cloud.size()), method);
    if (!common.dry_run) {
        write_cloud(sampled, options, format, common, result);
        if (!options.picture.empty())
            io::save_png(options.picture, before_and_after(cloud, sampled.vertices, method), common.overwrite_mode());
        result.stdout_taken = options.output == "-";
    }
    if (!options.picture.empty()) {
        result.fields["outputs"].push_back(
            {{"path", options.picture}, {"format", "png"}, {"written", !common.dry_run}});
        result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(options.picture));
    }
    if (!common.table.empty()) {
        const Table table{{"file", "format", "method", "points", "sampled", "written"},
                          {{options.output, format_name, method, cloud.size(), points, !common.dry_run}}};
        result.text = format_table(table, common.table);
    }
    return result;
}

}  // namespace

Command add_sample(CLI::App& root, Common& common) {
    auto options = std::make_shared<Options>();
    CLI::App* app = root.add_subcommand("sample", "Choose fewer points of a cloud");
    CLI::Option* input = app->add_option("INPUT", options->input, "The file; - is standard input");
    CLI::Option* output = app->add_option("-o,--output", options->output, "The file; - is standard output");
    app->add_option("-n,--count", options->count, "Points wanted")->check(from_zero());
    app->add_option("--ratio", options->ratio, "Points wanted, of those there are: 0.1");
    app->add_option("--method", options->method, "random, fps, voxel, poisson, inverse-density")->capture_default_str();
    app->add_option("--voxel", options->voxel, "voxel: edge of a cell, one point for each");
    app->add_option("--keep", options->keep, "voxel: centroid, or the point nearest to the middle")
        ->check(CLI::IsMember({"centroid", "nearest"}))
        ->capture_default_str()
        ->option_text("centroid|nearest");
    app->add_option("--start", options->start, "fps: the first point, from 0")
        ->check(from_zero())
        ->capture_default_str();
    app->add_option("--radius", options->radius, "poisson: of the discs; 0 chooses")->capture_default_str();
    app->add_flag("--progressive", options->progressive, "poisson: in an order whose beginnings are spread too");
    app->add_option("--k", options->k, "inverse-density: neighbours that tell density, 1 to 127")
        ->capture_default_str();
    app->add_option("--dimension", options->dimension, "inverse-density: 1, 2 surface, 3 solid")->capture_default_str();
    app->add_option("--picture", options->picture, "Draw input and result side by side into this .png");
    app->add_option("--format", options->format, "Format of the output, when its name does not tell");
    app->add_option("--from", options->from, "Format of the input, when its name and content do not tell");
    app->add_option("--item", options->item, "Which cloud of a file that holds many, from 0")->check(from_zero());
    app->add_flag("--ascii", options->ascii, "Text instead of binary (PLY, PCD)");
    app->footer(
        "Example:\n  stipple sample scan.ply -n 4096 -o few.ply --picture few.png\n"
        "  stipple sample scan.las --method voxel --voxel 0.05 -o thin.las");
    return {"sample", app, [options, &common] { return run_sample(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
