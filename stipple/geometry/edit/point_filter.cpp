#include "stipple/geometry/point_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>

#include "stipple/core/nearest_name.h"
#include "stipple/core/parallel.h"
#include "stipple/core/quoted.h"
#include "stipple/io/text.h"

namespace stipple::geometry {
namespace {

using Operation = PointFilter::Operation;
using Step = PointFilter::Step;

[[noreturn]] void fail_at(const std::string& text, size_t at, const std::string& message) {
    // The caret stands below the character that it means: behind "  hint: ", by characters and not by bytes.
    std::string caret = "        ", shown;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        shown += c < 0x20 || c == 0x7f ? ' ' : text[i];
        if (i < at && (c & 0xc0) != 0x80) caret += ' ';
    }
    throw Error(ErrorCode::bad_argument, fmt::format("column {}: {}", at + 1, message), shown + "\n" + caret + "^");
}

bool begins_name(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool goes_on_in_name(char c) {
    return begins_name(c) || std::isdigit(static_cast<unsigned char>(c));
}

enum class Kind { number, truth };

/// Recursive descent; the steps come out in postfix order.
class FilterParser {
public:
    explicit FilterParser(const std::string& text) : text_(text) {}

    std::vector<Step> parse() {
        blanks();
        if (at_ == text_.size()) throw Error(ErrorCode::bad_argument, "an expression is missing: 'label == 2'");
        const size_t begin = at_;
        const Kind kind = either();
        if (at_ < text_.size()) fail_unexpected();
        if (kind != Kind::truth) fail_at(text_, begin, "this is a number: compare it with something, as in label == 2");
        return std::move(steps_);
    }

    int depth() const { return most_; }

private:
    struct Nesting {
        explicit Nesting(FilterParser& p) : parser(p) {
            constexpr int kMost = 200;
            if (++parser.nesting_ > kMost) parser.fail("nested too deep");
        }
        ~Nesting() { --parser.nesting_; }
        FilterParser& parser;
    };

    [[noreturn]] void fail(const std::string& message) const { fail_at(text_, at_, message); }

    [[noreturn]] void fail_unexpected() const {
        if (at_ == text_.size()) fail("the expression ends too early");
        const char c = text_[at_];
        if (c == '=') fail("write == to compare");
        if (c == '&' || c == '|') fail(fmt::format("write {0}{0}", c));
        const size_t end = text_.find_first_of(" \t)", at_ + 1);
        const std::string word = text_.substr(at_, std::min(end, text_.size()) - at_);
        if (word == "and" || word == "AND") fail("write && for and");
        if (word == "or" || word == "OR") fail("write || for or");
        if (word == "not" || word == "NOT") fail("write ! for not");
        fail(fmt::format("unexpected {}", in_quotes(word)));
    }

    void blanks() {
        while (at_ < text_.size() && (io::is_blank(text_[at_]) || text_[at_] == '\n')) ++at_;
    }

    bool accept(std::string_view token) {
        if (text_.compare(at_, token.size(), token) != 0) return false;
        at_ += token.size();
        blanks();
        return true;
    }

    void emit(Step step, int change) {
        steps_.push_back(std::move(step));
        held_ += change;
        most_ = std::max(most_, held_);
    }

    void want(Kind kind, Kind wanted, size_t at, std::string_view operation) const {
        if (kind == wanted) return;
        fail_at(text_, at,
                wanted == Kind::truth
                    ? fmt::format("{} wants a truth value here, such as label == 2; this is a number", operation)
                    : fmt::format("{} wants a number here; this is a truth value", operation));
    }

    Kind either() { return chain(&FilterParser::both, {{"||", Operation::either}}, Kind::truth); }
    Kind both() { return chain(&FilterParser::negation, {{"&&", Operation::both}}, Kind::truth); }

    Kind negation() {
        if (at_ + 1 < text_.size() && text_[at_] == '!' && text_[at_ + 1] != '=') {
            const Nesting nesting(*this);
            accept("!");
            const size_t begin = at_;
            want(negation(), Kind::truth, begin, "!");
            emit({Operation::invert}, 0);
            return Kind::truth;
        }
        return comparison();
    }

    Kind comparison() {
        static constexpr std::pair<std::string_view, Operation> kComparisons[] = {
            {"==", Operation::equal},         {"!=", Operation::not_equal}, {"<=", Operation::less_equal},
            {">=", Operation::greater_equal}, {"<", Operation::less},       {">", Operation::greater}};
        const size_t begin = at_;
        const Kind left = sum();
        for (const auto& [token, operation] : kComparisons) {
            if (!accept(token)) continue;
            want(left, Kind::number, begin, token);
            const size_t second = at_;
            want(sum(), Kind::number, second, token);
            emit({operation}, -1);
            for (const auto& [next, unused] : kComparisons)
                if (text_.compare(at_, next.size(), next) == 0) fail("comparisons do not chain: write 1 < x && x < 3");
            return Kind::truth;
        }
        return left;
    }

    Kind sum() {
        return chain(&FilterParser::product, {{"+", Operation::add}, {"-", Operation::subtract}}, Kind::number);
    }
    Kind product() {
        return chain(&FilterParser::factor, {{"*", Operation::multiply}, {"/", Operation::divide}}, Kind::number);
    }

    Kind chain(Kind (FilterParser::*next)(), std::initializer_list<std::pair<std::string_view, Operation>> operations,
               Kind wanted) {
        const size_t begin = at_;
        const Kind kind = (this->*next)();
        for (bool found = true; found;) {
            found = false;
            for (const auto& [token, operation] : operations) {
                if (!accept(token)) continue;
                want(kind, wanted, begin, token);
                const size_t second = at_;
                want((this->*next)(), wanted, second, token);
                emit({operation}, -1);
                found = true;
                break;
            }
        }
        return kind;
    }

    Kind factor() {
        const Nesting nesting(*this);
        if (accept("(")) {
            const Kind kind = either();
            if (!accept(")")) {
                if (at_ == text_.size()) fail("a ) is missing");
                fail_unexpected();
            }
            return kind;
        }
        for (const char sign : {'-', '+'}) {
            if (!accept(std::string_view(&sign, 1))) continue;
            const size_t begin = at_;
            want(factor(), Kind::number, begin, std::string_view(&sign, 1));
            if (sign == '-') emit({Operation::negate}, 0);
            return Kind::number;
        }
        if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.'))
            return number();
        if (at_ < text_.size() && (begins_name(text_[at_]) || text_[at_] == '"')) return name();
        fail_unexpected();
    }

    Kind number() {
        const char* at = text_.data() + at_;
        double value = 0;
        const size_t begin = at_;
        if (!io::scan_number(at, text_.data() + text_.size(), value)) fail("expected a number");
        at_ = static_cast<size_t>(at - text_.data());
        if (at_ < text_.size() && goes_on_in_name(text_[at_])) fail_at(text_, begin, "this is neither number nor name");
        blanks();
        emit({Operation::number, value, {}, -1, begin}, 1);
        return Kind::number;
    }

    Kind name() {
        Step step{Operation::column, 0, {}, -1, at_};
        if (text_[at_] == '"') {
            const size_t end = text_.find('"', at_ + 1);
            if (end == std::string::npos) fail("the quotes do not end");
            step.name = text_.substr(at_ + 1, end - at_ - 1);
            at_ = end + 1;
        } else {
            const size_t begin = at_;
            while (at_ < text_.size() && goes_on_in_name(text_[at_])) ++at_;
            step.name = text_.substr(begin, at_ - begin);
            if (step.name == "and" || step.name == "or" || step.name == "not") {
                at_ = begin;
                fail_unexpected();
            }
        }
        if (at_ < text_.size() && text_[at_] == '.') {
            constexpr std::string_view kLetters[] = {"xyzw", "rgba"};
            const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
            for (const std::string_view letters : kLetters)
                if (const size_t found = letters.find(letter); found != std::string_view::npos)
                    step.component = static_cast<int>(found);
            const bool is_longer = at_ + 2 < text_.size() && goes_on_in_name(text_[at_ + 2]);
            if (step.component < 0 || is_longer) fail("expected a component: .x .y .z .w or .r .g .b .a");
            at_ += 2;
        }
        blanks();
        if (step.component < 0 && accept("[")) {
            const char* at = text_.data() + at_;
            double value = -1;
            const bool is_number =
                at < text_.data() + text_.size() && io::scan_number(at, text_.data() + text_.size(), value);
            if (!is_number || value < 0 || value > 4096 || value != std::floor(value))
                fail("expected the number of a component, from 0");
            step.component = static_cast<int>(value);
            at_ = static_cast<size_t>(at - text_.data());
            blanks();
            if (!accept("]")) fail("a ] is missing");
        }
        emit(std::move(step), 1);
        return Kind::number;
    }

    const std::string& text_;
    size_t at_ = 0;
    std::vector<Step> steps_;
    int nesting_ = 0, held_ = 0, most_ = 0;
};

/// Where the values of a column are.
struct Column {
    int axis = -1;  // x, y or z
    const Attribute* attribute = nullptr;
    int64_t component = 0;
};

Column column_of(const PointCloud& cloud, const Step& step, const std::string& text) {
    if (step.name.size() == 1 && step.name[0] >= 'x' && step.name[0] <= 'z') {
        if (step.component >= 0) fail_at(text, step.at, fmt::format("{} has no components", step.name));
        return {step.name[0] - 'x'};
    }
    const Attribute* attribute = find(cloud.attributes, step.name);
    if (!attribute) {
        std::vector<std::string> names = {"x", "y", "z"};
        for (const Attribute& other : cloud.attributes) names.push_back(other.name());
        const std::string near = nearest_name(step.name, names);
        fail_at(text, step.at,
                fmt::format("no attribute {}{}; there are {}", in_quotes(step.name),
                            near.empty() ? "" : fmt::format(", did you mean {}?", near), fmt::join(names, ", ")));
    }
    if (step.component < 0 && attribute->components() != 1)
        fail_at(text, step.at,
                fmt::format("{0} has {1} components: {0}[0] to {0}[{2}]", step.name, attribute->components(),
                            attribute->components() - 1));
    if (step.component >= attribute->components())
        fail_at(text, step.at,
                fmt::format("{} has {} component{}, counted from 0", step.name, attribute->components(),
                            attribute->components() == 1 ? "" : "s"));
    return {-1, attribute, std::max(step.component, 0)};
}

template <class T>
void gather(const Attribute& attribute, int64_t component, int64_t begin, int64_t count, double* to) {
    const T* from = attribute.as<T>().data() + begin * attribute.components() + component;
    const int64_t step = attribute.components();
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i * step]);
}

