#pragma once

#include <span>

namespace stipple::metrics {

/// NRE of S-NET and SampleNet: mean over clouds of error_of_sample / error_of_whole, the error of a reconstruction from
/// the sampled cloud over that from the whole one (chamfer, squared sum of means). The mean of ratios, not the ratio of
/// means. Throws Error{bad_argument} for different lengths, no clouds, negative or non-finite errors, and a whole error
/// of 0.
double normalised_reconstruction_error(std::span<const double> of_samples, std::span<const double> of_wholes);

}  // namespace stipple::metrics
