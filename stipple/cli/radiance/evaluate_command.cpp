#include <cmath>

#include "stipple/cli/common/table.h"
#include "stipple/cli/radiance/commands.h"
#include "stipple/cli/radiance/scene_arguments.h"
#include "stipple/radiance/evaluate.h"

namespace stipple::cli {
namespace {

struct RadianceEvaluateOptions {
    std::string field;
    SceneArguments scene;
};

Result run_radiance_evaluate(const RadianceEvaluateOptions& options, const Common& common) {
    Result result;
    result.fields["inputs"] = Json::array({options.field, options.scene.folder});
    const radiance::Field field = radiance::load_field(options.field);
    radiance::Scene scene = load_photographs(options.scene.folder, options.scene.options, common,
                                             options.scene.split == radiance::SceneSplit::train);
    const std::vector<radiance::Photograph> photographs = take_split(scene, options.scene, field);
    radiance::Renderer renderer(field, parse_device(common.device));
    const auto views = static_cast<int64_t>(photographs.size());
    radiance::ViewScores scores;
    {
        Progress bar("evaluate", views, progress_mode(common), "views");
        scores = about_file(options.scene.folder, [&] {
            return radiance::evaluate(renderer, photographs, field.background, scene.alpha_is_unknown,
                                      [&](int64_t) { bar.add(); });
        });
    }
    result.text = format_table(score_table(scores), common.table);
    result.fields["split"] = radiance::kSceneSplitWords[static_cast<int>(options.scene.split)];
    result.fields.update(to_json(radiance::view_scores_fields(), &scores));
    return result;
}

}  // namespace

Table score_table(const radiance::ViewScores& scores) {
    Table table{{"view", "PSNR (dB)", "SSIM", "time (s)"}, {}};
    const auto row = [&](const std::string& name, const radiance::ViewScore& score) {
        table.rows.push_back({name, fmt::format("{:.2f}", score.psnr),
                              std::isnan(score.ssim) ? "-" : fmt::format("{:.4f}", score.ssim),
                              fmt::format("{:.3f}", score.seconds)});
    };
    for (const radiance::ViewScore& view : scores.views) row(view.file, view);
    row("mean", {"", scores.psnr, scores.ssim, scores.seconds});
    return table;
}

Command add_radiance_evaluate(Arguments& group, Common& common) {
    auto options = std::make_shared<RadianceEvaluateOptions>();
    Arguments& app = group.command("evaluate", "PSNR and SSIM of a field against photographs");
    Option input = app.option("FIELD", options->field, "A file that stipple radiance train wrote");
    Option data = app.option("--data", options->scene.folder, "The folder of the photographs").text("FOLDER");
    add_split_option(app, options->scene);
    add_scene_options(app, options->scene.options);
    app.footer(
        "Pictures with transparency are put on the field's background; SSIM is that of 11 x 11 windows.\n\n"
        "Example:\n  stipple radiance evaluate lego.field --data nerf_synthetic/lego");
    return {&app, [options, &common] { return run_radiance_evaluate(*options, common); }, {input, data}};
}

}  // namespace stipple::cli
