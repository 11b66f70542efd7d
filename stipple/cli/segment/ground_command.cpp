#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/labels.h"
#include "stipple/cli/steps.h"
#include "stipple/geometry/ground.h"

namespace stipple::cli {
namespace {

constexpr int kGroundLabel = 2, kOtherLabel = 1;  // ASPRS: ground, unclassified

struct GroundStepOptions {
    geometry::GroundOptions ground;
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

void require_sense(const GroundStepOptions& options) {
    const geometry::GroundOptions& wanted = options.ground;
    for (const auto& [value, name] : {std::pair(wanted.cell, "cell"), std::pair(wanted.window, "window"),
                                      std::pair(wanted.step, "step"), std::pair(wanted.height, "height")})
        STIPPLE_REQUIRE(value > 0 && std::isfinite(value), "--{} must be above 0, got {}", name, value);
    STIPPLE_REQUIRE(wanted.slope >= 0 && std::isfinite(wanted.slope), "--slope must be from 0, got {}", wanted.slope);
}

/// Puts labels and heights into the cloud.
StepReport label_ground(PointCloud& cloud, const geometry::Ground& ground) {
    const auto points = std::count(ground.is_ground.begin(), ground.is_ground.end(), uint8_t{1});
    StepReport report{fmt::format("{} of {} points are ground", grouped(points), grouped(cloud.size()))};
    report.fields["points"] = cloud.size();
    report.fields["ground"] = points;
    report.fields["cells"] = {ground.columns, ground.rows};
    const GroundAgreement before = agreement(cloud, ground.is_ground);
    if (before.both + before.only_theirs > 0) {
        const double same = static_cast<double>(before.both + before.neither) / static_cast<double>(before.all());
        report.fields["labels_before"] = {{"ground", before.both + before.only_theirs},
                                          {"only_before", before.only_theirs},
                                          {"only_now", before.only_ours},
                                          {"agree", same}};
        report.text += fmt::format(
            "the file's own ground (label 2): {} points; agrees at {:.1f} % of all, {} more now, {} fewer\n",
            grouped(before.both + before.only_theirs), 100 * same, grouped(before.only_ours),
            grouped(before.only_theirs));
    }
    put_attribute(cloud.attributes, ground_labels(cloud, ground.is_ground));
    Attribute height("height_above_ground", DType::f32, cloud.size(), 1);
    std::copy_n(ground.height.data(), cloud.size(), height.as<float>().data());
    put_attribute(cloud.attributes, std::move(height));
    return report;
}

/// Without faces.
void keep_ground(Mesh& mesh, const geometry::Ground& ground) {
    Mesh part;
    part.vertices = masked(mesh.vertices, ground.is_ground);
    mesh = std::move(part);
}

using GroundCommand = CloudCommand<GroundStepOptions>;

Result run_ground(const GroundCommand& command, const Common& common) {
    const auto& [input, output] = command.files;
    require_sense(*command.how);
    const io::Format format = require_output(output, common, "label");
    require_picture(command.picture, common);
    Result result;
    Mesh mesh = load_input(input, common, result);
    const geometry::Ground ground =
        about_file(input.path, [&] { return geometry::find_ground(mesh.vertices, command.how->ground); });
    const StepReport report = label_ground(mesh.vertices, ground);
    tell(report, input.path, result);
    const auto draw = [&] {
        std::vector<int32_t> labels;
        for (const uint8_t is_ground : ground.is_ground) labels.push_back(is_ground ? 1 : -1);
        return draw_labels(mesh.vertices, labels, "ground in colour", "z");
    };
    save_picture(command.picture, draw, common, result);
    if (command.how->only) keep_ground(mesh, ground);
    save_output(mesh, output, format, report.what, common, result);
    if (!common.table.empty())
        result.text = format_table(
            {{"file", "points", "ground", "written"},
             {{output.path, report.fields.value("points"), report.fields.value("ground"), !common.dry_run}}},
            common.table);
    return result;
}

std::shared_ptr<GroundStepOptions> add_ground_options(Arguments& app) {
    auto options = std::make_shared<GroundStepOptions>();
    app.option("--window", options->ground.window, "Width of the widest building");
    app.option("--slope", options->ground.slope, "Of the steepest ground, rise over run");
    app.option("--cell", options->ground.cell, "Edge of the squares that the ground is made of");
    app.option("--step", options->ground.step, "Height by which things stand out of the ground");
    app.option("--height", options->ground.height, "Of ground points above or below the ground");
    app.flag("--only", options->only, "Write the ground alone");
    return options;
}

}  // namespace

MakeStep add_ground_step(Arguments& app, const Common&) {
    return [options = add_ground_options(app)] {
        require_sense(*options);
        Step step{.product = "label"};
        step.run = [options](Mesh& mesh) {
            const geometry::Ground ground = geometry::find_ground(mesh.vertices, options->ground);
            StepReport report = label_ground(mesh.vertices, ground);
            if (options->only) keep_ground(mesh, ground);
            return report;
        };
        return step;
    };
}

Command add_ground(Arguments& root, Common& common) {
    auto command = std::make_shared<GroundCommand>();
    Arguments& app = root.command("ground", "Find the ground of a scan, and heights above it");
    Option input = app.option("INPUT", command->files.input.path, "The file, z up; - is standard input");
    Option output = add_output(app, command->files.output);
    command->how = add_ground_options(app);
    app.option("--picture", command->picture, "Draw the ground in colour into this .png");
    add_output_format(app, command->files.output);
    add_input_format(app, command->files.input);
    app.footer(
        "Lengths are in the unit of the file; the defaults are for metres.\n\n"
        "Example:\n  stipple ground scan.las -o ground.las --picture ground.png\n"
        "  stipple ground feet.las --cell 3 --window 120 --step 1 --height 0.8 -o ground.las");
    return {&app, [command, &common] { return run_ground(*command, common); }, {input, output}};
}

}  // namespace stipple::cli
