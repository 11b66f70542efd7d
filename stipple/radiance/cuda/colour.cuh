#pragma once
// How the colour network lies in memory for tensor cores, in half precision, rows padded with zeros: weight1 [kHidden,
// kPaddedInputs], weight2 [kHidden, kHidden], weight3 [kPaddedOutputs, kHidden].

#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::cuda {

constexpr int kPaddedInputs = 48, kPaddedOutputs = 16;
constexpr int kHalfWeight1 = 0, kHalfWeight2 = kHidden * kPaddedInputs, kHalfWeight3 = kHalfWeight2 + kHidden * kHidden,
              kHalfNumbers = kHalfWeight3 + kPaddedOutputs * kHidden;

}  // namespace stipple::radiance::cuda
