#include "stipple/cli/commands.h"
#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/evaluate/class_report.h"
#include "stipple/cli/evaluate/part_report.h"
#include "stipple/core/terminal.h"
#include "stipple/data/class_names.h"

namespace stipple::cli {
namespace {

constexpr int64_t kUsualPoints = 1024;
constexpr size_t kConfusions = 8;  // that are told in words

struct EvaluateCommand {
    std::string model, names, confusion, picture, profile;
    DataArguments data;
    tasks::EvaluateOptions how;
    PrecisionArgument precision;
    int64_t batch = 32;
    std::string category;
    Option points_option, of_option, split_option;
};

/// The last word of a path.
std::string base_of(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path.substr(path.rfind('/') + 1);
}

/// What the data set has, when no split is named: test, else all of it.
std::string split_of(const EvaluateCommand& command) {
    if (command.split_option.given()) return command.data.split;
    const data::RecognisedSet found = data::recognise_data_set(command.data.path, command.data.layout);
    return found.splits == std::vector<std::string>{"all"} ? "all" : "test";
}

/// Points are chosen of the first 1024, or of as many as the largest choice asks for; all count where parts are found.
tasks::EvaluateOptions options_of(const EvaluateCommand& command, bool finds_parts, const Common& common) {
    tasks::EvaluateOptions options = command.how;
    options.seed = common.seed;
    if (!command.points_option.given()) options.points = {finds_parts ? 0 : kUsualPoints};
    if (!command.of_option.given()) {
        options.of = finds_parts ? 0 : kUsualPoints;
        for (const int64_t n : options.points) options.of = n == 0 || options.of == 0 ? 0 : std::max(options.of, n);
    }
    tasks::require_valid(options);
    return options;
}

/// The network's names of its classes; none where neither --names nor the model tells them.
std::vector<std::string> names_of(const tasks::ModelOrEngine& source, const std::string& file, int64_t classes) {
    if (file.empty() && !source.metadata().contains("stipple.classes")) return {};
    return data::class_names(source.metadata(), file, classes);
}

template <class Scores>
void warn_of_few_points(const std::vector<Scores>& scores, const std::string& path, Result& result) {
    for (const Scores& row : scores)
        if (row.fewest < row.points)
            result.warnings.push_back(
                fmt::format("{}: a cloud has {} points where {} were asked for", path, row.fewest, row.points));
}

/// What both kinds of networks tell besides their scores; the line above the tables.
std::string describe(const tasks::NetworkRunner& runner, const data::DataSet& set, const EvaluateCommand& command,
                     const tasks::EvaluateOptions& options, Result& result) {
    const tasks::EvaluationFacts facts = tasks::evaluation_facts(runner, set, options);
    result.fields.update(to_json(tasks::evaluation_facts_fields(), &facts));
    return fmt::format("{} on {}, split {}", command.model, base_of(command.data.path), set.split);
}

void evaluate_classes(tasks::ModelOrEngine source, const EvaluateCommand& command,
                      const tasks::EvaluateOptions& options, const Common& common, Profile* profile, Result& result) {
    const data::DataSet set = load_data(command.data, split_of(command), options.of, common, result.warnings);
    tasks::Classifier classifier(std::move(source), {.device = common.device,
                                                     .precision = command.precision.wanted(),
                                                     .batch = command.batch,
                                                     .points = options.of > 0 ? options.of : kUsualPoints,
                                                     .profile = profile});
    const tasks::NetworkRunner& runner = classifier.runner();
    const std::vector<std::string> names = names_of(runner.source(), command.names, classifier.classes());
    Progress progress("evaluate", tasks::evaluation_work(set.clouds, options), progress_mode(common), "clouds");
    const std::vector<tasks::ClassScores> scores = about_file(command.data.path, [&] {
        return tasks::evaluate(classifier, set, names, options, [&](int64_t clouds) { progress.add(clouds); });
    });
    progress.finish();
    warn_of_few_points(scores, command.data.path, result);
    const std::string title = describe(runner, set, command, options, result);
    result.fields["scores"] = scores_json(scores);
    const Table table = score_table(scores, options.sample);
    if (common.table.empty()) {
        result.text =
            fmt::format("{}: {} clouds, {}\n\n{}\n{}", printable(title), grouped(set.size()),
                        name_of(runner.precision()), format_table(class_table(scores), ""), format_table(table, ""));
        if (!command.confusion.empty()) result.text += "\n" + confusions_text(scores[0], kConfusions);
    }
    if (!command.confusion.empty())
        save_text(command.confusion, format_table(confusion_table(scores), "csv"), "csv", common, result);
    save_picture(
        command.picture, [&] { return draw_scores(scores, title); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
}

void evaluate_parts(tasks::ModelOrEngine source, const EvaluateCommand& command, const tasks::EvaluateOptions& options,
                    const Common& common, Profile* profile, Result& result) {
    STIPPLE_REQUIRE(command.confusion.empty() && command.names.empty(),
                    "--confusion and --names are for classifiers, {} finds parts", source.name());
    data::DataSet set = load_data(command.data, split_of(command), options.of, common, result.warnings);
    if (!command.category.empty())
        set = about_file(command.data.path, [&] { return tasks::items_of_category(set, command.category); });
    tasks::Segmenter segmenter(std::move(source),
                               {.device = common.device,
                                .precision = command.precision.wanted(),
                                .points = std::max(kUsualPoints, set.clouds.size_of(0)),
                                .profile = profile},
                               command.batch);
    Progress progress("evaluate", tasks::evaluation_work(set.clouds, options), progress_mode(common), "clouds");
    const std::vector<tasks::PartScores> scores = about_file(command.data.path, [&] {
        return tasks::evaluate(segmenter, set, options, [&](int64_t clouds) { progress.add(clouds); });
    });
    progress.finish();
    warn_of_few_points(scores, command.data.path, result);
    const std::string title = describe(segmenter.runner(), set, command, options, result);
    result.fields["scores"] = part_scores_json(scores);
    const Table table = part_score_table(scores, options.sample);
    if (common.table.empty())
        result.text = fmt::format("{}: {} clouds, {}\n\n{}\n{}", printable(title), grouped(set.size()),
                                  name_of(segmenter.runner().precision()), format_table(category_table(scores), ""),
                                  format_table(table, ""));
    save_picture(
        command.picture, [&] { return draw_part_scores(scores, title); }, common, result);
    if (!common.table.empty()) result.text = format_table(table, common.table);
}

Result run_evaluate(const EvaluateCommand& command, const Common& common) {
    STIPPLE_REQUIRE(command.batch >= 1 && command.batch <= 65536, "--batch must be 1 to 65536, got {}", command.batch);
    require_picture(command.picture, common);
    if (!command.confusion.empty()) require_writable(command.confusion, common.overwrite_mode());
    require_profile(command.profile, common);
    Profile profile;
    Profile* const wanted = command.profile.empty() ? nullptr : &profile;
    tasks::ModelOrEngine source = tasks::load_model_or_engine(command.model);
    const auto logits = tasks::output_type(source, "logits");
    const bool finds_parts = logits && logits->level == network::Level::point;
    const tasks::EvaluateOptions options = options_of(command, finds_parts, common);
    Result result;
    result.fields["inputs"] = Json::array({command.model, command.data.path});
    const auto trained = source.metadata().find("stipple.trained");
    if (trained != source.metadata().end() && trained->second == "false")
        result.warnings.push_back(fmt::format("{}: weights are random, so are the answers", command.model));
    if (finds_parts) {
        evaluate_parts(std::move(source), command, options, common, wanted, result);
    } else {
        STIPPLE_REQUIRE(command.category.empty(), "--category is for networks that find parts, {} classifies",
                        source.name());
        evaluate_classes(std::move(source), command, options, common, wanted, result);
    }
    report_profile(profile, command.profile, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace

Command add_evaluate(Arguments& root, Common& common) {
    auto command = std::make_shared<EvaluateCommand>();
    Arguments& app = root.command("evaluate", "Score a network on a data set");
    Option model = app.option("MODEL", command->model, "Weights (.safetensors), by path or name, or an engine");
    Option data = app.option("--data", command->data.path, "Data set with the truth: a folder or file");
    command->split_option = app.option("--split", command->data.split, "train, val or test [test, or all]");
    add_layout(app, command->data);
    const Fields& fields = tasks::evaluate_fields();
    command->points_option = app.add(fields, &command->how, "points").separated_by(',');
    app.add(fields, &command->how, "sample");
    command->of_option = app.add(fields, &command->how, "of");
    app.add(fields, &command->how, {"draws", "normalise"});
    app.option("--names", command->names, "Names of the classes, one a line; else those in the model").text("FILE");
    app.option("--category", command->category, "Only clouds of this one, for networks that find parts");
    app.option("--confusion", command->confusion, "Write who is taken for whom").text("FILE.csv");
    app.option("-o,--picture", command->picture, "Draw scores by class, or over --points").text("FILE.png");
    add_precision(app, command->precision);
    app.option("--batch", command->batch, "Clouds at a time");
    add_profile(app, command->profile);
    app.footer(
        "Example:\n  stipple evaluate pointnet-cls --data modelnet40_ply_hdf5_2048 --points 1024,128,64\n"
        "  stipple evaluate pointnet-parts --data parts.stpk -o iou.png");
    return {&app, [command, &common] { return run_evaluate(*command, common); }, {model, data}};
}

}  // namespace stipple::cli
