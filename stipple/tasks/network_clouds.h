#pragma once
// Clouds on their way into a network: finite points, brought into the unit sphere, sampled, put into batches.

#include <string>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/data/cloud_list.h"
#include "stipple/ops/clouds.h"

namespace stipple::tasks {

/// What a network sees of a cloud.
struct CloudOptions {
    int64_t points = 1024;          // at most; 0: all
    std::string sample = "random";  // which, when there are more: "random", "fps" or "first"
    bool normalise = true;          // into the unit sphere, before sampling
    bool sample_faces = true;       // a mesh becomes points of its surface, not its vertices
    uint64_t seed = 0;              // of both samplings
};
const Fields& cloud_fields();
/// Throws Error{bad_argument} for values out of range.
void require_valid(const CloudOptions& options);

/// All finite points of an entry, with attributes; those of faces are sampled, options.points of them or 2048. Warns of
/// points that are left out. Throws as data::load_entry does, and Error{bad_file} when no point is left.
/// `look`, where given, sees what was read, before anything is chosen of it.
PointCloud load_points(const data::CloudEntry& entry, const CloudOptions& options, const data::ReadClouds& how,
                       io::Warnings& warnings, const std::function<void(const Mesh&)>& look = {});
/// The same of a mesh or cloud in memory; `name` goes before warnings and into errors.
PointCloud points_of(Mesh mesh, const CloudOptions& options, const std::string& name, io::Warnings& warnings);

/// What the network sees of a cloud of finite points, [n, 3] on the CPU; `chosen` receives which of its points, in this
/// order.
Array<float, 2> network_points(const PointCloud& cloud, const CloudOptions& options,
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
    /// The clouds [begin, end) on a device.
    Array<float, 2> points_on(Device device, int64_t begin, int64_t end) const;
    Array<float, 2> points_on(Device device) const { return points_on(device, 0, clouds()); }
};

/// Up to `count` clouds of a list, evenly chosen: their batch, and which they are. Unreadable ones end it with their
/// error. `advance`, where given, is called after each.
struct LoadedBatch {
    CloudBatch clouds;
    std::vector<int64_t> chosen;  // indices into the entries
};
LoadedBatch load_batch(const std::vector<data::CloudEntry>& entries, int64_t count, const CloudOptions& options,
                       const data::ReadClouds& how, io::Warnings& warnings, const std::function<void()>& advance = {});

/// `count` clouds of n points on random ellipsoids, boxes and cylinders in the unit sphere: for timing where no data
/// are at hand.
CloudBatch synthetic_clouds(int64_t count, int64_t n, uint64_t seed);

}  // namespace stipple::tasks
