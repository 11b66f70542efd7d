#include <algorithm>
#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/many_clouds.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/evaluate/class_report.h"
#include "stipple/data/class_names.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/classify.h"

namespace stipple::cli {
namespace {

constexpr const char* kUnlike = "unlike anything it was trained on";

struct ClassifyCommand {
    ManyClouds clouds;
    tasks::ClassifyOptions how;
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

Json json_of_answer(const Answers& answers, size_t i, const tasks::ClassifyOptions& options) {
    const tasks::Classified& answer = answers.classified[i];
    tasks::ClassifiedCloud cloud = tasks::described(answer, answers.names, options.top);
    if (answers.truth[i] >= 0) cloud.truth = answers.names[static_cast<size_t>(answers.truth[i])];
    Json json = {{"path", answers.entries[i].name()}};
    json.update(to_json(tasks::classified_fields(), &cloud));
    if (options.pose.is_given()) json.update(pose_json(answers.poses[answer.pose], answers.up));
    return json;
}

/// Adds how many answers are right, for the clouds whose class is known.
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
void report(const Answers& answers, const tasks::ClassifyOptions& options, const Common& common, Result& result) {
    Table table{{"file", "points"}, {}};
    for (int64_t i = 0; i < options.top; ++i) {
        table.columns.push_back(i == 0 ? "class" : fmt::format("class {}", i + 1));
        table.columns.push_back(i == 0 ? "probability" : fmt::format("probability {}", i + 1));
    }
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
        if (options.pose.all) row.push_back(tasks::text_of(answers.poses[answer.pose], answers.up));
        if (remarks) row.push_back(answer.is_unlike() ? kUnlike : "");
        if (is_labelled)
            row.push_back(answers.truth[i] < 0 ? "" : answers.names[static_cast<size_t>(answers.truth[i])]);
        table.rows.push_back(std::move(row));
        list.push_back(json_of_answer(answers, i, options));
    }
    result.text = format_table(table, common.table);
    if (is_labelled) report_accuracy(answers, common, result);
    count_errors(static_cast<int64_t>(answers.entries.size()), "clouds", result);
    result.fields["calibrated"] = answers.calibrated;
    if (answers.calibrated) result.fields["unlike"] = unlike;
    result.fields["files"] = std::move(list);
}

/// The clouds of a picture, kept as they are read for classification: the first ones that can be read.
class ShownClouds {
public:
    explicit ShownClouds(const tasks::CloudOptions& options) : options_(options) { options_.points = kMostPoints; }

    void look(size_t entry, const std::string& name, const Mesh& mesh) {
        if (shown.size() == kMostPanels) return;
        io::Warnings again;  // the same as of the classification
        try {
            PointCloud seen;
            seen.positions = tasks::network_points(tasks::points_of(mesh.clone(), options_, name, again), options_);
            clouds.push_back(std::move(seen));
            shown.push_back(entry);
        } catch (const Error& error) {  // the classification says it
            if (error.code() != ErrorCode::bad_file) throw;
        }
    }