void load(const PointCloud& cloud, const Column& column, int64_t begin, int64_t count, double* to) {
    if (column.axis >= 0) {
        const double origin = cloud.origin[column.axis];
        const float* from = cloud.positions.data() + 3 * begin + column.axis;
        for (int64_t i = 0; i < count; ++i) to[i] = origin + from[3 * i];
        return;
    }
    const Attribute& attribute = *column.attribute;
    switch (attribute.dtype()) {
        case DType::u8: return gather<uint8_t>(attribute, column.component, begin, count, to);
        case DType::u16: return gather<uint16_t>(attribute, column.component, begin, count, to);
        case DType::i32: return gather<int32_t>(attribute, column.component, begin, count, to);
        case DType::f32: return gather<float>(attribute, column.component, begin, count, to);
        case DType::f64: return gather<double>(attribute, column.component, begin, count, to);
        default:
            for (int64_t i = 0; i < count; ++i) to[i] = attribute.value(begin + i, column.component);
    }
}

/// One operation on blocks of numbers; truth is 1, else 0. Each loop is one that the compiler vectorises.
void apply(Operation operation, int64_t n, double* a, const double* b) {
    const auto pairwise = [&](auto&& f) {
        for (int64_t i = 0; i < n; ++i) a[i] = f(a[i], b[i]);
    };
    switch (operation) {
        case Operation::add: return pairwise([](double p, double q) { return p + q; });
        case Operation::subtract: return pairwise([](double p, double q) { return p - q; });
        case Operation::multiply: return pairwise([](double p, double q) { return p * q; });
        case Operation::divide: return pairwise([](double p, double q) { return p / q; });
        case Operation::equal: return pairwise([](double p, double q) { return p == q ? 1.0 : 0.0; });
        case Operation::not_equal: return pairwise([](double p, double q) { return p != q ? 1.0 : 0.0; });
        case Operation::less: return pairwise([](double p, double q) { return p < q ? 1.0 : 0.0; });
        case Operation::less_equal: return pairwise([](double p, double q) { return p <= q ? 1.0 : 0.0; });
        case Operation::greater: return pairwise([](double p, double q) { return p > q ? 1.0 : 0.0; });
        case Operation::greater_equal: return pairwise([](double p, double q) { return p >= q ? 1.0 : 0.0; });
        case Operation::both: return pairwise([](double p, double q) { return p * q; });
        case Operation::either: return pairwise([](double p, double q) { return std::max(p, q); });
        case Operation::negate:
            for (int64_t i = 0; i < n; ++i) a[i] = -a[i];
            return;
        case Operation::invert:
            for (int64_t i = 0; i < n; ++i) a[i] = 1 - a[i];
            return;
        case Operation::number:
        case Operation::column: STIPPLE_ASSERT(false);
    }
}

