#pragma once
// Colours of samples: features, the direction's code, three dense layers in single precision, and back.

#include "stipple/radiance/cuda/reference/density.h"
#include "stipple/radiance/train/constants.h"

namespace stipple::radiance::reference {

/// features: [kFeatures, nodes]; to: [samples, kFeatures].
struct TrilinearFeatures {
    GridView grid;
    int64_t nodes;
    const float* features;
    const Vec3f* position;
    float* to;

    STIPPLE_HD void operator()(int64_t i) const {
        const Cell cell = cell_of(grid, to_nodes(grid, position[i]));
        for (int channel = 0; channel < kFeatures; ++channel) {
            float sum = 0;
            for (int k = 0; k < 8; ++k) sum += cell.weight(k) * features[channel * nodes + cell.node(k)];
            to[i * kFeatures + channel] = sum;
        }
    }
};

struct TrilinearFeaturesBack {
    GridView grid;
    int64_t nodes;
    const Vec3f* position;
    const float* to_inputs;  // [samples, kNetworkInputs], of which the first are features
    Sums gradient;           // [kFeatures, nodes]

    STIPPLE_HD void operator()(int64_t i) const {
        const Cell cell = cell_of(grid, to_nodes(grid, position[i]));
        for (int channel = 0; channel < kFeatures; ++channel) {
            const float g = to_inputs[i * kNetworkInputs + channel];
            for (int k = 0; k < 8; ++k) add_to(gradient, channel * nodes + cell.node(k), cell.weight(k) * g);
        }
    }
};

/// [rays, kViewCode], with the 1 for the bias.
struct ViewCodes {
    const Vec3f* direction;
    float* code;

    STIPPLE_HD void operator()(int64_t r) const {
        encode_view(direction[r], code + r * kViewCode);
        code[r * kViewCode + kViewInputs] = 1;
    }
};

/// A thread takes a number of [samples, kNetworkInputs].
struct JoinInputs {
    const float *features, *code;
    const int32_t* ray;
    float* inputs;

    STIPPLE_HD void operator()(int64_t at) const {
        const int64_t i = at / kNetworkInputs, j = at % kNetworkInputs;
        inputs[at] = j < kFeatures ? features[i * kFeatures + j] : code[int64_t{ray[i]} * kViewCode + j - kFeatures];
    }
};

/// Values are [samples, columns] in the next ones; a thread takes a number.
struct AddBias {
    const float* bias;
    int columns;
    float* values;

    STIPPLE_HD void operator()(int64_t at) const { values[at] += bias[at % columns]; }
};

struct Rectify {
    const float* from;
    float* to;

    STIPPLE_HD void operator()(int64_t at) const { to[at] = from[at] > 0 ? from[at] : 0; }
};

struct RectifyBack {
    const float* hidden;
    float* gradient;

    STIPPLE_HD void operator()(int64_t at) const {
        if (!(hidden[at] > 0)) gradient[at] = 0;
    }
};

/// The last layer has three outputs, too few for a tiled product.
struct LastLayer {
    const float* network;
    const float* hidden;  // [samples, kHidden]
    float* outputs;       // [samples, 3]

    STIPPLE_HD void operator()(int64_t at) const {
        const int64_t i = at / 3, o = at % 3;
        float sum = 0;
        for (int k = 0; k < kHidden; ++k) sum += network[kWeight3 + o * kHidden + k] * hidden[i * kHidden + k];
        outputs[at] = sum;
    }
};

struct LastLayerBack {
    const float *network, *to_outputs;
    float* to_hidden;

    STIPPLE_HD void operator()(int64_t at) const {
        const int64_t i = at / kHidden, unit = at % kHidden;
        float sum = 0;
        for (int o = 0; o < 3; ++o) sum += network[kWeight3 + o * kHidden + unit] * to_outputs[3 * i + o];
        to_hidden[at] = sum;
    }
};

/// Slices of samples are summed each by itself, so that there are threads enough; SumSlices adds them in their order.
inline constexpr int kSlices = 256;

/// Sums of the products of two columns over samples: partial [kSlices, rows, columns]. right null: of a column itself.
struct SumColumns {
    const float *left, *right;  // [samples, rows], [samples, columns]
    int64_t samples;
    int rows, columns;
    float* partial;

    STIPPLE_HD void operator()(int64_t at) const {
        const int64_t slice = at / (rows * columns);
        const int row = static_cast<int>(at / columns % rows), column = static_cast<int>(at % columns);
        const int64_t each = (samples + kSlices - 1) / kSlices, begin = slice * each;
        const int64_t end = begin + each < samples ? begin + each : samples;
        float sum = 0;
        for (int64_t i = begin; i < end; ++i) {
            sum += left[i * rows + row] * (right ? right[i * columns + column] : 1.0f);
        }
        partial[at] = sum;
    }
};

/// partial [slices, n] to a row of n.
struct SumSlices {
    const float* partial;
    int64_t n;
    int slices;
    float* to;

    STIPPLE_HD void operator()(int64_t at) const {
        float sum = 0;
        for (int s = 0; s < slices; ++s) sum += partial[s * n + at];
        to[at] = sum;
    }
};

struct SigmoidOf {
    const float* outputs;
    float* colour;

    STIPPLE_HD void operator()(int64_t at) const { colour[at] = sigmoid(outputs[at]); }
};

struct SigmoidBack {
    const float *colour, *to_colour;
    float* to_outputs;

    STIPPLE_HD void operator()(int64_t at) const { to_outputs[at] = to_colour[at] * colour[at] * (1 - colour[at]); }
};

}  // namespace stipple::radiance::reference
