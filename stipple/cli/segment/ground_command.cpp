#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/common/table.h"
#include "stipple/geometry/ground.h"

namespace stipple::cli {
namespace {

constexpr int kGroundLabel = 2, kOtherLabel = 1;  // ASPRS: ground, unclassified

struct GroundCommandOptions {
    InputFile input;
    OutputFile output;
    geometry::GroundOptions ground;
    std::string picture;
    bool only = false;
};

/// Ground is 2. What is not keeps its label, but 2 becomes 1; without labels it is 1.
Attribute ground_labels(const PointCloud& cloud, const std::vector<uint8_t>& is_ground) {
    const Attribute* old = find(cloud.attributes, "label");
    const bool keeps = old && old->components() == 1 && is_integer(old->dtype());
    Attribute labels = keeps ? old->clone() : Attribute("label", DType::u8, cloud.size(), 1);
    const int64_t width = size_of(labels.dtype());
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const bool was_ground = keeps && old->value(i) == kGroundLabel;
        if (keeps && is_ground[i] == was_ground) continue;
        // The lowest byte of a small number, whatever the type: files and memory are little-endian here.
        std::byte* at = labels.data() + i * width;
        std::fill_n(at, width, std::byte{0});
        *at = static_cast<std::byte>(is_ground[i] ? kGroundLabel : kOtherLabel);
    }
    return labels;
}

/// How ground and labels agree, where the file has ground of its own.
struct GroundAgreement {
    int64_t both = 0, only_ours = 0, only_theirs = 0, neither = 0;
    int64_t all() const { return both + only_ours + only_theirs + neither; }
};

GroundAgreement agreement(const PointCloud& cloud, const std::vector<uint8_t>& is_ground) {
    GroundAgreement counts;
    const Attribute* label = find(cloud.attributes, "label");
    if (!label || label->components() != 1) return counts;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const bool theirs = label->value(i) == kGroundLabel;
        ++(is_ground[i] ? theirs ? counts.both : counts.only_ours : theirs ? counts.only_theirs : counts.neither);
    }
    return counts;
}

Image draw_ground(const PointCloud& cloud, const std::vector<uint8_t>& is_ground) {
    std::vector<int32_t> labels;
    for (const uint8_t ground : is_ground) labels.push_back(ground ? 1 : -1);
    return draw_labels(cloud, labels, "ground in colour", "z");
}

Result run_ground(const GroundCommandOptions& options, const Common& common) {
    const geometry::GroundOptions& wanted = options.ground;
    for (const auto& [value, name] : {std::pair(wanted.cell, "cell"), std::pair(wanted.window, "window"),
                                      std::pair(wanted.step, "step"), std::pair(wanted.height, "height")})
        STIPPLE_REQUIRE(value > 0 && std::isfinite(value), "--{} must be above 0, got {}", name, value);
    STIPPLE_REQUIRE(wanted.slope >= 0 && std::isfinite(wanted.slope), "--slope must be from 0, got {}", wanted.slope);
    const io::Format format = require_output(options.output, common, "label");
    require_picture(options.picture, common);
    Result result;
    result.fields["inputs"] = Json::array({options.input.path});
    Mesh mesh = load_with_progress(options.input.path, options.input.from, options.input.item, common, result.warnings);
    PointCloud& cloud = mesh.vertices;
    const geometry::Ground ground =
        about_file(options.input.path, [&] { return geometry::find_ground(cloud, wanted); });
    const auto points = std::count(ground.is_ground.begin(), ground.is_ground.end(), uint8_t{1});
    result.fields["points"] = cloud.size();
    result.fields["ground"] = points;
    result.fields["cells"] = {ground.columns, ground.rows};
    const GroundAgreement before = agreement(cloud, ground.is_ground);
    if (before.both + before.only_theirs > 0) {
        const double same = static_cast<double>(before.both + before.neither) / static_cast<double>(before.all());
        result.fields["labels_before"] = {{"ground", before.both + before.only_theirs},
                                          {"only_before", before.only_theirs},
                                          {"only_now", before.only_ours},
                                          {"agree", same}};
        result.text += fmt::format(
            "the file's own ground (label 2): {} points; agrees at {:.1f} % of all, {} more now, {} fewer\n",
            grouped(before.both + before.only_theirs), 100 * same, grouped(before.only_ours),
            grouped(before.only_theirs));
    }
    put_attribute(cloud.attributes, ground_labels(cloud, ground.is_ground));
    Attribute height("height_above_ground", DType::f32, cloud.size(), 1);
    std::copy_n(ground.height.data(), cloud.size(), height.as<float>().data());
    put_attribute(cloud.attributes, std::move(height));
    const std::string what = fmt::format("{} of {} points are ground", grouped(points), grouped(cloud.size()));
    save_picture(
        options.picture, [&] { return draw_ground(cloud, ground.is_ground); }, common, result);
    if (options.only) {
        std::vector<int32_t> kept;
        for (size_t i = 0; i < ground.is_ground.size(); ++i)
            if (ground.is_ground[i]) kept.push_back(static_cast<int32_t>(i));
        Mesh part;
        part.vertices = select(cloud, View<const int32_t, 1>(kept.data(), {static_cast<int64_t>(kept.size())}));
        save_output(part, options.output, format, what, common, result);
    } else {
        save_output(mesh, options.output, format, what, common, result);
    }
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "points", "ground", "written"}, {{options.output.path, cloud.size(), points, !common.dry_run}}},
            common.table);
    return result;
}

}  // namespace

Command add_ground(Arguments& root, Common& common) {
    auto options = std::make_shared<GroundCommandOptions>();
    Arguments& app = root.command("ground", "Find the ground of a scan, and heights above it");
    Option input = app.option("INPUT", options->input.path, "The file, z up; - is standard input");
    Option output = add_output(app, options->output);
    app.option("--window", options->ground.window, "Width of the widest building");
    app.option("--slope", options->ground.slope, "Of the steepest ground, rise over run");
    app.option("--cell", options->ground.cell, "Edge of the squares that the ground is made of");
    app.option("--step", options->ground.step, "Height by which things stand out of the ground");
    app.option("--height", options->ground.height, "Of ground points above or below the ground");
    app.flag("--only", options->only, "Write the ground alone");
    app.option("--picture", options->picture, "Draw the ground in colour into this .png");
    add_output_format(app, options->output);
    add_input_format(app, options->input);
    app.footer(
        "Lengths are in the unit of the file; the defaults are for metres.\n\n"
        "Example:\n  stipple ground scan.las -o ground.las --picture ground.png\n"
        "  stipple ground feet.las --cell 3 --window 120 --step 1 --height 0.8 -o ground.las");
    return {&app, [options, &common] { return run_ground(*options, common); }, {input, output}};
}

}  // namespace stipple::cli
