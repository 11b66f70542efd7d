#pragma once
// Single clouds and meshes of a set, by io's readers.

#include "stipple/data/layouts/common.h"

namespace stipple::data {

struct CloudFile {
    std::vector<float> points;   // [n, 3], world coordinates in float32
    std::vector<float> normals;  // [n, 3], or empty
    std::vector<int32_t> parts;  // [n]: whole numbers of the attribute label; or empty

    int64_t size() const { return static_cast<int64_t>(points.size() / 3); }
};

/// The points of a file; with `samples_meshes` a file with faces gives samples of its surface instead of its vertices.
/// Warnings of the reader come with the path. Throws Error{bad_file} with the path, for a mesh without area or without
/// a sampler in the options too.
CloudFile load_cloud_file(const SetRequest& request, const std::string& path, bool samples_meshes, uint64_t item);

/// Files of a folder that hold one cloud or mesh by their extension: no hidden ones, no HDF5. Names, sorted.
std::vector<std::string> cloud_names(const std::string& folder);

}  // namespace stipple::data
