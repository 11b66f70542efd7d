#include "stipple/engine/calibration.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/engine/calibrate/magnitude_histogram.h"
#include "stipple/engine/calibrate/observe.h"
#include "stipple/engine/program/round_fp8.h"

namespace stipple::engine {
namespace {

constexpr int64_t kRowsAtOnce = 8192;
constexpr int64_t kErrorClouds = 16;  // tell the error of a layer to a tenth of itself
constexpr int64_t kErrorBytes = int64_t{512} << 20;

struct Group {
    int64_t begin = 0, end = 0;  // clouds
    ops::Batch batch;
};

/// Clouds [begin, end) in groups of about kRowsAtOnce rows.
std::vector<Group> groups_of(const ops::Batch& batch, int64_t begin, int64_t end) {
    std::vector<Group> groups;
    while (begin < end) {
        std::vector<int64_t> offsets = {0};
        int64_t next = begin;
        while (next < end && (next == begin || offsets.back() + batch.size(next) <= kRowsAtOnce))
            offsets.push_back(offsets.back() + batch.size(next++));
        groups.push_back({begin, next, ops::Batch::ragged(std::move(offsets))});
        begin = next;
    }
    return groups;
}

/// A program on the CPU in fp32, with memory for its outputs.
class Runner {
public:
    Runner(Program program, const std::vector<Group>& groups) : engine_(compile(std::move(program), options(groups))) {
        int64_t rows = 0;
        for (const Group& group : groups) rows = std::max(rows, group.batch.rows());
        for (const Binding& binding : engine_.program().outputs) {
            const TensorType& type = engine_.program().values[static_cast<size_t>(binding.value)].type;
            const int64_t clouds = engine_.options().max_batch;
            outputs_.push_back({binding.name, type,
                                std::vector<float>(static_cast<size_t>(
                                    type.channels * (type.level == Level::cloud ? clouds
                                                     : type.points > 0          ? clouds * type.points * type.width
                                                                                : rows * type.width)))});
        }
        context_.emplace(engine_);
    }

    void run(const ops::Batch& batch, const std::vector<Input>& inputs) {
        std::vector<Output> views;
        for (Owned& owned : outputs_) views.push_back({owned.name, {owned.values.data(), shape(owned.type, batch)}});
        context_->run(batch, inputs, views);
    }

    /// The rows of the last run.
    View<const float, 2> output(const std::string& name, const ops::Batch& batch) const {
        for (const Owned& owned : outputs_)
            if (owned.name == name) return {owned.values.data(), shape(owned.type, batch)};
        STIPPLE_ASSERT(false);
        return {};
    }

    static std::array<int64_t, 2> shape(const TensorType& type, const ops::Batch& batch) {
        const int64_t points = type.points > 0 ? batch.clouds() * type.points : batch.rows();
        return {type.level == Level::cloud ? batch.clouds() : points * type.width, type.channels};
    }

private:
    struct Owned {
        std::string name;
        TensorType type;
        std::vector<float> values;
    };

    static Options options(const std::vector<Group>& groups) {
        Options options;
        options.max_batch = options.max_points = 1;
        int64_t rows = 1;
        for (const Group& group : groups) {
            options.max_batch = std::max(options.max_batch, group.batch.clouds());
            options.max_points = std::max(options.max_points, group.batch.largest());
            rows = std::max(rows, group.batch.rows());
        }
        options.max_points = std::max(options.max_points, (rows + options.max_batch - 1) / options.max_batch);
        return options;
    }

