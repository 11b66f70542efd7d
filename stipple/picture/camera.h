#pragma once
// Cameras: where from (Viewpoint) and, once fitted to what is to be seen, where each point lands (Camera).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/picture/vec.h"

namespace stipple::picture {

enum class Projection { orthographic, perspective };
enum class UpAxis { z, y, x, minus_z, minus_y, minus_x };
const std::vector<std::string>& up_axis_names();  // "z", "y", "x", "-z", "-y", "-x": in this order
/// Throws Error{bad_argument} that lists the names.
UpAxis up_axis_by_name(const std::string& name);
/// 0 to 2 for x to z.
int axis_of(UpAxis up);
Vec3d direction_of(UpAxis up);

/// Directions that people name: automatic and iso from the front, the side and above at once, where automatic goes by
/// what there is to see; sensor from where a scan was taken.
enum class ViewName { automatic, iso, top, front, side, sensor };
const std::vector<std::string>& view_names();  // "auto", "iso", "top", "front", "side", "sensor"

/// A direction of view on an orbit.
struct Viewpoint {
    /// Degrees about the up axis; 0 looks along -x (up z), -z (up y) or -y (up x), that is from its front. Without a
    /// number 35, but where content is flat and long such that its longer side lies across the picture.
    std::optional<double> azimuth = {};
    /// Degrees above the horizon. Without a number 22, but up to 60 where content is flat, as ground is.
    std::optional<double> elevation = {};
    UpAxis up = UpAxis::z;
    Projection projection = Projection::perspective;
    double zoom = 1;                                // enlarges the middle of what is fitted
    double field_of_view = 28;                      // degrees over the smaller side of the picture, perspective only
    std::optional<std::array<double, 3>> aim = {};  // in the middle of the picture, world coordinates
    /// From here, in world coordinates, towards `aim` or the middle of what there is to see; it may be among it. The
    /// angles and the field of view do not count then: the picture is as wide as most points need, 100 degrees at most.
    std::optional<std::array<double, 3>> eye = {};
};

/// The angles of a view by name, of sensor alone the eye, at `sensor`.
void set_view(Viewpoint& viewpoint, ViewName view, const std::array<double, 3>& sensor = {});

/// A projected point: pixels from the upper left corner (pixel centres at .5) and depth. Depth is in scene units (the
/// radius of what the camera was fitted to), grows away from the eye and is positive in front of it.
struct Projected {
    double x, y, depth;
};

struct Camera {
    Vec3d right{1, 0, 0}, up{0, 0, 1}, forward{0, 1, 0};  // orthonormal
    Vec3d eye{};                                          // relative to `origin`
    std::array<double, 3> origin{};                       // world coordinates
    double unit = 1;                                      // world length of one scene unit
    double focal = 1;                   // pixels per scene unit (orthographic), or pixels times depth per scene unit
    double center_x = 0, center_y = 0;  // pixel of the optical axis
    bool perspective = true;
    double depth_low = 1, depth_high = 3;  // of what the camera was fitted to

    double depth_middle() const { return (depth_low + depth_high) / 2; }

    /// In scene units, x right, y up, z away from the eye. `offset` is cloud origin - camera origin.
    Vec3d to_view(Vec3d position, Vec3d offset) const {
        const Vec3d p = ((position - eye) + offset) * (1 / unit);
        return {dot(p, right), dot(p, up), dot(p, forward)};
    }
    Projected project_view(Vec3d view) const {
        const double scale = perspective ? focal / view.z : focal;
        return {center_x + view.x * scale, center_y - view.y * scale, view.z};
    }
    Projected project(Vec3d position, Vec3d offset = {}) const { return project_view(to_view(position, offset)); }

    /// Pixels per scene unit at a depth.
    double pixels_per_unit(double depth) const { return perspective ? focal / depth : focal; }

    /// The vector from the camera's origin to the cloud's.
    Vec3d offset_of(const PointCloud& cloud) const { return to_vec(cloud.origin) - to_vec(origin); }

    /// The same view of the part of the picture that starts at pixel (x, y), enlarged `zoom` times.
    Camera cropped(double x, double y, double zoom) const;
};

/// Points nearer than this (scene units) are not drawn.
inline constexpr double kNear = 1e-3;

/// Fits a camera to clouds (and vertices of meshes): it looks from `viewpoint`, as near as all points fit between the
/// margins (with a zoom of 1), whatever the direction and the shape of the picture. Only stray points do not count,
/// since one of them would shrink all others to a dot: those further from the box of the middle 98 % of their cloud on
/// each axis than two diagonals of that box, in clouds of 200 points and more. Non-finite points are ignored; without
/// any finite point, and for a single one, the camera frames a unit ball. Content is flat where its extent along the up
/// axis is less than a quarter of the wider one across it, of the middle 96 % of points. Deterministic; O(n).
Camera fit_camera(const Viewpoint& viewpoint, std::span<const PointCloud* const> clouds, double width, double height,
                  double margin);

}  // namespace stipple::picture
