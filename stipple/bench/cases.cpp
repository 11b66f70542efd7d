#include "stipple/bench/cases.h"

#include <fmt/format.h>

#include <iterator>

#include "stipple/bench/prepare.h"

namespace stipple::bench {

namespace {

std::vector<Case> collect(Size size) {
    std::vector<Case> cases;
    for (auto group : {neighbour_cases, sampling_cases, grouping_cases, interpolation_cases, distance_cases,
                       product_cases, training_cases}) {
        std::vector<Case> some = group(size);
        cases.insert(cases.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return cases;
}

}  // namespace

std::span<const Case> op_cases(Size size) {
    static const std::vector<Case> timed = collect(Size::timed), tiny = collect(Size::tiny);
    return size == Size::timed ? timed : tiny;
}

std::string shape_of(int64_t clouds, int64_t n) {
    const std::string points = n % 1'000'000 == 0 ? fmt::format("{}M", n / 1'000'000)
                               : n % 1000 == 0    ? fmt::format("{}k", n / 1000)
                                                  : std::to_string(n);
    return clouds == 1 ? points : fmt::format("{} x {}", clouds, points);
}

}  // namespace stipple::bench
