#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/geometry/point_filter.h"

namespace stipple::cli {
namespace {

struct FilterOptions {
    InputFile input;
    OutputFile output;
    std::string expression;
    bool invert = false;
};

Result run_filter(const FilterOptions& options, const Common& common) {
    const geometry::PointFilter filter(options.expression);
    CloudOutput output(options.output, common);
    Result result;
    const auto mask_of = [&](const PointCloud& piece) {
        std::vector<uint8_t> mask = filter.mask(piece);
        for (uint8_t& keep : mask) keep = keep != static_cast<uint8_t>(options.invert);
        return mask;
    };
    // Names are checked against all attributes, so that a wrong one is answered with what there is.
    CloudInput input(options.input, common, result);
    if (input.is_streamed()) about_file(options.input.path, [&] { return filter.mask(input.first()); });
    keep_points(options.input, output, filter.names(), mask_of, "chosen", common, result);
    result.fields["expression"] = options.expression;
    return result;
}

}  // namespace

Command add_filter(Arguments& root, Common& common) {
    auto options = std::make_shared<FilterOptions>();
    Arguments& app = root.command("filter", "Keep the points that an expression chooses");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    // Not among those required: the parser says better what is missing.
    app.option("EXPRESSION", options->expression, "Over x y z and attributes, in quotes");
    Option output = add_output(app, options->output);
    app.flag("--invert", options->invert, "Keep the others instead");
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Expressions: == != < <= > >= && || ! + - * / ( ), numbers as 1e3, components as normal.z, color[0].\n\n"
        "Example:\n  stipple filter scan.las 'label == 2 && intensity > 100' -o ground.las\n"
        "  stipple filter scan.ply '(z < 3 || z > 10) && !(normal.z > 0.9)' -o part.ply");
    return {&app, [options, &common] { return run_filter(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