bool is_unary(Operation operation) {
    return operation == Operation::negate || operation == Operation::invert;
}

}  // namespace

PointFilter::PointFilter(std::string_view expression) : text_(expression) {
    FilterParser parser(text_);
    steps_ = parser.parse();
    depth_ = parser.depth();
}

std::vector<std::string> PointFilter::names() const {
    std::vector<std::string> names;
    for (const Step& step : steps_)
        if (step.operation == Operation::column && step.name != "x" && step.name != "y" && step.name != "z" &&
            std::find(names.begin(), names.end(), step.name) == names.end())
            names.push_back(step.name);
    return names;
}

std::vector<uint8_t> PointFilter::mask(const PointCloud& cloud) const {
    std::vector<Column> columns;
    for (const Step& step : steps_)
        columns.push_back(step.operation == Operation::column ? column_of(cloud, step, text_) : Column{});
    std::vector<uint8_t> mask(static_cast<size_t>(cloud.size()));
    constexpr int64_t kBlock = 1024;  // some columns of it stay in the first cache
    parallel_for(cloud.size(), 16 * kBlock, [&](int64_t from, int64_t to) {
        const std::unique_ptr<double[]> stack(new double[static_cast<size_t>(depth_ * kBlock)]);
        for (int64_t begin = from; begin < to; begin += kBlock) {
            const int64_t n = std::min(kBlock, to - begin);
            double* top = stack.get();  // of what is free
            for (size_t i = 0; i < steps_.size(); ++i) {
                const Step& step = steps_[i];
                if (step.operation == Operation::number) {
                    std::fill_n(top, n, step.number);
                    top += kBlock;
                } else if (step.operation == Operation::column) {
                    load(cloud, columns[i], begin, n, top);
                    top += kBlock;
                } else {
                    if (!is_unary(step.operation)) top -= kBlock;
                    apply(step.operation, n, top - kBlock, top);
                }
            }
            for (int64_t i = 0; i < n; ++i) mask[begin + i] = stack[i] != 0;
        }
    });
    return mask;
}

}  // namespace stipple::geometry
