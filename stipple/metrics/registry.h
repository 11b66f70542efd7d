#pragma once
// The list of metrics: what each is called, its formula, unit and who reports it. docs/metrics.md begins with this
// table and a test keeps the two equal. A Score is one number together with what must be known to compare it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/metrics/protocol.h"

namespace stipple::metrics {

enum class Better { lower, higher, neither };
inline constexpr const char* kBetterWords[] = {"lower", "higher", "neither"};

/// How scores of several shapes become one.
enum class Across {
    mean,    // of the shapes' values
    pooled,  // of all points of all shapes: a shape counts by its points
};

struct MetricInfo {
    const char* name;     // "chamfer_squared_sum"
    const char* group;    // "clouds", "surface", "spread", "registration", "recognition", "images"
    const char* formula;  // d: distance of a point to the nearest point of the other cloud; p prediction, t truth
    const char* unit;     // "length", "length^2", "ratio", "bit", "degree", "dB", "points / length^3"
    Better better;
    Across across;
    const char* used_by;         // papers, "" for nobody in particular
    const char* header;          // "cloud_distance.h": where the function and its contract are
    std::optional<Extra> extra;  // what of evaluate computes it; none where it compares no two clouds
};

std::span<const MetricInfo> registry();

/// Throws Error{bad_argument} for an unknown name.
const MetricInfo& info_of(std::string_view metric);

/// The overview table of docs/metrics.md, without headings.
std::string registry_markdown();

struct Score {
    std::string name;           // short, as the protocol calls it: "cd"
    std::string metric;         // the registry's row: "chamfer_squared_sum"
    double value = 0;           // plain, never multiplied by 1000
    std::string unit;           // of the registry
    std::string convention;     // the registry's formula, with its parameters: "..., r = 0.01"
    std::string normalisation;  // what was done to the clouds before: "each cloud: own mean and largest radius"
    Better better = Better::lower;
    int64_t shapes = 1;  // how many shapes it is the mean of
};

const Fields& score_fields();

/// A score of a metric in the registry. `name` is the metric's where it is empty; `parameters` follow the formula.
Score make_score(std::string_view metric, double value, std::string_view normalisation, std::string_view name = {},
                 std::string_view parameters = {});

/// Null when absent.
const Score* find(std::span<const Score> scores, std::string_view name);

}  // namespace stipple::metrics
