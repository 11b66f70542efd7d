#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/steps.h"
#include "stipple/tasks/edit.h"

namespace stipple::cli {
namespace {

Step crop_step(const tasks::CropOptions& options) {
    auto cropped = std::make_shared<tasks::Cropped>();
    Step step{.kept = options.outside ? "outside" : "inside", .only_removes = true};
    step.mask = [region = tasks::region_of(options), outside = options.outside, cropped](const PointCloud& piece) {
        return tasks::crop_mask(piece, region, outside, *cropped);
    };
    step.finish = [cropped](StepReport& report) {
        report.fields.update(to_json(tasks::cropped_fields(), cropped.get()));
        if (cropped->non_finite > 0)
            report.warnings.push_back(fmt::format("{} points are not finite, neither inside nor outside: left out",
                                                  grouped(cropped->non_finite)));
    };
    return step;
}

}  // namespace

MakeStep add_crop_step(Arguments& app, const Common&) {
    auto options = std::make_shared<tasks::CropOptions>();
    app.add(tasks::crop_fields(), options.get(), {"box", "sphere"});
    app.add(tasks::crop_fields(), options.get(), "polygon").count(1, 1 << 20);
    app.add(tasks::crop_fields(), options.get(), "outside");
    return [options] { return crop_step(*options); };
}

Command add_crop(Arguments& root, Common& common) {
    auto files = std::make_shared<CloudFiles>();
    Arguments& app = root.command("crop", "Keep the points inside a box, a sphere or a polygon");
    Option input = app.option("INPUT", files->input.path, "The file; - is standard input");
    Option output = add_output(app, files->output);
    const MakeStep make = add_crop_step(app, common);
    add_output_format(app, files->output);
    add_input_format(app, files->input);
    app.footer(
        "Coordinates are those of the world, as `stipple info` shows them.\n"
        "Of several shapes, what lies in all of them.\n\n"
        "Example:\n  stipple crop scan.las --box 636000 849000 0 636100 849100 500 -o part.las\n"
        "  stipple crop scan.ply --polygon field.txt --outside -o rest.ply");
    return {&app, [files, make, &common] { return keep_points(make(), *files, common); }, {input, output}};
}

}  // namespace stipple::cli
