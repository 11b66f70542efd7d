#pragma once
// Data sets in the layouts that people publish them in, read into one plain type.
//
//   io::Warnings warnings;
//   const data::DataSet set = data::load_data_set("modelnet40_ply_hdf5_2048", {.split = "test"}, warnings);
//   for (int64_t i = 0; i < set.size(); ++i) use(set.points_of(i), set.labels[i]);
//
// docs/data.md has the table of layouts: files, keys, what is read.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/point_cloud.h"
#include "stipple/data/part_categories.h"
#include "stipple/io/format.h"

namespace stipple::data {

/// Clouds of any sizes in one piece: the points of cloud i are rows offsets[i] to offsets[i + 1].
struct Clouds {
    std::vector<float> points;           // [total, 3]
    std::vector<int64_t> offsets = {0};  // [clouds + 1]

    int64_t size() const { return static_cast<int64_t>(offsets.size()) - 1; }
    int64_t size_of(int64_t cloud) const { return offsets[cloud + 1] - offsets[cloud]; }
    View<const float, 2> of(int64_t cloud) const { return {points.data() + 3 * offsets[cloud], {size_of(cloud), 3}}; }
    /// The size that all clouds have; -1 where they differ or there are none. With it, points are [clouds, n, 3].
    int64_t common_size() const;
};

/// Every cloud centred at the mean of its points, its largest radius 1 (all points equal: left in place of the mean).
/// Points are finite. In float64, rounded once.
void to_unit_spheres(Clouds& clouds);

struct DataSet {
    std::string layout;                // name of its row in layouts()
    std::string split;                 // "train", "val", "test"; "all" for a set that is not split
    std::vector<std::string> classes;  // names by label; empty for sets without classes

    Clouds clouds;
    std::vector<float> normals;      // [total, 3], or empty
    std::vector<int32_t> labels;     // [items] in [0, classes), or empty
    std::vector<int32_t> parts;      // [total] in the range of the item's category, or empty
    std::vector<std::string> names;  // [items], or empty

    std::vector<PartCategory> categories;  // of parts, one for each class, by label; empty for sets without parts
    std::vector<std::string> part_names;   // by number, where the set tells them

    Clouds targets;  // pairs: the dense cloud of each sparse one; else no clouds

    int64_t size() const { return clouds.size(); }
    View<const float, 2> points_of(int64_t item) const { return clouds.of(item); }
    bool is_pairs() const { return targets.size() > 0; }
};

/// `points` points on the surface of a mesh, with its attributes where the sampler knows them. With geometry:
///   [](const Mesh& m, int64_t n, uint64_t s) { return cloud_of_samples(m, sample_surface(m, n, s)); }
using MeshSampler = std::function<PointCloud(const Mesh& mesh, int64_t points, uint64_t seed)>;

struct DataSetOptions {
    std::string split = {};       // empty: train, and all of a set that is not split
    std::string layout = "auto";  // or the name of one
    int64_t points = 0;        // the first n of each cloud, or all it has; samples of each mesh. 0: all, 2048; pairs: 0
    int64_t ratio = 0;         // of the pairs of a file that has several; 0: the file has one
    MeshSampler sampler = {};  // for meshes; where it is empty, a mesh is an error
    uint64_t seed = 0;         // item i is sampled with seed + i
    io::Limits limits = {};    // of each file
    std::function<void(int64_t done, int64_t total)> on_progress = {};  // files
};

/// The set in a folder (or file, for layouts of one file). What was left out or guessed is told in `warnings`.
///
/// A set is right or it is refused. Error{bad_file}, with the path and what was expected: no layout fits; a file that a
/// list names is missing; a dataset is absent or of another shape or type; a label or part is outside its range; a
/// coordinate or normal is not finite; a cloud has no points; a split has no items. Error{bad_argument}: an unknown
/// layout or split, a negative number of points, a number of points of pairs, which are read whole. Paths within a
/// set's lists stay in its folder: of lists of HDF5 files the base name counts, so stale prefixes
/// ("data/modelnet40_ply_hdf5_2048/") do not matter; of ShapeNet's lists the category and the name. No pickle is read.
/// HDF5 is for trusted files (io/hdf5.h).
///
/// Holds the whole split in memory, and one file more while it reads.
DataSet load_data_set(const std::string& folder, const DataSetOptions& options, io::Warnings& warnings);

struct LayoutInfo {
    std::string_view name;   // for --layout
    std::string_view files;  // by which it is recognised
    std::string_view holds;  // "clouds, classes"
};

/// All layouts, in the order in which they are tried.
std::span<const LayoutInfo> layouts();

/// What lies in a folder, without reading clouds.
struct RecognisedSet {
    std::string layout;
    std::vector<std::string> splits;  // of train, val, test those that there are; "all" for a set that is not split
};

/// Throws Error{bad_file}, with what was looked for, when no layout fits, or not the one that is named; for an unknown
/// name Error{bad_argument}.
RecognisedSet recognise_data_set(const std::string& folder, const std::string& layout = "auto");

}  // namespace stipple::data
