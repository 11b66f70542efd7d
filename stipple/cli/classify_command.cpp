#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/evaluate/class_report.h"
#include "stipple/data/class_names.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/classify.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

constexpr const char* kUnlike = "unlike anything it was trained on";

struct ClassifyOptions {
    std::string model, names, picture, profile, shard;
    std::vector<std::string> inputs;
    CloudArguments clouds;
    PoseArguments pose;
    PrecisionArgument precision;
    int64_t top = 1, batch = 32, size = 0;
};

/// What is said about all clouds of a call.
struct Answers {
    std::vector<data::CloudEntry> entries;
    std::vector<tasks::Classified> classified = {};
    std::vector<std::string> names;   // of the classes
    std::vector<tasks::Pose> poses;   // that were tried
    tasks::Axis up;                   // of the network
    std::vector<int32_t> truth = {};  // their classes, -1 where nothing tells one
    bool calibrated = false;          // the model tells what is unlike its training clouds
};

Json json_of_answer(const Answers& answers, size_t i, int64_t top, bool posed) {
    const tasks::Classified& answer = answers.classified[i];
    Json likeliest = Json::array();
    for (int64_t k = 0; k < top; ++k) {
        const auto [index, probability] = answer.guesses[static_cast<size_t>(k)];
        likeliest.push_back(
            {{"class", answers.names[static_cast<size_t>(index)]}, {"index", index}, {"probability", probability}});
    }
    Json json = {{"path", answers.entries[i].name()}, {"points", answer.points}, {"top", std::move(likeliest)}};
    if (answers.truth[i] >= 0) json["truth"] = answers.names[static_cast<size_t>(answers.truth[i])];
    if (answer.distance) {
        json["unlike"] = answer.is_unlike();
        json["distance"] = *answer.distance;
    }
    if (posed) {
        const tasks::Pose& pose = answers.poses[answer.pose];
        json["up"] = tasks::name_of(tasks::taken_up(pose, answers.up));
        json["rotation"] = tasks::matrix_of(pose);
    }
    return json;
}

/// Of the clouds whose class is known.
void report_accuracy(const Answers& answers, const Common& common, Result& result) {
    std::vector<int32_t> given, truth;
    for (size_t i = 0; i < answers.classified.size(); ++i) {
        const tasks::Classified& answer = answers.classified[i];
        given.push_back(answer.error ? 0 : static_cast<int32_t>(answer.guesses[0].index));
        truth.push_back(answer.error ? -1 : answers.truth[i]);
    }
    std::vector<tasks::ClassScores> scores;
    scores.push_back(tasks::scores_of(given, truth, answers.names));
    const int64_t clouds = scores[0].confusion.total();
    if (clouds == 0) return;
    scores[0].fewest = INT64_MAX;
    for (size_t i = 0; i < truth.size(); ++i) {
        if (truth[i] < 0) continue;
        scores[0].fewest = std::min(scores[0].fewest, answers.classified[i].points);
        scores[0].most = std::max(scores[0].most, answers.classified[i].points);
    }
    scores[0].points = scores[0].most;
    result.fields["scores"] = scores_json(scores);
    if (common.table.empty())
        result.text +=
            fmt::format("\naccuracy {:.2f} % of {} clouds whose class is known, mean of the classes {:.2f} %\n",
                        100 * scores[0].accuracy.mean, grouped(clouds), 100 * scores[0].class_accuracy.mean);
}

