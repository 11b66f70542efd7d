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

/// A file of a set that has a folder for each class.
struct ClassFile {
    std::string path, name;  // "chair/0001"
    int64_t label = 0;
};
/// By class, then by name; none where the folder is no such set or has no such split.
std::vector<ClassFile> files_of_classes(const std::string& root, const std::string& split);

}  // namespace stipple::data
