#include "stipple/tasks/upsampling_study/conditions.h"

#include <cmath>

namespace stipple::tasks::study {

std::vector<Condition> noise_conditions() {
    std::vector<Condition> conditions;
    for (const double noise : {0.0, 0.5, 1.0, 1.5})
        conditions.push_back({.id = fmt::format("noise-{:g}", noise),
                              .title = fmt::format("noise {:g} %", noise),
                              .value = noise,
                              .noise = noise,
                              .published = noise == 0 ? "c" : ""});
    return conditions;
}

std::vector<Condition> density_conditions() {
    std::vector<Condition> conditions;
    for (const int64_t points : {512, 1024, 2048, 4096})
        conditions.push_back({.id = fmt::format("points-{}", points),
                              .title = fmt::format("{} points", points),
                              .value = static_cast<double>(points),
                              .points = points,
                              .published = points == 2048 ? "c" : ""});
    return conditions;
}

std::vector<Condition> ratio_conditions() {
    std::vector<Condition> conditions;
    for (const double ratio : {2.0, 3.7, 4.0, 8.0, 16.0})
        conditions.push_back({.id = fmt::format("ratio-{:g}", ratio),
                              .title = fmt::format("x {:g}", ratio),
                              .value = ratio,
                              .ratio = ratio,
                              .published = ratio == 4    ? "c"
                                           : ratio == 16 ? "x16"
                                                         : ""});
    return conditions;
}

std::vector<Condition> neighbour_conditions() {
    std::vector<Condition> conditions = {{.id = "own", .title = "own k", .value = NAN, .published = "c"}};
    for (const int64_t k : {4, 6, 8, 12, 16})
        conditions.push_back({.id = fmt::format("k-{}", k),
                              .title = fmt::format("k = {}", k),
                              .value = static_cast<double>(k),
                              .neighbours = k});
    return conditions;
}

std::vector<Condition> nonuniform_conditions() {
    return {{.id = "even", .title = "even", .value = 0, .published = "c"},
            {.id = "random", .title = "random", .value = 1, .draw = Draw::random},
            {.id = "gradient", .title = "gradient 1:8", .value = 2, .draw = Draw::gradient},
            {.id = "region", .title = "a region at a tenth", .value = 3, .draw = Draw::region}};
}

std::vector<Condition> ablation_conditions() {
    return {{.id = "c", .title = "(c) even", .value = 0, .published = "c"},
            {.id = "cs", .title = "(c*) even, given truth", .value = 1, .given_truth = true, .published = "cs"},
            {.id = "r", .title = "(r) random", .value = 2, .draw = Draw::given, .given_truth = true, .published = "r"}};
}

}  // namespace stipple::tasks::study
