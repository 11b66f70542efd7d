#include "stipple/core/folder.h"
#include "stipple/core/program_files.h"
#include "stipple/radiance/scene/photographs.h"
#include "stipple/radiance/scene/planned_view.h"

namespace stipple::radiance {
namespace {

std::string without_slash(std::string folder) {
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    return folder;
}

}  // namespace

const Fields& scene_fields() {
    using Options = SceneOptions;
    static const Fields fields = {
        field<&Options::reduce>("reduce", "Make the pictures smaller by this factor").shown("N").between(1, 64),
        field<&Options::test_every>("test_every", "Without splits: every so many-th picture is for tests; 0: none")
            .shown("N")
            .between(0, 1 << 20)};
    return fields;
}

Scene load_scene(const std::string& path, const SceneOptions& options) {
    check_fields(scene_fields(), &options);
    const std::string folder = without_slash(path);
    if (!is_folder(folder))
        throw Error(ErrorCode::bad_file, Place{path, {}, {}},
                    is_file(folder) ? "a scene is a folder, and this is a file" : "there is no such folder");
    Scene scene;
    if (is_file(folder + "/transforms_train.json")) {
        load_blender(folder, options, scene);
        return scene;
    }
    if (is_file(folder + "/transforms.json")) {
        load_transforms_scene(folder, options, scene);
        return scene;
    }
    if (load_colmap_scene(folder, options, scene)) return scene;
    const bool has_photographs = !list_pictures(picture_folder(folder)).empty();
    if (!has_photographs)
        throw Error(ErrorCode::bad_file, Place{path, {}, {}},
                    "no scene: neither transforms_train.json, transforms.json, a COLMAP model nor photographs");
    if (!options.find_cameras)
        throw Error(ErrorCode::bad_file, Place{path, {}, {}},
                    "photographs without cameras: neither transforms.json nor a COLMAP model");
    run_colmap(folder, options.report);
    if (load_colmap_scene(folder, options, scene)) return scene;
    throw Error(ErrorCode::bad_file, Place{folder + "/sparse", {}, {}}, "colmap has left no model there");
}

}  // namespace stipple::radiance
