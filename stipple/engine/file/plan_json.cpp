#include "stipple/engine/file/plan_json.h"

#include <optional>
#include <string>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"
#include "stipple/engine/kinds/kind.h"

namespace stipple::engine {
namespace {

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

void put_sources(JsonWriter& json, std::string_view key, const std::vector<Source>& sources) {
    if (sources.empty()) return;
    json.key(key).begin_array();
    for (const Source& source : sources) {
        json.begin_object().field("value", source.value);
        if (source.access != Access::row) json.field("access", text_of(kAccesses, source.access));
        if (source.indices >= 0) json.field("indices", source.indices);
        json.end_object();
    }
    json.end_array();
}

void put_activation(JsonWriter& json, const Activation& activation) {
    if (activation.kind == ActivationKind::none) return;
    json.field("activation", network::name_of(activation.kind));
    if (activation.slope != 0) json.field("slope", activation.slope);
}

void put_layer(JsonWriter& json, const Dense& layer) {
    json.begin_object().field("name", layer.name).field("in", layer.in).field("out", layer.out);
    put_sources(json, "parts", layer.parts);
    put_sources(json, "addends", layer.addends);
    if (layer.matrix >= 0) json.field("matrix", layer.matrix);
    put_activation(json, layer.activation);
    json.field("precision", text_of(kPrecisions, layer.precision));
    if (layer.input_range != 0) json.field("input_range", layer.input_range);
    json.end_object();
}

void put_step(JsonWriter& json, const Step& step) {
    json.begin_object().field("kind", step_type(step.kind).name).field("name", step.name).field("output", step.output);
    put_sources(json, "inputs", step.inputs);
    if (!step.layers.empty()) {
        json.key("layers").begin_array();
        for (const Dense& layer : step.layers) put_layer(json, layer);
        json.end_array();
    }
    if (step.reduce != Reduce::none) json.field("reduce", text_of(kReduces, step.reduce));
    if (step.level != Level::point) json.field("level", text_of(kLevels, step.level));
    if (step.width != 1) json.field("width", step.width);
    if (step.set != 0) json.field("set", step.set);
    if (step.begin != 0) json.field("begin", step.begin);
    if (step.end != 0) json.field("end", step.end);
    if (step.factor != 1) json.field("factor", step.factor);
    if (step.inverse) json.field("inverse", true);
    put_activation(json, step.activation);
    json.end_object();
}

void put_bindings(JsonWriter& json, std::string_view key, const std::vector<Binding>& bindings) {
    json.key(key).begin_array();
    for (const Binding& binding : bindings)
        json.begin_object().field("name", binding.name).field("value", binding.value).end_object();
    json.end_array();
}

// === Reading: one value at a time, with the keys and indices that lead to it.

class PlanReader {
public:
    void visit(JsonField& field) {
        const std::string_view key = field.word();
        if (key == "name")
            field.take(program_.name);
        else if (key == "values")
            visit_value(field, field.element(program_.values));
        else if (key == "steps")
            visit_step(field, field.element(program_.steps));
        else if (key == "inputs")
            visit_binding(field, field.element(program_.inputs));
        else if (key == "outputs")
            visit_binding(field, field.element(program_.outputs));
        else
            field.fail("is not known");
    }

    Program finish() { return std::move(program_); }

private:
    template <class Enum, size_t N>
    static void take(const JsonField& field, const Word<Enum> (&words)[N], Enum& to) {
        std::string_view texts[N];
        for (size_t i = 0; i < N; ++i) texts[i] = words[i].text;
        to = words[field.take_word(texts)].value;
    }
    static void take(const JsonField& field, StepKind& to) {
        std::vector<std::string_view> names;
        for (const StepType* type : step_types()) names.push_back(type->name);
        to = step_types()[field.take_word(names)]->kind;
    }
    static void take(const JsonField& field, ActivationKind& to) {
        std::string name;
        field.take(name);
        const std::optional<ActivationKind> known = network::activation_named(name);
        if (!known) field.fail("is no word that belongs there");
        to = *known;
    }

