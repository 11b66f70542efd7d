#include <cmath>
#include <cstring>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/terminal.h"
#include "stipple/geometry/affine_transform.h"
#include "stipple/io/text.h"
#include "stipple/tasks/small_files.h"

namespace stipple::cli {
namespace {

using geometry::AffineTransform;
using geometry::Vector3;

struct TransformOptions {
    InputFile input;
    OutputFile output;
    std::string matrix, apply, swap, transform_to;
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

/// The middle of the box around the points, moved to 0.
AffineTransform centring(CloudInput& input, const AffineTransform& before) {
    Bounds all;
    input.for_each([&](const Mesh& piece) {
        // Of the points after the first matrix: a box that is turned has another middle.
        const bool is_moved = !(before == AffineTransform{});
        extend(all, is_moved ? bounds_of(geometry::transformed(piece, before).vertices) : bounds_of(piece.vertices));
    });
    AffineTransform shift;
    for (size_t axis = 0; axis < 3 && all.finite > 0; ++axis)
        shift.translation[axis] = -0.5 * (all.min[axis] + all.max[axis]);
    return shift;
}

/// The grid of a LAS file for its points once they are moved: about the middle of where the box of its header goes, as
/// fine as before. None where the header has no box, or one that is too large for integers: then all points are
/// gathered and tell it.
std::optional<FileFacts::Grid> moved_grid(const FileFacts& facts, const AffineTransform& transform) {
    constexpr size_t kBox = 179, kMost = 2000000000;  // max and min of x, y, z in turn
    if (!facts.las || !facts.grid || facts.las->header.size() < kBox + 6 * sizeof(double)) return std::nullopt;
    double box[3][2];
    std::memcpy(box, facts.las->header.data() + kBox, sizeof box);
    Bounds moved;
    for (int corner = 0; corner < 8; ++corner) {
        Vector3 to = transform.translation;
        for (size_t row = 0; row < 3; ++row)
            for (size_t axis = 0; axis < 3; ++axis)
                to[row] += transform.linear[row][axis] * box[axis][corner >> axis & 1];
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
        if (!(grid.scale[axis] > 0) || extent / 2 / grid.scale[axis] > static_cast<double>(kMost)) return std::nullopt;
        grid.offset[axis] = std::floor(0.5 * (moved.min[axis] + moved.max[axis]));
    }
    return grid;
}

void save_matrix(const AffineTransform& transform, const std::string& path, const Common& common, Result& result) {
    if (path.empty()) return;
    if (!common.dry_run) {
        AtomicFile file(path, common.overwrite_mode());
        const std::string text = geometry::to_text(transform);
        file.write(text.data(), static_cast<int64_t>(text.size()));
        file.commit();
    }
    result.fields["outputs"].push_back({{"path", path}, {"format", "transform"}, {"written", !common.dry_run}});
    result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(path));
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

Result run_transform(const TransformOptions& options, const Common& common) {
    const bool is_given = !options.matrix.empty() || !options.apply.empty() || !options.swap.empty() ||
                          !options.scale.empty() || !options.rotate.empty() || !options.translate.empty() ||
                          options.centre;
    STIPPLE_REQUIRE(is_given, "transform how? Give --matrix, --rotate, --translate, --scale, --swap or --centre");
    STIPPLE_REQUIRE(options.matrix.empty() || options.apply.empty(), "--apply and --matrix are the same: give one");
    STIPPLE_REQUIRE(options.about.empty() || !options.swap.empty() || !options.scale.empty() || !options.rotate.empty(),
                    "--about is for --rotate, --scale and --swap");
    require_one_stdin({options.input.path, options.matrix, options.apply});
    CloudOutput output(options.output, common);
    if (!options.transform_to.empty()) require_writable(options.transform_to, common.overwrite_mode());
    const std::string& file = options.matrix.empty() ? options.apply : options.matrix;
    AffineTransform transform = file.empty() ? AffineTransform{} : tasks::load_affine(file);
    transform_of(options, {});  // wrong numbers are told before the points are read
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    CloudInput input(options.input, common, result);
    if (options.centre) transform = centring(input, transform) * transform;
    transform = transform_of(options, transform);
    if (options.invert) transform = inverse(transform);
    bool had_system = false;
    input.for_each([&](const Mesh& piece) {
        had_system = had_system || !piece.vertices.facts.coordinate_system.empty();
        Mesh moved = geometry::transformed(piece, transform);
        if (input.is_streamed()) moved.vertices.facts.grid = moved_grid(piece.vertices.facts, transform);
        output.add(std::move(moved));
    });
    if (had_system)
        result.warnings.push_back(fmt::format(
            "{}: its coordinate system is left out, it does not hold for points that were moved", options.input.path));
    result.fields["points"] = output.points();
    result.fields["transform"] = rows_of(transform);
    output.finish(fmt::format("{} points moved", grouped(output.points())), "it has no points", result);
    save_matrix(transform, options.transform_to, common, result);
    if (!common.table.empty())
        result.text = format_table({{"file", "points", "written"}, {{output.path(), output.points(), !common.dry_run}}},
                                   common.table);
    return result;
}

}  // namespace

Command add_transform(Arguments& root, Common& common) {
    auto options = std::make_shared<TransformOptions>();
    Arguments& app = root.command("transform", "Move, turn, scale and mirror a cloud or mesh");
    Option input = app.option("INPUT", options->input.path, "The file; - is standard input");
    Option output = add_output(app, options->output);
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
    app.option("--transform-to", options->transform_to, "Write the 4 x 4 matrix of all that here").text("FILE");
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "What is given is done in the order of the numbers, in world coordinates.\n\n"
        "Example:\n  stipple transform scan.ply --rotate z 90 --translate 0 0 1.5 -o moved.ply\n"
        "  stipple transform scan.ply --apply T.txt --invert -o back.ply");
    return {&app, [options, &common] { return run_transform(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
