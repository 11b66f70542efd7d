#pragma once
// The grids of the stages of training: where they lie, how fine they are, what is occupied.

#include "stipple/radiance/train.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance {

/// About so many voxels in the box, cubes as far as whole numbers of nodes allow.
GridShape grid_of(const Box<float>& box, int64_t voxels);

/// Where the cameras look, between near and far.
Box<float> box_of_cameras(const Scene& scene);

/// Opacity of a coarse voxel at the start.
float coarse_start(const TrainOptions& options);

/// Of steps on the grid; `stage` is one of the options' own, `stream` tells the random numbers of the stages apart.
StepConstants constants_of(const StageOptions& stage, const TrainOptions& options, const Scene& scene,
                           const GridShape& grid, float shift, uint64_t stream);

/// The largest of the 27 values about each node [nodes].
std::vector<float> pooled(const GridShape& grid, std::vector<float> values);

/// Of a voxel, for densities [nodes].
std::vector<float> opacities(const std::vector<float>& density, const StepConstants& c);

/// Of the nodes that are opaque and seen, scaled about its centre; the whole box where none is.
Box<float> box_of_content(const GridShape& grid, const std::vector<float>& opacity, const std::vector<uint8_t>& seen,
                          float least, float scale);

/// [nodes] of the fine grid: those whose nearest coarse node is opaque.
std::vector<uint8_t> occupied_nodes(const GridShape& fine, const GridShape& coarse, const std::vector<float>& opacity,
                                    float least);

}  // namespace stipple::radiance
