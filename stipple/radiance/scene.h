#pragma once
// Scene: photographs with their cameras, as radiance fields learn from them.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/box.h"
#include "stipple/core/image.h"
#include "stipple/core/point_cloud.h"

namespace stipple::radiance {

/// A pinhole camera. The camera looks along its -z axis, y is up; the centre of pixel (0, 0), the upper left one, is at
/// (0.5, 0.5). The ray of (u, v) has the direction R ((u - cx) / fx, -(v - cy) / fy, -1), which is not of unit length:
/// distances along it are depths along the camera's axis.
struct Camera {
    int32_t width = 0, height = 0;
    float fx = 0, fy = 0, cx = 0, cy = 0;  // pixels
    std::array<float, 12> to_world = {};   // 3 x 4, row by row: rotation and position
};

struct Photograph {
    std::string file;  // for messages
    Image pixels;      // RGBA8 with straight alpha, 255 where the file has none; distortion is removed
    Camera camera;
};

/// What pixels without alpha show: a colour that the field does not have to explain.
enum class Background { white, black, random };

struct Scene {
    std::vector<Photograph> train, validation, test;
    bool has_alpha = false;         // any pixel that is not opaque
    float near = 0, far = 0;        // depths between which the scene lies; far 0: not known
    std::optional<Box<float>> box;  // of the scene, where the source tells; else it is found from cameras and near, far
    PointCloud sparse_points;       // of structure from motion; empty for other sources
    std::array<double, 3> origin = {};  // camera positions, box and points are about it
    int64_t listed_images = 0;          // those the source names; cameras are known for the registered ones
    std::string source;                 // "blender", "colmap text", "colmap binary"
};

struct SceneOptions {
    int reduce = 1;           // images are reduced by this factor, averaging with alpha as weight
    int test_every = 8;       // sources without a split: every n-th image by name is a test image; 0: none
    bool train_only = false;  // validation and test images are not read
};

/// A folder with transforms_train.json (Blender's layout), with transforms.json, or with a COLMAP model (sparse/0,
/// sparse or the folder itself; text or binary; of several models the one with the most images) and images/. Throws
/// Error{bad_file} that names the file that is missing, unreadable or wrong, and the place in it.
Scene load_scene(const std::string& folder, const SceneOptions& options = {});

}  // namespace stipple::radiance
