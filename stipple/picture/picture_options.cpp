#include "stipple/picture/picture_options.h"

#include "stipple/core/error.h"

namespace stipple::picture {
namespace {

/// Names that live as long as the program.
template <class Names>
std::vector<const char*> words_of(const Names& names) {
    std::vector<const char*> words;
    for (const auto& name : names) words.push_back(name.data());
    return words;
}

const Fields& panel_counts_fields() {
    static const Fields fields = {
        field<&PanelCounts::points>("points", "Points in front of the camera and within the panel"),
        field<&PanelCounts::nonfinite>("non_finite", "Points and triangles that are not finite")};
    return fields;
}

}  // namespace

const Fields& picture_fields() {
    using Options = PictureOptions;
    static const std::vector<const char*> maps = words_of(color_map_names()), views = words_of(view_names()),
                                          axes = words_of(up_axis_names());
    static const Fields fields = {
        field<&Options::size>("size", "Pixels of one panel, WIDTHxHEIGHT"),
        field<&Options::columns>("columns", "Panels in a row; 0 chooses").from(0),
        field<&Options::captions>("captions", "One for each input"),
        field<&Options::title>("title", "Above all panels"),
        field<&Options::color_by>("color_by", "Attribute, x, y, z, depth, #rrggbb; one, or one for each input"),
        field<&Options::color_map>("colormap", "viridis, turbo, magma, inferno, plasma, grey, coolwarm")
            .words(maps)
            .shown("TEXT"),
        field<&Options::range>("range", "Values at the ends of the color map"),
        field<&Options::view>("view", "auto goes by the content; sensor: from where a scan was taken").words(views),
        field<&Options::azimuth>("azimuth", "Degrees about the up axis, instead of the view's").unit("degrees"),
        field<&Options::elevation>("elevation", "Degrees above the horizon, instead of the view's").unit("degrees"),
        field<&Options::aim>("aim", "X Y Z that is in the middle of the picture"),
        field<&Options::eye>("eye", "X Y Z to look from, instead of a view"),
        field<&Options::zoom>("zoom", "Larger than what fits, about the middle").above(0),
        field<&Options::up>("up", "Up axis").words(axes),
        field<&Options::point_size>("point_size", "Diameter in pixels; 0 chooses by density").unit("pixels").from(0),
        field<&Options::eye_dome>("eye_dome", "Darken behind outlines; auto: scenes without normals")
            .words(kEyeDomeWords),
        field<&Options::inset>("inset", "Zoom: middle x and y and size, fractions of a panel"),
        field<&Options::unit>("unit", "Draw a scale bar with this unit of length"),
        field<&Options::dark>("dark", "Dark background"),
        field<&Options::flat>("flat", "Flat faces instead of smooth ones"),
        field<&Options::edges>("edges", "Lines along the triangles"),
        field<&Options::orthographic>("orthographic", "Parallel projection"),
        field<&Options::own_scale>("own_scale", "Each panel fits its own content"),
        field<&Options::axes>("axes", "Draw the directions of x, y and z"),
        field<&Options::scale_bar>("scale_bar", "Draw a scale bar"),
        field<&Options::no_legend>("no_legend", "No color bar")};
    return fields;
}

const Fields& figure_fields() {
    static const Fields fields = {objects_field<&Figure::panels>("panels", panel_counts_fields)};
    return fields;
}

FigureStyle style_of(const PictureOptions& options, size_t panels) {
    check_fields(picture_fields(), &options);
    STIPPLE_REQUIRE(options.captions.empty() || options.captions.size() == panels, "{} captions for {} input{}",
                    options.captions.size(), panels, panels == 1 ? "" : "s");
    STIPPLE_REQUIRE(options.color_by.size() <= 1 || options.color_by.size() == panels, "{} x --color-by for {} input{}",
                    options.color_by.size(), panels, panels == 1 ? "" : "s");
    STIPPLE_REQUIRE(options.inset.empty() || options.inset.size() == 2 || options.inset.size() == 3,
                    "--inset takes 2 or 3 numbers, got {}", options.inset.size());
    FigureStyle style;
    style.columns = options.columns;
    style.title = options.title;
    style.point_radius = options.point_size / 2;
    style.eye_dome = options.eye_dome;
    style.dark = options.dark;
    style.smooth = !options.flat;
    style.edges = options.edges;
    style.axes = options.axes;
    style.shared_camera = !options.own_scale;
    style.color_map = options.color_map;
    style.legend = !options.no_legend;
    style.scale_bar = options.scale_bar || !options.unit.empty();
    style.length_unit = options.unit;
    if (options.range) style.range = {(*options.range)[0], (*options.range)[1]};
    if (!options.inset.empty()) {
        Inset inset;
        inset.x = options.inset[0];
        inset.y = options.inset[1];
        if (options.inset.size() > 2) inset.size = options.inset[2];
        style.inset = inset;
    }
    return style;
}

void set_viewpoint(const PictureOptions& options, const std::optional<std::array<double, 3>>& sensor,
                   Viewpoint& viewpoint) {
    viewpoint.up = options.up;
    if (options.eye) {
        viewpoint.eye = options.eye;
    } else {
        if (options.view == ViewName::sensor && !sensor)
            throw Error(ErrorCode::bad_argument, "--view sensor: the files do not say where the sensor stood",
                        "--eye X Y Z says it");
        set_view(viewpoint, options.view, sensor.value_or(std::array<double, 3>{}));
    }
    if (options.azimuth) viewpoint.azimuth = options.azimuth;
    if (options.elevation) viewpoint.elevation = options.elevation;
    if (options.aim) viewpoint.aim = options.aim;
    viewpoint.zoom = options.zoom;
    if (options.orthographic) viewpoint.projection = Projection::orthographic;
}

}  // namespace stipple::picture