    Engine engine_;
    std::vector<Owned> outputs_;
    std::optional<Context> context_;
};

/// The numbers of a precision nearest to values that it represents up to `range`.
void round_values(Precision precision, float range, float* values, int64_t count) {
    const float largest = precision == Precision::int8 ? 127.0f : kLargestE4m3;
    const float up = largest / range, down = range / largest;
    for (int64_t i = 0; i < count; ++i) {
        const float scaled = values[i] * up;
        values[i] = down * (precision == Precision::int8 ? std::nearbyint(std::clamp(scaled, -largest, largest))
                                                         : round_e4m3(scaled));
    }
}

/// Each row of a weight [out, in] with a range of its own.
void round_weight(Precision precision, float* weight, int64_t out, int64_t in) {
    for (int64_t o = 0; o < out; ++o) {
        float range = 0;
        for (int64_t i = 0; i < in; ++i) range = std::max(range, std::abs(weight[o * in + i]));
        if (range > 0) round_values(precision, range, weight + o * in, in);
    }
}

/// The rows of an input that belong to clouds [begin, end).
View<const float, 2> rows_of_clouds(View<const float, 2> rows, const TensorType& type, const ops::Batch& batch,
                                    int64_t begin, int64_t end) {
    if (type.level == Level::cloud) return rows.slice(begin, end);
    return rows.slice(batch.begin(begin) * type.width, batch.end(end - 1) * type.width);
}

/// A NaN may vanish in a maximum before any layer that is looked at reads it.
void require_finite(const Input& input, const TensorType& type, const ops::Batch& batch) {
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        const View<const float, 2> rows = rows_of_clouds(input.rows, type, batch, cloud, cloud + 1);
        for (int64_t i = 0; i < rows.size(0); ++i)
            for (int64_t c = 0; c < rows.size(1); ++c)
                if (!std::isfinite(rows(i, c)))
                    throw Error(ErrorCode::not_finite,
                                fmt::format("input '{}': a number of cloud {} is not finite", input.name, cloud));
    }
}

/// Every input of the program is there once, with its shape, on the CPU and finite.
void require_inputs(const Program& program, const ops::Batch& batch, const std::vector<Input>& inputs) {
    for (const Input& input : inputs) {
        const auto named = [&](const auto& other) { return other.name == input.name; };
        STIPPLE_REQUIRE(std::any_of(program.inputs.begin(), program.inputs.end(), named),
                        "calibration: the network has no input '{}'", input.name);
        STIPPLE_REQUIRE(std::count_if(inputs.begin(), inputs.end(), named) == 1,
                        "calibration: input '{}' is given twice", input.name);
    }
    for (const Binding& binding : program.inputs) {
        const auto found =
            std::find_if(inputs.begin(), inputs.end(), [&](const Input& input) { return input.name == binding.name; });
        const TensorType& type = program.values[static_cast<size_t>(binding.value)].type;
        STIPPLE_REQUIRE(found != inputs.end(), "calibration: the network's input '{}' {} is not given", binding.name,
                        network::to_string(type));
        const std::array<int64_t, 2> shape = Runner::shape(type, batch);
        STIPPLE_REQUIRE(found->rows.shape() == shape, "calibration: input '{}' {} must be [{}, {}], got [{}, {}]",
                        binding.name, network::to_string(type), shape[0], shape[1], found->rows.size(0),
                        found->rows.size(1));
        STIPPLE_REQUIRE(found->rows.device() == Device{}, "calibration runs on the CPU: input '{}' is on {}",
                        binding.name, found->rows.device());
        require_finite(*found, type, batch);
    }
}

/// What the observed program gave for the clouds on which errors are measured.
struct Kept {
    Group group;
    std::map<std::string, std::vector<float>> values;  // by name, of outputs that layers read, and the answer
};

class Calibrator {
public:
    Calibrator(const Program& program, const ops::Batch& batch, const std::vector<Input>& inputs,
               const CalibrationOptions& options)
        : unfused_(unfuse(program, options.precision)),
          batch_(batch),
          inputs_(inputs),
          options_(options),
          answer_(program.outputs[0].name) {
        for (const Binding& output : program.outputs)
            if (output.name == "logits") answer_ = "logits";
        // A name of both is that of the input (observe.h).
        for (const Binding& binding : unfused_.program.outputs) types_[binding.name] = type_of(binding.value);
        for (const Binding& binding : unfused_.program.inputs) types_[binding.name] = type_of(binding.value);
    }

