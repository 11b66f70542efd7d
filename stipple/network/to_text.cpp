#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "stipple/network/describe.h"

namespace stipple::network {
namespace {

constexpr size_t kColumns = 5;
constexpr size_t kMaxPad = 44;  // a cell wider than this pushes its own line only
using Row = std::array<std::string, kColumns>;

Row row_of(const Network& network, const Layer& layer) {
    std::string kind(name_of(layer.kind));
    if (const std::string options = options_text(layer); !options.empty()) kind += " " + options;
    std::string inputs;
    for (Tensor tensor : layer.inputs) inputs += (inputs.empty() ? "" : ", ") + network[tensor].name;
    // Shared numbers count once, where they are first used.
    const bool is_own = layer.parameters == layer.name;
    const int64_t numbers = is_own ? count(parameters_of(network, layer)).trained : 0;
    return {layer.name, kind, inputs, to_string(layer.type), numbers == 0 ? "" : grouped(numbers)};
}

std::string to_line(const Row& row, const std::array<size_t, kColumns>& widths) {
    std::string line;
    size_t column_end = 0;
    for (size_t i = 0; i + 1 < kColumns; ++i) {
        line += row[i];
        column_end += widths[i] + 2;
        // At least two spaces, and back to the column as soon as it can be.
        line.append(std::max(line.size() + 2, column_end) - line.size(), ' ');
    }
    line += fmt::format("{:>{}}", row[kColumns - 1], widths[kColumns - 1]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line + "\n";
}

}  // namespace

std::string to_text(const Network& network) {
    std::vector<Row> rows = {{"layer", "kind", "inputs", "output", "parameters"}};
    for (const Layer& layer : network.layers) rows.push_back(row_of(network, layer));
    std::array<size_t, kColumns> widths{};
    for (const Row& row : rows)
        for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], std::min(row[i].size(), kMaxPad));

    std::string text = network.name + "\n";
    for (const auto& [key, value] : network.config) text += fmt::format("  {} = {}\n", key, value);
    text += "\n";
    for (const Row& row : rows) text += to_line(row, widths);
    text += "\n";
    for (const Output& output : network.outputs)
        text += fmt::format("output {} = {} {}\n", output.name, network[output.tensor].name,
                            to_string(network[output.tensor].type));
    text += totals_text(network) + "\n";
    if (const int64_t statistics = count(parameters_of(network)).statistics; statistics > 0)
        text += fmt::format("{} numbers of running statistics\n", grouped(statistics));
    return text;
}

}  // namespace stipple::network
