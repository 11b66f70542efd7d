#include "stipple/engine/file/plan_json.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <optional>
#include <span>

#include "stipple/core/error.h"
#include "stipple/core/json_walk.h"
#include "stipple/engine/kinds/kind.h"
#include "stipple/io/byte_source.h"

namespace stipple::engine {
namespace {

using Json = nlohmann::ordered_json;

template <class Enum>
struct Word {
    Enum value;
    std::string_view text;
};
constexpr Word<Access> kAccesses[] = {
    {Access::row, "row"}, {Access::cloud, "cloud"}, {Access::point, "point"}, {Access::neighbour, "neighbour"}};
constexpr Word<Reduce> kReduces[] = {
    {Reduce::none, "none"}, {Reduce::max_points, "max_points"}, {Reduce::max_rows, "max_rows"}};
constexpr Word<Level> kLevels[] = {{Level::cloud, "cloud"}, {Level::point, "point"}};
constexpr Word<Precision> kPrecisions[] = {{Precision::fp32, "fp32"}, {Precision::tf32, "tf32"},
                                           {Precision::fp16, "fp16"}, {Precision::bf16, "bf16"},
                                           {Precision::int8, "int8"}, {Precision::fp8, "fp8"}};

template <class Enum, size_t N>
std::string_view text_of(const Word<Enum> (&words)[N], Enum value) {
    for (const Word<Enum>& word : words)
        if (word.value == value) return word.text;
    STIPPLE_ASSERT(false);
    return {};
}

// === Writing. Fields that hold their default are left out.

Json json_of(const std::vector<Source>& sources) {
    Json list = Json::array();
    for (const Source& source : sources) {
        Json item = {{"value", source.value}};
        if (source.access != Access::row) item["access"] = text_of(kAccesses, source.access);
        if (source.indices >= 0) item["indices"] = source.indices;
        list.push_back(std::move(item));
    }
    return list;
}

void put_activation(Json& object, const Activation& activation) {
    if (activation.kind == ActivationKind::none) return;
    object["activation"] = network::name_of(activation.kind);
    if (activation.slope != 0) object["slope"] = activation.slope;
}

Json json_of(const Dense& layer) {
    Json object = {{"name", layer.name}, {"in", layer.in}, {"out", layer.out}};
    if (!layer.parts.empty()) object["parts"] = json_of(layer.parts);
    if (!layer.addends.empty()) object["addends"] = json_of(layer.addends);
    if (layer.matrix >= 0) object["matrix"] = layer.matrix;
    put_activation(object, layer.activation);
    object["precision"] = text_of(kPrecisions, layer.precision);
    if (layer.input_range != 0) object["input_range"] = layer.input_range;
    return object;
}

Json json_of(const Step& step) {
    Json object = {{"kind", step_type(step.kind).name}, {"name", step.name}, {"output", step.output}};
    if (!step.inputs.empty()) object["inputs"] = json_of(step.inputs);
    if (!step.layers.empty()) {
        object["layers"] = Json::array();
        for (const Dense& layer : step.layers) object["layers"].push_back(json_of(layer));
    }
    if (step.reduce != Reduce::none) object["reduce"] = text_of(kReduces, step.reduce);
    if (step.level != Level::point) object["level"] = text_of(kLevels, step.level);
    if (step.width != 1) object["width"] = step.width;
    if (step.set != 0) object["set"] = step.set;
    if (step.begin != 0) object["begin"] = step.begin;
    if (step.end != 0) object["end"] = step.end;
    if (step.factor != 1) object["factor"] = step.factor;
    if (step.inverse) object["inverse"] = true;
    put_activation(object, step.activation);
    return object;
}

Json json_of(const std::vector<Binding>& bindings) {
    Json list = Json::array();
    for (const Binding& binding : bindings) list.push_back({{"name", binding.name}, {"value", binding.value}});
    return list;
}

// === Reading: one value at a time, with the keys and indices that lead to it.

class PlanReader {
public:
    void visit(std::string_view path, const JsonValue& value) {
        path_ = path;
        rest_ = path;
        value_ = &value;
        const std::string_view key = word();
        if (key == "name")
            take(program_.name);
        else if (key == "values")
            visit_value(element(program_.values));
        else if (key == "steps")
            visit_step(element(program_.steps));
        else if (key == "inputs")
            visit_binding(element(program_.inputs));
        else if (key == "outputs")
            visit_binding(element(program_.outputs));
        else
            fail("is not known");
    }

    Program finish() { return std::move(program_); }

private:
    [[noreturn]] void fail(std::string_view what) const {
        throw Error(ErrorCode::bad_file, fmt::format("the plan: {} {}", io::quoted(path_), what));
    }

    std::string_view word() {
        const size_t slash = rest_.find('/');
        const std::string_view first = rest_.substr(0, slash);
        rest_ = slash == std::string_view::npos ? std::string_view() : rest_.substr(slash + 1);
        return first;
    }

    /// The element that the next word counts: the last one, or one more.
    template <class T>
    T& element(std::vector<T>& list) {
        const std::string_view index = word();
        if (index != fmt::format("{}", list.size()) || rest_.empty()) {
            if (list.empty() || index != fmt::format("{}", list.size() - 1) || rest_.empty())
                fail("is not where it belongs");
            return list.back();
        }
        return list.emplace_back();
    }

