#pragma once
// The parameters of linear layers as one affine map each, in double.

#include "stipple/engine/lower/form.h"

namespace stipple::engine::lowering {

struct Affine {
    Map map;
    std::vector<double> bias;
};

/// linear with its batch norm, actnorm or mix, or the inverse of the last two. Throws Error{bad_file} that names the
/// layer when a matrix has no inverse.
Affine affine_of(const network::Layer& layer, const network::Weights& weights, int64_t inputs);

/// ln |det J| of one point that the actnorm or mix named by layer.parameters has.
double log_det_of(const network::Layer& layer, const network::Weights& weights);

}  // namespace stipple::engine::lowering
