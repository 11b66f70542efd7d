#pragma once
// Fewer points of a cloud, by any method.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"

namespace stipple::tasks {

enum class SampleMethod {
    random,
    fps,
    voxel,
    poisson,
    inverse_density,
    spacing,
    // Of a network (network_sample.h).
    samplenet_cls,
    samplenet_reg,
    samplenet_rec,
    snet,
    gumbel,
    critical,
};

inline constexpr const char* kSampleMethodWords[] = {"random",          "fps",     "voxel",         "poisson",
                                                     "inverse-density", "spacing", "samplenet-cls", "samplenet-reg",
                                                     "samplenet-rec",   "snet",    "gumbel",        "critical"};

/// What a cell of a voxel grid becomes.
enum class CellPoint { centroid, nearest };
inline constexpr const char* kCellPointWords[] = {"centroid", "nearest"};

struct SampleSettings {
    SampleMethod method = SampleMethod::fps;
    int64_t count = 0;                     // points wanted; voxel and spacing: none
    uint64_t seed = 0;                     // random, inverse-density, and thinning before poisson
    int64_t start = 0;                     // fps
    double voxel = 0;                      // edge of a cell
    CellPoint keep = CellPoint::centroid;  // voxel
    double radius = 0;                     // poisson; 0: from the cloud
    double spacing = 0;                    // that points keep from each other
    bool progressive = false;              // poisson
    int k = 16;                            // inverse-density
    int dimension = 2;                     // inverse-density
    double ratio = 0;                      // instead of the count: points wanted, of those there are
    std::string model = {};  // of a method with a network: weights by path or name; "": the installed ones
};
const Fields& sample_fields();

/// The settings as they are meant: a spacing alone chooses its method. Throws Error{bad_argument} for numbers out of
/// range, for settings that belong to other methods, and where how many points are wanted is said not at all or twice.
SampleSettings resolved(SampleSettings settings);
/// Points wanted of a cloud of n, by count or ratio.
int64_t wanted_count(const SampleSettings& settings, int64_t n);

/// "inverse-density" and so on; throws Error{bad_argument} that lists the names.
SampleMethod sample_method_by_name(std::string_view name);
std::string_view name_of(SampleMethod method);
bool has_network(SampleMethod method);

/// The sampled cloud with origin and attributes, on the CPU; the cloud has finite points only. By a method without
/// network. Throws Error{bad_argument} for a count above the cloud's and what the operations refuse.
PointCloud sample_cloud(const PointCloud& cloud, const SampleSettings& settings, Device device);

}  // namespace stipple::tasks
