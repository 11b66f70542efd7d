// Scenes of transforms_*.json and transforms.json.

#include "stipple/core/program_files.h"
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
