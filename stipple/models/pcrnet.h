#pragma once
// PCRNet [Sarode et al. 2019]: the rigid motion that brings a cloud (source) onto another (template) of the same shape.
//
// Names of layers: conv1 .. conv5 of the points, the same parameters for both clouds and all iterations; fc1 .. fc5 and
// `pose` of the head, the same for all iterations. Layers of iteration i are called i.NAME, those of the template
// template.NAME; parameters belong to template.convI and 1.fcI, 1.pose, which come first.

#include <map>
#include <string>

#include "stipple/core/fields.h"
#include "stipple/network/network.h"

namespace stipple::models {

struct PcrNetOptions {
    int64_t iterations = 1;   // 1: as SampleNet has it; 8: iPCRNet, each moves the source and looks again
    int64_t features = 1024;  // of a cloud
    int64_t hidden = 1024;    // of the head, a multiple of 4: layers of h, h, h/2, h/2, h/4
};
const Fields& pcrnet_fields();

/// Of a configuration, as weights carry it. Throws Error{bad_config} for an unknown key and a value that does not
/// parse.
PcrNetOptions pcrnet_options(const std::map<std::string, std::string>& config);

/// source [B, N, 3] (set 0), template [B, M, 3] (set 1)
///   -> rotation [B, 9], the 3 x 3 matrix R row by row; translation [B, 3]: R p + t brings a point p of the source to
///      the template; moved [B, N, 3], the source there; pose [B, 7], what the last iteration added: a quaternion w, x,
///      y, z of any length, and its translation.
///
/// Encoder 64-64-64-128-features with ReLU and without batch norm, max; [template, source] through the head with ReLU.
/// `iterations` may change after training. Throws Error{bad_argument} for options out of range.
network::Network pcrnet(const PcrNetOptions& options);

}  // namespace stipple::models
