#pragma once
// Calibration: what int8 and fp8 need to know of real data. Runs a network in fp32 on clouds, keeps a histogram of the
// magnitudes of each dense layer's input, and picks the range that the low precision should represent; then measures
// which layers hurt the result and keeps those in higher precision.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/core/view.h"
#include "stipple/engine/precision.h"
#include "stipple/network/weights.h"
#include "stipple/ops/clouds.h"

namespace stipple::engine {

/// What a network with a max over its points keeps is the largest values: a percentile cuts those off. By entropy, int8
/// agrees with fp32 on 99.7 % of ModelNet40's test clouds (bench/results/engine-cuda.md).
enum class RangeMethod { max, percentile, entropy };
inline constexpr const char* kRangeMethodWords[] = {"max", "percentile", "entropy"};

std::string_view name_of(RangeMethod method);
/// Throws Error{bad_argument} with the list of names.
RangeMethod parse_range_method(std::string_view text);

struct CalibrationOptions {
    Precision precision = Precision::int8;
    RangeMethod method = RangeMethod::entropy;
    double percentile = 99.99;  // of magnitudes
    /// Root mean square, relative to the spread of the fp32 logits: a layer that alone adds more is kept back.
    double max_logit_error = 0.05;
};
const Fields& calibration_option_fields();

struct LayerRange {
    float range = 0;           // largest magnitude represented
    float largest = 0;         // largest seen
    double error = 0;          // relative logit error with only this layer quantised
    bool keep_higher = false;  // stays in fp16 (CUDA) or fp32 (CPU)
};

struct Calibration {
    Precision precision = Precision::int8;
    RangeMethod method = RangeMethod::entropy;
    int64_t clouds = 0;                        // it was made from
    std::map<std::string, LayerRange> layers;  // by layer name
};

struct Input;  // engine.h

/// batch: at least 1 cloud, real ones. inputs: every input of the network by name, as Context::run takes them, on the
/// CPU. Runs on the CPU in fp32; the error of a layer is that of its input and weights rounded to the precision,
/// everything else in fp32, on the first 16 clouds. The same for any number of threads. Throws Error{bad_argument} for
/// no clouds, an input that is unknown, missing or of another shape, Error{not_finite} when a number of an input or of
/// a layer's input is not finite.
Calibration calibrate(const network::Network& network, const network::Weights& weights, const ops::Batch& batch,
                      const std::vector<Input>& inputs, const CalibrationOptions& options);
/// Of a network whose only input is `points`.
Calibration calibrate(const network::Network& network, const network::Weights& weights, const ops::Clouds& clouds,
                      const CalibrationOptions& options);

/// As JSON. parse_calibration is strict: unknown or missing fields and numbers out of range are Error{bad_file}.
std::string calibration_json(const Calibration& calibration);
Calibration parse_calibration(std::string_view json);

/// As JSON in the weights' metadata ("stipple.calibration"). calibration_of throws Error{bad_file}; `has` looks first.
void set_calibration(network::Weights& weights, const Calibration& calibration);
bool has_calibration(const network::Weights& weights);
Calibration calibration_of(const network::Weights& weights);

}  // namespace stipple::engine
