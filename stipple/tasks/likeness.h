#pragma once
// Whether a cloud is of the kind that an autoencoder was trained on: what is made of such a cloud lies on it.
//
// A network that rebuilds clouds of four classes makes something like them of anything. How far the cloud and what is
// made of it are apart, both ways, tells: it is compared with the distances of training clouds of as many points. The
// limits are quantiles over these and travel in the weights' metadata ("stipple.likeness", JSON, below 1 kB), beside
// the names of the classes ("stipple.classes").

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stipple::tasks {

/// How far a cloud in the unit sphere and what is made of it are apart: roots of the mean squared distances.
struct Gaps {
    double to_made = 0;    // of the cloud's points, to the nearest point that is made
    double from_made = 0;  // of the points that are made, to the nearest of the cloud
};

struct Likeness {
    /// Of clouds of so many points: the fewer, the less is known of the shape, and the farther apart both are.
    struct Size {
        int64_t points = 0;
        Gaps limits;
    };
    std::vector<Size> sizes;  // ascending
};

/// Training clouds of one size.
struct LikenessClouds {
    int64_t points = 0;  // of each
    std::vector<Gaps> gaps;
};

struct LikenessOptions {
    /// Of the clouds given; the others are taken for unlike.
    double accepted = 0.985;
    /// The limits are so many times what that share of the clouds stays below, because a network rebuilds clouds that
    /// it was trained on better than others. Fixed on a tenth of the training clouds of ModelNet40's airplanes, cars,
    /// chairs and tables that weights had not been trained on: 95 % of these, as clouds of 2048 points, stay below 1.25
    /// times the limits of the others. 1 for clouds that the network was not trained on.
    double slack = 1.25;
};

/// Several sizes, several sets of one size if wanted. Throws Error{bad_argument} for no clouds, gaps that are negative
/// or not finite, options out of range.
Likeness fit_likeness(std::span<const LikenessClouds> sets, const LikenessOptions& options = {});

/// The larger of both gaps over its limit: above 1 is unlike the training clouds. Between sizes limits are
/// interpolated, logarithms of both; beyond them they are those of the nearest size.
double unlikeness(const Likeness& likeness, const Gaps& gaps, int64_t points);

/// As JSON. parse_likeness is strict: unknown or missing fields and numbers out of range are Error{bad_file}.
std::string likeness_json(const Likeness& likeness);
Likeness parse_likeness(std::string_view json);

/// That of the metadata; nothing when there is none. Throws Error{bad_file}.
std::optional<Likeness> likeness_of(const std::map<std::string, std::string>& metadata);
void set_likeness(std::map<std::string, std::string>& metadata, const Likeness& likeness);

}  // namespace stipple::tasks
