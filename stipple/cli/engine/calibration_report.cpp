#include "stipple/cli/engine/calibration_report.h"

#include <cmath>

#include "stipple/cli/common/table.h"

namespace stipple::cli {
namespace {

double rounded(double value, int digits) {
    if (value == 0) return 0;
    const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) + 1 - digits);
    return std::round(value / unit) * unit;
}

}  // namespace

Json calibration_fields(const engine::Calibration& calibration) {
    Json layers = Json::array();
    for (const auto& [name, layer] : calibration.layers)
        layers.push_back({{"name", name},
                          {"range", layer.range},
                          {"largest", layer.largest},
                          {"error", layer.error},
                          {"kept_back", layer.keep_higher}});
    return {{"precision", name_of(calibration.precision)},
            {"method", name_of(calibration.method)},
            {"clouds", calibration.clouds},
            {"layers", std::move(layers)}};
}

std::string calibration_text(const engine::Calibration& calibration, const std::string& style) {
    Table table{{"layer", "range", "largest", "error (%)", "precision"}, {}};
    std::string kept;
    for (const auto& [name, layer] : calibration.layers) {
        table.rows.push_back({name, rounded(layer.range, 4), rounded(layer.largest, 4), rounded(100 * layer.error, 3),
                              layer.keep_higher ? std::string("higher") : std::string(name_of(calibration.precision))});
        if (layer.keep_higher) kept += (kept.empty() ? "" : ", ") + name;
    }
    std::string text = format_table(table, style);
    if (!style.empty()) return text;
    text += fmt::format(
        "\nranges by {} from {} clouds; errors are of the logits, relative to their spread, with that layer alone in "
        "{}\n",
        name_of(calibration.method), grouped(calibration.clouds), name_of(calibration.precision));
    text += kept.empty() ? fmt::format("all of these layers run in {}\n", name_of(calibration.precision))
                         : fmt::format("kept in higher precision: {}\n", kept);
    return text;
}

}  // namespace stipple::cli
