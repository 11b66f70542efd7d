#pragma once
// What upsampling costs: time, parameters and memory by family, neighbours and stage.

#include <array>

#include "stipple/tasks/upsampling_study/inputs.h"

namespace stipple::tasks::study {

/// Of a network that upsamples by a flow. forward: features, and points to latents; interpolate: neighbourhoods,
/// weights and the sum; inverse: latents to points.
enum class Stage { forward, interpolate, inverse };
constexpr size_t kStages = 3;
constexpr std::array<const char*, kStages> kStageNames = {"forward", "interpolate", "inverse"};

/// The stage that a layer belongs to, by its name, which the models' files give.
Stage stage_of(std::string_view family, std::string_view layer);

struct Cost {
    std::string family;      // "flow-upsampler"
    int64_t neighbours = 0;  // of the interpolation; 0: it has no such option
    int64_t parameters = 0;
    double seconds = 0;                                  // of all: the least of some runs
    double network_seconds = 0;                          // within it
    std::array<double, kStages> stage_seconds = {};      // within that
    std::array<int64_t, kStages> stage_parameters = {};  // each counted where it is first used
    std::array<int64_t, kStages> stage_bytes = {};       // the largest result of a step
    int64_t network_bytes = 0;                           // weights and everything that a run keeps, on the device
    int64_t peak_bytes = 0;                              // of the whole process meanwhile; 0: the system does not tell
};

/// A network whose cost is measured.
struct CostSubject {
    std::string name;
    std::string weights = {};  // path; empty: random ones of the family, which cost as much
    std::string family = {};   // where there are no weights
};
/// The shipped upsampler, and every other family that upsamples, with random weights.
std::vector<CostSubject> all_families();

/// Upsamples the cloud `runs` times after one that does not count. `neighbours` 0: the network's own; else another
/// number, Error{bad_argument} where it has no such option. Throws as upsample() and load_model() do.
Cost measure_cost(const CostSubject& subject, int64_t neighbours, const PointCloud& cloud, double ratio,
                  const std::string& device, int64_t runs);

/// n points spread over a sphere of radius 1: a cloud to measure with, where there is no other.
PointCloud sphere_points(int64_t n);

/// Begins a new peak, after what is free was given back; false where the system does not let us.
bool reset_peak_memory();
/// The most memory that the process had since then; 0 where the system does not tell.
int64_t peak_memory();

}  // namespace stipple::tasks::study
