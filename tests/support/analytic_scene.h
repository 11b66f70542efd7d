#pragma once
// A scene without files: a chequered disc with a striped glossy ball, a torus and a box on it, sphere-traced from a
// signed distance function. It is the same on every machine, so that training and rendering can be tested against the
// truth.

#include "stipple/core/vec3.h"
#include "stipple/radiance/scene.h"

namespace stipple::test {

/// Depths between which the scene lies, for cameras kAnalyticDistance from the origin.
inline constexpr float kAnalyticDistance = 4, kAnalyticNear = 2, kAnalyticFar = 6;

/// Distance of a point to the surface, negative inside, exact or too small by the box's and the disc's corners; the
/// surface lies within [-1.2, 1.2]^3.
double analytic_distance(Vec3d point);

/// side x side pixels, RGBA with straight alpha: 2 x 2 samples a pixel, alpha is the share that meets the surface, the
/// colour is the mean of those. Cameras lie on a sphere about the origin, from above and from below, evenly spread,
/// and look at it with an opening of 0.69 radians; test views lie between train views. Other seeds turn all
/// cameras about the z axis. `far` and `near` are those above; there is no box, as in Blender scenes.
radiance::Scene analytic_scene(int side, int train_views, int test_views, uint64_t seed);

/// One picture of it, by any camera.
Image analytic_picture(const radiance::Camera& camera);

/// Depth along the camera's axis at the centre of pixel (x, y); infinity where the ray meets nothing.
double analytic_depth(const radiance::Camera& camera, int x, int y);

/// A camera at `position` that looks at the origin, z up, with `side` pixels squared and an opening of 0.69 radians.
radiance::Camera analytic_camera(int side, Vec3d position);

}  // namespace stipple::test
