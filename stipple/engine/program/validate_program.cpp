#include "stipple/engine/program/validate_program.h"

#include <cmath>
#include <cstring>
#include <set>

#include "stipple/core/error.h"

namespace stipple::engine {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 24;  // of channels and widths: products of two stay far from overflow
constexpr size_t kMaxName = 1000;

struct Rows {
    Level level = Level::point;
    int64_t width = 1;
    bool operator==(const Rows&) const = default;
};

class Checker {
public:
    explicit Checker(const Program& program) : program_(program), made_(program.values.size(), false) {}

    void run() {
        where_ = "a value";
        for (const ValueInfo& value : program_.values) check_type(value);
        where_ = "the inputs";
        if (program_.inputs.empty()) fail("there are none");
        std::set<std::string> names;
        for (const Binding& input : program_.inputs) {
            if (!names.insert(input.name).second || input.name.empty())
                fail("the name '{}' is there twice", input.name);
            make(input.value);
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
            if (!names.insert(output.name).second || output.name.empty())
                fail("the name '{}' is there twice", output.name);
            if (type(output.value).is_index) fail("'{}' are indices", output.name);
        }
    }

private:
    template <class... T>
    [[noreturn]] void fail(fmt::format_string<T...> text, T&&... arguments) const {
        throw Error(ErrorCode::bad_argument,
                    fmt::format("the program: {}: {}", where_, fmt::format(text, std::forward<T>(arguments)...)));
    }

    static std::string short_name(const std::string& name) { return name.substr(0, 60); }

    void check_type(const ValueInfo& value) const {
        const TensorType& type = value.type;
        if (value.name.size() > kMaxName) fail("a name of {} characters", value.name.size());
        if (type.channels < 1 || type.channels > kMaxExtent || type.width < 1 || type.width > kMaxExtent)
            fail("'{}' has a width of {} and {} channels", short_name(value.name), type.width, type.channels);
        if (type.level == Level::cloud && (type.width != 1 || type.is_index))
            fail("'{}' is no tensor of clouds", short_name(value.name));
        if (type.is_index && type.channels != 1)
            fail("'{}' are indices of {} channels", short_name(value.name), type.channels);
    }

    void require_value(Value value) const {
        if (value < 0 || static_cast<size_t>(value) >= program_.values.size())
            fail("value {} of {}", value, program_.values.size());
    }

    /// The type of a value that is there by now.
    const TensorType& type(Value value) const {
        require_value(value);
        if (!made_[static_cast<size_t>(value)]) fail("value {} is read before it is made", value);
        return program_.values[static_cast<size_t>(value)].type;
    }

    void make(Value value) {
        require_value(value);
        if (made_[static_cast<size_t>(value)]) fail("value {} is made twice", value);
        made_[static_cast<size_t>(value)] = true;
    }

    static Rows rows_of(const TensorType& type) { return {type.level, type.width}; }

    void require(bool condition, const char* what) const {
        if (!condition) fail("{}", what);
    }

    /// A source of numbers whose rows a step with these rows can find.
    const TensorType& number_source(const Source& source, const Rows& rows) const {
        const TensorType& from = type(source.value);
        require(!from.is_index, "reads indices as numbers");
        switch (source.access) {
            case Access::row: require(rows_of(from) == rows, "reads rows that it has not"); break;
            case Access::cloud: require(from.level == Level::cloud, "reads clouds from a tensor of points"); break;
            case Access::point:
                require(from.level == Level::point && from.width == 1 && rows.level == Level::point,
                        "reads points from another tensor");
                break;
            case Access::neighbour: {
                const TensorType& indices = type(source.indices);
                require(from.level == Level::point && from.width == 1 && indices.is_index &&
                            rows == Rows{Level::point, indices.width},
                        "reads neighbours that its indices do not name");
                break;
            }
        }
        if (source.access != Access::neighbour) require(source.indices == -1, "has indices without neighbours");
        return from;
    }

    /// Input i of a step, row by row.
    const TensorType& input(const Step& step, size_t i) const {
        const Source& source = step.inputs[i];
        const TensorType& from = type(source.value);
        require(source.access == Access::row && source.indices == -1, "reads its input in another way than row by row");
        return from;
    }
    const TensorType& numbers(const Step& step, size_t i) const {
        const TensorType& from = input(step, i);
        require(!from.is_index, "reads indices as numbers");
        return from;
    }

    void check_finite(const std::vector<float>& values) const {
        uint32_t found = 0;  // without a branch: millions of weights in a millisecond
        for (const float value : values) {
            uint32_t bits;
            std::memcpy(&bits, &value, 4);
            found |= static_cast<uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
        }
        if (found != 0) fail("a weight is not finite");
    }

