#include "stipple/cli/radiance/scene_arguments.h"

#include "stipple/core/log.h"
#include "stipple/radiance/evaluate.h"

namespace stipple::cli {
namespace {

const Fields& split_fields() {
    static const Fields fields = {field<&SceneArguments::split>("split", "Which of its pictures: train, val, test")
                                      .words(radiance::kSceneSplitWords)};
    return fields;
}

}  // namespace

void add_scene_options(Arguments& app, radiance::SceneOptions& options) {
    app.add(radiance::scene_fields(), &options);
    app.flag("!--no-colmap", options.find_cameras, "Do not run colmap for photographs without cameras");
}

void add_split_option(Arguments& app, SceneArguments& arguments) {
    app.add(split_fields(), &arguments);
}

radiance::Scene load_photographs(const std::string& folder, radiance::SceneOptions options, const Common& common,
                                 bool train_only) {
    options.train_only = train_only;
    if (!common.quiet) options.report = [](const std::string& line) { log_info("{}", line); };
    return radiance::load_scene(folder, options);
}

std::vector<radiance::Photograph> take_split(radiance::Scene& scene, const SceneArguments& arguments,
                                             const radiance::Field& field) {
    std::vector<radiance::Photograph>* const splits[] = {&scene.train, &scene.validation, &scene.test};
    std::vector<radiance::Photograph> photographs = std::move(*splits[static_cast<int>(arguments.split)]);
    if (photographs.empty())
        throw Error(ErrorCode::bad_file, Place{arguments.folder},
                    fmt::format("has no pictures of the split {}",
                                radiance::kSceneSplitWords[static_cast<int>(arguments.split)]));
    radiance::move_cameras(photographs, scene.origin, field.origin);
    return photographs;
}

}  // namespace stipple::cli