    Calibration run() {
        observe();
        Calibration calibration;
        calibration.precision = options_.precision;
        calibration.method = options_.method;
        calibration.clouds = batch_.clouds();
        for (const ObservedLayer& layer : unfused_.layers) {
            const MagnitudeHistogram& histogram = histograms_[layer.name];
            LayerRange& range = calibration.layers[layer.name];
            range.largest = histogram.largest();
            range.range = range_of(histogram);
        }
        for (const ObservedLayer& layer : unfused_.layers) {
            check_interrupted();
            LayerRange& range = calibration.layers[layer.name];
            range.error = std::max(range.error, error_of(layer, range.range));
            range.keep_higher = range.error > options_.max_logit_error;
        }
        return calibration;
    }

private:
    const TensorType& type_of(Value value) const { return unfused_.program.values[static_cast<size_t>(value)].type; }
    const Dense& dense_of(const ObservedLayer& layer) const {
        return unfused_.program.steps[static_cast<size_t>(layer.step)].layers[0];
    }
    const Input* find_input(std::string_view name) const {
        for (const Input& input : inputs_)
            if (input.name == name) return &input;
        return nullptr;
    }
    View<const float, 2> rows_of(const Group& group, const Input& input) const {
        return rows_of_clouds(input.rows, types_.at(std::string(input.name)), batch_, group.begin, group.end);
    }
    std::vector<Input> inputs_of(const Group& group) const {
        std::vector<Input> inputs;
        for (const Input& input : inputs_) inputs.push_back({input.name, rows_of(group, input)});
        return inputs;
    }
    /// What a layer reads under this name, on kept clouds.
    View<const float, 2> rows_of(const Kept& kept, const std::string& name) const {
        if (const Input* input = find_input(name)) return rows_of(kept.group, *input);
        return {kept.values.at(name).data(), Runner::shape(types_.at(name), kept.group.batch)};
    }

    float range_of(const MagnitudeHistogram& histogram) const {
        float range = histogram.largest();
        if (options_.method == RangeMethod::percentile) range = histogram.percentile(options_.percentile);
        if (options_.method == RangeMethod::entropy) range = histogram.entropy_range(options_.precision);
        return range > 0 ? range : 1;  // nothing but zeros, which every range represents
    }

    /// How many of the first clouds are kept for errors.
    int64_t kept_clouds() const {
        int64_t channels = 0;
        for (const auto& [name, type] : types_)
            channels += type.channels * (type.level == Level::cloud ? 1 : type.width);
        const int64_t cloud = std::max<int64_t>(1, 4 * channels * batch_.largest());
        return std::clamp<int64_t>(kErrorBytes / cloud, 1, std::min(kErrorClouds, batch_.clouds()));
    }

    void observe() {
        const int64_t kept = kept_clouds();
        std::vector<Group> groups = groups_of(batch_, 0, kept);
        const size_t kept_groups = groups.size();
        for (Group& group : groups_of(batch_, kept, batch_.clouds())) groups.push_back(std::move(group));
        Runner runner(unfused_.program, groups);
        for (size_t i = 0; i < groups.size(); ++i) {
            check_interrupted();
            const Group& group = groups[i];
            runner.run(group.batch, inputs_of(group));
            for (const ObservedLayer& layer : unfused_.layers)
                for (const std::string& name : layer.from) {
                    const Input* input = find_input(name);
                    add(layer.name, input ? rows_of(group, *input) : runner.output(name, group.batch));
                }
            if (i >= kept_groups) continue;
            Kept& values = kept_.emplace_back(Kept{group, {}});
            for (const Binding& output : unfused_.program.outputs) {
                const View<const float, 2> rows = runner.output(output.name, group.batch);
                values.values[output.name].assign(rows.data(), rows.data() + rows.elements());
            }
        }
    }

    void add(const std::string& layer, View<const float, 2> rows) {
        try {
            if (rows.is_contiguous()) return histograms_[layer].add(rows.data(), rows.elements());
            for (int64_t i = 0; i < rows.size(0); ++i) histograms_[layer].add(&rows(i, 0), rows.size(1));
        } catch (const Error& error) {
            throw Error(error.code(), fmt::format("input of layer {}: {}", layer, error.message()), error.hint());
        }
    }

