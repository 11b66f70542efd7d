// Scenes of transforms_*.json and transforms.json.

#include <algorithm>
#include <cmath>

#include "stipple/core/program_files.h"
#include "stipple/core/vec3.h"
#include "stipple/radiance/scene/planned_view.h"

namespace stipple::radiance {
namespace {

std::vector<PlannedView> listed_views(const std::string& folder, const std::string& file, bool find_files) {
    const std::string path = folder + "/" + file;
    io::Transforms transforms = io::load_transforms(path);
    std::vector<PlannedView> views;
    views.reserve(transforms.frames.size());
    for (io::TransformsFrame& frame : transforms.frames) {
        PlannedView view;
        if (find_files) view.path = find_picture(folder, frame.file_path, path);
        view.frame = std::move(frame);
        view.told_by = path;
        views.push_back(std::move(view));
    }
    return views;
}

Vec3d position_of(const PlannedView& view) {
    const auto& m = view.frame.to_world;
    return {m[3], m[7], m[11]};
}
Vec3d axis_of(const PlannedView& view) {
    const auto& m = view.frame.to_world;
    return unit(Vec3d{-m[2], -m[6], -m[10]});
}

/// The point nearest to the axes of all cameras, by least squares; false where the axes are as good as parallel.
bool find_focus(const std::vector<PlannedView>& views, Vec3d& focus) {
    Vec3d rows[3], sum;
    const Vec3d first = position_of(views.front());  // large coordinates lose nothing about it
    for (const PlannedView& view : views) {
        const Vec3d d = axis_of(view), p = position_of(view) - first;
        for (int i = 0; i < 3; ++i) {
            Vec3d row = d * -d[i];
            row[i] += 1;
            rows[i] = rows[i] + row;
            sum[i] += dot(row, p);
        }
    }
    const double determinant = dot(rows[0], cross(rows[1], rows[2]));
    const auto n = static_cast<double>(views.size());
    if (!(determinant > 1e-6 * n * n * n)) return false;
    const Vec3d solution =
        cross(rows[1], rows[2]) * sum.x + cross(rows[2], rows[0]) * sum.y + cross(rows[0], rows[1]) * sum.z;
    focus = first + solution * (1 / determinant);
    return true;
}

/// See load_scene.
void set_depths_by_focus(const std::vector<PlannedView>& views, Scene& scene) {
    scene.near = kBlenderNear;
    scene.far = kBlenderFar;
    Vec3d focus;
    if (!find_focus(views, focus)) return;
    double least = INFINITY, most = 0;
    for (const PlannedView& view : views) {
        const double depth = dot(focus - position_of(view), axis_of(view));
        least = std::min(least, depth);
        most = std::max(most, depth);
    }
    if (!(least > 1e-3 * most)) return;  // cameras that look away from each other
    scene.near = static_cast<float>(0.5 * least);
    scene.far = static_cast<float>(1.5 * most);
}

}  // namespace

void load_blender(const std::string& folder, const SceneOptions& options, Scene& scene) {
    scene.source = "blender";
    scene.near = kBlenderNear;
    scene.far = kBlenderFar;
    const std::vector<PlannedView> train = listed_views(folder, "transforms_train.json", true);
    std::vector<PlannedView> validation, test;
    for (const bool is_test : {false, true}) {
        const std::string file = is_test ? "transforms_test.json" : "transforms_val.json";
        if (is_file(folder + "/" + file))
            (is_test ? test : validation) = listed_views(folder, file, !options.train_only);
    }
    scene.listed_images = static_cast<int64_t>(train.size() + validation.size() + test.size());
    scene.origin = origin_of(train);
    PictureFacts facts;
    scene.train = read_views(train, scene.origin, options.reduce, facts);
    if (!options.train_only) {
        scene.validation = read_views(validation, scene.origin, options.reduce, facts);
        scene.test = read_views(test, scene.origin, options.reduce, facts);
    }
    scene.has_alpha = facts.has_alpha || facts.has_unknown;
    scene.alpha_is_unknown = facts.has_unknown && !facts.has_alpha;
}

void load_transforms_scene(const std::string& folder, const SceneOptions& options, Scene& scene) {
    scene.source = "transforms";
    std::vector<PlannedView> all = listed_views(folder, "transforms.json", true), train, test;
    scene.listed_images = static_cast<int64_t>(all.size());
    scene.origin = origin_of(all);
    set_depths_by_focus(all, scene);
    split_views(std::move(all), options.test_every, train, test);
    PictureFacts facts;
    scene.train = read_views(train, scene.origin, options.reduce, facts);
    if (!options.train_only) scene.test = read_views(test, scene.origin, options.reduce, facts);
    scene.has_alpha = facts.has_alpha || facts.has_unknown;
    scene.alpha_is_unknown = facts.has_unknown && !facts.has_alpha;
}

}  // namespace stipple::radiance
