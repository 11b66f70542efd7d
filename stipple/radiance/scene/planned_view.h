#pragma once
// A photograph before it is read: where it is and what is known of its camera.

#include "stipple/io/transforms.h"
#include "stipple/radiance/scene.h"

namespace stipple::radiance {

struct PlannedView {
    std::string path;           // of the picture
    io::TransformsFrame frame;  // pose in world coordinates and lens
    std::string told_by;        // the file that names it, for messages
};

/// What reading pictures tells of all of them.
struct PictureFacts {
    bool has_alpha = false;    // of the files
    bool has_unknown = false;  // pixels outside of what was photographed
};

/// Reads the pictures, in parallel, in their order: RGBA8, without distortion, reduced. See load_scene for errors.
std::vector<Photograph> read_views(const std::vector<PlannedView>& views, const std::array<double, 3>& origin,
                                   int reduce, PictureFacts& facts);

/// The file of a picture's name, tried with the usual extensions where it has none. Throws Error{bad_file}.
std::string find_picture(const std::string& folder, const std::string& name, const std::string& told_by);

/// An origin for camera positions: 0, on axes with positions beyond 1000 their rounded middle.
std::array<double, 3> origin_of(const std::vector<PlannedView>& views);

/// Cuts views into train and test; both come out sorted by name.
void split_views(std::vector<PlannedView> all, int test_every, std::vector<PlannedView>& train,
                 std::vector<PlannedView>& test);

/// near and far: half the least and 1.5 times the largest depth of the point that the cameras look at, which makes
/// Blender's of its cameras; Blender's where there is no such point.
void set_depths_by_focus(const std::vector<PlannedView>& views, Scene& scene);

// Each fills all of the scene but what the others fill.
void load_blender(const std::string& folder, const SceneOptions& options, Scene& scene);
void load_transforms_scene(const std::string& folder, const SceneOptions& options, Scene& scene);
/// False where there is no model.
bool load_colmap_scene(const std::string& folder, const SceneOptions& options, Scene& scene);

}  // namespace stipple::radiance
