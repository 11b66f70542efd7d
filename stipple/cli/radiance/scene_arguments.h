#pragma once
// The photographs of a command: a folder, a split of it.

#include "stipple/cli/command.h"
#include "stipple/radiance/field.h"

namespace stipple::cli {

struct SceneArguments {
    std::string folder, split = "test";
    int reduce = 1, test_every = 8;
    bool no_colmap = false;
};

/// --reduce, --test-every and --no-colmap.
void add_scene_options(Arguments& app, SceneArguments& arguments);
/// --split.
void add_split_option(Arguments& app, SceneArguments& arguments);

/// The scene, with what it says while it takes long on standard error.
radiance::Scene load_photographs(const SceneArguments& arguments, const Common& common, bool train_only);

/// The photographs of the split, their cameras about the field's origin. Throws Error{bad_file} where there are none.
std::vector<radiance::Photograph> take_split(radiance::Scene& scene, const SceneArguments& arguments,
                                             const radiance::Field& field);

}  // namespace stipple::cli
