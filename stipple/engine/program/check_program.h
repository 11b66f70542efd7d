#pragma once
// A program under inspection: what the checks of its steps (kinds/) have in common. Every function throws
// Error{bad_argument} that says where in the program it is and what is wrong.

#include <string>
#include <vector>

#include "stipple/core/error.h"
#include "stipple/engine/program.h"

namespace stipple::engine {

constexpr int64_t kMaxExtent = int64_t{1} << 24;  // of channels and widths: products of two stay far from overflow
constexpr size_t kMaxName = 1000;

class ProgramCheck {
public:
    explicit ProgramCheck(const Program& program) : program_(program), made_(program.values.size(), false) {}

    void run();

    template <class... T>
    [[noreturn]] void fail(fmt::format_string<T...> text, T&&... arguments) const {
        throw Error(ErrorCode::bad_argument,
                    fmt::format("the program: {}: {}", where_, fmt::format(text, std::forward<T>(arguments)...)));
    }
    void require(bool condition, const char* what) const {
        if (!condition) fail("{}", what);
    }

    struct Rows {
        Level level = Level::point;
        int64_t width = 1;
        int32_t set = 0;
        bool operator==(const Rows&) const = default;
    };
    static Rows rows_of(const TensorType& type) { return {type.level, type.width, type.set}; }
    /// The type of so many numbers a row.
    TensorType tensor(const Rows& rows, int64_t channels) const;

    /// The type of a value that is there by now.
    const TensorType& type(Value value) const;
    /// The type that a step's output is written with.
    const TensorType& output(const Step& step) const;
    /// Fails unless the output has this type.
    void expect(const Step& step, const TensorType& wanted) const;
    void need_inputs(const Step& step, size_t count) const;

    /// A source of numbers whose rows a step with these rows can find.
    const TensorType& number_source(const Source& source, const Rows& rows) const;
    /// Input i of a step, row by row: anything, numbers, numbers of points.
    const TensorType& input(const Step& step, size_t i) const;
    const TensorType& numbers(const Step& step, size_t i) const;
    const TensorType& points(const Step& step, size_t i) const;
    /// The only input.
    const TensorType& only_numbers(const Step& step) const;
    const TensorType& only_points(const Step& step) const;

    void finite(const std::vector<float>& values) const;
    void activation(const Activation& activation) const;

    static std::string short_name(const std::string& name) { return name.substr(0, 60); }

private:
    void check_type(const ValueInfo& value) const;
    void check_step(const Step& step) const;
    void require_value(Value value) const;
    void make(Value value);

    const Program& program_;
    std::vector<bool> made_;
    std::string where_;
    std::vector<PointSet> sets_;
};

}  // namespace stipple::engine