/// The likeliest classes of each cloud, for people and for --json.
void report(const Answers& answers, const ClassifyOptions& options, const Common& common, Result& result) {
    Table table{{"file", "points"}, {}};
    for (int64_t i = 0; i < options.top; ++i) {
        table.columns.push_back(i == 0 ? "class" : fmt::format("class {}", i + 1));
        table.columns.push_back(i == 0 ? "probability" : fmt::format("probability {}", i + 1));
    }
    const bool posed = options.pose.all || !options.pose.up.empty();
    if (options.pose.all) table.columns.push_back("pose");
    const auto is_unlike = [](const tasks::Classified& answer) { return !answer.error && answer.is_unlike(); };
    const int64_t unlike = std::count_if(answers.classified.begin(), answers.classified.end(), is_unlike);
    // For people, only where there is one; what programs read has the same columns each time.
    const bool remarks = answers.calibrated && (unlike > 0 || !common.table.empty());
    if (remarks) table.columns.push_back("remark");
    const bool is_labelled = std::any_of(answers.truth.begin(), answers.truth.end(), [](int32_t c) { return c >= 0; });
    if (is_labelled) table.columns.push_back("truth");
    Json list = Json::array();
    for (size_t i = 0; i < answers.entries.size(); ++i) {
        const std::string file = answers.entries[i].name();
        const tasks::Classified& answer = answers.classified[i];
        if (answer.error) {
            list.push_back({{"path", file}, {"error", answer.error->message()}});
            result.errors.push_back(*answer.error);
            continue;
        }
        std::vector<Json> row = {file, answer.points};
        for (int64_t k = 0; k < options.top; ++k) {
            const auto [index, probability] = answer.guesses[static_cast<size_t>(k)];
            row.insert(row.end(), {answers.names[static_cast<size_t>(index)], std::round(1e4 * probability) / 1e4});
        }
        if (options.pose.all) row.push_back(describe(answers.poses[answer.pose], answers.up));
        if (remarks) row.push_back(answer.is_unlike() ? kUnlike : "");
        if (is_labelled)
            row.push_back(answers.truth[i] < 0 ? "" : answers.names[static_cast<size_t>(answers.truth[i])]);
        table.rows.push_back(std::move(row));
        list.push_back(json_of_answer(answers, i, options.top, posed));
    }
    result.text = format_table(table, common.table);
    if (is_labelled) report_accuracy(answers, common, result);
    count_errors(static_cast<int64_t>(answers.entries.size()), "clouds", result);
    result.fields["calibrated"] = answers.calibrated;
    if (answers.calibrated) result.fields["unlike"] = unlike;
    result.fields["files"] = std::move(list);
}

/// A panel for each cloud, as the network saw it lie: what it is taken for, in grey where it is unlike anything.
Image draw(const Answers& answers, const tasks::CloudOptions& options, const data::ReadClouds& how, int64_t size,
           io::Warnings& warnings) {
    constexpr size_t kMostPanels = 64;
    constexpr int64_t kMostPoints = 8192;
    constexpr picture::Rgb kGrey{150, 146, 140};
    std::vector<PointCloud> clouds;
    std::vector<size_t> shown;
    for (size_t i = 0; i < answers.entries.size() && shown.size() < kMostPanels; ++i)
        if (!answers.classified[i].error) shown.push_back(i);
    tasks::CloudOptions more = options;
    more.points = kMostPoints;
    io::Warnings again;  // the same as before
    for (const size_t i : shown) {
        PointCloud seen;
        seen.positions = tasks::network_points(tasks::load_points(answers.entries[i], more, how, again), more);
        clouds.push_back(upright(seen, answers.poses[answers.classified[i].pose], answers.up));
    }
    std::vector<picture::Panel> panels;
    for (size_t k = 0; k < shown.size(); ++k) {
        const tasks::Classified& answer = answers.classified[shown[k]];
        const auto [index, probability] = answer.guesses[0];
        const std::string said =
            fmt::format("{} {:.0f} %", answers.names[static_cast<size_t>(index)], 100 * probability);
        panels.push_back({.cloud = &clouds[k],
                          .caption = answer.is_unlike() ? "unlike anything (" + said + ")" : said,
                          .color_by = "constant"});
        if (answer.is_unlike()) panels.back().cloud_color = kGrey;
    }
    if (shown.size() == kMostPanels && answers.entries.size() > kMostPanels)
        warnings.push_back(fmt::format("the picture shows the first {} clouds", kMostPanels));
    picture::FigureStyle style;
    style.eye_dome = picture::EyeDome::off;  // single shapes, also where they are flat
    style.panel_width = style.panel_height = size > 0 ? size : panels.size() == 1 ? 900 : 360;
    style.shared_camera = false;
    return picture::draw_figure(panels, style).image;
}

