#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/draw_values.h"
#include "stipple/cli/common/files.h"
#include "stipple/cli/data/commands.h"
#include "stipple/data/part_categories.h"
#include "stipple/io/text.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

constexpr size_t kMostPanels = 400;

struct PreviewArguments {
    DataArguments data;
    std::string output, only, up = "z";
    int64_t each = 0, size = 220, columns = 0, points = 2048;
};

/// The first items of each class, or of all where there are no classes; of one class when it is named.
std::vector<int64_t> choose_items(const data::DataSet& set, const PreviewArguments& arguments) {
    if (set.labels.empty()) {
        STIPPLE_REQUIRE(arguments.only.empty(), "--class: the data set ({}) has no classes", set.layout);
        std::vector<int64_t> items;
        const int64_t wanted = arguments.each > 0 ? arguments.each : 24;
        for (int64_t i = 0; i < std::min(wanted, set.size()); ++i) items.push_back(i);
        return items;
    }
    std::optional<int64_t> only;
    for (size_t c = 0; c < set.classes.size(); ++c)
        if (io::lower_case(set.classes[c]) == io::lower_case(arguments.only)) only = static_cast<int64_t>(c);
    if (!only && !arguments.only.empty()) {
        std::string names;
        for (const std::string& name : set.classes) names += (names.empty() ? "" : ", ") + name;
        throw Error(ErrorCode::bad_argument, fmt::format("--class {}: no such class", arguments.only),
                    "classes: " + names);
    }
    const int64_t wanted = arguments.each > 0 ? arguments.each : only ? 24 : set.classes.size() > 20 ? 1 : 2;
    std::vector<std::vector<int64_t>> of_class(set.classes.size());
    for (int64_t i = 0; i < set.size(); ++i) {
        const int32_t label = set.labels[static_cast<size_t>(i)];
        auto& list = of_class[static_cast<size_t>(label)];
        if ((!only || *only == label) && static_cast<int64_t>(list.size()) < wanted) list.push_back(i);
    }
    std::vector<int64_t> items;
    for (const auto& list : of_class) items.insert(items.end(), list.begin(), list.end());
    STIPPLE_REQUIRE(!items.empty(), "the split {} has no clouds of {}", set.split, arguments.only);
    return items;
}

/// A cloud with its parts, counted within its category, as attribute label.
PointCloud cloud_of(const data::DataSet& set, int64_t item) {
    const int64_t first = set.clouds.offsets[static_cast<size_t>(item)], n = set.clouds.size_of(item);
    PointCloud cloud(n);
    std::copy_n(set.clouds.points.data() + 3 * first, 3 * n, cloud.positions.data());
    if (set.parts.empty()) return cloud;
    const int64_t begin = set.categories[static_cast<size_t>(set.labels[static_cast<size_t>(item)])].begin;
    Attribute& label = cloud.attributes.emplace_back("label", DType::i32, n, 1);
    for (int64_t i = 0; i < n; ++i)
        label.as<int32_t>().data()[i] = static_cast<int32_t>(set.parts[static_cast<size_t>(first + i)] - begin);
    return cloud;
}

Image draw_sheet(const data::DataSet& set, const std::vector<int64_t>& items, const PreviewArguments& arguments) {
    std::vector<PointCloud> clouds;
    for (const int64_t item : items) clouds.push_back(cloud_of(set, item));
    std::vector<picture::Panel> panels;
    for (size_t i = 0; i < items.size(); ++i) {
        picture::Panel& panel = panels.emplace_back();
        panel.cloud = &clouds[i];
        const auto at = static_cast<size_t>(items[i]);
        if (!set.labels.empty() && arguments.only.empty())
            panel.caption = set.classes[static_cast<size_t>(set.labels[at])];
        else
            panel.caption = set.names.empty() ? std::to_string(at) : set.names[at];
        panel.color_by = set.parts.empty() ? "depth" : "label";
    }
    picture::FigureStyle style;
    style.panel_width = style.panel_height = arguments.size;
    style.columns = arguments.columns;
    style.shared_camera = false;
    style.viewpoint.up = picture::up_axis_by_name(arguments.up);
    style.legend = false;
    if (!set.parts.empty() && !arguments.only.empty()) {  // all panels have the same parts
        const data::PartCategory& category =
            set.categories[static_cast<size_t>(set.labels[static_cast<size_t>(items[0])])];
        style.legend = true;
        style.legend_title = "part";
        for (int64_t part = category.begin; part < category.end; ++part)
            if (part < static_cast<int64_t>(set.part_names.size()))
                style.label_names[part - category.begin] = set.part_names[static_cast<size_t>(part)];
    }
    return picture::draw_figure(panels, style).image;
}

Result run_data_preview(const PreviewArguments& arguments, const Common& common) {
    require_picture(arguments.output, common);
    STIPPLE_REQUIRE(arguments.each >= 0 && arguments.columns >= 0, "--each and --columns are from 0");
    STIPPLE_REQUIRE(arguments.size >= 48 && arguments.size <= 2048, "--size must be 48 to 2048, got {}",
                    arguments.size);
    Result result;
    const data::RecognisedSet found = data::recognise_data_set(arguments.data.path, arguments.data.layout);
    const bool is_pairs = found.layout == "patches-hdf5" || found.layout == "pair-folders";  // they are read whole
    const data::DataSet set =
        load_data(arguments.data, arguments.data.split.empty() ? found.splits[0] : arguments.data.split,
                  is_pairs ? 0 : arguments.points, common, result.warnings);
    const std::vector<int64_t> items = about_file(arguments.data.path, [&] { return choose_items(set, arguments); });
    STIPPLE_REQUIRE(items.size() <= kMostPanels, "{} clouds do not fit one picture, at most {}: fewer --each",
                    items.size(), kMostPanels);
    result.fields["inputs"] = Json::array({arguments.data.path});
    result.fields["layout"] = set.layout;
    result.fields["split"] = set.split;
    result.fields["items"] = items;
    save_picture(
        arguments.output, [&] { return draw_sheet(set, items, arguments); }, common, result);
    return result;
}

}  // namespace

Command add_data_preview(Arguments& group, Common& common) {
    auto arguments = std::make_shared<PreviewArguments>();
    Arguments& app = group.command("preview", "Draw some clouds of each class into one picture");
    Option input = app.option("DATA", arguments->data.path, "Folder, or file, of the data set");
    Option output = app.option("-o,--output", arguments->output, "The .png");
    app.option("--class", arguments->only, "Clouds of this one, with the names of its parts");
    app.option("--each", arguments->each, "Clouds of a class; 0: as many as look well");
    app.option("--points", arguments->points, "The first N of each cloud; 0: all").from_zero();
    app.option("--split", arguments->data.split, "train, val or test; else the first that there is");
    add_layout(app, arguments->data);
    app.option("--size", arguments->size, "Pixels of one cloud");
    app.option("--columns", arguments->columns, "Clouds in a row; 0 chooses");
    add_up(app, arguments->up);
    app.footer("Example:\n  stipple data preview psb_parts_hdf5 --class Chair -o chairs.png");
    return {&app, [arguments, &common] { return run_data_preview(*arguments, common); }, {input, output}};
}

}  // namespace stipple::cli
