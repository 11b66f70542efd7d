#pragma once
// PointFilter: which points of a cloud an expression over their coordinates and attributes chooses.
//
//   expression  either { "||" either }          comparison  sum [ ( == != < <= > >= ) sum ]
//   either      negation { "&&" negation }      sum         product { ( + - ) product }
//   negation    "!" negation | comparison       product     factor { ( * / ) factor }
//   factor      number | name | name [ index ] | name . letter | ( expression ) | - factor | + factor
//
// Names are x, y and z, the coordinates in the world (float64), and attributes; one with other characters than letters,
// digits and _ stands in double quotes. Components are counted from 0, or named: normal.z, color.r. Comparisons give a
// truth value, && || and ! want them, + - * / and comparisons want numbers: a mixture is an error, as is a chain
// 1 < x < 3. Arithmetic is float64 as IEEE has it: NaN compares false with everything (but != true), 1/0 is infinite.
// Integers beyond 2^53 are rounded.

#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::geometry {

class PointFilter {
public:
    /// Parses. Throws Error{bad_argument} that names the column, from 1; its hint shows the expression and points
    /// there with a caret. Nests at most 200 deep.
    explicit PointFilter(std::string_view expression);

    /// [n] 1 for points that it chooses, else 0. Throws Error{bad_argument} as above for attributes that the cloud does
    /// not have, naming those it has, and for components that are not there. In parallel, by blocks of columns: the
    /// time goes with the points times the operations.
    std::vector<uint8_t> mask(const PointCloud& cloud) const;

    const std::string& text() const { return text_; }
    /// Of the attributes that it looks at, each once.
    std::vector<std::string> names() const;

    enum class Operation : uint8_t {
        number,
        column,
        negate,
        invert,
        add,
        subtract,
        multiply,
        divide,
        equal,
        not_equal,
        less,
        less_equal,
        greater,
        greater_equal,
        both,
        either,
    };
    /// In postfix order: each takes its operands from a stack and leaves its value there.
    struct Step {
        Operation operation;
        double number = 0;      // of number
        std::string name = {};  // of column: x, y, z or an attribute
        int component = -1;     // -1: the attribute must have one
        size_t at = 0;          // in the text
    };
    const std::vector<Step>& steps() const { return steps_; }

private:
    std::string text_;
    std::vector<Step> steps_;
    int depth_ = 0;  // of the stack
};

}  // namespace stipple::geometry
