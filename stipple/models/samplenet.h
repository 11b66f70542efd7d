#pragma once
// S-NET [Dovrat et al. 2019] and SampleNet [Lang et al. 2020]: a cloud in, few points out that a task can work with.
//
// The points that come out lie near the cloud, not on it. While training, SampleNet draws them onto it by the soft
// projection (ops/soft_project.h); afterwards each is replaced by the nearest point of the cloud
// (tasks/network_sample.h). S-NET is the same network without the projection.
//
// Names of layers: conv1 .. conv5 for the points, fc1 .. for what follows the max, `out` for the points that come out,
// `temperature` for t of the projection. A published checkpoint of the registration program has all x of `out` first,
// then all y, then all z: its rows are to be reordered, x, y, z of the first point coming first here.

#include <map>
#include <string>

#include "stipple/core/fields.h"
#include "stipple/network/network.h"

namespace stipple::models {

/// The published networks, one for each task.
enum class SamplerShape {
    classification,  // 64-64-64-128-128, max, 256-256-256, 3 m: batch norm after every layer, the last included
    registration,    // the same without batch norm after the last
    reconstruction,  // 64-128-128-256-128, max, 256-256, 3 m: batch norm before the max alone
};
inline constexpr const char* kSamplerShapeWords[] = {"classification", "registration", "reconstruction"};

struct SampleNetOptions {
    SamplerShape shape = SamplerShape::classification;
    int64_t count = 32;        // points that come out, m
    int64_t points = 1024;     // of a cloud while training: what a larger cloud is thinned to
    bool progressive = false;  // trained so that the first j points alone serve too, for any j
    int64_t neighbours = 7;    // of the soft projection; 0: S-NET, without projection and temperature
    float min_sigma = 0;       // sigma = max(t^2, min_sigma)
    bool projected = false;  // also output the soft projection; may change after training, as neighbours and floor may
};
const Fields& samplenet_fields();

/// What is published for a task: points, neighbours and the floor of sigma.
SampleNetOptions published_sampler(SamplerShape shape);

/// Of a configuration, as weights carry it. Throws Error{bad_config} for an unknown key and a value that does not
/// parse.
SampleNetOptions samplenet_options(const std::map<std::string, std::string>& config);

/// points [B, N, 3] -> simplified [B, m, 3]; with neighbours also sigma [B, 1], what the projection divides by;
///   with `projected` also projected [B, m, 3], the soft projection. Every cloud then has at least k points.
/// Throws Error{bad_argument} for options out of range.
network::Network samplenet(const SampleNetOptions& options);

}  // namespace stipple::models