    void require_leaf() const {
        if (!rest_.empty()) fail("is not known");
    }
    void take(std::string& to) const {
        require_leaf();
        if (value_->kind != JsonValue::Kind::string) fail("must be text");
        to = value_->text;
    }
    template <class Integer>
    void take_integer(Integer& to) const {
        require_leaf();
        if (value_->kind != JsonValue::Kind::integer || value_->integer < std::numeric_limits<Integer>::min() ||
            value_->integer > std::numeric_limits<Integer>::max())
            fail("must be a whole number");
        to = static_cast<Integer>(value_->integer);
    }
    void take(int32_t& to) const { take_integer(to); }
    void take(int64_t& to) const { take_integer(to); }
    void take(float& to) const {
        require_leaf();
        if (value_->kind != JsonValue::Kind::integer && value_->kind != JsonValue::Kind::number)
            fail("must be a number");
        if (!(value_->number >= -std::numeric_limits<float>::max() &&
              value_->number <= std::numeric_limits<float>::max()))
            fail("must be a number of float32");
        to = static_cast<float>(value_->number);
    }
    void take(bool& to) const {
        require_leaf();
        if (value_->kind != JsonValue::Kind::boolean) fail("must be true or false");
        to = value_->integer != 0;
    }
    template <class Enum, size_t N>
    void take(const Word<Enum> (&words)[N], Enum& to) const {
        require_leaf();
        if (value_->kind == JsonValue::Kind::string)
            for (const Word<Enum>& known : words)
                if (known.text == value_->text) {
                    to = known.value;
                    return;
                }
        fail("is no word that belongs there");
    }

    void take(StepKind& to) const {
        require_leaf();
        if (value_->kind == JsonValue::Kind::string)
            for (const StepType* known : step_types())
                if (known->name == value_->text) {
                    to = known->kind;
                    return;
                }
        fail("is no word that belongs there");
    }
    void take(ActivationKind& to) const {
        require_leaf();
        if (value_->kind == JsonValue::Kind::string)
            if (const std::optional<ActivationKind> known = network::activation_named(value_->text)) {
                to = *known;
                return;
            }
        fail("is no word that belongs there");
    }

    void visit_value(ValueInfo& info) {
        const std::string_view key = word();
        if (key == "name")
            take(info.name);
        else if (key == "level")
            take(kLevels, info.type.level);
        else if (key == "width")
            take(info.type.width);
        else if (key == "channels")
            take(info.type.channels);
        else if (key == "index")
            take(info.type.is_index);
        else if (key == "set")
            take(info.type.set);
        else if (key == "of")
            take(info.type.of);
        else if (key == "points")
            take(info.type.points);
        else
            fail("is not known");
    }

    void visit_binding(Binding& binding) {
        const std::string_view key = word();
        if (key == "name")
            take(binding.name);
        else if (key == "value")
            take(binding.value);
        else
            fail("is not known");
    }

    void visit_source(Source& source) {
        const std::string_view key = word();
        if (key == "value")
            take(source.value);
        else if (key == "access")
            take(kAccesses, source.access);
        else if (key == "indices")
            take(source.indices);
        else
            fail("is not known");
    }

    void visit_step(Step& step) {
        const std::string_view key = word();
        if (key == "kind")
            take(step.kind);
        else if (key == "name")
            take(step.name);
        else if (key == "output")
            take(step.output);
        else if (key == "inputs")
            visit_source(element(step.inputs));
        else if (key == "layers")
            visit_layer(element(step.layers));
        else if (key == "reduce")
            take(kReduces, step.reduce);
        else if (key == "level")
            take(kLevels, step.level);
        else if (key == "width")
            take(step.width);
        else if (key == "set")
            take(step.set);
        else if (key == "begin")
            take(step.begin);
        else if (key == "end")
            take(step.end);
        else if (key == "factor")
            take(step.factor);
        else if (key == "inverse")
            take(step.inverse);
        else if (key == "activation")
            take(step.activation.kind);
        else if (key == "slope")
            take(step.activation.slope);
        else
            fail("is not known");
    }

    void visit_layer(Dense& layer) {
        const std::string_view key = word();
        if (key == "name")
            take(layer.name);
        else if (key == "in")
            take(layer.in);
        else if (key == "out")
            take(layer.out);
        else if (key == "parts")
            visit_source(element(layer.parts));
        else if (key == "addends")
            visit_source(element(layer.addends));
        else if (key == "matrix")
            take(layer.matrix);
        else if (key == "activation")
            take(layer.activation.kind);
        else if (key == "slope")
            take(layer.activation.slope);
        else if (key == "precision")
            take(kPrecisions, layer.precision);
        else if (key == "input_range")
            take(layer.input_range);
        else
            fail("is not known");
    }

    Program program_;
    std::string_view path_, rest_;
    const JsonValue* value_ = nullptr;
};

}  // namespace

std::string plan_json(const Program& program) {
    Json plan = {{"name", program.name}};
    plan["values"] = Json::array();
    for (const ValueInfo& value : program.values) {
        Json item = {{"name", value.name}, {"level", text_of(kLevels, value.type.level)}};
        if (value.type.width != 1) item["width"] = value.type.width;
        item["channels"] = value.type.channels;
        if (value.type.is_index) item["index"] = true;
        if (value.type.set != 0) item["set"] = value.type.set;
        if (value.type.of != 0) item["of"] = value.type.of;
        if (value.type.points != 0) item["points"] = value.type.points;
        plan["values"].push_back(std::move(item));
    }
    plan["steps"] = Json::array();
    for (const Step& step : program.steps) plan["steps"].push_back(json_of(step));
    plan["inputs"] = json_of(program.inputs);
    plan["outputs"] = json_of(program.outputs);
    return plan.dump();
}

Program parse_plan(std::string_view json) {
    PlanReader reader;
    const bool valid =
        walk_json(json, [&](std::string_view path, const JsonValue& value) { reader.visit(path, value); });
    if (!valid) throw Error(ErrorCode::bad_file, "the plan is no JSON object");
    return reader.finish();
}

}  // namespace stipple::engine
