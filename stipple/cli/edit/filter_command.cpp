#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/point_filter.h"

namespace stipple::cli {
namespace {

struct FilterOptions {
    std::string expression;
    bool invert = false;
};

Step filter_step(const FilterOptions& options) {
    const auto filter = std::make_shared<const geometry::PointFilter>(options.expression);
    Step step{.kept = "chosen", .attributes = filter->names(), .only_removes = true};
    step.mask = [filter, invert = options.invert](const PointCloud& piece) {
        std::vector<uint8_t> mask = filter->mask(piece);
        for (uint8_t& keep : mask) keep = keep != static_cast<uint8_t>(invert);
        return mask;
    };
    step.finish = [expression = options.expression](StepReport& report) { report.fields["expression"] = expression; };
    return step;
}

}  // namespace

MakeStep add_filter_step(Arguments& app, const Common&) {
    auto options = std::make_shared<FilterOptions>();
    // Not among those required: the parser says better what is missing.
    app.option("EXPRESSION", options->expression, "Over x y z and attributes, in quotes");
    app.flag("--invert", options->invert, "Keep the others instead");
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
