#include "stipple/engine/program/validate_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "stipple/engine/kinds/kind.h"
#include "stipple/engine/program/check_program.h"

namespace stipple::engine {

void ProgramCheck::run() {
    where_ = "a value";
    for (const ValueInfo& value : program_.values) check_type(value);
    sets_ = point_sets(program_);
    for (const ValueInfo& value : program_.values)
        if (value.type.level == Level::point)
            require(value.type.points == sets_[static_cast<size_t>(value.type.set)].points,
                    "two numbers of points for one set");
    where_ = "the inputs";
    if (program_.inputs.empty()) fail("there are none");
    std::set<std::string> names;
    for (const Binding& input : program_.inputs) {
        if (!names.insert(input.name).second || input.name.empty()) fail("the name '{}' is there twice", input.name);
        make(input.value);
        require(type(input.value).points == 0, "points of a set that the program makes");
    }
    for (size_t i = 0; i < program_.steps.size(); ++i) {
        const Step& step = program_.steps[i];
        where_ = fmt::format("step {} '{}'", i, short_name(step.name));
        check_step(step);
        make(step.output);
    }
    where_ = "the outputs";
    if (program_.outputs.empty()) fail("there are none");
    names.clear();
    for (const Binding& output : program_.outputs) {
        if (!names.insert(output.name).second || output.name.empty()) fail("the name '{}' is there twice", output.name);
        type(output.value);
    }
}

void ProgramCheck::check_type(const ValueInfo& value) const {
    const TensorType& type = value.type;
    if (value.name.size() > kMaxName) fail("a name of {} characters", value.name.size());
    if (type.channels < 1 || type.channels > kMaxExtent || type.width < 1 || type.width > kMaxExtent)
        fail("'{}' has a width of {} and {} channels", short_name(value.name), type.width, type.channels);
    if (type.level == Level::cloud && (type.width != 1 || type.is_index))
        fail("'{}' is no tensor of clouds", short_name(value.name));
    if (type.is_index && type.channels != 1)
        fail("'{}' are indices of {} channels", short_name(value.name), type.channels);
    if (type.set < 0 || type.set >= network::kMostSets || type.of < 0 || type.of >= network::kMostSets)
        fail("'{}' is of point set {}", short_name(value.name), std::max(type.set, type.of));
    if (type.points < 0 || type.points > kMaxExtent)
        fail("'{}' has {} points a cloud", short_name(value.name), type.points);
    if ((type.level == Level::cloud && (type.set != 0 || type.points != 0)) || (!type.is_index && type.of != 0))
        fail("'{}' has a point set that is none of its own", short_name(value.name));
}

void ProgramCheck::check_step(const Step& step) const {
    const StepType* kind = find_step_type(step.kind);
    if (!kind) fail("unknown kind {}", static_cast<int>(step.kind));
    if (step.name.size() > kMaxName) fail("a name of {} characters", step.name.size());
    require(step.kind == StepKind::chain || step.layers.empty(), "layers outside a chain");
    require(kind->has_weight || step.weight.empty(), "a weight outside a fold");
    require(std::isfinite(step.factor), "its factor is not finite");
    activation(step.activation);
    require(step.set >= 0 && static_cast<size_t>(step.set) < sets_.size(), "a point set that is not there");
    const TensorType& made = output(step);
    require(made.level == Level::cloud || made.set == step.set, "makes rows of another point set than its own");
    kind->check(*this, step);
}

void ProgramCheck::require_value(Value value) const {
    if (value < 0 || static_cast<size_t>(value) >= program_.values.size())
        fail("value {} of {}", value, program_.values.size());
}

const TensorType& ProgramCheck::type(Value value) const {
    require_value(value);
    if (!made_[static_cast<size_t>(value)]) fail("value {} is read before it is made", value);
    return program_.values[static_cast<size_t>(value)].type;
}

const TensorType& ProgramCheck::output(const Step& step) const {
    require_value(step.output);
    return program_.values[static_cast<size_t>(step.output)].type;
}

TensorType ProgramCheck::tensor(const Rows& rows, int64_t channels) const {
    if (rows.level == Level::cloud) return network::clouds_of(channels);
    return {rows.level, rows.width, channels, false, rows.set, 0, sets_[static_cast<size_t>(rows.set)].points};
}

void ProgramCheck::make(Value value) {
    require_value(value);
    if (made_[static_cast<size_t>(value)]) fail("value {} is made twice", value);
    made_[static_cast<size_t>(value)] = true;
}

void ProgramCheck::expect(const Step& step, const TensorType& wanted) const {
    const TensorType& got = output(step);
    if (got != wanted) fail("makes {}, its value is {}", network::to_string(wanted), network::to_string(got));
}

void ProgramCheck::need_inputs(const Step& step, size_t count) const {
    if (step.inputs.size() != count) fail("needs {} inputs and has {}", count, step.inputs.size());
}

const TensorType& ProgramCheck::number_source(const Source& source, const Rows& rows) const {
    const TensorType& from = type(source.value);
    require(!from.is_index, "reads indices as numbers");
    switch (source.access) {
        case Access::row: require(rows_of(from) == rows, "reads rows that it has not"); break;
        case Access::cloud: require(from.level == Level::cloud, "reads clouds from a tensor of points"); break;
        case Access::point:
            require(from.level == Level::point && from.width == 1 && rows.level == Level::point && from.set == rows.set,
                    "reads points from another tensor");
            break;
        case Access::neighbour: {
            const TensorType& indices = type(source.indices);
            require(from.level == Level::point && from.width == 1 && indices.is_index && rows == rows_of(indices) &&
                        from.set == rows.set && indices.of == from.set,
                    "reads neighbours that its indices do not name");
            break;
        }
    }
    if (source.access != Access::neighbour) require(source.indices == -1, "has indices without neighbours");
    return from;
}

const TensorType& ProgramCheck::input(const Step& step, size_t i) const {
    const Source& source = step.inputs[i];
    const TensorType& from = type(source.value);
    require(source.access == Access::row && source.indices == -1, "reads its input in another way than row by row");
    return from;
}

const TensorType& ProgramCheck::numbers(const Step& step, size_t i) const {
    const TensorType& from = input(step, i);
    require(!from.is_index, "reads indices as numbers");
    return from;
}

const TensorType& ProgramCheck::points(const Step& step, size_t i) const {
    const TensorType& from = numbers(step, i);
    require(from.level == Level::point, "needs points");
    return from;
}

const TensorType& ProgramCheck::only_numbers(const Step& step) const {
    need_inputs(step, 1);
    return numbers(step, 0);
}

const TensorType& ProgramCheck::only_points(const Step& step) const {
    need_inputs(step, 1);
    return points(step, 0);
}

void ProgramCheck::finite(const std::vector<float>& values) const {
    uint32_t found = 0;  // without a branch: millions of weights in a millisecond
    for (const float value : values) {
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        found |= static_cast<uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
    }
    if (found != 0) fail("a weight is not finite");
}

void ProgramCheck::activation(const Activation& activation) const {
    require(network::slope_range(activation.kind).contains(activation.slope),
            "the slope of its activation is out of range");
}

void validate(const Program& program) {
    ProgramCheck(program).run();
}

}  // namespace stipple::engine