    static void visit_value(JsonField& field, ValueInfo& info) {
        const std::string_view key = field.word();
        if (key == "name")
            field.take(info.name);
        else if (key == "level")
            take(field, kLevels, info.type.level);
        else if (key == "width")
            field.take(info.type.width);
        else if (key == "channels")
            field.take(info.type.channels);
        else if (key == "index")
            field.take(info.type.is_index);
        else if (key == "set")
            field.take(info.type.set);
        else if (key == "of")
            field.take(info.type.of);
        else if (key == "points")
            field.take(info.type.points);
        else
            field.fail("is not known");
    }

    static void visit_binding(JsonField& field, Binding& binding) {
        const std::string_view key = field.word();
        if (key == "name")
            field.take(binding.name);
        else if (key == "value")
            field.take(binding.value);
        else
            field.fail("is not known");
    }

    static void visit_source(JsonField& field, Source& source) {
        const std::string_view key = field.word();
        if (key == "value")
            field.take(source.value);
        else if (key == "access")
            take(field, kAccesses, source.access);
        else if (key == "indices")
            field.take(source.indices);
        else
            field.fail("is not known");
    }

    static void visit_step(JsonField& field, Step& step) {
        const std::string_view key = field.word();
        if (key == "kind")
            take(field, step.kind);
        else if (key == "name")
            field.take(step.name);
        else if (key == "output")
            field.take(step.output);
        else if (key == "inputs")
            visit_source(field, field.element(step.inputs));
        else if (key == "layers")
            visit_layer(field, field.element(step.layers));
        else if (key == "reduce")
            take(field, kReduces, step.reduce);
        else if (key == "level")
            take(field, kLevels, step.level);
        else if (key == "width")
            field.take(step.width);
        else if (key == "set")
            field.take(step.set);
        else if (key == "begin")
            field.take(step.begin);
        else if (key == "end")
            field.take(step.end);
        else if (key == "factor")
            field.take(step.factor);
        else if (key == "inverse")
            field.take(step.inverse);
        else if (key == "activation")
            take(field, step.activation.kind);
        else if (key == "slope")
            field.take(step.activation.slope);
        else
            field.fail("is not known");
    }

    static void visit_layer(JsonField& field, Dense& layer) {
        const std::string_view key = field.word();
        if (key == "name")
            field.take(layer.name);
        else if (key == "in")
            field.take(layer.in);
        else if (key == "out")
            field.take(layer.out);
        else if (key == "parts")
            visit_source(field, field.element(layer.parts));
        else if (key == "addends")
            visit_source(field, field.element(layer.addends));
        else if (key == "matrix")
            field.take(layer.matrix);
        else if (key == "activation")
            take(field, layer.activation.kind);
        else if (key == "slope")
            field.take(layer.activation.slope);
        else if (key == "precision")
            take(field, kPrecisions, layer.precision);
        else if (key == "input_range")
            field.take(layer.input_range);
        else
            field.fail("is not known");
    }

    Program program_;
};

}  // namespace

std::string plan_json(const Program& program) {
    JsonWriter json;
    json.begin_object().field("name", program.name).key("values").begin_array();
    for (const ValueInfo& value : program.values) {
        json.begin_object().field("name", value.name).field("level", text_of(kLevels, value.type.level));
        if (value.type.width != 1) json.field("width", value.type.width);
        json.field("channels", value.type.channels);
        if (value.type.is_index) json.field("index", true);
        if (value.type.set != 0) json.field("set", value.type.set);
        if (value.type.of != 0) json.field("of", value.type.of);
        if (value.type.points != 0) json.field("points", value.type.points);
        json.end_object();
    }
    json.end_array().key("steps").begin_array();
    for (const Step& step : program.steps) put_step(json, step);
    json.end_array();
    put_bindings(json, "inputs", program.inputs);
    put_bindings(json, "outputs", program.outputs);
    return json.end_object().text();
}

Program parse_plan(std::string_view json) {
    PlanReader reader;
    read_json("the plan", json, [&](JsonField& field) { reader.visit(field); });
    return reader.finish();
}

}  // namespace stipple::engine
