#pragma once
// How the colour network lies in memory for tensor cores, in half precision, rows padded with zeros: weight1 [kHidden,
// kPaddedInputs], weight2 [kHidden, kHidden], weight3 [kPaddedOutputs, kHidden].

#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::cuda {

// Features grow large: what half precision rounds off follows as inputs of its own, with the same weights.
constexpr int kRest = kNetworkInputs, kPaddedInputs = 64, kPaddedOutputs = 16;
constexpr int kHalfWeight1 = 0, kHalfWeight2 = kHidden * kPaddedInputs, kHalfWeight3 = kHalfWeight2 + kHidden * kHidden,
              kHalfNumbers = kHalfWeight3 + kPaddedOutputs * kHidden;

}  // namespace stipple::radiance::cuda
