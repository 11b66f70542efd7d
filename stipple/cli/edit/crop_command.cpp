#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/pieces.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/region.h"
#include "stipple/io/text.h"
#include "stipple/tasks/small_files.h"

namespace stipple::cli {
namespace {

struct CropOptions {
    std::vector<double> box, sphere;
    std::vector<std::string> polygon;
    bool outside = false;
};

geometry::Region region_of(const CropOptions& options) {
    geometry::Region region;
    STIPPLE_REQUIRE(!options.box.empty() || !options.sphere.empty() || !options.polygon.empty(),
                    "crop to what? Give --box, --sphere or --polygon");
    if (!options.box.empty()) {
        const std::vector<double>& b = options.box;
        region.box = {{b[0], b[1], b[2]}, {b[3], b[4], b[5]}};
        for (double& low : region.box->min)  // -inf would be read as an option
            if (low == HUGE_VAL) low = -HUGE_VAL;
    }
    if (!options.sphere.empty()) {
        const std::vector<double>& s = options.sphere;
        region.sphere = {{s[0], s[1], s[2]}, s[3]};
    }
    if (options.polygon.size() == 1) {
        region.polygon = tasks::load_polygon(options.polygon[0]);
    } else if (!options.polygon.empty()) {
        STIPPLE_REQUIRE(options.polygon.size() % 2 == 0 && options.polygon.size() >= 6,
                        "--polygon takes a file, or x and y of at least 3 corners; got {} numbers",
                        options.polygon.size());
        for (size_t i = 0; i < options.polygon.size(); i += 2) {
            std::array<double, 2> corner{};
            for (size_t axis = 0; axis < 2; ++axis)
                STIPPLE_REQUIRE(io::parse_number(options.polygon[i + axis], corner[axis]),
                                "--polygon: \"{}\" is not a number", options.polygon[i + axis]);
            region.polygon.push_back(corner);
        }
        if (region.polygon.front() == region.polygon.back()) region.polygon.pop_back();
    }
    geometry::require_region(region);
    return region;
}

Step crop_step(const CropOptions& options) {
    const geometry::Side wanted = options.outside ? geometry::Side::outside : geometry::Side::inside;
    auto nowhere = std::make_shared<int64_t>(0);
    Step step{.kept = options.outside ? "outside" : "inside", .only_removes = true};
    step.mask = [region = region_of(options), wanted, nowhere](const PointCloud& piece) {
        std::vector<uint8_t> mask(static_cast<size_t>(piece.size()));
        const std::vector<geometry::Side> sides = geometry::sides_of(piece, region);
        for (size_t i = 0; i < mask.size(); ++i) {
            mask[i] = sides[i] == wanted;
            *nowhere += sides[i] == geometry::Side::nowhere;
        }
        return mask;
    };
    step.finish = [nowhere](StepReport& report) {
        report.fields["non_finite"] = *nowhere;
        if (*nowhere > 0)
            report.warnings.push_back(
                fmt::format("{} points are not finite, neither inside nor outside: left out", grouped(*nowhere)));
    };
    return step;
}

}  // namespace

MakeStep add_crop_step(Arguments& app, const Common&) {
    auto options = std::make_shared<CropOptions>();
    app.option("--box", options->box, "Corners of a box; inf: no end").count(6).text("X0 Y0 Z0 X1 Y1 Z1");
    app.option("--sphere", options->sphere, "Centre and radius").count(4).text("X Y Z R");
    app.option("--polygon", options->polygon, "Corners in the ground plan, or a file with two numbers each")
        .count(1, 1 << 20)
        .text("FILE | X Y X Y X Y...");
    app.flag("--outside", options->outside, "Keep what is outside instead");
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
