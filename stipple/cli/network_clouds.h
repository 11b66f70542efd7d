#pragma once
// Clouds on their way into a network: from files, folders and sets, sampled and brought into the unit sphere.

#include <memory>
#include <optional>

#include "stipple/cli/command.h"
#include "stipple/io/hdf5.h"
#include "stipple/ops/clouds.h"

namespace stipple::cli {

/// One cloud that a command was asked about.
struct CloudEntry {
    std::string path;
    int64_t item = -1;                             // of a set
    std::shared_ptr<const io::CloudSet> set = {};  // that it is part of
    std::optional<Error> error = {};               // a set that could not be read

    std::string name() const { return item < 0 ? path : fmt::format("{}[{}]", path, item); }
};

/// Files as they are named, those of a folder (not of folders in it) with an extension that stipple knows, in the order
/// of their names, and every cloud of an HDF5 file. Throws Error{bad_argument} for a folder without such a file.
std::vector<CloudEntry> list_clouds(const std::vector<std::string>& inputs);

struct CloudOptions {
    int64_t points = 1024;          // at most; 0: all
    std::string sample = "random";  // "random", "fps" or "first"
    bool normalise = true;          // into the unit sphere, before sampling
    std::string from = {};          // format, as --from
    bool sample_faces = true;       // a mesh becomes points of its surface, not its vertices
};

/// --points, --sample, --no-normalise, --from.
void add_cloud_options(Arguments& app, CloudOptions& options);
void require_sense(const CloudOptions& options);

/// All finite points of an entry, with attributes. Throws Error{bad_file} when none is left.
PointCloud load_entry(const CloudEntry& entry, const CloudOptions& options, const Common& common,
                      io::Warnings& warnings);

/// What the network sees of a cloud, [n, 3] on the CPU; `chosen` receives which of its points, in this order.
Array<float, 2> network_points(const PointCloud& cloud, const CloudOptions& options, uint64_t seed,
                               std::vector<int32_t>* chosen = nullptr);

/// Many clouds in one array.
struct CloudBatch {
    std::vector<float> rows;             // [points, 3]
    std::vector<int64_t> offsets = {0};  // clouds + 1

    void add(const Array<float, 2>& points);
    void clear();
    int64_t clouds() const { return static_cast<int64_t>(offsets.size()) - 1; }
    int64_t points() const { return offsets.back(); }
    ops::Batch batch() const { return ops::Batch::ragged(offsets); }
    View<const float, 2> view() const { return {rows.data(), {points(), 3}}; }
};

/// Up to `count` clouds of entries, evenly chosen; unreadable ones end it with their error.
CloudBatch load_batch(const std::vector<CloudEntry>& entries, int64_t count, const CloudOptions& options,
                      const Common& common, io::Warnings& warnings);

/// `count` clouds of n points on random ellipsoids, boxes and cylinders in the unit sphere: for timing where no data
/// are at hand.
CloudBatch synthetic_clouds(int64_t count, int64_t n, uint64_t seed);

}  // namespace stipple::cli
