#pragma once
// Pixels of rays and their losses, and back to colours and weights of samples.

#include "stipple/radiance/cuda/reference/samples.h"
#include "stipple/radiance/march/opacity.h"

namespace stipple::radiance::reference {

struct Composite {
    const int32_t *begin, *end;  // [rays] of kept samples
    const float *weight, *colour;
    const float *left, *background;
    float* pixel;  // [rays, 3]

    STIPPLE_HD void operator()(int64_t r) const {
        for (int k = 0; k < 3; ++k) {
            float sum = 0;
            for (int32_t i = begin[r]; i < end[r]; ++i) sum += weight[i] * colour[3 * i + k];
            pixel[3 * r + k] = sum + left[r] * background[3 * r + k];
        }
    }
};

struct SquaredError {
    const float *pixel, *truth;
    float per_ray;
    float* error;     // [rays] summed over channels
    float* to_pixel;  // [rays, 3]

    STIPPLE_HD void operator()(int64_t r) const {
        float sum = 0;
        for (int64_t at = 3 * r; at < 3 * r + 3; ++at) {
            const float difference = pixel[at] - truth[at];
            sum += difference * difference;
            to_pixel[at] = 2.0f / 3.0f * per_ray * difference;
        }
        error[r] = sum;
    }
};

/// Of what is left behind the last sample: its gradient.
struct EntropyBack {
    const float* left;
    float scale;     // weight / rays
    float* to_left;  // [rays]

    STIPPLE_HD void operator()(int64_t r) const {
        float slope = 0;
        end_entropy(left[r], slope);
        to_left[r] = scale * slope;
    }
};

struct BackgroundBack {
    const float *to_pixel, *background;
    float* to_left;  // added to

    STIPPLE_HD void operator()(int64_t r) const {
        float sum = 0;
        for (int64_t at = 3 * r; at < 3 * r + 3; ++at) sum += to_pixel[at] * background[at];
        to_left[r] += sum;
    }
};

struct CompositeBack {
    const int32_t* ray;
    const float *weight, *colour, *to_pixel;
    float *to_colour, *to_weight;

    STIPPLE_HD void operator()(int64_t i) const {
        float sum = 0;
        for (int k = 0; k < 3; ++k) {
            const float slope = to_pixel[3 * ray[i] + k];
            to_colour[3 * i + k] = weight[i] * slope;
            sum += slope * colour[3 * i + k];
        }
        to_weight[i] = sum;
    }
};

/// Each sample's own colour against the pixel's, by its weight, which is taken as given.
struct ColourLossBack {
    const int32_t* ray;
    const float *weight, *colour, *truth;
    float scale;       // 2 weight / rays
    float* to_colour;  // added to

    STIPPLE_HD void operator()(int64_t i) const {
        for (int k = 0; k < 3; ++k) {
            to_colour[3 * i + k] += scale * weight[i] * (colour[3 * i + k] - truth[3 * ray[i] + k]);
        }
    }
};

}  // namespace stipple::radiance::reference