Result run_classify(const ClassifyOptions& options, const Common& common) {
    require_one_stdin(options.inputs);
    const Shard shard = parse_shard(options.shard);
    std::vector<data::CloudEntry> entries = data::list_clouds(options.inputs);
    const size_t all = entries.size();
    keep_shard(shard, entries);
    if (entries.empty()) return nothing_of_shard(options.shard, all);
    const tasks::CloudOptions clouds = cloud_options(options.clouds, common);
    STIPPLE_REQUIRE(options.batch >= 1 && options.batch <= 65536, "--batch must be 1 to 65536, got {}", options.batch);
    require_picture(options.picture, common);
    require_picture_size(options.size);
    require_profile(options.profile, common);
    Profile profile;
    tasks::Classifier classifier(
        tasks::load_model_or_engine(options.model.empty() ? tasks::shipped_weights(tasks::kClassifierWeights)
                                                          : options.model),
        {.device = common.device,
         .precision = options.precision.wanted(),
         .batch = options.batch,
         .points = clouds.points > 0 ? clouds.points : 1024,
         .profile = options.profile.empty() ? nullptr : &profile});
    STIPPLE_REQUIRE(options.top >= 1 && options.top <= classifier.classes(), "--top must be 1 to {}, got {}",
                    classifier.classes(), options.top);
    const tasks::ModelOrEngine& source = classifier.runner().source();
    Answers answers{.entries = std::move(entries),
                    .names = data::class_names(source.metadata(), options.names, classifier.classes()),
                    .poses = options.pose.poses(classifier.up()),
                    .up = classifier.up(),
                    .calibrated = classifier.confidence().has_value()};
    Result result;
    result.fields["inputs"] = options.inputs;
    answers.truth = tasks::known_classes(answers.entries, answers.names, result.warnings);
    FileProgress file_progress(common);
    const data::ReadClouds how = reading(options.clouds, file_progress);
    Progress progress("classify", static_cast<int64_t>(answers.entries.size()), progress_mode(common), "clouds");
    answers.classified = tasks::classify(
        classifier, answers.entries, clouds, how, result.warnings, [&] { progress.add(); }, answers.poses);
    progress.finish();
    result.fields["model"] = source.name();
    result.fields["precision"] = name_of(classifier.runner().precision());
    report(answers, options, common, result);
    const std::string table = result.text;
    save_picture(
        options.picture, [&] { return draw(answers, clouds, how, options.size, result.warnings); }, common, result);
    if (!common.table.empty()) result.text = table;  // and nothing else
    report_profile(profile, options.profile, common.overwrite_mode(), common, result);
    const auto trained = source.metadata().find("stipple.trained");
    if (trained != source.metadata().end() && trained->second == "false")
        result.warnings.push_back(fmt::format("{}: weights are random, so are the classes", source.path));
    return result;
}

}  // namespace

Command add_classify(Arguments& root, Common& common) {
    auto options = std::make_shared<ClassifyOptions>();
    Arguments& app = root.command("classify", "Say what clouds show");
    Option input = app.option("INPUT", options->inputs, "Clouds, meshes, folders of them, data sets");
    app.option("--model", options->model,
               fmt::format("Weights by path or name, or an engine; else {}", tasks::kClassifierWeights));
    app.option("--top", options->top, "The likeliest classes of each");
    app.option("-o,--picture", options->picture, "Draw the clouds with their classes into this .png");
    add_picture_size(app, options->size);
    add_pose_options(app, options->pose);
    app.option("--names", options->names, "Names of the classes, one a line; else those in the model").text("FILE");
    add_cloud_options(app, options->clouds);
    add_precision(app, options->precision);
    app.option("--batch", options->batch, "Clouds at a time");
    add_shard(app, options->shard);
    add_profile(app, options->profile);
    app.footer(
        "A cloud that is unlike anything the network was trained on is said to be so, where its weights tell.\n"
        "Where classes are known, by a data set or by folders of their names, it says how many answers are right.\n\n"
        "Example:\n  stipple classify scans/ --top 3 -o classes.png\n"
        "  stipple classify chair.obj --up y\n"
        "  stipple classify --model pointnet.engine *.ply --table csv > classes.csv");
    return {&app, [options, &common] { return run_classify(*options, common); }, {input}};
}

}  // namespace stipple::cli
