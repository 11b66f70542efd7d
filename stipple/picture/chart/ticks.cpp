#include "stipple/picture/chart/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stipple::picture::chart {
namespace {

constexpr double kSlack = 1e-9;  // of a step: what rounding may move an end
constexpr int kFactors[] = {1, 2, 5};

double power_of_ten(int exponent) {
    return std::pow(10.0, exponent);
}

// factor * 10^exponent.
struct Step {
    int factor = 1, exponent = 0;

    double size() const { return times(1); }
    // One rounding: 3 * 0.1 is 0.3.
    double times(double k) const {
        if (k == 0) return 0;
        return exponent >= 0 ? k * factor * power_of_ten(exponent) : k * factor / power_of_ten(-exponent);
    }
    Step next() const {
        return factor == 1 ? Step{2, exponent} : factor == 2 ? Step{5, exponent} : Step{1, exponent + 1};
    }
};

Step small_step(AxisRange range, int most) {
    return {1, std::max(static_cast<int>(std::floor(std::log10((range.high - range.low) / most))) - 1, -306)};
}

std::string with_minus_sign(std::string text) {
    if (text[0] == '-') text.replace(0, 1, "\xe2\x88\x92");
    return text;
}

constexpr const char* kTimesTen =
    "\xc3\x97"
    "10^";

std::string power_text(int exponent) {
    return with_minus_sign(fmt::format("{}", exponent));
}

// k steps as text, for numbers of which the largest is `largest`.
std::string step_text(Step step, double k, double largest) {
    if (k == 0) return "0";
    const int top = static_cast<int>(std::floor(std::log10(largest) + kSlack));
    if (top >= -4 && top < 6)
        return with_minus_sign(fmt::format("{:.{}f}", step.times(k), std::max(0, -step.exponent)));
    const Step mantissa{step.factor, step.exponent - top};
    return with_minus_sign(fmt::format("{:.{}f}", mantissa.times(k), std::max(0, -mantissa.exponent))) + kTimesTen +
           power_text(top);
}

}  // namespace

std::vector<Tick> linear_ticks(AxisRange range, int most, double min_step) {
    std::vector<Tick> ticks;
    Step step = small_step(range, most);
    double first = 0, last = 0;
    for (;; step = step.next()) {
        first = std::ceil(range.low / step.size() - kSlack);
        last = std::floor(range.high / step.size() + kSlack);
        if (last - first < most && step.size() >= min_step) break;
    }
    const double largest = std::max(std::abs(step.times(first)), std::abs(step.times(last)));
    for (double k = first; k <= last; ++k) ticks.push_back({step.times(k), step_text(step, k, largest)});
    return ticks;
}

std::vector<Tick> log_ticks(AxisRange range, int most) {
    const double low = std::log10(range.low) - kSlack, high = std::log10(range.high) + kSlack;
    const int first = static_cast<int>(std::ceil(low)), last = static_cast<int>(std::floor(high));
    const bool plain = low > -4.5 && high < 6;
    std::vector<Tick> ticks;
    const auto add = [&](Step step) {
        const double at = std::log10(step.size());
        if (at < low || at > high) return;
        if (plain)
            ticks.push_back({step.size(), fmt::format("{:.{}f}", step.size(), std::max(0, -step.exponent))});
        else
            ticks.push_back(
                {step.size(), (step.factor == 1 ? std::string("10^") : fmt::format("{}{}", step.factor, kTimesTen)) +
                                  power_text(step.exponent)});
    };
    if (high - low > 0.9)
        for (int exponent = first - 1; exponent <= last && static_cast<int>(ticks.size()) <= most; ++exponent)
            for (int factor : kFactors) add({factor, exponent});
    if (static_cast<int>(ticks.size()) >= 2 && static_cast<int>(ticks.size()) <= most) return ticks;
    ticks.clear();
    if (last - first < 1) return linear_ticks(range, most);
    const int every = (last - first) / most + 1;
    for (int exponent = first; exponent <= last; ++exponent)
        if (exponent % every == 0) add({1, exponent});
    return ticks;
}

AxisRange widened(AxisRange range) {
    const double largest = std::max(std::abs(range.low), std::abs(range.high));
    if (range.high - range.low > kSlack * largest && range.high - range.low > 1 / kLargest) return range;
    const double middle = range.low / 2 + range.high / 2, more = largest > 1 / kLargest ? largest / 2 : 1;
    return {middle - more, middle + more};
}

AxisRange linear_range(AxisRange data, int most) {
    constexpr double kNear = 0.35;  // of the far end
    data = widened(data);
    if (data.low > 0 && data.low < kNear * data.high) data.low = 0;
    if (data.high < 0 && data.high > kNear * data.low) data.high = 0;
    for (Step step = small_step(data, most);; step = step.next()) {
        const double first = std::floor(data.low / step.size() + kSlack);
        const double last = std::ceil(data.high / step.size() - kSlack);
        if (last - first < most) return {step.times(first), step.times(last)};
    }
}

AxisRange log_range(AxisRange data) {
    if (!(data.high > data.low * (1 + kSlack))) data = {data.low / 2, data.high * 2};
    Step low{1, static_cast<int>(std::floor(std::log10(data.low))) - 1};
    while (low.next().size() <= data.low * (1 + kSlack)) low = low.next();
    Step high = low;
    while (high.size() < data.high * (1 - kSlack)) high = high.next();
    return {low.size(), high.size()};
}

}  // namespace stipple::picture::chart
