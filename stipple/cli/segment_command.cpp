#include <cmath>

#include "stipple/cli/commands.h"
#include "stipple/cli/common/many_clouds.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/picture/figure.h"
#include "stipple/tasks/segment.h"

namespace stipple::cli {
namespace {

struct SegmentCommand {
    ManyClouds clouds;
    tasks::SegmentOptions how;
};

/// Colours by part, the same for a part whichever others a cloud has.
void put_colors(PointCloud& cloud, int64_t first_label) {
    Attribute colors("color", DType::u8, cloud.size(), 3);
    uint8_t* to = colors.as<uint8_t>().data();
    const auto labels = find(cloud.attributes, "label")->as<int32_t>();
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const picture::Rgb color = picture::category_color(labels(i, 0) - first_label);
        *to++ = color.r, *to++ = color.g, *to++ = color.b;
    }
    std::erase_if(cloud.attributes, [](const Attribute& attribute) { return attribute.name() == "color"; });
    cloud.attributes.push_back(std::move(colors));
}

Image draw(const PointCloud& cloud, const tasks::CloudSegmenter& segmenter, const tasks::SegmentedCloud& segmented,
           const data::PartCategory& parts, int64_t size) {
    PointCloud shown = upright(cloud, segmenter.poses()[segmented.pose], segmenter.segmenter().up());
    shown.attributes.push_back(find(cloud.attributes, "label")->clone());
    const picture::Panel panel{.cloud = &shown, .caption = {}, .color_by = "label"};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = size > 0 ? size : 1024;
    style.legend_title = parts.name.empty() ? "part" : parts.name;
    for (int64_t part = parts.begin; part < parts.end; ++part) {
        style.labels.push_back(part);
        style.label_names[part] = segmenter.name_of_part(part);
    }
    return picture::draw_figure({&panel, 1}, style).image;
}

void add_rows(const std::string& file, const tasks::SegmentedCloud& segmented, Table& table) {
    const auto rounded = [](double x) { return std::round(1e4 * x) / 1e4; };
    for (const tasks::PartSummary& part : segmented.parts)
        table.rows.push_back({file, part.points, segmented.category.value_or(""), part.name,
                              rounded(100.0 * static_cast<double>(part.points) / static_cast<double>(segmented.points)),
                              rounded(part.confidence)});
}

Json segment_one(const CloudJob& job, tasks::CloudSegmenter& segmenter, const SegmentCommand& command,
                 const Common& common, Table& table) {
    const std::string name = job.entry.name();
    const tasks::Axis up = segmenter.segmenter().up();
    Mesh mesh;
    PointCloud& cloud = mesh.vertices;
    cloud = tasks::load_points(job.entry, command.how.clouds, job.how, job.result.warnings);
    const tasks::SegmentedCloud segmented = about_file(name, [&] { return segmenter.segment(cloud); });
    if (segmenter.guesses_category())
        job.result.warnings.push_back(
            fmt::format("{}: taken for category {}, the most confident; --category names another", name,
                        segmented.category.value_or("")));
    const data::PartCategory parts = segmenter.segmenter().parts_of(segmented.index_of_category);
    put_colors(cloud, parts.begin);
    add_rows(name, segmented, table);
    const tasks::Pose& pose = segmenter.poses()[segmented.pose];
    save_output(mesh, job.output, job.format,
                fmt::format("{} points in {} parts{}", grouped(cloud.size()), segmented.parts.size(),
                            command.how.pose.all ? ", " + tasks::text_of(pose, up) : ""),
                common, job.result);
    save_picture(
        command.clouds.picture, [&] { return draw(cloud, segmenter, segmented, parts, command.clouds.picture_size); },
        common, job.result);
    Json file = to_json(tasks::segmented_fields(), &segmented);
    if (command.how.pose.is_given()) file.update(pose_json(pose, up));
    return file;
}

Result run_segment(SegmentCommand& command, const Common& common) {
    Table table{{"file", "points", "category", "part", "share (%)", "confidence"}, {}};
    const CloudLoop loop{.product = "label", .progress = "segment", .table = &table};
    return for_each_cloud(command.clouds, loop, common, [&](Result& result) -> CloudWork {
        command.how.runner.device = common.device;
        command.how.runner.profile = wanted_profile(command.clouds);
        command.how.clouds.seed = common.seed;
        auto segmenter = std::make_shared<tasks::CloudSegmenter>(command.how);
        report_network(segmenter->segmenter().runner(), result);
        return [&, segmenter](const CloudJob& job) { return segment_one(job, *segmenter, command, common, table); };
    });
}

}  // namespace

Command add_segment(Arguments& root, Common& common) {
    auto command = std::make_shared<SegmentCommand>();
    Arguments& app = root.command("segment", "Label the parts of clouds");
    const std::vector<Option> required =
        add_inputs_and_output(app, command->clouds, "Clouds, folders of them, data sets");
    app.add(tasks::segment_fields(), &command->how);
    add_picture(app, command->clouds, "Draw the parts into this .png");
    add_input_format(app, command->clouds);
    add_output_format(app, command->clouds.output);
    add_shard(app, command->clouds);
    add_profile(app, command->clouds);
    app.footer(
        "Points get a label and the colour of their part. With --points, every point gets the label of the nearest\n"
        "one that the network saw.\n\n"
        "Example:\n  stipple segment chair.ply -o parts.ply --category chair --picture parts.png");
    return {&app, [command, &common] { return run_segment(*command, common); }, required};
}

}  // namespace stipple::cli
