#include "stipple/cli/radiance/scene_arguments.h"

#include "stipple/core/log.h"
#include "stipple/radiance/evaluate.h"

namespace stipple::cli {

void add_scene_options(Arguments& app, SceneArguments& arguments) {
    app.option("--reduce", arguments.reduce, "Make the pictures smaller by this factor").between(1, 64).text("N");
    app.option("--test-every", arguments.test_every, "Without splits: every so many-th picture is for tests; 0: none")
        .between(0, 1 << 20)
        .text("N");
    app.flag("--no-colmap", arguments.no_colmap, "Do not run colmap for photographs without cameras");
}

void add_split_option(Arguments& app, SceneArguments& arguments) {
    app.option("--split", arguments.split, "Which of its pictures: train, val, test")
        .one_of({"train", "val", "test"})
        .text("train|val|test");
}

radiance::Scene load_photographs(const SceneArguments& arguments, const Common& common, bool train_only) {
    radiance::SceneOptions options;
    options.reduce = arguments.reduce;
    options.test_every = arguments.test_every;
    options.train_only = train_only;
    options.find_cameras = !arguments.no_colmap;
    if (!common.quiet) options.report = [](const std::string& line) { log_info("{}", line); };
    return radiance::load_scene(arguments.folder, options);
}

std::vector<radiance::Photograph> take_split(radiance::Scene& scene, const SceneArguments& arguments,
                                             const radiance::Field& field) {
    std::vector<radiance::Photograph> photographs = std::move(arguments.split == "train" ? scene.train
                                                              : arguments.split == "val" ? scene.validation
                                                                                         : scene.test);
    if (photographs.empty())
        throw Error(ErrorCode::bad_file, Place{arguments.folder},
                    fmt::format("has no pictures of the split {}", arguments.split));
    radiance::move_cameras(photographs, scene.origin, field.origin);
    return photographs;
}

}  // namespace stipple::cli
