#pragma once
// Shading: colours and light for what a visibility buffer sees.
//
// Three terms. Lambert light from the upper left, with a weak fill from the right, on the normal of the mesh, of the
// point, or, for clouds without normals, of a plane fitted to the depths around the pixel (small splats) or of the ball
// that the splat stands for (large ones). Occlusion from the depths around: a place darkens by how far it lies behind
// both of two opposite neighbours, so planes stay bright at any tilt; for scenes eye-dome lighting besides. A little
// gloss on balls and meshes.

#include <vector>

#include "stipple/core/image.h"
#include "stipple/picture/camera.h"
#include "stipple/picture/coloring.h"
#include "stipple/picture/render/splat.h"
#include "stipple/picture/render/visibility.h"

namespace stipple::picture {

struct ShadeInput {
    const Visibility* visibility = nullptr;
    const Camera* camera = nullptr;
    const ColorScale* scale = nullptr;

    const PointCloud* cloud = nullptr;  // what its keys are of; null when there is none
    const Coloring* cloud_color = nullptr;
    SplatSizes splats;  // as drawn

    const Mesh* mesh = nullptr;
    const Coloring* mesh_color = nullptr;
    const std::vector<Vec3f>* mesh_normals = nullptr;  // corner_normals(); null for flat faces
    bool mesh_edges = false;

    Rgb background{255, 255, 255};
    float light = 1;        // 0 shows the bare colours
    float occlusion = 1;    // 0 leaves corners bright
    bool eye_dome = false;  // of the cloud, see eye_dome.h
};

/// Draws the visibility buffer's pixels into `image` (3 channels) with their upper left corner at (x, y). The picture
/// does not depend on the number of threads.
void shade(const ShadeInput& input, Image& image, int64_t x, int64_t y);

}  // namespace stipple::picture
