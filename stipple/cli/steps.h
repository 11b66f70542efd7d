#pragma once
// The steps that `stipple run` knows: each declares the options that the command of its name has, but for files.

#include "stipple/cli/common/step.h"

namespace stipple::cli {

MakeStep add_crop_step(Arguments& app, const Common& common);
MakeStep add_filter_step(Arguments& app, const Common& common);
MakeStep add_transform_step(Arguments& app, const Common& common);
MakeStep add_clean_step(Arguments& app, const Common& common);
MakeStep add_sample_step(Arguments& app, const Common& common);
MakeStep add_reconstruct_step(Arguments& app, const Common& common);
MakeStep add_normals_step(Arguments& app, const Common& common);
MakeStep add_ground_step(Arguments& app, const Common& common);
MakeStep add_planes_step(Arguments& app, const Common& common);
MakeStep add_clusters_step(Arguments& app, const Common& common);

}  // namespace stipple::cli