    void check_activation(const Activation& activation) const {
        const bool leaky = activation.kind == ActivationKind::leaky_relu;
        require(leaky ? activation.slope > 0 && activation.slope < 1 : activation.slope == 0,
                "the slope of its activation is out of range");
    }

    void check_layer(const Step& step, size_t position) const {
        const Dense& layer = step.layers[position];
        const Rows rows{step.level, step.width};
        if (layer.name.size() > kMaxName) fail("a layer's name of {} characters", layer.name.size());
        if (layer.in < 0 || layer.in > kMaxExtent || layer.out < 1 || layer.out > kMaxExtent)
            fail("layer '{}' is {} x {}", short_name(layer.name), layer.out, layer.in);
        int64_t in = 0;
        if (position == 0) {
            for (const Source& part : layer.parts) {
                require(part.access == Access::row, "a part is not read row by row");
                in += number_source(part, rows).channels;
            }
            require(in > 0 || !layer.addends.empty(), "its first layer reads nothing");
        } else {
            require(layer.parts.empty() && layer.addends.empty(), "a layer that is not the first names its input");
            in = step.layers[position - 1].out;
        }
        if (in != layer.in) fail("layer '{}' takes {} channels and gets {}", short_name(layer.name), layer.in, in);
        for (const Source& addend : layer.addends)
            require(number_source(addend, rows).channels == layer.out, "an addend has other channels than its layer");
        if (layer.matrix != -1) {
            const TensorType& matrix = type(layer.matrix);
            require(matrix.level == Level::cloud && matrix.channels == layer.in * layer.out && layer.in > 0,
                    "a layer's matrix has another size than the layer");
            require(layer.weight.empty() && layer.parts.size() <= 1, "a layer with a matrix has a weight or parts too");
        } else if (static_cast<int64_t>(layer.weight.size()) != layer.in * layer.out) {
            fail("layer '{}' is {} x {} and has {} weights", short_name(layer.name), layer.out, layer.in,
                 layer.weight.size());
        }
        if (static_cast<int64_t>(layer.bias.size()) != layer.out)
            fail("layer '{}' has {} outputs and {} biases", short_name(layer.name), layer.out, layer.bias.size());
        check_finite(layer.weight);
        check_finite(layer.bias);
        check_activation(layer.activation);
        const bool scaled = layer.precision == Precision::int8 || layer.precision == Precision::fp8;
        require(std::isfinite(layer.input_range) && layer.input_range >= 0, "a range is out of range");
        require(!scaled || layer.input_range > 0, "a layer of int8 or fp8 has no range");
    }

    void check_chain(const Step& step) const {
        require(!step.layers.empty() && step.inputs.empty(), "a chain without layers, or with inputs of its own");
        require(step.width >= 1 && step.width <= kMaxExtent && (step.level == Level::point || step.width == 1),
                "a chain's rows are out of range");
        for (size_t i = 0; i < step.layers.size(); ++i) check_layer(step, i);
        const int64_t channels = step.layers.back().out;
        require(step.reduce == Reduce::none || step.level == Level::point, "takes the maximum over points of clouds");
        switch (step.reduce) {
            case Reduce::none: expect(step, {step.level, step.width, channels}); break;
            case Reduce::max_points: expect(step, network::clouds_of(channels)); break;
            case Reduce::max_rows: expect(step, network::points_of(channels)); break;
        }
    }

    void expect(const Step& step, const TensorType& wanted) const {
        require_value(step.output);
        const TensorType& got = program_.values[static_cast<size_t>(step.output)].type;
        if (got != wanted) fail("makes {}, its value is {}", network::to_string(wanted), network::to_string(got));
    }

    void need_inputs(const Step& step, size_t count) const {
        if (step.inputs.size() != count) fail("needs {} inputs and has {}", count, step.inputs.size());
    }

    const TensorType& points(const Step& step, size_t i) const {
        const TensorType& from = numbers(step, i);
        require(from.level == Level::point, "needs points");
        return from;
    }

