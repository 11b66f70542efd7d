#include "stipple/tasks/clean.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/number_text.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/geometry/outliers.h"

namespace stipple::tasks {
namespace {

bool has(const std::vector<CleanMethod>& methods, CleanMethod method) {
    return std::find(methods.begin(), methods.end(), method) != methods.end();
}

const char* word_of(CleanMethod method) {
    return kCleanMethodWords[static_cast<size_t>(method)];
}

std::vector<CleanMethod> methods_in_order(const CleanOptions& options) {
    std::vector<CleanMethod> methods = options.method;
    const auto first = std::find_if(methods.begin(), methods.end(), [](CleanMethod method) {
        return method == CleanMethod::statistical || method == CleanMethod::radius;
    });
    const auto nonfinite = std::find(methods.begin(), methods.end(), CleanMethod::nonfinite);
    if (first == methods.end() || nonfinite < first) return methods;
    if (nonfinite != methods.end()) methods.erase(nonfinite);
    methods.insert(methods.begin(), CleanMethod::nonfinite);
    return methods;
}

/// Which points of the cloud a method keeps; puts the numbers that it went by into `step`.
std::vector<uint8_t> keep_mask(const PointCloud& cloud, const CleanOptions& options, CleanStep& step) {
    const int64_t n = cloud.size();
    std::vector<uint8_t> keep(static_cast<size_t>(n), 0);
    if (step.method == CleanMethod::nonfinite) {
        const float* at = cloud.positions.data();
        for (int64_t i = 0; i < n; ++i, at += 3)
            keep[i] = std::isfinite(at[0]) && std::isfinite(at[1]) && std::isfinite(at[2]);
        return keep;
    }
    if (step.method == CleanMethod::duplicates) {
        step.distance = options.distance;
        const geometry::UniquePoints unique =
            geometry::unique_points(cloud.positions.view(), static_cast<float>(options.distance));
        for (const int32_t i : unique.kept.span()) keep[i] = 1;
        return keep;
    }
    const Array<float, 2> points = cloud.positions.to(options.device);
    Array<uint8_t, 1> mask({n}, options.device);
    if (step.method == CleanMethod::statistical) {
        const geometry::OutlierStatistics found =
            geometry::statistical_outliers(points.view(), mask.view(), options.k, options.ratio);
        step.k = options.k;
        step.ratio = options.ratio;
        if (n > 0) step.threshold = found.threshold;
    } else {
        geometry::radius_outliers(points.view(), mask.view(), static_cast<float>(*options.radius), options.neighbours);
        step.radius = options.radius;
        step.neighbours = options.neighbours;
    }
    const Array<uint8_t, 1> on_host = mask.to({});
    std::copy(on_host.data(), on_host.data() + n, keep.begin());
    return keep;
}

}  // namespace

const Fields& clean_fields() {
    using Options = CleanOptions;
    static const Fields fields = {
        field<&Options::method>("method", "Steps, in order: nonfinite, duplicates, statistical, radius")
            .words(kCleanMethodWords)
            .shown("A,B,..."),
        field<&Options::k>("k", "statistical: nearest points, itself among them, 2 to 128").between(2, 128),
        field<&Options::ratio>("ratio", "statistical: deviations above the mean that go").from(0),
        field<&Options::radius>("radius", "radius: where others must lie").unit("unit of the cloud").above(0),
        field<&Options::neighbours>("neighbours", "radius: how many others, at least").from(1),
        field<&Options::distance>("distance", "duplicates: within it points are the same")
            .unit("unit of the cloud")
            .from(0)};
    return fields;
}

const Fields& clean_step_fields() {
    using Step = CleanStep;
    static const Fields fields = {
        field<&Step::method>("method", "The method").words(kCleanMethodWords),
        field<&Step::distance>("distance", "duplicates: within it points are the same").unit("unit of the cloud"),
        field<&Step::k>("k", "statistical: nearest points, itself among them"),
        field<&Step::ratio>("ratio", "statistical: deviations above the mean that go"),
        field<&Step::threshold>("threshold", "statistical: mean distances above it go").unit("unit of the cloud"),
        field<&Step::radius>("radius", "radius: where others must lie").unit("unit of the cloud"),
        field<&Step::neighbours>("neighbours", "radius: how many others, at least"),
        field<&Step::removed>("removed", "Points that it removed")};
    return fields;
}

const Fields& cleaned_fields() {
    static const Fields fields = {field<&Cleaned::points>("points", "Points of the input"),
                                  objects_field<&Cleaned::steps>("steps", clean_step_fields, "In their order"),
                                  field<&Cleaned::removed>("removed", "Points that all steps removed")};
    return fields;
}

void check_options(const CleanOptions& options) {
    const CleanOptions defaults;
    const struct {
        bool changed;
        const char* name;
        CleanMethod method;
    } owned[] = {{options.k != defaults.k, "k", CleanMethod::statistical},
                 {options.ratio != defaults.ratio, "ratio", CleanMethod::statistical},
                 {options.radius.has_value(), "radius", CleanMethod::radius},
                 {options.neighbours != defaults.neighbours, "neighbours", CleanMethod::radius},
                 {options.distance != defaults.distance, "distance", CleanMethod::duplicates}};
    for (const auto& option : owned)
        STIPPLE_REQUIRE(!option.changed || has(options.method, option.method), "--{} is for --method {}", option.name,
                        word_of(option.method));
    STIPPLE_REQUIRE(!options.method.empty(), "--method is empty");
    for (auto at = options.method.begin(); at != options.method.end(); ++at)
        STIPPLE_REQUIRE(std::find(options.method.begin(), at, *at) == at, "--method {} twice", word_of(*at));
    check_fields(clean_fields(), &options);
    STIPPLE_REQUIRE(options.radius || !has(options.method, CleanMethod::radius), "--method radius needs --radius R");
    // What is searched is float32.
    STIPPLE_REQUIRE(!options.radius || static_cast<float>(*options.radius) > 0, "--radius must be above 0, got {}",
                    *options.radius);
}

Cleaned clean(const PointCloud& cloud, const CleanOptions& options) {
    check_options(options);
    Cleaned cleaned{.points = cloud.size()};
    std::vector<int32_t>& left = cleaned.kept_points;
    left.resize(static_cast<size_t>(cloud.size()));
    for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int32_t>(i);
    for (const CleanMethod method : methods_in_order(options)) {
        CleanStep step{.method = method};
        const std::vector<uint8_t> keep = keep_mask(points_at(cloud, left), options, step);
        std::vector<int32_t> stays;
        for (size_t i = 0; i < left.size(); ++i) (keep[i] ? stays : cleaned.removed_points).push_back(left[i]);
        step.left = static_cast<int64_t>(stays.size());
        step.removed = static_cast<int64_t>(left.size()) - step.left;
        left = std::move(stays);
        cleaned.steps.push_back(step);
    }
    std::sort(cleaned.removed_points.begin(), cleaned.removed_points.end());
    cleaned.removed = static_cast<int64_t>(cleaned.removed_points.size());
    if (left.empty())
        throw Error(ErrorCode::bad_file, fmt::format("no point is left; removed: {}", removed_text(cleaned.steps)));
    return cleaned;
}

std::string removed_text(const std::vector<CleanStep>& steps) {
    std::string text;
    for (const CleanStep& step : steps)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word_of(step.method), grouped(step.removed));
    return text;
}

PointCloud points_at(const PointCloud& cloud, const std::vector<int32_t>& indices) {
    return select(cloud, View<const int32_t, 1>(indices.data(), {static_cast<int64_t>(indices.size())}));
}

}  // namespace stipple::tasks
