#include "stipple/cli/registration/options.h"

#include <cmath>

#include "stipple/picture/figure.h"

namespace stipple::cli {
void require_clouds(const RegisterCommand& options) {
    if (options.target.path.empty())
        throw Error(ErrorCode::bad_argument, "TARGET is missing: which file?",
                    "a folder of sweeps is registered with --sequence; see: stipple register --help");
    STIPPLE_REQUIRE(
        options.map.empty() && options.calibration.empty() && options.map_voxel == 0 && options.max_range == 0,
        "--map, --map-voxel, --max-range and --calibration are for --sequence");
}

Mesh load_scan(const InputFile& input, const Common& common, Result& result, Json& field) {
    Mesh mesh = load_with_progress(input.path, input.from, input.item, common, result.warnings);
    const int64_t points = mesh.vertices.size(), finite = bounds_of(mesh.vertices).finite;
    if (finite == 0) throw Error(ErrorCode::bad_file, Place{input.path}, "has no finite points");
    if (finite < points)
        result.warnings.push_back(fmt::format("{}: {} of {} points not finite, not registered", input.path,
                                              grouped(points - finite), grouped(points)));
    field = {{"path", input.path}, {"points", points}, {"non_finite", points - finite}};
    return mesh;
}

double length(const geometry::Vector3& v) {
    return std::hypot(v[0], v[1], v[2]);
}

std::string text_of(const tasks::PoseError& error) {
    return fmt::format("{:.4g} degrees ({:.4g} in the doubled convention), {:.4g}; points {:.4g} RMS", error.degrees,
                       error.doubled, error.translation, error.rms);
}

PointCloud in_colors(const std::vector<const PointCloud*>& clouds) {
    constexpr uint8_t kColors[10][3] = {{94, 141, 196},  {226, 124, 46}, {98, 168, 90},   {196, 88, 94},
                                        {144, 112, 188}, {150, 110, 84}, {218, 130, 186}, {128, 134, 140},
                                        {190, 178, 62},  {76, 182, 194}};
    int64_t n = 0;
    for (const PointCloud* cloud : clouds) n += cloud->size();
    PointCloud all(n);
    if (!clouds.empty()) all.origin = clouds[0]->origin;
    Attribute color("color", DType::u8, n, 3);
    int64_t at = 0;
    for (size_t c = 0; c < clouds.size(); ++c)
        for (int64_t i = 0; i < clouds[c]->size(); ++i, ++at)
            for (int axis = 0; axis < 3; ++axis) {
                all.positions.data()[3 * at + axis] =
                    static_cast<float>(clouds[c]->world(i, axis) - all.origin[static_cast<size_t>(axis)]);
                color.as<uint8_t>()(at, axis) = kColors[c % 10][axis];
            }
    all.attributes.push_back(std::move(color));
    return all;
}

Image draw_registration(const std::vector<const PointCloud*>& before, const std::vector<const PointCloud*>& after,
                        const std::string& caption) {
    const PointCloud first = in_colors(before), second = in_colors(after);
    const picture::Panel panels[] = {{.cloud = &first, .caption = "before: " + caption},
                                     {.cloud = &second, .caption = "after"}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

}  // namespace stipple::cli
