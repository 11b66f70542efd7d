#pragma once
// Flow upsampler: moves candidate points onto the surface that a cloud was sampled from.
//
// Around each query a conditional normalizing flow maps the neighbouring input points to a latent space in which the
// surface is simple, interpolates there with learned weights, and maps the result back by the inverse flow. The
// condition comes from edge features of the input. All coordinates are relative, so that a cloud may lie anywhere; the
// unit is the spacing of the input points, so that scale and density do not matter. Queries may be any points near the
// cloud, in any number: the ratio is free.

#include <map>
#include <string>

#include "stipple/core/fields.h"
#include "stipple/network/network.h"

namespace stipple::models {

/// How queries get to the surface.
enum class Refinement {
    projection,  // by `steps` steps, each onto the surface and with parameters of its own
    matching,    // by `steps` Euler steps along a velocity field that knows the time, of the same parameters in each
    descent,     // not by the network: it tells the distance, and whoever runs it moves queries down
};
inline constexpr const char* kRefinementWords[] = {"projection", "matching", "descent"};

struct FlowUpsamplerOptions {
    int64_t neighbours = 16;                         // of an input point, itself included; a cloud needs as many points
    int64_t layers = 4;                              // edge convolutions
    int64_t width = 96;                              // their channels
    int64_t query_neighbours = 12;                   // input points that a query sees
    int64_t flow_neighbours = 8;                     // those of them between which it is interpolated, the nearest
    int64_t hidden = 96;                             // channels of a query, a multiple of 4
    int64_t blocks = 3;                              // of the flow; 0: interpolation in Euclidean space, as a control
    int64_t flow_hidden = 32;                        // channels inside a coupling
    int64_t steps = 2;                               // times that a query is moved
    Refinement refinement = Refinement::projection;  // descent has no flow, and no steps
};
const Fields& flow_upsampler_fields();

/// Of a configuration, as weights carry it. Throws Error{bad_config} for an unknown key and a value that does not
/// parse.
FlowUpsamplerOptions flow_upsampler_options(const std::map<std::string, std::string>& config);

/// points [B, N, 3] (set 0) and queries [B, M, 3] (set 1), in units of the mean spacing of the points
///   -> upsampled [B, M, 3], a moved query each;
///      moved_1 .. moved_steps [B, M, 3], where each step has put them, the last being `upsampled`;
///      uncertainty [B, M, 1], the distance to the surface that is to be expected, in the same unit;
///      weights [B, M, flow_neighbours, 1] of the input points `neighbours` [B, M, flow_neighbours] in the last step's
///      interpolation: for colours and other attributes.
/// Of descent the only output is distance [B, M, 1] of a query to the surface.
/// Throws Error{bad_argument} for options out of range.
network::Network flow_upsampler(const FlowUpsamplerOptions& options);

/// The two parts of flow_upsampler(options), for those who move several sets of queries around the same points. Their
/// parameters are among its own, of the same names.
/// Encoder: points -> features [B, N, hidden].
network::Network flow_upsampler_encoder(const FlowUpsamplerOptions& options);
/// Decoder: points, features [B, N, hidden], queries -> as flow_upsampler.
network::Network flow_upsampler_decoder(const FlowUpsamplerOptions& options);
/// Of a projection, the first of its steps alone, which comes most of the way: without uncertainty.
network::Network flow_upsampler_first_step(const FlowUpsamplerOptions& options);

/// What trains matching: points, queries and their times time [B, M, 1], from 0 where queries start to 1 where they
/// arrive -> velocity [B, M, 3]; uncertainty [B, M, 1], the distance to the surface that is to be expected of a query
/// that keeps this velocity until time 1. Its parameters, name and configuration are those of flow_upsampler(options).
/// Throws Error{bad_argument} for another refinement, and as above.
network::Network flow_upsampler_velocity(const FlowUpsamplerOptions& options);

}  // namespace stipple::models
