// stipple.picture: Image, and figures of clouds and meshes.

#include <algorithm>
#include <list>

#include "docstrings.h"
#include "python/bindings/common/cloud_object.h"
#include "python/bindings/common/image_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/module.h"
#include "python/bindings/picture/options.h"
#include "stipple/core/atomic_file.h"
#include "stipple/io/image_file.h"
#include "stipple/picture/figure.h"

namespace stipple::python {
namespace {

struct FigureResult {
    static constexpr auto name = py::detail::const_name("Figure");
    static constexpr const char* fields[] = {"image", "panels", "low", "high", "corners"};
};
struct PanelResult {
    static constexpr auto name = py::detail::const_name("PanelCounts");
    static constexpr const char* fields[] = {"points", "nonfinite", "low", "high"};
};

using picture::FigureStyle;

// ---- Image

ImageObject make_image(const ArrayLike& pixels_) {
    Call call;
    const auto pixels = call.array<uint8_t, 3>(pixels_, "pixels");
    STIPPLE_REQUIRE(pixels.device() == Device{}, "pixels: on {}; images are on the CPU", pixels.device());
    STIPPLE_REQUIRE(pixels.size(2) == 1 || pixels.size(2) == 3 || pixels.size(2) == 4,
                    "pixels: {} channels; wanted are 1, 3 or 4", pixels.size(2));
    Image image(pixels.size(1), pixels.size(0), pixels.size(2));
    std::copy_n(pixels.data(), pixels.elements(), image.pixels.data());
    return give(std::move(image));
}

py::object pixels_of(const ImageObject& o) {
    const auto& shape = o.image->pixels.shape();
    return numpy_of(o.image, o.image->pixels.data(), DType::u8, {shape.data(), shape.size()});
}

py::bytes png_of(const ImageObject& o) {
    MemorySink sink;
    without_gil([&] { io::write_png(*o.image, sink); });
    return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

void save_image(const ImageObject& o, const PathLike& path_, bool overwrite, int quality) {
    const std::string path = path_of(path_);
    std::string end = path.substr(std::min(path.size(), path.find_last_of('.') + 1));
    std::transform(end.begin(), end.end(), end.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    STIPPLE_REQUIRE(end == "png" || end == "jpg" || end == "jpeg", "path: \"{}\"; wanted is .png, .jpg or .jpeg", path);
    const Overwrite rule = overwrite_of(overwrite);
    without_gil([&] {
        if (end == "png")
            io::save_png(path, *o.image, rule);
        else
            io::save_jpeg(path, *o.image, rule, quality);
    });
}

// ---- styles

constexpr Word<picture::UpAxis> kUps[] = {{"z", picture::UpAxis::z},        {"y", picture::UpAxis::y},
                                          {"x", picture::UpAxis::x},        {"-z", picture::UpAxis::minus_z},
                                          {"-y", picture::UpAxis::minus_y}, {"-x", picture::UpAxis::minus_x}};
constexpr Word<picture::ViewName> kViews[] = {
    {"auto", picture::ViewName::automatic}, {"iso", picture::ViewName::iso},   {"top", picture::ViewName::top},
    {"front", picture::ViewName::front},    {"side", picture::ViewName::side}, {"sensor", picture::ViewName::sensor}};

void read_viewpoint(Options& options, picture::Viewpoint& viewpoint) {
    constexpr Word<picture::Projection> kProjections[] = {{"orthographic", picture::Projection::orthographic},
                                                          {"perspective", picture::Projection::perspective}};
    if (const py::object view = options.take("view"); view)
        picture::set_view(viewpoint, choice(view.cast<std::string>(), "view", kViews));
    options.set("azimuth", viewpoint.azimuth);
    options.set("elevation", viewpoint.elevation);
    options.set_word("up", viewpoint.up, kUps);
    options.set_word("projection", viewpoint.projection, kProjections);
    options.set("zoom", viewpoint.zoom);
    options.set("field_of_view", viewpoint.field_of_view);
    if (const py::object aim = options.take("aim"); aim) viewpoint.aim = numbers_of<3>(aim, "aim");
    if (const py::object eye = options.take("eye"); eye) viewpoint.eye = numbers_of<3>(eye, "eye");
}

void read_inset(const py::object& given, FigureStyle& style) {
    constexpr Word<picture::Corner> kCorners[] = {{"automatic", picture::Corner::automatic},
                                                  {"upper_left", picture::Corner::upper_left},
                                                  {"upper_right", picture::Corner::upper_right},
                                                  {"lower_left", picture::Corner::lower_left},
                                                  {"lower_right", picture::Corner::lower_right}};
    Options options(given, "inset");
    picture::Inset inset;
    options.set("x", inset.x);
    options.set("y", inset.y);
    options.set("size", inset.size);
    options.set("box", inset.box);
    options.set_word("corner", inset.corner, kCorners);
    options.set_color("color", inset.color);
    options.end();
    style.inset = inset;
}

/// What keywords say; the default panel is of one picture.
FigureStyle style_of(Options& options) {
    constexpr Word<picture::EyeDome> kDomes[] = {
        {"automatic", picture::EyeDome::automatic}, {"on", picture::EyeDome::on}, {"off", picture::EyeDome::off}};
    FigureStyle style;
    options.set("panel_width", style.panel_width);
    options.set("panel_height", style.panel_height);
    options.set("columns", style.columns);
    options.set("title", style.title);
    read_viewpoint(options, style.viewpoint);
    options.set("shared_camera", style.shared_camera);
    options.set("point_radius", style.point_radius);
    options.set("dark", style.dark);
    options.set_color("background", style.background);
    options.set("text_size", style.text_size);
    if (const py::object map = options.take("color_map"); map)
        style.color_map = picture::color_map_by_name(map.cast<std::string>());
    if (const py::object range = options.take("range"); range) {
        const auto ends = numbers_of<2>(range, "range");
        style.range = {ends[0], ends[1]};
    }
    options.set("legend", style.legend);
    options.set("legend_title", style.legend_title);
    if (const py::object names = options.take("label_names"); names)
        for (const auto& [label, name] : py::dict(names))
            style.label_names[py::cast<int64_t>(label)] = py::cast<std::string>(name);
    if (const py::object labels = options.take("labels"); labels) style.labels = whole_numbers(labels, "labels");
    options.set("smooth", style.smooth);
    options.set("edges", style.edges);
    options.set("light", style.light);
    options.set("occlusion", style.occlusion);
    options.set_word("eye_dome", style.eye_dome, kDomes);
    options.set("axes", style.axes);
    options.set("scale_bar", style.scale_bar);
    options.set("length_unit", style.length_unit);
    if (const py::object inset = options.take("inset"); inset) read_inset(inset, style);
    options.set("samples", style.samples);
    return style;
}

// ---- panels

/// Panels, and what keeps their clouds in place.
struct Panels {
    std::vector<picture::Panel> panels;
    std::list<CloudArgument> clouds;
    std::list<MeshArgument> meshes;

    void add_shape(picture::Panel& panel, const py::object& shape, const char* name) {
        if (py::isinstance<MeshObject>(shape))
            panel.mesh = &meshes.emplace_back(shape, name).mesh();
        else
            panel.cloud = &clouds.emplace_back(shape, name).cloud();
    }
    void read_options(Options& options, picture::Panel& panel) {
        options.set("caption", panel.caption);
        options.set("color_by", panel.color_by);
        options.set_color("cloud_color", panel.cloud_color);
        options.set_color("mesh_color", panel.mesh_color);
    }
    void add(const py::object& item) {
        picture::Panel panel;
        if (py::isinstance<py::dict>(item)) {
            Options options(item, "panels");
            if (const py::object cloud = options.take("cloud"); cloud) add_shape(panel, cloud, "cloud");
            if (const py::object mesh = options.take("mesh"); mesh) add_shape(panel, mesh, "mesh");
            read_options(options, panel);
            options.set("point_radius", panel.point_radius);
            options.end();
        } else {
            add_shape(panel, item, "panels");
        }
        panels.push_back(std::move(panel));
    }
};

ImageObject draw_one(const py::object& shape, const char* name, const py::kwargs& keywords) {
    Panels panels;
    picture::Panel panel;
    panels.add_shape(panel, shape, name);
    Options options(keywords, "style");
    panels.read_options(options, panel);
    const FigureStyle style = style_of(options);
    options.end();
    panels.panels.push_back(std::move(panel));
    return give(without_gil([&] { return std::move(picture::draw_figure(panels.panels, style).image); }));
}

Record<FigureResult> draw_figure(const py::list& panels_, const py::kwargs& keywords) {
    Panels panels;
    for (py::handle item : panels_) panels.add(py::reinterpret_borrow<py::object>(item));
    Options options(keywords, "style");
    const FigureStyle style = style_of(options);
    options.end();
    picture::Figure figure = without_gil([&] { return picture::draw_figure(panels.panels, style); });
    py::list counts, corners;
    for (const picture::PanelCounts& panel : figure.panels)
        counts.append(record<PanelResult>(py::int_(panel.points), py::int_(panel.nonfinite), py::float_(panel.low),
                                          py::float_(panel.high)));
    for (const auto& corner : figure.corners) corners.append(py::make_tuple(corner[0], corner[1]));
    return record<FigureResult>(py::cast(give(std::move(figure.image))), counts, py::float_(figure.low),
                                py::float_(figure.high), corners);
}

}  // namespace

void bind_figures(py::module_& p) {
    add_record<FigureResult>(p);
    add_record<PanelResult>(p);
    py::class_<ImageObject>(p, "Image",
                            "A picture: 8-bit pixels, rows from top to bottom. A notebook shows it by itself.")
        .def(py::init(&make_image), py::arg("pixels"), "Of uint8 [height, width, 1, 3 or 4]; copies them once.")
        .def("numpy", &pixels_of, "[height, width, channels] uint8: a view that keeps the image alive.")
        .def("save", &save_image, py::arg("path"), py::kw_only(), py::arg("overwrite") = false, py::arg("quality") = 92,
             "Writes PNG or JPEG by the extension, atomically.")
        .def("png", &png_of, "The bytes of a PNG file.")
        .def("_repr_png_", &png_of)
        .def_property_readonly(
            "width", [](const ImageObject& o) { return o.image->width(); }, "Pixels.")
        .def_property_readonly(
            "height", [](const ImageObject& o) { return o.image->height(); }, "Pixels.")
        .def_property_readonly(
            "channels", [](const ImageObject& o) { return o.image->channels(); }, "1 grey, 3 RGB, 4 RGBA.")
        .def_property_readonly(
            "__array_interface__",
            [](const ImageObject& o) { return py::object(pixels_of(o).attr("__array_interface__")); })
        .def("__repr__", [](const ImageObject& o) {
            return fmt::format("stipple.picture.Image({} x {}, {} channels)", o.image->width(), o.image->height(),
                               o.image->channels());
        });
    p.def("draw_figure", &draw_figure, py::arg("panels"), doc::picture::draw_figure);
    p.def(
        "draw_cloud", [](const CloudLike& cloud, const py::kwargs& style) { return draw_one(cloud, "cloud", style); },
        py::arg("cloud"), doc::picture::draw_cloud);
    p.def(
        "draw_mesh", [](const MeshLike& mesh, const py::kwargs& style) { return draw_one(mesh, "mesh", style); },
        py::arg("mesh"), doc::picture::draw_mesh);
}

}  // namespace stipple::python
