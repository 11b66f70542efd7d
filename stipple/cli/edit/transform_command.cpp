#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/affine_transform.h"
#include "stipple/io/las.h"
#include "stipple/io/text.h"
#include "stipple/tasks/small_files.h"

namespace stipple::cli {
namespace {

using geometry::AffineTransform;
using geometry::Vector3;

struct TransformOptions {
    std::string matrix, apply, swap;
    std::vector<double> scale, translate, about;
    std::vector<std::string> rotate;
    bool centre = false, invert = false;
};

Vector3 three(const std::vector<double>& numbers, const char* option) {
    for (const double x : numbers) STIPPLE_REQUIRE(std::isfinite(x), "--{} must be finite, got {}", option, x);
    return {numbers[0], numbers[1], numbers[2]};
}

/// --rotate z 30, --rotate 1 1 0 30.
AffineTransform rotation_of(const std::vector<std::string>& words) {
    STIPPLE_REQUIRE(words.size() == 2 || words.size() == 4,
                    "--rotate takes an axis and degrees: z 30, or 1 1 0 30; got {} words", words.size());
    Vector3 axis = {};
    if (words.size() == 2) {
        const std::string& name = words[0];
        STIPPLE_REQUIRE(name == "x" || name == "y" || name == "z", "--rotate: the axis must be x, y or z, got \"{}\"",
                        name);
        axis[static_cast<size_t>(name[0] - 'x')] = 1;
    } else {
        for (size_t i = 0; i < 3; ++i)
            STIPPLE_REQUIRE(io::parse_number(words[i], axis[i]), "--rotate: \"{}\" is not a number", words[i]);
    }
    double degrees = 0;
    STIPPLE_REQUIRE(io::parse_number(words.back(), degrees) && std::isfinite(degrees),
                    "--rotate: \"{}\" is not a number of degrees", words.back());
    return geometry::to_affine(geometry::rotation_about(axis, degrees * M_PI / 180));
}

/// All but --centre, which needs the points, in the order that the help names.
AffineTransform transform_of(const TransformOptions& options, AffineTransform transform) {
    const Vector3 point = options.about.empty() ? Vector3{} : three(options.about, "about");
    if (!options.swap.empty()) transform = about(geometry::axis_swap(options.swap), point) * transform;
    if (!options.scale.empty()) {
        STIPPLE_REQUIRE(options.scale.size() == 1 || options.scale.size() == 3,
                        "--scale takes one number or three, got {}", options.scale.size());
        AffineTransform scaling;
        for (size_t axis = 0; axis < 3; ++axis) {
            const double s = options.scale[options.scale.size() == 1 ? 0 : axis];
            STIPPLE_REQUIRE(std::isfinite(s) && s != 0, "--scale must be finite and not 0, got {}", s);
            scaling.linear[axis][axis] = s;
        }
        transform = about(scaling, point) * transform;
    }
    if (!options.rotate.empty()) transform = about(rotation_of(options.rotate), point) * transform;
    if (!options.translate.empty())
        transform = AffineTransform{AffineTransform{}.linear, three(options.translate, "translate")} * transform;
    return transform;
}

/// Where the points are, after a matrix.
Bounds moved_bounds(const Mesh& piece, const AffineTransform& transform) {
    if (transform == AffineTransform{}) return bounds_of(piece.vertices);
    return bounds_of(geometry::transformed(piece, transform).vertices);
}

/// The middle of the box around the points, moved to 0.
AffineTransform centring(const Bounds& all) {
    AffineTransform shift;
    for (size_t axis = 0; axis < 3 && all.finite > 0; ++axis)
        shift.translation[axis] = -0.5 * (all.min[axis] + all.max[axis]);
    return shift;
}

/// All of the options. `bounds_after` tells the box around the points after a matrix, which --centre asks for: a box
/// that is turned has another middle.
AffineTransform whole_transform(const TransformOptions& options, AffineTransform transform,
                                const std::function<Bounds(const AffineTransform& first)>& bounds_after) {
    if (options.centre) transform = centring(bounds_after(transform)) * transform;
    transform = transform_of(options, transform);
    return options.invert ? inverse(transform) : transform;
}

/// The grid of a LAS file for its points once they are moved: about the middle of where the box around them goes, as
/// fine as before. None where there is no box, or one that is too large for integers: then all points are gathered and
/// tell it.
std::optional<FileFacts::Grid> moved_grid(const FileFacts& facts, const std::optional<Bounds>& box,
                                          const AffineTransform& transform) {
    if (!facts.las || !facts.grid || !box || box->finite == 0) return std::nullopt;
    Bounds moved;
    for (int corner = 0; corner < 8; ++corner) {
        Vector3 to = transform.translation;
        for (size_t row = 0; row < 3; ++row)
            for (size_t axis = 0; axis < 3; ++axis)
                to[row] += transform.linear[row][axis] * (corner >> axis & 1 ? box->min : box->max)[axis];
        for (const double x : to)
            if (!std::isfinite(x)) return std::nullopt;
        extend(moved, {.min = to, .max = to, .finite = 1});
    }
    FileFacts::Grid grid = *facts.grid;
    const double finest = *std::min_element(grid.scale.begin(), grid.scale.end());
    double size = 0;  // by how much lengths grow, at least
    for (size_t row = 0; row < 3; ++row)
        size = std::max(size, std::hypot(transform.linear[row][0], transform.linear[row][1], transform.linear[row][2]));
    for (size_t axis = 0; axis < 3; ++axis) {
        if (std::abs(size - 1) > 1e-9) grid.scale[axis] = finest * size;
        const double extent = moved.max[axis] - moved.min[axis];
        if (!(grid.scale[axis] > 0) || extent / 2 / grid.scale[axis] > io::kMostOfGrid) return std::nullopt;
        grid.offset[axis] = std::floor(0.5 * (moved.min[axis] + moved.max[axis]));
    }
    return grid;
}

Json rows_of(const AffineTransform& transform) {
    Json rows = Json::array();
    for (size_t i = 0; i < 3; ++i) {
        Json row = transform.linear[i];
        row.push_back(transform.translation[i]);
        rows.push_back(row);
    }
    rows.push_back({0.0, 0.0, 0.0, 1.0});
    return rows;
}

void require_sense(const TransformOptions& options) {
    const bool is_given = !options.matrix.empty() || !options.apply.empty() || !options.swap.empty() ||
                          !options.scale.empty() || !options.rotate.empty() || !options.translate.empty() ||
                          options.centre;
    STIPPLE_REQUIRE(is_given, "transform how? Give --matrix, --rotate, --translate, --scale, --swap or --centre");
    STIPPLE_REQUIRE(options.matrix.empty() || options.apply.empty(), "--apply and --matrix are the same: give one");
    STIPPLE_REQUIRE(options.about.empty() || !options.swap.empty() || !options.scale.empty() || !options.rotate.empty(),
                    "--about is for --rotate, --scale and --swap");
    transform_of(options, {});  // wrong numbers are told before the points are read
}

AffineTransform first_matrix(const TransformOptions& options) {
    const std::string& file = options.matrix.empty() ? options.apply : options.matrix;
    return file.empty() ? AffineTransform{} : tasks::load_affine(file);
}

StepReport report_of(const AffineTransform& transform, int64_t points, bool had_system) {
    StepReport report{fmt::format("{} points moved", grouped(points))};
    report.fields["points"] = points;
    report.fields["transform"] = rows_of(transform);
    if (had_system)
        report.warnings.emplace_back("its coordinate system is left out, it does not hold for points that were moved");
    return report;
}

struct TransformCommand {
    CloudFiles files;
    std::string transform_to;
    std::shared_ptr<TransformOptions> how;
};

Result run_transform(const TransformCommand& command, const Common& common) {
    const TransformOptions& options = *command.how;
    const std::string& path = command.files.input.path;
    require_sense(options);
    require_one_stdin({path, options.matrix, options.apply});
    CloudOutput output(command.files.output, common);
    if (!command.transform_to.empty()) require_writable(command.transform_to, common.overwrite_mode());
    const AffineTransform first = first_matrix(options);
    Result result;
    result.fields["inputs"] = Json::array({path});
    CloudInput input(command.files.input, common, result);
    const AffineTransform transform = whole_transform(options, first, [&](const AffineTransform& before) {
        Bounds all;
        input.for_each([&](const Mesh& piece) { extend(all, moved_bounds(piece, before)); });
        return all;
    });
    bool had_system = false;
    input.for_each([&](const Mesh& piece) {
        const FileFacts& facts = piece.vertices.facts;
        had_system = had_system || !facts.coordinate_system.empty();
        Mesh moved = geometry::transformed(piece, transform);
        if (input.is_streamed() && facts.las)
            moved.vertices.facts.grid = moved_grid(facts, io::las_box(*facts.las), transform);
        output.add(std::move(moved));
    });
    const StepReport report = report_of(transform, output.points(), had_system);
    tell(report, path, result);
    output.finish(report.what, "it has no points", result);
    save_text(command.transform_to, geometry::to_text(transform), "transform", common, result);
    if (!common.table.empty())
        result.text = format_table({{"file", "points", "written"}, {{output.path(), output.points(), !common.dry_run}}},
                                   common.table);
    return result;
}

std::shared_ptr<TransformOptions> add_transform_options(Arguments& app) {
    auto options = std::make_shared<TransformOptions>();
    app.option("--matrix", options->matrix, "1. A 4 x 4 matrix: text or .npy").text("FILE");
    app.option("--apply", options->apply, "1. The same, as --transform-to of a command wrote it").text("FILE");
    app.flag("--centre", options->centre, "2. Move the middle of the bounding box to 0 0 0");
    app.option("--swap", options->swap, "3. New x, y, z by name: xzy; x-zy turns y up into z up").text("AXES");
    app.option("--scale", options->scale, "4. By one factor, or one for each axis").count(1, 3).text("S | SX SY SZ");
    app.option("--rotate", options->rotate, "5. About x, y, z or a vector: z 30, or 1 1 0 30")
        .count(2, 4)
        .text("AXIS DEGREES");
    app.option("--translate", options->translate, "6. Add to every point").count(3).text("X Y Z");
    app.option("--about", options->about, "The point that 3 to 5 leave where it is").count(3).text("X Y Z=0 0 0");
    app.flag("--invert", options->invert, "The inverse of all that");
    return options;
}

}  // namespace

MakeStep add_transform_step(Arguments& app, const Common&) {
    return [options = add_transform_options(app)] {
        require_sense(*options);
        Step step;
        step.run = [options, first = first_matrix(*options)](Mesh& mesh) {
            const AffineTransform transform = whole_transform(
                *options, first, [&](const AffineTransform& before) { return moved_bounds(mesh, before); });
            Mesh moved = geometry::transformed(mesh, transform);
            const FileFacts& facts = mesh.vertices.facts;
            moved.vertices.facts.grid = moved_grid(facts, bounds_of(mesh.vertices), transform);
            StepReport report = report_of(transform, moved.vertices.size(), !facts.coordinate_system.empty());
            mesh = std::move(moved);
            return report;
        };
        return step;
    };
}

Command add_transform(Arguments& root, Common& common) {
    auto command = std::make_shared<TransformCommand>();
    Arguments& app = root.command("transform", "Move, turn, scale and mirror a cloud or mesh");
    Option input = app.option("INPUT", command->files.input.path, "The file; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = add_transform_options(app);
    app.option("--transform-to", command->transform_to, "Write the 4 x 4 matrix of all that here").text("FILE");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "What is given is done in the order of the numbers, in world coordinates.\n\n"
        "Example:\n  stipple transform scan.ply --rotate z 90 --translate 0 0 1.5 -o moved.ply\n"
        "  stipple transform scan.ply --apply T.txt --invert -o back.ply");
    return {&app, [command, &common] { return run_transform(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
