#pragma once
// HDF5 files of many clouds of one size: the layouts of ModelNet40 and ShapeNet-part.
//
//   data    [m, n, 3]       floats, read as float32; required
//   label   [m] or [m, 1]   any integer type: the class of each shape
//   pid     [m, n]          any integer type: the part of each point
//   normal  [m, n, 3]       floats
//   name    [m]             text of fixed or variable length
// Other datasets are left alone. Files of other layouts (patches of upsampling sets) are read by the name of a dataset.
//
// For trusted files only: libhdf5 is not safe against hostile ones (SECURITY.md), so no server opens one. Filters are
// those that libhdf5 brings; no plugin is loaded. Calls are serialised. Built without HDF5 each function throws
// Error{bad_file}.

#include <span>
#include <string>
#include <vector>

#include "stipple/io/format.h"

namespace stipple::io {

struct CloudSet {
    Array<float, 3> points;          // [m, n, 3]
    std::vector<int64_t> labels;     // [m], or empty
    Array<int32_t, 2> parts;         // [m, n], or empty: elements() == 0
    Array<float, 3> normals;         // [m, n, 3], or empty
    std::vector<std::string> names;  // [m], or empty

    int64_t size() const { return points.size(0); }
};

/// The whole file. Throws Error{bad_file} naming the dataset whose shape or type is wrong, and for no clouds or points.
CloudSet load_hdf5(const std::string& path, const Limits& limits = {});

/// One shape of the file, read alone (a hyperslab of each dataset): positions, pid as attribute label (int32), normal.
/// The class and the name of the shape are not attributes of points and are left out. A file of several shapes needs
/// options.item.
Mesh load_hdf5_cloud(const std::string& path, const ReadOptions& options, Warnings& warnings);

/// Writes the layout above, deflated, atomically. Throws Error{bad_argument} for parts that do not match in shape.
void save_hdf5(const std::string& path, const CloudSet& set, Overwrite overwrite);

/// Names of what is at the root of a file, sorted. Throws Error{bad_file}.
std::vector<std::string> list_hdf5(const std::string& path);

/// The dataset `name` [m, n, c] of floats, as float32. Throws Error{bad_file} where it is absent or another, and for
/// one without elements.
Array<float, 3> load_hdf5_array(const std::string& path, const std::string& name, const Limits& limits = {});

/// A dataset by its name.
struct NamedArray {
    std::string name;
    Array<float, 3> values;
};

/// Writes datasets, deflated, atomically. Throws Error{bad_argument} for one without elements.
void save_hdf5_arrays(const std::string& path, std::span<const NamedArray> arrays, Overwrite overwrite);

/// One cloud as a set of one: world coordinates in float32 (told where that rounds), integer label as pid (told where
/// its type changes), normal. Faces and other attributes are dropped with a warning.
void save_hdf5_cloud(const std::string& path, const Mesh& mesh, Overwrite overwrite, Warnings& warnings);

}  // namespace stipple::io