    void check_fold(const Step& step) const {
        need_inputs(step, 1);
        const TensorType& matrix = numbers(step, 0);
        const auto k = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(matrix.channels))));
        require(matrix.level == Level::cloud && k * k == matrix.channels, "needs a square matrix of each cloud");
        const auto size = static_cast<int64_t>(step.weight.size());
        require(size % k == 0, "its weight does not fit the matrix");
        check_finite(step.weight);
        expect(step, network::clouds_of(size == 0 ? k * k : size));
    }

    void check_neighbours(const Step& step, int64_t factor, int64_t more) const {
        need_inputs(step, 2);
        const TensorType &x = points(step, 0), &indices = input(step, 1);
        require(x.width == 1 && indices.is_index, "needs points and indices of their neighbours");
        expect(step, network::rows_of(indices.width, factor * x.channels + more));
    }

    void check_copy(const Step& step) const {
        require_value(step.output);
        const TensorType& to = program_.values[static_cast<size_t>(step.output)].type;
        require(!to.is_index, "makes indices");
        int64_t channels = 0;
        for (const Source& source : step.inputs) channels += number_source(source, rows_of(to)).channels;
        expect(step, {to.level, to.width, channels});
    }

    void check_inject(const Step& step) const {
        need_inputs(step, 3);
        const TensorType& x = numbers(step, 0);
        for (size_t i = 1; i < 3; ++i) {
            require(step.inputs[i].access != Access::neighbour, "reads neighbours");
            require(number_source(step.inputs[i], rows_of(x)).channels == x.channels, "its inputs differ in channels");
        }
        expect(step, x);
    }

    void check_step(const Step& step) const {
        if (step.name.size() > kMaxName) fail("a name of {} characters", step.name.size());
        require(step.kind == StepKind::chain || step.layers.empty(), "layers outside a chain");
        require(step.kind == StepKind::fold_matrix || step.weight.empty(), "a weight outside a fold");
        require(std::isfinite(step.factor), "its factor is not finite");
        check_activation(step.activation);
        const auto first = [&]() -> const TensorType& {
            need_inputs(step, 1);
            return numbers(step, 0);
        };
        const auto of_points = [&]() -> const TensorType& {
            need_inputs(step, 1);
            return points(step, 0);
        };
        switch (step.kind) {
            case StepKind::chain: check_chain(step); break;
            case StepKind::fold_matrix: check_fold(step); break;
            case StepKind::knn: {
                require(of_points().width == 1, "needs one row a point");
                require_value(step.output);
                const TensorType& to = program_.values[static_cast<size_t>(step.output)].type;
                require(to.is_index && to.level == Level::point, "makes no indices");
                break;
            }
            case StepKind::edge_distance: check_neighbours(step, 3, 1); break;
            case StepKind::gather: check_neighbours(step, 1, 0); break;
            case StepKind::max_points:
            case StepKind::sum_points: expect(step, network::clouds_of(of_points().channels)); break;
            case StepKind::max_rows: expect(step, network::points_of(of_points().channels)); break;
            case StepKind::sum_channels: expect(step, {first().level, first().width, 1}); break;
            case StepKind::copy: check_copy(step); break;
            case StepKind::slice: {
                const TensorType& x = first();
                require(0 <= step.begin && step.begin < step.end && step.end <= x.channels,
                        "its slice is out of range");
                expect(step, {x.level, x.width, step.end - step.begin});
                break;
            }
            case StepKind::softmax_rows: expect(step, of_points()); break;
            case StepKind::interpolate: {
                need_inputs(step, 2);
                const TensorType &weights = points(step, 0), &values = points(step, 1);
                require(weights.width == values.width, "its weights and values differ in rows");
                expect(step, network::rows_of(weights.channels, values.channels));
                break;
            }
            case StepKind::reverse:
            case StepKind::log_softmax:
            case StepKind::activation: expect(step, first()); break;
            case StepKind::add: {
                need_inputs(step, 2);
                require(numbers(step, 0) == numbers(step, 1), "its inputs differ in type");
                expect(step, numbers(step, 0));
                break;
            }
            case StepKind::couple: {
                need_inputs(step, 2);
                const TensorType &x = numbers(step, 0), &t = numbers(step, 1);
                require(rows_of(x) == rows_of(t) && 0 <= step.begin && step.begin < x.channels &&
                            t.channels == x.channels - step.begin,
                        "its inputs do not fit its channels");
                expect(step, x);
                break;
            }
            case StepKind::inject: check_inject(step); break;
            case StepKind::log_det:
                for (size_t i = 0; i < step.inputs.size(); ++i) input(step, i);
                expect(step, network::clouds_of(1));
                break;
            case StepKind::gaussian_log_density:
                of_points();
                expect(step, network::clouds_of(1));
                break;
        }
    }

    const Program& program_;
    std::vector<bool> made_;
    std::string where_;
};

}  // namespace

void validate(const Program& program) {
    Checker(program).run();
}

}  // namespace stipple::engine
