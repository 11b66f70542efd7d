#pragma once
// Eye-dome lighting [Boucheny 2009]: outlines in clouds of scenes, where a sweep's lines and lone points cross each
// other and nothing else tells which is in front. A place darkens by how much nearer something within reach is. Two
// things differ from the paper: what the opposite neighbour lies farther back is a tilted plane and no outline, so
// roads stay bright; and a place with something in front of it on both sides is seen through a hole, which is the
// occlusion's.

#include <cstdint>

#include "stipple/core/array.h"
#include "stipple/core/point_cloud.h"
#include "stipple/picture/camera.h"

namespace stipple::picture {

/// The factor, 0.36 to 1, of the light on what is seen at pixel (x, y) at `depth`. `depths` [height, width] are the
/// nearest of each pixel, infinite where there is nothing; `pixel` is the size of one there, `reach` in pixels.
float eye_dome_light(const Array<float, 2>& depths, int64_t x, int64_t y, float depth, float pixel, int reach);

/// Whether the cloud is a scene to which this gives outlines: it has no normals, and comes from LAS or is less than a
/// third as high as it is wide, of the middle 96 % of its points. On one closed shape it would only darken what shines
/// through gaps.
bool is_scene(const PointCloud& cloud, UpAxis up);

}  // namespace stipple::picture
