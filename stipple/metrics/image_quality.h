#pragma once

#include "stipple/core/image.h"

namespace stipple::metrics {

/// Images [height, width, channels] in linear float or 8 bit, the same shape, on the CPU. Values are not clipped.
/// `range` is the difference of the largest and the least possible value: 1 for float images, 255 for 8-bit ones.
/// Throw Error{bad_argument} for other shapes, empty images and a range not above 0.

/// 10 log10(range^2 / mean squared error) in dB, over all pixels and channels; +infinity for equal images. Over several
/// images the field means the mean of their PSNRs, not the PSNR of the mean error.
double psnr(View<const float, 3> a, View<const float, 3> b, double range = 1);
double psnr(const Image& a, const Image& b);

/// Structural similarity [Wang et al. 2004]: windows of 11 x 11 with a Gaussian of sigma 1.5, K1 = 0.01, K2 = 0.03,
/// valid windows only, population covariance, mean over windows, then over channels (mip-NeRF's and DVGO's figure). An
/// image smaller than 11 x 11 throws. O(pixels), by rows and columns.
double ssim(View<const float, 3> a, View<const float, 3> b, double range = 1);
double ssim(const Image& a, const Image& b);

}  // namespace stipple::metrics
