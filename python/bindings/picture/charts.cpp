// stipple.picture: charts and colours.

#include "docstrings.h"
#include "python/bindings/common/image_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/common/values.h"
#include "python/bindings/module.h"
#include "python/bindings/picture/options.h"
#include "stipple/picture/chart.h"
#include "stipple/picture/color_map.h"
#include "stipple/picture/training_chart.h"

namespace stipple::python {
namespace {

void set_numbers(Options& options, const char* key, std::vector<double>& to) {
    if (const py::object value = options.take(key); value) to = numbers_of(value, key);
}

void set_axis(Options& options, const char* key, picture::Axis& axis) {
    const py::object value = options.take(key);
    if (!value) return;
    if (PyUnicode_Check(value.ptr())) {
        axis.label = value.cast<std::string>();
        return;
    }
    Options parts(value, key);
    parts.set("label", axis.label);
    parts.set("unit", axis.unit);
    parts.set("logarithmic", axis.logarithmic);
    if (const py::object range = parts.take("range"); range) {
        const auto ends = numbers_of<2>(range, "range");
        axis.range = {ends[0], ends[1]};
    }
    parts.end();
}

picture::ChartStyle chart_style(Options& options) {
    constexpr Word<picture::LegendPlace> kPlaces[] = {{"automatic", picture::LegendPlace::automatic},
                                                      {"above", picture::LegendPlace::above},
                                                      {"none", picture::LegendPlace::none}};
    picture::ChartStyle style;
    options.set("width", style.width);
    options.set("height", style.height);
    options.set("dark", style.dark);
    options.set_color("background", style.background);
    options.set("text_size", style.text_size);
    options.set("line_width", style.line_width);
    options.set("grid", style.grid);
    options.set_word("legend", style.legend, kPlaces);
    return style;
}

ImageObject draw_bars(const py::list& series, Options& options) {
    picture::BarChart chart;
    options.set("title", chart.title);
    options.set("group_label", chart.group_label);
    set_axis(options, "y", chart.y);
    chart.groups = texts_of(options.take("groups"), "groups");
    options.set("value_labels", chart.value_labels);
    for (py::handle item : series) {
        Options parts(py::reinterpret_borrow<py::object>(item), "series");
        picture::BarSeries each;
        parts.set("name", each.name);
        set_numbers(parts, "values", each.values);
        parts.set_color("color", each.color);
        parts.end();
        chart.series.push_back(std::move(each));
    }
    const picture::ChartStyle style = chart_style(options);
    options.end();
    return give(without_gil([&] { return std::move(picture::draw_chart(chart, style).image); }));
}

ImageObject draw_chart(const py::list& series, const py::kwargs& keywords) {
    Options options(keywords, "chart");
    if (keywords.contains("groups") && !keywords["groups"].is_none()) return draw_bars(series, options);
    picture::LineChart chart;
    options.set("title", chart.title);
    set_axis(options, "x", chart.x);
    set_axis(options, "y", chart.y);
    set_axis(options, "right", chart.right);
    for (py::handle item : series) {
        Options parts(py::reinterpret_borrow<py::object>(item), "series");
        picture::Series each;
        parts.set("name", each.name);
        set_numbers(parts, "x", each.x);
        set_numbers(parts, "y", each.y);
        parts.set("right", each.right);
        parts.set("markers", each.markers);
        parts.set("dashed", each.dashed);
        parts.set_color("color", each.color);
        parts.end();
        chart.series.push_back(std::move(each));
    }
    const picture::ChartStyle style = chart_style(options);
    options.end();
    return give(without_gil([&] { return std::move(picture::draw_chart(chart, style).image); }));
}

void add_curves(const py::object& given, std::vector<picture::TrainingCurve>& to) {
    if (given.is_none()) return;
    for (py::handle item : given) {
        Options parts(py::reinterpret_borrow<py::object>(item), "curves");
        picture::TrainingCurve each;
        parts.set("name", each.name);
        set_numbers(parts, "epochs", each.epochs);
        set_numbers(parts, "values", each.values);
        parts.end();
        to.push_back(std::move(each));
    }
}

ImageObject training_chart(const py::object& losses, const py::object& scores, const std::string& title,
                           const std::string& score_label, const py::kwargs& keywords) {
    picture::TrainingCurves curves;
    curves.title = title;
    curves.score_label = score_label;
    add_curves(losses, curves.losses);
    add_curves(scores, curves.scores);
    Options options(keywords, "style");
    const picture::ChartStyle style = chart_style(options);
    options.end();
    return give(without_gil([&] { return std::move(picture::training_chart(curves, style).image); }));
}

py::tuple color_tuple(picture::Rgb color) {
    return py::make_tuple(int(color.r), int(color.g), int(color.b));
}

}  // namespace

void bind_charts(py::module_& p) {
    p.def("draw_chart", &draw_chart, py::arg("series"),
          "A chart of curves, or with groups=[names] of bars: docs of stipple/picture/chart.h.\n\n"
          "series   dicts: name, x, y, right, markers, dashed, color; of bars name, values, color\n"
          "x, y, right  axes: a label, or a dict of label, unit, logarithmic, range\n"
          "title, and of bars group_label, value_labels; width, height, dark, background, text_size, line_width, grid "
          "and\n"
          "legend (\"automatic\", \"above\", \"none\") as of ChartStyle. Returns an Image.");
    p.def("training_chart", &training_chart, py::arg("losses"), py::arg("scores") = py::none(), py::arg("title") = "",
          py::arg("score_label") = "accuracy", doc::picture::training_chart);
    p.def(
        "chart_color", [](int64_t i, bool dark) { return color_tuple(picture::chart_color(i, dark)); }, py::arg("i"),
        py::arg("dark") = false, doc::picture::chart_color);
    p.def(
        "map_color",
        [](const std::string& map, double t) {
            return color_tuple(picture::map_color(picture::color_map_by_name(map), t));
        },
        py::arg("map"), py::arg("t"), doc::picture::map_color);
    p.def(
        "category_color", [](int64_t i) { return color_tuple(picture::category_color(i)); }, py::arg("i"),
        doc::picture::category_color);
    p.def(
        "color_map_names",
        [] {
            py::list names;
            for (std::string_view name : picture::color_map_names()) names.append(name);
            return names;
        },
        "The names of the maps from numbers to colours, for color_map=.");
}

}  // namespace stipple::python