    /// A layer's input on kept clouds, rounded.
    std::vector<float> rounded_input(const ObservedLayer& layer, float range, const Kept& kept) const {
        const Dense& dense = dense_of(layer);
        const int64_t rows = Runner::shape(types_.at(layer.from[0]), kept.group.batch)[0];
        std::vector<float> input(static_cast<size_t>(rows * dense.in));
        int64_t column = 0;
        for (const std::string& name : layer.from) {
            const int64_t channels = types_.at(name).channels;
            const View<const float, 2> part = rows_of(kept, name);
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < channels; ++c) input[r * dense.in + column + c] = part(r, c);
            column += channels;
        }
        round_values(options_.precision, range, input.data(), rows * dense.in);
        return input;
    }

    /// Root mean square of what rounding this layer alone adds to the answer, in units of the answer's spread.
    double error_of(const ObservedLayer& layer, float range) const {
        const Dense& dense = dense_of(layer);
        std::vector<float> weight = dense.weight;
        if (dense.matrix < 0) round_weight(options_.precision, weight.data(), dense.out, dense.in);
        std::vector<Group> groups;
        for (const Kept& kept : kept_) groups.push_back(kept.group);
        Runner runner(with_given_input(unfused_, layer, std::move(weight)), groups);
        double added = 0, sum = 0, squares = 0, count = 0;
        for (const Kept& kept : kept_) {
            const ops::Batch& batch = kept.group.batch;
            std::vector<float> input = rounded_input(layer, range, kept), matrix;
            std::vector<Input> inputs = inputs_of(kept.group);
            inputs.push_back({kGivenInput, {input.data(), {static_cast<int64_t>(input.size()) / dense.in, dense.in}}});
            if (dense.matrix >= 0) {
                const View<const float, 2> exact = rows_of(kept, layer.matrix);
                for (int64_t i = 0; i < batch.clouds(); ++i)
                    matrix.insert(matrix.end(), &exact(i, 0), &exact(i, 0) + exact.size(1));
                for (int64_t i = 0; i < batch.clouds(); ++i)
                    round_weight(options_.precision, matrix.data() + i * dense.out * dense.in, dense.out, dense.in);
                inputs.push_back({kGivenMatrix, {matrix.data(), {batch.clouds(), dense.out * dense.in}}});
            }
            runner.run(batch, inputs);
            const View<const float, 2> got = runner.output(answer_, batch);
            const std::vector<float>& exact = kept.values.at(answer_);
            for (size_t i = 0; i < exact.size(); ++i) {
                const double difference = double{got.data()[i]} - exact[i];
                added += difference * difference;
                sum += exact[i];
                squares += double{exact[i]} * exact[i];
            }
            count += static_cast<double>(exact.size());
        }
        const double spread = std::sqrt(std::max(0.0, squares / count - (sum / count) * (sum / count)));
        return std::sqrt(added / count) / (spread > 0 ? spread : 1);
    }

    const Unfused unfused_;
    const ops::Batch& batch_;
    const std::vector<Input>& inputs_;
    const CalibrationOptions& options_;
    std::string answer_;  // the output whose error counts
    std::map<std::string, TensorType> types_;
    std::map<std::string, MagnitudeHistogram> histograms_;
    std::vector<Kept> kept_;
};

}  // namespace

Calibration calibrate(const network::Network& network, const network::Weights& weights, const ops::Batch& batch,
                      const std::vector<Input>& inputs, const CalibrationOptions& options) {
    STIPPLE_REQUIRE(options.precision == Precision::int8 || options.precision == Precision::fp8,
                    "{} needs no calibration: int8 and fp8 do", name_of(options.precision));
    STIPPLE_REQUIRE(batch.clouds() >= 1, "calibration needs clouds");
    check_fields(calibration_option_fields(), &options);
    const Program program = lower(network, weights);
    require_inputs(program, batch, inputs);
    return Calibrator(program, batch, inputs, options).run();
}

Calibration calibrate(const network::Network& network, const network::Weights& weights, const ops::Clouds& clouds,
                      const CalibrationOptions& options) {
    return calibrate(network, weights, clouds.batch, {{"points", clouds.rows}}, options);
}

}  // namespace stipple::engine
