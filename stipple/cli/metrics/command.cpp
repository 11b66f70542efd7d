#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/metrics/choice.h"
#include "stipple/cli/metrics/report.h"
#include "stipple/core/interrupt.h"

namespace stipple::cli {
namespace {

constexpr size_t kMaxPanels = 24;

struct MetricsOptions {
    std::string prediction, truth, mesh, protocol = "pu-gan", chosen, fail_above, fail_below, errors, picture, shard,
                                         up = "z";
    double radius = 0;
    bool floor = false, list = false, drop_nonfinite = false;
};

/// What was asked for, checked before a file is opened.
struct MetricsPlan {
    metrics::Protocol protocol{};
    MetricsChoice choice;
    std::vector<MetricsLimit> limits;
    metrics::EvaluateOptions evaluate;
};

MetricsPlan plan_of(const MetricsOptions& options, const Common& common) {
    for (const auto& [path, name] : {std::pair(&options.prediction, "PRED"), std::pair(&options.truth, "TRUTH")})
        if (path->empty())
            throw Error(ErrorCode::bad_argument, fmt::format("{} is missing: which file or folder?", name),
                        "see: stipple metrics --help");
    require_one_stdin({options.prediction, options.truth, options.mesh});
    MetricsPlan plan;
    plan.protocol = metrics::protocol_by_name(options.protocol);
    plan.choice = parse_choice("--metrics", options.chosen, plan.protocol);
    plan.limits = parse_limits("--fail-above", options.fail_above, false, plan.protocol);
    for (MetricsLimit& limit : parse_limits("--fail-below", options.fail_below, true, plan.protocol))
        plan.limits.push_back(std::move(limit));
    metrics::EvaluateOptions& evaluate = plan.evaluate;
    evaluate.extras = extras_for(plan.choice, plan.limits, plan.protocol);
    evaluate.only_extras = !plan.choice.words.empty();
    const auto has = [&](metrics::Extra extra) {
        return std::find(evaluate.extras.begin(), evaluate.extras.end(), extra) != evaluate.extras.end();
    };
    STIPPLE_REQUIRE(options.radius >= 0 && std::isfinite(options.radius), "--radius must be from 0, got {}",
                    options.radius);
    if (options.radius > 0 && plan.choice.words.empty() && !has(metrics::Extra::f_score))
        evaluate.extras.push_back(metrics::Extra::f_score);
    STIPPLE_REQUIRE(options.radius == 0 || has(metrics::Extra::f_score),
                    "--radius is for f_score, which --metrics leaves out");
    for (const std::string& word : plan.choice.words)
        STIPPLE_REQUIRE(word != "p2f" || !options.mesh.empty(), "the metric p2f needs --mesh");
    for (const metrics::Extra extra : {metrics::Extra::surface, metrics::Extra::uniformity, metrics::Extra::nuc})
        STIPPLE_REQUIRE(!has(extra) || !options.mesh.empty(), "the metric {} needs --mesh", metrics::name_of(extra));
    evaluate.f_score_radius = options.radius;
    evaluate.floor = options.floor;
    evaluate.errors = !options.errors.empty() || !options.picture.empty();
    evaluate.seed = common.seed;
    evaluate.device = parse_device(common.device);
    if (options.drop_nonfinite) evaluate.nonfinite = metrics::NonFinite::leave_out;
    return plan;
}

/// Where the errors of each pair go: nowhere, into the file named, or into one a shape inside the folder named.
std::vector<OutputFile> error_outputs(const MetricsOptions& options, const std::vector<data::ShapePair>& pairs) {
    std::vector<OutputFile> outputs;
    if (options.errors.empty()) return outputs;
    const bool folder = is_folder(options.errors);
    STIPPLE_REQUIRE(folder || pairs.size() == 1, "--errors-to {}: {} shapes need a folder that exists", options.errors,
                    pairs.size());
    const std::string separator = options.errors.back() == '/' ? "" : "/";
    for (const data::ShapePair& pair : pairs)
        outputs.push_back({folder ? options.errors + separator + pair.shape + ".ply" : options.errors, ""});
    return outputs;
}

/// `with_faces` receives the path when the file is a mesh.
PointCloud load_cloud(const std::string& path, const MetricsOptions& options, const Common& common, Result& result,
                      std::vector<std::string>& with_faces) {
    Mesh mesh = load_with_progress(path, "", -1, common, result.warnings);
    if (mesh.vertices.size() == 0) throw Error(ErrorCode::bad_file, Place{path}, "has no points");
    if (mesh.faces() > 0) with_faces.push_back(path);
    const int64_t finite = bounds_of(mesh.vertices).finite, size = mesh.vertices.size();
    if (finite == 0) throw Error(ErrorCode::bad_file, Place{path}, "has no finite points");
    if (finite < size && !options.drop_nonfinite)
        throw Error(ErrorCode::bad_file, Place{path},
                    fmt::format("{} of {} points are not finite", grouped(size - finite), grouped(size)),
                    "--drop-nonfinite leaves them out");
    return std::move(mesh.vertices);
}

metrics::Evaluation evaluate_pair(const data::ShapePair& pair, const PointCloud& prediction, const PointCloud& truth,
                                  const MetricsPlan& plan, const Common& common, Result& result) {
    Mesh mesh;
    if (!pair.mesh.empty()) mesh = load_faces({pair.mesh, "", -1}, common, result);
    try {
        return metrics::evaluate(prediction, truth, pair.mesh.empty() ? nullptr : &mesh, plan.protocol, plan.evaluate);
    } catch (const Error& error) {  // the library knows its function, the user knows the file
        if (error.code() != ErrorCode::bad_argument) throw;
        constexpr std::string_view kWho = "evaluate: ";
        const std::string& message = error.message();
        throw Error(error.code(), Place{pair.prediction},
                    message.rfind(kWho, 0) == 0 ? message.substr(kWho.size()) : message, error.hint());
    }
}

Attribute error_attribute(const char* name, const Array<float, 1>& errors) {
    Attribute attribute(name, DType::f32, errors.size(0), 1);
    std::copy(errors.span().begin(), errors.span().end(), attribute.as<float>().data());
    return attribute;
}

/// The prediction with its errors, which replace attributes of the same name.
Mesh with_errors(PointCloud prediction, metrics::Evaluation& evaluation) {
    Mesh mesh;
    mesh.vertices = std::move(prediction);
    Attributes& attributes = mesh.vertices.attributes;
    const auto add = [&](const char* name, Array<float, 1>& errors) {
        if (errors.size(0) == 0) return;
        std::erase_if(attributes, [&](const Attribute& attribute) { return attribute.name() == name; });
        attributes.push_back(error_attribute(name, errors));
        errors = {};
    };
    add("error_to_truth", evaluation.error_to_truth);
    add("error_to_mesh", evaluation.error_to_mesh);
    return mesh;
}

Image draw_errors(const std::vector<Mesh>& clouds, const std::vector<data::ShapePair>& pairs, const std::string& up) {
    std::vector<const PointCloud*> shapes;
    std::vector<std::string> captions;
    for (size_t i = 0; i < clouds.size(); ++i) {
        shapes.push_back(&clouds[i].vertices);
        captions.push_back(pairs[i].shape);
    }
    if (pairs[0].mesh.empty())
        return draw_values(shapes, captions, {"error_to_truth", "distance to the truth", false, up});
    return draw_values(shapes, captions, {"error_to_mesh", "distance to the mesh", false, up});
}

/// Leaves the scores that were asked for.
void keep_chosen(const MetricsChoice& choice, std::vector<metrics::Score>& scores) {
    std::erase_if(scores, [&](const metrics::Score& score) { return !choice.has(score); });
}

Result run_metrics(const MetricsOptions& options, const Common& common) {
    if (options.list) return list_metrics(common);
    const MetricsPlan plan = plan_of(options, common);
    const Shard shard = parse_shard(options.shard);
    MetricsReport report;
    report.protocol = plan.protocol;
    report.pairs = data::pair_shapes(options.prediction, options.truth, options.mesh);
    std::vector<OutputFile> outputs = error_outputs(options, report.pairs);
    const size_t all = report.pairs.size();
    keep_shard(shard, report.pairs, outputs);
    if (report.pairs.empty()) return nothing_of_shard(options.shard, all);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common, "error_to_truth"));
    require_picture(options.picture, common);
    STIPPLE_REQUIRE(options.picture.empty() || report.pairs.size() <= kMaxPanels,
                    "--picture draws at most {} shapes, here are {}", kMaxPanels, report.pairs.size());

