#include "stipple/cli/registration/options.h"

#include <cmath>

#include "stipple/io/text.h"
#include "stipple/picture/figure.h"

namespace stipple::cli {
namespace {

/// A length above 0, or 0 for "auto".
double length_or_auto(const std::string& option, const std::string& text) {
    if (text == "auto") return 0;
    double value = 0;
    STIPPLE_REQUIRE(io::parse_number(text, value) && value > 0 && std::isfinite(value),
                    "--{} must be auto or a length above 0, got {}", option, text);
    return value;
}

}  // namespace

tasks::RegisterOptions register_options(const RegisterOptions& options) {
    tasks::RegisterOptions wanted;
    wanted.method = tasks::method_by_name(options.method);
    wanted.icp.metric = options.metric == "point"   ? geometry::IcpMetric::point
                        : options.metric == "plane" ? geometry::IcpMetric::plane
                                                    : geometry::IcpMetric::generalised;
    wanted.icp.kernel = tasks::kernel_by_name(options.kernel);
    wanted.icp.kernel_scale = length_or_auto("kernel-scale", options.kernel_scale);
    STIPPLE_REQUIRE(options.trim > 0 && options.trim <= 1, "--trim must be above 0, to 1, got {}", options.trim);
    STIPPLE_REQUIRE(options.min_fitness >= 0 && options.min_fitness <= 1, "--min-fitness must be 0 to 1, got {}",
                    options.min_fitness);
    wanted.icp.trim = options.trim;
    wanted.scale = length_or_auto("scale", options.scale);
    STIPPLE_REQUIRE(options.iterations >= 0, "--iterations must be from 1, got {}", options.iterations);
    wanted.iterations = options.iterations;
    wanted.require_convergence = options.require_convergence;
    wanted.min_fitness = options.min_fitness;
    if (options.max_distance.empty()) {
        STIPPLE_REQUIRE(options.voxel.empty(), "--voxel needs --max-distance, one for each");
        return wanted;
    }
    STIPPLE_REQUIRE(wanted.scale == 0, "--scale and --max-distance both choose the distances: give one");
    STIPPLE_REQUIRE(options.voxel.empty() || options.voxel.size() == options.max_distance.size(),
                    "{} x --voxel for {} x --max-distance", options.voxel.size(), options.max_distance.size());
    for (const double voxel : options.voxel)
        STIPPLE_REQUIRE(voxel >= 0 && std::isfinite(voxel), "--voxel must be from 0, got {}", voxel);
    for (const double distance : options.max_distance)
        STIPPLE_REQUIRE(distance > 0 && std::isfinite(distance), "--max-distance must be above 0, got {}", distance);
    wanted.icp.levels = tasks::levels_of(options.max_distance, options.voxel);
    return wanted;
}

void require_clouds(const RegisterOptions& options) {
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

Json json_of(const geometry::RigidTransform& transform) {
    Json rows = Json::array();
    for (int i = 0; i < 3; ++i) {
        Json row = transform.rotation[i];
        row.push_back(transform.translation[i]);
        rows.push_back(row);
    }
    rows.push_back({0.0, 0.0, 0.0, 1.0});
    return rows;
}

double length(const geometry::Vector3& v) {
    return std::hypot(v[0], v[1], v[2]);
}

Json json_of(const tasks::PoseError& error) {
    return {{"rotation_error_degrees", error.degrees},
            {"rotation_error_doubled_degrees", error.doubled},
            {"translation_error", error.translation},
            {"rms_displacement", error.rms}};
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

Image before_and_after(const std::vector<const PointCloud*>& before, const std::vector<const PointCloud*>& after,
                       const std::string& caption) {
    const PointCloud first = in_colors(before), second = in_colors(after);
    const picture::Panel panels[] = {{.cloud = &first, .caption = "before: " + caption},
                                     {.cloud = &second, .caption = "after"}};
    picture::FigureStyle style;
    style.panel_width = style.panel_height = 768;
    return picture::draw_figure(panels, style).image;
}

}  // namespace stipple::cli