    static constexpr size_t kMostPanels = 64;
    std::vector<PointCloud> clouds;
    std::vector<size_t> shown;  // their entries

private:
    static constexpr int64_t kMostPoints = 8192;
    tasks::CloudOptions options_;
};

/// A panel for each cloud, as the network saw it lie: what it is taken for, in grey where it is unlike anything.
Image draw(const Answers& answers, const ShownClouds& kept, int64_t size, io::Warnings& warnings) {
    constexpr picture::Rgb kGrey{150, 146, 140};
    std::vector<PointCloud> clouds;
    std::vector<size_t> shown;
    for (size_t k = 0; k < kept.shown.size(); ++k) {
        const tasks::Classified& answer = answers.classified[kept.shown[k]];
        if (answer.error) continue;
        shown.push_back(kept.shown[k]);
        clouds.push_back(upright(kept.clouds[k], answers.poses[answer.pose], answers.up));
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
    if (kept.shown.size() == ShownClouds::kMostPanels && answers.entries.size() > ShownClouds::kMostPanels)
        warnings.push_back(fmt::format("the picture shows the first {} clouds", ShownClouds::kMostPanels));
    picture::FigureStyle style;
    style.eye_dome = picture::EyeDome::off;  // single shapes, also where they are flat
    style.panel_width = style.panel_height = size > 0 ? size : panels.size() == 1 ? 900 : 360;
    style.shared_camera = false;
    return picture::draw_figure(panels, style).image;
}

Result run_classify(ClassifyCommand& command, const Common& common) {
    Result result;
    std::vector<data::CloudEntry> entries = list_clouds(command.clouds, result);
    if (entries.empty()) return result;
    require_drawing(command.clouds, common);
    tasks::ClassifyOptions& options = command.how;
    options.clouds.seed = common.seed;
    options.runner.device = common.device;
    options.runner.profile = wanted_profile(command.clouds);
    tasks::Classifier classifier = tasks::load_classifier(options);
    const tasks::ModelOrEngine& source = classifier.runner().source();
    Answers answers{.entries = std::move(entries),
                    .names = data::class_names(source.metadata(), options.names, classifier.classes()),
                    .poses = tasks::poses_of(options.pose, classifier.up()),
                    .up = classifier.up(),
                    .calibrated = classifier.confidence().has_value()};
    answers.truth = tasks::known_classes(answers.entries, answers.names, result.warnings);
    FileProgress file_progress(common);
    const data::ReadClouds how = reading({.clouds = {}, .from = command.clouds.from}, file_progress);
    Progress progress("classify", static_cast<int64_t>(answers.entries.size()), progress_mode(common), "clouds");
    ShownClouds shown(options.clouds);
    std::function<void(size_t, const Mesh&)> look;
    if (!command.clouds.picture.empty())
        look = [&](size_t i, const Mesh& mesh) { shown.look(i, answers.entries[i].name(), mesh); };
    answers.classified = tasks::classify(
        classifier, answers.entries, options.clouds, how, result.warnings, [&] { progress.add(); }, answers.poses,
        look);
    progress.finish();
    report_network(classifier.runner(), result);
    report(answers, options, common, result);
    const std::string table = result.text;
    save_picture(
        command.clouds.picture, [&] { return draw(answers, shown, command.clouds.picture_size, result.warnings); },
        common, result);
    if (!common.table.empty()) result.text = table;  // and nothing else
    report_profile(command.clouds.profile, command.clouds.profile_path, common.overwrite_mode(), common, result);
    const auto trained = source.metadata().find("stipple.trained");
    if (trained != source.metadata().end() && trained->second == "false")
        result.warnings.push_back(fmt::format("{}: weights are random, so are the classes", source.path));
    return result;
}

}  // namespace

Command add_classify(Arguments& root, Common& common) {
    auto command = std::make_shared<ClassifyCommand>();
    Arguments& app = root.command("classify", "Say what clouds show");
    Option input = app.option("INPUT", command->clouds.inputs, "Clouds, meshes, folders of them, data sets");
    app.add(tasks::classify_fields(), &command->how);
    app.option("-o,--picture", command->clouds.picture, "Draw the clouds with their classes into this .png");
    add_picture_size(app, command->clouds.picture_size);
    add_input_format(app, command->clouds);
    add_shard(app, command->clouds);
    add_profile(app, command->clouds);
    app.footer(
        "A cloud that is unlike anything the network was trained on is said to be so, where its weights tell.\n"
        "Where classes are known, by a data set or by folders of their names, it says how many answers are right.\n\n"
        "Example:\n  stipple classify scans/ --top 3 -o classes.png\n"
        "  stipple classify chair.obj --up y\n"
        "  stipple classify --model pointnet.engine *.ply --table csv > classes.csv");
    return {&app, [command, &common] { return run_classify(*command, common); }, {input}};
}

}  // namespace stipple::cli
