#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"
#include "stipple/core/quoted.h"
#include "stipple/engine/calibration.h"

namespace stipple::engine {
namespace {

constexpr const char* kKey = "stipple.calibration";

constexpr std::string_view kWhat = "the calibration";

class Reader {
public:
    void visit(JsonField& field) {
        const std::string_view key = field.word();
        if (key == "precision") {
            constexpr Precision kPrecisions[] = {Precision::int8, Precision::fp8};
            const std::string_view words[] = {name_of(kPrecisions[0]), name_of(kPrecisions[1])};
            calibration_.precision = kPrecisions[field.take_word(words)];
            has_precision_ = true;
        } else if (key == "method") {
            const std::string_view words[] = {kRangeMethodWords[0], kRangeMethodWords[1], kRangeMethodWords[2]};
            calibration_.method = static_cast<RangeMethod>(field.take_word(words));
            has_method_ = true;
        } else if (key == "clouds") {
            field.take(calibration_.clouds);
            if (calibration_.clouds < 1) field.fail("must be at least 1");
        } else if (key == "layers") {
            visit_layer(field);
        } else {
            field.fail("is not known");
        }
    }

    Calibration finish() {
        if (!has_precision_ || !has_method_ || calibration_.clouds < 1)
            throw Error(ErrorCode::bad_file, fmt::format("{} lacks its precision, method or clouds", kWhat));
        for (const auto& [name, fields] : layer_fields_)
            if (fields != kAllFields)
                throw Error(ErrorCode::bad_file, fmt::format("{}: layer {} lacks a field", kWhat, in_quotes(name)));
        return std::move(calibration_);
    }

private:
    enum : unsigned { kRange = 1, kLargest = 2, kError = 4, kKeepHigher = 8, kAllFields = 15 };

    /// layers/NAME/key, where the name may hold a '/'.
    void visit_layer(JsonField& field) {
        std::string_view name;
        const std::string_view key = field.last_word(name);
        if (name.empty()) field.fail("is not known");
        LayerRange& layer = calibration_.layers[std::string(name)];
        unsigned& fields = layer_fields_[std::string(name)];
        if (key == "range") {
            layer.range = magnitude_of(field);
            if (!(layer.range > 0)) field.fail("must be above 0");
            fields |= kRange;
        } else if (key == "largest") {
            layer.largest = magnitude_of(field);
            fields |= kLargest;
        } else if (key == "error") {
            field.take(layer.error);
            if (!(layer.error >= 0)) field.fail("must be a number from 0");
            fields |= kError;
        } else if (key == "keep_higher") {
            field.take(layer.keep_higher);
            fields |= kKeepHigher;
        } else {
            field.fail("is not known");
        }
    }

    static float magnitude_of(const JsonField& field) {
        float number = 0;
        field.take(number);
        if (!(number >= 0)) field.fail("must be a number from 0");
        return number;
    }

    Calibration calibration_;
    bool has_precision_ = false, has_method_ = false;
    std::map<std::string, unsigned> layer_fields_;
};

}  // namespace

const Fields& calibration_option_fields() {
    using How = CalibrationOptions;
    static const Fields fields = {
        field<&How::method>("method", "How the range of a layer is chosen").words(kRangeMethodWords),
        field<&How::percentile>("percentile", "Of magnitudes, for --method percentile").above(0).to(100),
        field<&How::max_logit_error>("max_error", "Layers that alone add more stay in higher precision").from(0)};
    return fields;
}

std::string_view name_of(RangeMethod method) {
    return kRangeMethodWords[static_cast<size_t>(method)];
}

RangeMethod parse_range_method(std::string_view text) {
    for (size_t i = 0; i < std::size(kRangeMethodWords); ++i)
        if (text == kRangeMethodWords[i]) return static_cast<RangeMethod>(i);
    throw Error(ErrorCode::bad_argument, fmt::format("unknown method \"{}\"", text),
                "methods: max, percentile, entropy");
}

std::string calibration_json(const Calibration& calibration) {
    JsonWriter json;
    json.begin_object()
        .field("precision", name_of(calibration.precision))
        .field("method", name_of(calibration.method))
        .field("clouds", calibration.clouds)
        .key("layers")
        .begin_object();
    for (const auto& [name, layer] : calibration.layers) {
        const bool valid =
            std::isfinite(layer.range) && layer.range > 0 && std::isfinite(layer.largest) && std::isfinite(layer.error);
        STIPPLE_REQUIRE(valid, "the calibration of layer {} has a range of {}, largest {}, error {}", name, layer.range,
                        layer.largest, layer.error);
        json.key(name)
            .begin_object()
            .field("range", layer.range)
            .field("largest", layer.largest)
            .field("error", layer.error)
            .field("keep_higher", layer.keep_higher)
            .end_object();
    }
    json.end_object().end_object();
    return json.text();
}

Calibration parse_calibration(std::string_view json) {
    Reader reader;
    read_json(kWhat, json, [&](JsonField& field) { reader.visit(field); });
    return reader.finish();
}

void set_calibration(network::Weights& weights, const Calibration& calibration) {
    weights.metadata[kKey] = calibration_json(calibration);
}

bool has_calibration(const network::Weights& weights) {
    return weights.metadata.count(kKey) > 0;
}

Calibration calibration_of(const network::Weights& weights) {
    const auto found = weights.metadata.find(kKey);
    if (found == weights.metadata.end())
        throw Error(ErrorCode::bad_file, "these weights have no calibration",
                    "stipple engine build --calibrate CLOUDS makes one");
    return parse_calibration(found->second);
}

}  // namespace stipple::engine
