#include "stipple/tasks/likeness.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"

namespace stipple::tasks {
namespace {

constexpr const char* kLikenessKey = "stipple.likeness";
constexpr std::string_view kTheLikeness = "the likeness";
constexpr double kLeastLimit = 1e-4;  // of the unit sphere: below the roundings of 8-bit weights

/// The value that a share of all stays at or below.
double quantile(std::vector<double> values, double share) {
    const auto at = static_cast<std::ptrdiff_t>(std::ceil(share * static_cast<double>(values.size())) - 1);
    const auto place = std::clamp<std::ptrdiff_t>(at, 0, static_cast<std::ptrdiff_t>(values.size()) - 1);
    std::nth_element(values.begin(), values.begin() + place, values.end());
    return values[static_cast<size_t>(place)];
}

/// Limits that a share of the clouds stays within, in both ways at once: each way has the same share alone, and both
/// are then widened together.
Gaps limits_of(const std::vector<Gaps>& gaps, double share) {
    std::vector<double> to, from, larger;
    for (const Gaps& one : gaps) {
        to.push_back(one.to_made);
        from.push_back(one.from_made);
    }
    Gaps limits{std::max(quantile(to, share), kLeastLimit), std::max(quantile(from, share), kLeastLimit)};
    for (const Gaps& one : gaps)
        larger.push_back(std::max(one.to_made / limits.to_made, one.from_made / limits.from_made));
    const double widened = std::max(quantile(larger, share), 1.0);
    return {widened * limits.to_made, widened * limits.from_made};
}

double between(double low, double high, double t) {
    return std::exp((1 - t) * std::log(low) + t * std::log(high));
}

double six_digits(double x) {
    const double scale = std::pow(10.0, 5 - std::floor(std::log10(x)));
    return std::round(x * scale) / scale;
}

}  // namespace

Likeness fit_likeness(std::span<const LikenessClouds> sets, const LikenessOptions& options) {
    STIPPLE_REQUIRE(options.accepted > 0 && options.accepted <= 1, "likeness: accepted {} must be above 0, to 1",
                    options.accepted);
    STIPPLE_REQUIRE(options.slack > 0 && std::isfinite(options.slack), "likeness: slack {} must be above 0",
                    options.slack);
    std::map<int64_t, std::vector<Gaps>> by_size;
    for (const LikenessClouds& set : sets) {
        if (set.gaps.empty()) continue;
        STIPPLE_REQUIRE(set.points >= 1, "likeness: clouds of {} points", set.points);
        for (const Gaps& one : set.gaps)
            STIPPLE_REQUIRE(one.to_made >= 0 && one.from_made >= 0 && std::isfinite(one.to_made + one.from_made),
                            "likeness: a distance is negative or not finite");
        std::vector<Gaps>& all = by_size[set.points];
        all.insert(all.end(), set.gaps.begin(), set.gaps.end());
    }
    STIPPLE_REQUIRE(!by_size.empty(), "likeness: no clouds");
    Likeness likeness;
    for (const auto& [points, gaps] : by_size) {
        const Gaps limits = limits_of(gaps, options.accepted);
        likeness.sizes.push_back({points, {options.slack * limits.to_made, options.slack * limits.from_made}});
    }
    return likeness;
}

double unlikeness(const Likeness& likeness, const Gaps& gaps, int64_t points) {
    STIPPLE_REQUIRE(!likeness.sizes.empty(), "likeness: no sizes");
    const auto above = std::lower_bound(likeness.sizes.begin(), likeness.sizes.end(), points,
                                        [](const Likeness::Size& size, int64_t n) { return size.points < n; });
    Gaps limits;
    if (above == likeness.sizes.end()) {
        limits = likeness.sizes.back().limits;
    } else if (above == likeness.sizes.begin()) {
        limits = above->limits;
    } else {
        const Likeness::Size &low = above[-1], &high = *above;
        const auto log_of = [](int64_t n) { return std::log(static_cast<double>(n)); };
        const double t = (log_of(points) - log_of(low.points)) / (log_of(high.points) - log_of(low.points));
        limits = {between(low.limits.to_made, high.limits.to_made, t),
                  between(low.limits.from_made, high.limits.from_made, t)};
    }
    return std::max(gaps.to_made / limits.to_made, gaps.from_made / limits.from_made);
}

std::string likeness_json(const Likeness& likeness) {
    JsonWriter json;
    json.begin_object().key("sizes").begin_array();
    for (const Likeness::Size& size : likeness.sizes)
        json.begin_object()
            .field("points", size.points)
            .field("to_made", six_digits(size.limits.to_made))
            .field("from_made", six_digits(size.limits.from_made))
            .end_object();
    return json.end_array().end_object().text();
}

Likeness parse_likeness(std::string_view text) {
    Likeness likeness;
    read_json(kTheLikeness, text, [&](JsonField& field) {
        if (field.word() != "sizes") field.fail("is not known");
        Likeness::Size& size = field.element(likeness.sizes);
        const std::string_view name = field.word();
        if (name == "points")
            field.take(size.points);
        else if (name == "to_made")
            field.take(size.limits.to_made);
        else if (name == "from_made")
            field.take(size.limits.from_made);
        else
            field.fail("is not known");
    });
    int64_t before = 0;
    for (const Likeness::Size& size : likeness.sizes) {
        const auto is_length = [](double x) { return x > 0 && std::isfinite(x); };
        if (size.points <= before || !is_length(size.limits.to_made) || !is_length(size.limits.from_made))
            throw Error(ErrorCode::bad_file,
                        fmt::format("{} has sizes that do not grow, or a limit of 0", kTheLikeness));
        before = size.points;
    }
    if (likeness.sizes.empty()) throw Error(ErrorCode::bad_file, fmt::format("{} has no sizes", kTheLikeness));
    return likeness;
}

std::optional<Likeness> likeness_of(const std::map<std::string, std::string>& metadata) {
    const auto found = metadata.find(kLikenessKey);
    if (found == metadata.end()) return {};
    return parse_likeness(found->second);
}

void set_likeness(std::map<std::string, std::string>& metadata, const Likeness& likeness) {
    metadata[kLikenessKey] = likeness_json(likeness);
}

}  // namespace stipple::tasks
