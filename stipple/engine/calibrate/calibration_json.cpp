#include <nlohmann/json.hpp>

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/json_walk.h"
#include "stipple/engine/calibration.h"
#include "stipple/io/byte_source.h"

namespace stipple::engine {
namespace {

constexpr const char* kKey = "stipple.calibration";

struct MethodName {
    RangeMethod method;
    std::string_view name;
};
constexpr MethodName kMethods[] = {
    {RangeMethod::max, "max"}, {RangeMethod::percentile, "percentile"}, {RangeMethod::entropy, "entropy"}};

[[noreturn]] void fail(std::string_view path, std::string_view what) {
    throw Error(ErrorCode::bad_file, fmt::format("the calibration: {} {}", io::quoted(path), what));
}

// Fields that a calibration and each of its layers must have, as bits.
enum : unsigned { has_range = 1, has_largest = 2, has_error = 4, has_keep = 8, has_all = 15 };

class Reader {
public:
    void visit(std::string_view path, const JsonValue& value) {
        if (path == "precision") {
            calibration_.precision = precision_of(path, value);
            fields_ |= 1;
        } else if (path == "method") {
            calibration_.method = method_of(path, value);
            fields_ |= 2;
        } else if (path == "clouds") {
            if (value.kind != JsonValue::Kind::integer || value.integer < 1) fail(path, "must be a count");
            calibration_.clouds = value.integer;
            fields_ |= 4;
        } else if (const size_t slash = path.rfind('/'); path.rfind("layers/", 0) == 0 && slash > 7) {
            const std::string name(path.substr(7, slash - 7));
            visit_layer(path, path.substr(slash + 1), calibration_.layers[name], layer_fields_[name], value);
        } else {
            fail(path, "is not known");
        }
    }

    Calibration finish() {
        if (fields_ != 7) throw Error(ErrorCode::bad_file, "the calibration lacks its precision, method or clouds");
        for (const auto& [name, fields] : layer_fields_)
            if (fields != has_all) fail("layers/" + name, "lacks a field");
        return std::move(calibration_);
    }

private:
    static Precision precision_of(std::string_view path, const JsonValue& value) {
        for (const Precision precision : {Precision::int8, Precision::fp8})
            if (value.kind == JsonValue::Kind::string && value.text == name_of(precision)) return precision;
        fail(path, "must be int8 or fp8");
    }
    static RangeMethod method_of(std::string_view path, const JsonValue& value) {
        for (const MethodName& known : kMethods)
            if (value.kind == JsonValue::Kind::string && value.text == known.name) return known.method;
        fail(path, "must be max, percentile or entropy");
    }
    static double number_of(std::string_view path, const JsonValue& value) {
        const bool is_number = value.kind == JsonValue::Kind::integer || value.kind == JsonValue::Kind::number;
        if (!is_number || !(value.number >= 0 && value.number <= 3e38)) fail(path, "must be a number from 0");
        return value.number;
    }
    static void visit_layer(std::string_view path, std::string_view key, LayerRange& layer, unsigned& fields,
                            const JsonValue& value) {
        if (key == "range") {
            layer.range = static_cast<float>(number_of(path, value));
            if (!(layer.range > 0)) fail(path, "must be above 0");
            fields |= has_range;
        } else if (key == "largest") {
            layer.largest = static_cast<float>(number_of(path, value));
            fields |= has_largest;
        } else if (key == "error") {
            layer.error = number_of(path, value);
            fields |= has_error;
        } else if (key == "keep_higher") {
            if (value.kind != JsonValue::Kind::boolean) fail(path, "must be true or false");
            layer.keep_higher = value.integer != 0;
            fields |= has_keep;
        } else {
            fail(path, "is not known");
        }
    }

    Calibration calibration_;
    unsigned fields_ = 0;
    std::map<std::string, unsigned> layer_fields_;
};

}  // namespace

std::string_view name_of(RangeMethod method) {
    for (const MethodName& known : kMethods)
        if (known.method == method) return known.name;
    STIPPLE_ASSERT(false);
    return {};
}

RangeMethod parse_range_method(std::string_view text) {
    for (const MethodName& known : kMethods)
        if (known.name == text) return known.method;
    throw Error(ErrorCode::bad_argument, fmt::format("unknown method \"{}\"", text),
                "methods: max, percentile, entropy");
}

std::string calibration_json(const Calibration& calibration) {
    nlohmann::ordered_json object = {{"precision", name_of(calibration.precision)},
                                     {"method", name_of(calibration.method)},
                                     {"clouds", calibration.clouds},
                                     {"layers", nlohmann::ordered_json::object()}};
    for (const auto& [name, layer] : calibration.layers) {
        const bool valid =
            std::isfinite(layer.range) && layer.range > 0 && std::isfinite(layer.largest) && std::isfinite(layer.error);
        STIPPLE_REQUIRE(valid, "the calibration of layer {} has a range of {}, largest {}, error {}", name, layer.range,
                        layer.largest, layer.error);
        object["layers"][name] = {{"range", layer.range},
                                  {"largest", layer.largest},
                                  {"error", layer.error},
                                  {"keep_higher", layer.keep_higher}};
    }
    return object.dump();
}

Calibration parse_calibration(std::string_view json) {
    Reader reader;
    const bool valid =
        walk_json(json, [&](std::string_view path, const JsonValue& value) { reader.visit(path, value); });
    if (!valid) throw Error(ErrorCode::bad_file, "the calibration is no JSON object");
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
