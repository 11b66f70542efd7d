#pragma once
// The photographs of a command: a folder, a split of it.

#include "stipple/cli/command.h"
#include "stipple/radiance/field.h"

namespace stipple::cli {

struct SceneArguments {
    std::string folder;
    radiance::SceneSplit split = radiance::SceneSplit::test;
    radiance::SceneOptions options;
};

/// --reduce, --test-every and --no-colmap.
void add_scene_options(Arguments& app, radiance::SceneOptions& options);
/// --split.
void add_split_option(Arguments& app, SceneArguments& arguments);

/// The scene, with what it says while it takes long on standard error.
radiance::Scene load_photographs(const std::string& folder, radiance::SceneOptions options, const Common& common,
                                 bool train_only);

/// The photographs of the split, their cameras about the field's origin. Throws Error{bad_file} where there are none.
std::vector<radiance::Photograph> take_split(radiance::Scene& scene, const SceneArguments& arguments,
                                             const radiance::Field& field);

}  // namespace stipple::cli
