#pragma once
// Patches of files: a sparse one and a dense one of each place, as PU-GAN, PU1K and PUGeo publish them. The dense one
// is all that is known of the surface: its points, each with a disc in the plane of its neighbours. No torch here.
//
//   SurfaceSet set = load_pairs("PUGAN_poisson_256_poisson_1024.h5", 0.1, warnings, progress);
//   make_pair_patch(set.pairs, options, plan_patch(set.train, options, key), key, arrays, scratch);

#include "stipple/learn/upsampling/surface_patches.h"

namespace stipple::learn {

/// Whether a path is read by load_pairs: a file whose name ends in .h5, .hdf5, .tfrecord or .tfrecords, or a folder
/// with such files.
bool names_pairs(const std::string& path);

/// All pairs of a file, or of a folder of TFRecord files (layouts patches-hdf5 and patches-tfrecord of docs/data.md);
/// held_out as in SurfaceOptions, of pairs. Throws as data::load_data_set, Error{bad_file} for a set of another layout
/// and for patches of different sizes, Error{bad_config} where none is left to train on.
SurfaceSet load_pairs(const std::string& path, double held_out, std::vector<std::string>& warnings,
                      ProgressMode progress);

/// As load_pairs does, of clouds that are there: all sparse ones of one size, all dense ones of one.
SurfaceSet make_pairs(PatchPairs pairs, double held_out);

/// Pair plan.shape, moved and scaled so that the sparse patch has its mean at 0 and radius 1: the unit of the plan's
/// noise.
///
/// points   the sparse patch, all of it; of other samplings than uniform as many points of the dense one: `random` any,
///          `gradient` and `scan` as those of make_patch. The one nearest to the mean comes first
/// queries  as make_patch
/// truth    the dense patch where the inner points are all, as for networks that make children; else what of it lies
///          around them. It comes again where there are fewer points
/// surface  [t, 3] the dense patch, as stored
/// normals  [t, 3] of its points, from 12 neighbours, their sign arbitrary; 0 where these lie on a line
///
/// Coordinates as make_patch. Throws Error{bad_argument} for plans and arrays that do not fit the pair. A few
/// milliseconds for 1024 dense points.
PatchFrame make_pair_patch(const PatchPairs& pairs, const PatchOptions& options, const PatchPlan& plan,
                           const PatchKey& key, const PatchArrays& arrays, PatchScratch& scratch);

}  // namespace stipple::learn