    Result result;
    result.fields["inputs"] = Json::array({options.prediction, options.truth});
    if (!options.mesh.empty()) result.fields["inputs"].push_back(options.mesh);
    Common each = common;  // of many files only the count of shapes is shown
    if (report.pairs.size() > 1) each.progress = ProgressMode::never;
    std::vector<std::string> with_faces;
    std::vector<Mesh> clouds;  // with errors, as far as they are drawn
    {
        Progress progress("metrics", static_cast<int64_t>(report.pairs.size()), progress_mode(common), "shapes");
        for (size_t i = 0; i < report.pairs.size(); ++i) {
            check_interrupted();
            const data::ShapePair& pair = report.pairs[i];
            PointCloud prediction = load_cloud(pair.prediction, options, each, result, with_faces);
            const PointCloud truth = load_cloud(pair.truth, options, each, result, with_faces);
            metrics::Evaluation shape = evaluate_pair(pair, prediction, truth, plan, each, result);
            if (plan.evaluate.errors) {
                Mesh cloud = with_errors(std::move(prediction), shape);
                if (!outputs.empty())
                    save_output(cloud, outputs[i], formats[i],
                                fmt::format("{} points with their errors", grouped(cloud.vertices.size())), common,
                                result);
                if (!options.picture.empty()) clouds.push_back(std::move(cloud));
            }
            report.shapes.push_back(std::move(shape));
            progress.add();
        }
    }
    save_picture(
        options.picture, [&] { return draw_errors(clouds, report.pairs, options.up); }, common, result);

