#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/point_filter.h"
#include "stipple/tasks/edit.h"

namespace stipple::cli {
namespace {

Step filter_step(const tasks::FilterOptions& options) {
    const auto filter = std::make_shared<const geometry::PointFilter>(options.expression);
    Step step{.kept = "chosen", .attributes = filter->names(), .only_removes = true};
    step.mask = [filter, invert = options.invert](const PointCloud& piece) {
        std::vector<uint8_t> mask = filter->mask(piece);
        for (uint8_t& keep : mask) keep = keep != static_cast<uint8_t>(invert);
        return mask;
    };
    step.finish = [options](StepReport& report) { report.fields.update(to_json(tasks::filter_fields(), &options)); };
    return step;
}

}  // namespace

MakeStep add_filter_step(Arguments& app, const Common&) {
    auto options = std::make_shared<tasks::FilterOptions>();
    // Not among those required: the parser says better what is missing.
    app.option("EXPRESSION", options->expression, tasks::filter_fields().front().help);
    app.add(tasks::filter_fields(), options.get(), "invert");
    return [options] { return filter_step(*options); };
}

Command add_filter(Arguments& root, Common& common) {
    auto files = std::make_shared<CloudFiles>();
    Arguments& app = root.command("filter", "Keep the points that an expression chooses");
    Option input = app.option("INPUT", files->input.path, "The file; - is standard input");
    const MakeStep make = add_filter_step(app, common);
    Option output = add_output(app, files->output);
    add_output_format(app, files->output);
    add_input_format(app, files->input);
    app.footer(
        "Expressions: == != < <= > >= && || ! + - * / ( ), numbers as 1e3, components as normal.z, color[0].\n\n"
        "Example:\n  stipple filter scan.las 'label == 2 && intensity > 100' -o ground.las\n"
        "  stipple filter scan.ply '(z < 3 || z > 10) && !(normal.z > 0.9)' -o part.ply");
    return {&app, [files, make, &common] { return keep_points(make(), *files, common); }, {input, output}};
}

}  // namespace stipple::cli
