#include "stipple/cli/mesh/ray_source.h"

#include <cmath>

#include "stipple/metrics/normalise.h"
#include "stipple/picture/camera.h"

namespace stipple::cli {
namespace {

using picture::Vec3d;

constexpr double kDegree = 3.14159265358979323846 / 180;

Vec3d vector_of(const std::vector<double>& v) {
    return {v[0], v[1], v[2]};
}

/// --size within what a ray for each pixel can be afforded.
std::pair<int64_t, int64_t> pixels_of(const RayOptions& options) {
    const auto [width, height] = parse_size(options.size);
    STIPPLE_REQUIRE(width >= 16 && height >= 16 && width <= 16384 && height <= 16384,
                    "--size must be 16 to 16384 pixels a side, got {}", options.size);
    return {width, height};
}

/// At --eye, towards --look-at or the middle of the mesh; relative to the mesh's origin.
picture::Camera placed_camera(const RayOptions& options, const Mesh& mesh, double width, double height) {
    const Vec3d origin = picture::to_vec(mesh.vertices.origin);
    const Bounds bounds = bounds_of(mesh.vertices);
    picture::Camera camera;
    camera.origin = mesh.vertices.origin;
    camera.eye = vector_of(options.eye) - origin;
    const Vec3d middle = (picture::to_vec(bounds.min) + picture::to_vec(bounds.max)) * 0.5;
    const Vec3d target = (options.look_at.empty() ? middle : vector_of(options.look_at)) - origin;
    const Vec3d forward = target - camera.eye;
    const double length = std::sqrt(dot(forward, forward));
    STIPPLE_REQUIRE(length > 0 && std::isfinite(length), "--eye and --look-at are the same place, or not finite");
    camera.forward = forward * (1 / length);
    Vec3d above = picture::direction_of(picture::up_axis_by_name(options.up));
    if (std::abs(dot(above, camera.forward)) > 1 - 1e-9)
        above = {above.y, above.z, above.x};  // looks along the up axis itself
    const Vec3d right = cross(camera.forward, above);
    camera.right = right * (1 / std::sqrt(dot(right, right)));
    camera.up = cross(camera.right, camera.forward);
    camera.focal = std::min(width, height) / 2 / std::tan(options.field_of_view / 2 * kDegree);
    camera.center_x = width / 2;
    camera.center_y = height / 2;
    return camera;
}

picture::Camera orbit_camera(const RayOptions& options, const Mesh& mesh, double width, double height) {
    picture::Viewpoint viewpoint;
    viewpoint.azimuth = options.azimuth;
    viewpoint.elevation = options.elevation;
    viewpoint.up = picture::up_axis_by_name(options.up);
    viewpoint.field_of_view = options.field_of_view;
    const PointCloud* clouds[] = {&mesh.vertices};
    return picture::fit_camera(viewpoint, clouds, width, height, 0.04 * std::min(width, height));
}

RaySet camera_rays(const RayOptions& options, const Mesh& mesh) {
    RaySet rays;
    std::tie(rays.width, rays.height) = pixels_of(options);
    const auto width = static_cast<double>(rays.width), height = static_cast<double>(rays.height);
    const picture::Camera camera =
        options.camera ? orbit_camera(options, mesh, width, height) : placed_camera(options, mesh, width, height);
    const Vec3d eye = camera.eye - camera.offset_of(mesh.vertices);
    const double place[] = {eye.x, eye.y, eye.z};
    rays.origins = Array<float, 2>({rays.width * rays.height, 3});
    rays.directions = Array<float, 2>({rays.width * rays.height, 3});
    for (int64_t i = 0; i < rays.width * rays.height; ++i) {
        const double x = static_cast<double>(i % rays.width) + 0.5, y = static_cast<double>(i / rays.width) + 0.5;
        const Vec3d d = camera.forward + camera.right * ((x - camera.center_x) / camera.focal) +
                        camera.up * ((camera.center_y - y) / camera.focal);
        const double direction[] = {d.x, d.y, d.z};
        for (int axis = 0; axis < 3; ++axis) {
            rays.origins.data()[3 * i + axis] = static_cast<float>(place[axis]);
            rays.directions.data()[3 * i + axis] = static_cast<float>(direction[axis]);
        }
    }
    return rays;
}

RaySet one_ray(const RayOptions& options, const Mesh& mesh) {
    RaySet rays{Array<float, 2>({1, 3}), Array<float, 2>({1, 3})};
    for (int axis = 0; axis < 3; ++axis) {
        const auto at = static_cast<size_t>(axis);
        rays.origins.data()[axis] = static_cast<float>(options.origin[at] - mesh.vertices.origin[at]);
        rays.directions.data()[axis] = static_cast<float>(options.direction[at]);
    }
    return rays;
}

/// Positions are origins; directions are the attribute direction, normal, extra (six columns of an .xyz), or the
/// columns dx, dy, dz.
RaySet rays_of_file(const RayOptions& options, const Mesh& mesh, const Common& common, Result& result) {
    const Mesh file = load_with_progress(options.file, "", -1, common, result.warnings);
    const Attributes& attributes = file.vertices.attributes;
    const Attribute* three = nullptr;
    for (const char* name : {"direction", "normal", "extra"})
        if (const Attribute* found = find(attributes, name); found && !three && found->components() == 3) three = found;
    const Attribute* one[] = {find(attributes, "dx"), find(attributes, "dy"), find(attributes, "dz")};
    if (!three && !(one[0] && one[1] && one[2]))
        throw Error(ErrorCode::bad_file, Place{options.file}, "has no directions of rays",
                    "a .csv with the columns x,y,z,dx,dy,dz, or an attribute direction or normal");
    RaySet rays;
    rays.origins = metrics::in_frame(file.vertices, {mesh.vertices.origin, 1}).rounded.clone();
    rays.directions = Array<float, 2>({file.vertices.size(), 3});
    for (int64_t i = 0; i < file.vertices.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            rays.directions.data()[3 * i + axis] =
                static_cast<float>(three ? three->value(i, axis) : one[axis]->value(i));
    return rays;
}

}  // namespace

void require_ray_source(const RayOptions& options) {
    const int sources = (!options.origin.empty() || !options.direction.empty()) + !options.file.empty() +
                        options.camera + !options.eye.empty();
    STIPPLE_REQUIRE(sources == 1, "where from? Give one of --camera, --eye, --rays, or --origin and --direction");
    STIPPLE_REQUIRE(options.origin.empty() == options.direction.empty(), "--origin and --direction go together");
    STIPPLE_REQUIRE(options.look_at.empty() || !options.eye.empty(), "--look-at is for --eye");
    STIPPLE_REQUIRE(options.field_of_view > 0 && options.field_of_view < 180, "--fov must be between 0 and 180, got {}",
                    options.field_of_view);
    if (options.camera || !options.eye.empty()) pixels_of(options);
}

RaySet make_rays(const RayOptions& options, const Mesh& mesh, const Common& common, Result& result) {
    if (!options.file.empty()) return rays_of_file(options, mesh, common, result);
    return options.origin.empty() ? camera_rays(options, mesh) : one_ray(options, mesh);
}

}  // namespace stipple::cli
