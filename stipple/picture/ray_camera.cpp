#include "stipple/picture/ray_camera.h"

#include <algorithm>
#include <cmath>

namespace stipple::picture {
namespace {

constexpr double kDegree = 3.14159265358979323846 / 180;

Vec3d vector_of(const std::vector<double>& v) {
    return {v[0], v[1], v[2]};
}

/// At the eye, towards what it looks at or the middle of the mesh; relative to the mesh's origin.
Camera placed_camera(const RayCameraOptions& options, const Mesh& mesh) {
    const auto width = static_cast<double>(options.width), height = static_cast<double>(options.height);
    const Vec3d origin = to_vec(mesh.vertices.origin);
    const Bounds bounds = bounds_of(mesh.vertices);
    Camera camera;
    camera.origin = mesh.vertices.origin;
    camera.eye = vector_of(options.eye) - origin;
    const Vec3d middle = (to_vec(bounds.min) + to_vec(bounds.max)) * 0.5;
    const Vec3d target = (options.look_at.empty() ? middle : vector_of(options.look_at)) - origin;
    const Vec3d forward = target - camera.eye;
    const double length = std::sqrt(dot(forward, forward));
    STIPPLE_REQUIRE(length > 0 && std::isfinite(length), "--eye and --look-at are the same place, or not finite");
    camera.forward = forward * (1 / length);
    Vec3d above = direction_of(options.up);
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

Camera orbit_camera(const RayCameraOptions& options, const Mesh& mesh) {
    const auto width = static_cast<double>(options.width), height = static_cast<double>(options.height);
    Viewpoint viewpoint;
    viewpoint.azimuth = options.azimuth;
    viewpoint.elevation = options.elevation;
    viewpoint.up = options.up;
    viewpoint.field_of_view = options.field_of_view;
    const PointCloud* clouds[] = {&mesh.vertices};
    return fit_camera(viewpoint, clouds, width, height, 0.04 * std::min(width, height));
}

}  // namespace

const Fields& ray_camera_fields() {
    using Options = RayCameraOptions;
    static const Fields fields = {
        field<&Options::orbit>("camera", "A ray for each pixel, from an orbit that sees all of the mesh"),
        field<&Options::azimuth>("azimuth", "--camera: degrees about the up axis").unit("degree"),
        field<&Options::elevation>("elevation", "--camera: degrees above the horizon").unit("degree"),
        field<&Options::eye>("eye", "A pinhole camera at X Y Z").shown("X Y Z"),
        field<&Options::look_at>("look_at", "--eye: what is in the middle; else the mesh's middle").shown("X Y Z"),
        field<&Options::field_of_view>("fov", "Degrees over the smaller side of the picture")
            .unit("degree")
            .above(0)
            .below(180)};
    return fields;
}

void require_valid(const RayCameraOptions& options) {
    check_fields(ray_camera_fields(), &options, as_option);
    STIPPLE_REQUIRE(options.look_at.empty() || !options.eye.empty(), "--look-at is for --eye");
    STIPPLE_REQUIRE(options.eye.empty() || options.eye.size() == 3, "--eye must be X Y Z");
    STIPPLE_REQUIRE(options.look_at.empty() || options.look_at.size() == 3, "--look-at must be X Y Z");
    constexpr int64_t kLeast = 16, kMost = 16384;  // a ray for each pixel
    STIPPLE_REQUIRE(
        std::min(options.width, options.height) >= kLeast && std::max(options.width, options.height) <= kMost,
        "--size must be {} to {} pixels a side, got {}x{}", kLeast, kMost, options.width, options.height);
}

PixelRays pixel_rays(const RayCameraOptions& options, const Mesh& mesh) {
    require_valid(options);
    const Camera camera = options.orbit ? orbit_camera(options, mesh) : placed_camera(options, mesh);
    const Vec3d eye = camera.eye - camera.offset_of(mesh.vertices);
    const double place[] = {eye.x, eye.y, eye.z};
    const int64_t pixels = options.width * options.height;
    PixelRays rays{Array<float, 2>({pixels, 3}), Array<float, 2>({pixels, 3})};
    for (int64_t i = 0; i < pixels; ++i) {
        const double x = static_cast<double>(i % options.width) + 0.5, y = static_cast<double>(i / options.width) + 0.5;
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

}  // namespace stipple::picture
