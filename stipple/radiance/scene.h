#pragma once
// Scene: photographs with their cameras, as radiance fields learn from them.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/box.h"
#include "stipple/core/fields.h"
#include "stipple/core/image.h"
#include "stipple/core/point_cloud.h"

namespace stipple::io {
struct ColmapModel;  // io/colmap.h
}

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

/// What pixels without alpha show: a colour that the field does not have to explain. learned: photographs show all
/// there is, and what lies behind the box is a map of colours by direction that is learned with the field.
enum class Background { white, black, random, learned };
/// In that order, as files and settings name them.
inline constexpr const char* kBackgroundWords[] = {"white", "black", "random", "learned"};

/// Depths between which Blender scenes lie by the published protocol [Mildenhall et al. 2020].
inline constexpr float kBlenderNear = 2, kBlenderFar = 6;

struct Scene {
    std::vector<Photograph> train, validation, test;
    bool has_alpha = false;  // any pixel that is not opaque
    /// Transparent pixels are those that no photograph has, where distortion was removed: nothing is known of them, so
    /// that training leaves them out. Else they show the background.
    bool alpha_is_unknown = false;
    float near = 0, far = 0;        // depths between which the scene lies; far 0: not known
    std::optional<Box<float>> box;  // of the scene, where the source tells; else it is found from cameras and near, far
    PointCloud sparse_points;       // of structure from motion, with attribute color; empty for other sources
    std::array<double, 3> origin = {};  // camera positions, box and points are about it
    int64_t listed_images = 0;          // those the source has; cameras are known for the registered ones
    std::string source;                 // "blender", "transforms", "colmap text", "colmap binary"
};

struct SceneOptions {
    int reduce = 1;            // images are reduced by this factor, averaging with alpha as weight
    int test_every = 8;        // sources without a split: every n-th image by name is a test image; 0: none
    bool train_only = false;   // validation and test images are not read
    bool find_cameras = true;  // photographs without cameras: run the program colmap, which takes minutes
    std::function<void(const std::string& line)> report;  // what is done, where that takes long; may be empty
};
const Fields& scene_fields();

/// Which pictures of a scene.
enum class SceneSplit { train, val, test };
inline constexpr const char* kSceneSplitWords[] = {"train", "val", "test"};

/// A folder with one of these, tried in this order:
///
/// transforms_train.json: Blender's layout; transforms_val.json and transforms_test.json are the other splits, where
/// they are there. near and far are kBlenderNear and kBlenderFar.
///
/// transforms.json, as instant-ngp and nerfstudio have it: near is half the least, far 1.5 times the largest depth of
/// the point that all cameras look at, which makes 2 and 6 of Blender's cameras; those two where there is no such
/// point.
///
/// A COLMAP model in sparse/*, sparse or the folder itself, text or binary, of several the one with the most images;
/// pictures in images/, else in the folder. The box holds all but the outermost hundredth of the points on each side of
/// each axis, and a tenth of its extent more on each side. near is 0.9 times the depth that all but 1/200 of what
/// cameras see of the points lies behind, far 1.1 times the one that all but 1/200 lies before. Fewer than 8 points
/// tell no box, and depths are those of transforms.json.
///
/// Photographs alone, in images/, else in the folder: the program colmap finds their cameras, in FOLDER/sparse.
///
/// Without a split, every test_every-th image by name is a test image, the first one too, unless it is the only one.
/// Images are PNG or JPEG; a name without extension is tried with .png, .jpg and .jpeg. Pixels count as they are
/// stored: what cameras were found from is not turned by EXIF tags, unless only the upright picture has the camera's
/// size. Distortion is removed: the picture that the same pinhole without it would have taken, linearly resampled,
/// transparent where the photograph does not reach. Camera positions beyond 1000 go into the origin.
///
/// Throws Error{bad_file} that names the file that is missing, unreadable or wrong, and the place in it;
/// Error{bad_argument} for options. Images are read in parallel; the result does not depend on threads.
Scene load_scene(const std::string& folder, const SceneOptions& options = {});

/// The cameras of photographs as a COLMAP model: PINHOLE, one camera for those that are alike, images named by what
/// `name` makes of a photograph. Positions are those of the world, so that reading it gives the same rays.
io::ColmapModel to_colmap(const std::vector<Photograph>& photographs, const std::array<double, 3>& origin,
                          const std::function<std::string(const Photograph&)>& name);

}  // namespace stipple::radiance