    const bool many = all > 1;
    report.scores = many ? metrics::over_shapes(report.shapes) : report.shapes[0].scores;
    report.floor = many ? metrics::floor_over_shapes(report.shapes) : report.shapes[0].floor;
    result.failure = check_limits(plan.limits, report.scores);
    keep_chosen(plan.choice, report.scores);
    for (metrics::Evaluation& shape : report.shapes) {
        keep_chosen(plan.choice, shape.scores);
        keep_chosen(plan.choice, shape.floor);
    }
    result.fields.update(report_json(report));
    if (!with_faces.empty())
        result.warnings.push_back(fmt::format(
            "{}{}: only {} vertices are compared", with_faces[0],
            with_faces.size() == 1 ? " has faces" : fmt::format(" and {} more have faces", with_faces.size() - 1),
            with_faces.size() == 1 ? "its" : "their"));
    for (const std::string& note : report_notes(report)) result.warnings.push_back(note);
    if (common.table.empty())
        result.text = report_text(report) + (result.text.empty() ? "" : "\n" + result.text);
    else
        result.text =
            format_table(many ? shape_table(report, common.table) : score_table(report, common.table), common.table);
    return result;
}

}  // namespace

Command add_metrics(Arguments& root, Common& common) {
    auto options = std::make_shared<MetricsOptions>();
    Arguments& app = root.command("metrics", "Score clouds against the truth, by the protocol of a paper");
    app.option("PRED", options->prediction, "The cloud, or a folder of clouds");
    app.option("TRUTH", options->truth, "What it should be; folders are paired by names without extension");
    app.option("--mesh", options->mesh, "The true surface, or a folder of them, for p2f");
    app.option("--protocol", options->protocol, "How clouds are normalised and what cd and hd mean")
        .one_of({"pu-gan", "pudm", "raw"})
        .text("pu-gan|pudm|raw");
    app.option("--metrics", options->chosen, "Only these: cd,hd,p2f,f_score,emd ... (--list)");
    app.option("--radius", options->radius, "Of f_score; 0: 1 % of the truth's diagonal");
    app.flag("--floor", options->floor, "Also what a perfect sampling of the surface would score");
    app.option("--fail-above", options->fail_above, "Exit 7 when a score is above: cd=0.0003,hd=0.01");
    app.option("--fail-below", options->fail_below, "Exit 7 when a score is below: f_score=0.95");
    app.option("--errors-to", options->errors,
               "Write the prediction with the error of each point; for folders: a folder");
    app.option("--picture", options->picture, "Draw the errors with a colour bar into this .png");
    add_up(app, options->up);
    app.flag("--drop-nonfinite", options->drop_nonfinite, "Leave out points with NaN or infinite coordinates");
    add_shard(app, options->shard);
    app.flag("--list", options->list, "Print all metrics with their formulas and stop");
    app.footer(
        "Example:\n  stipple metrics dense.xyz truth.xyz --mesh shape.off\n"
        "  stipple metrics out/ gt/ --mesh meshes/ --floor --fail-above cd=0.0003 --json");
    return {&app, [options, &common] { return run_metrics(*options, common); }};
}

}  // namespace stipple::cli
