#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/weights/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/io/text.h"
#include "stipple/network/card.h"
#include "stipple/tasks/convert_weights.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

constexpr size_t kShownTensors = 10;  // those with the largest errors; --table and --json have all

struct WeightsConvertOptions {
    std::string input, output, storage, data;
    std::vector<std::string> scores;
};

/// Scores of a test, and a better name of the data, go into the card.
void complete_card(network::Weights& weights, const WeightsConvertOptions& options) {
    if (options.scores.empty() && options.data.empty()) return;
    network::Card card = network::card_of(weights).value_or(network::Card{});
    if (!options.data.empty()) card.data = options.data;
    for (const auto& [name, text] : pairs_of(options.scores, "--score")) {
        double value = 0;
        STIPPLE_REQUIRE(io::parse_number(text, value), "--score {}={}: not a number", name, text);
        card.metrics[name] = value;
    }
    network::set_card(weights, card);
}

Result run_weights_convert(const WeightsConvertOptions& options, const Common& common) {
    const network::WeightStorage storage = network::parse_weight_storage(options.storage);
    require_writable(options.output, common.overwrite_mode());
    const std::string path = tasks::find_weights(options.input);
    network::Weights weights = network::load_weights(path);
    complete_card(weights, options);
    tasks::ConvertedWeights converted = tasks::convert_weights(weights, storage);
    if (!common.dry_run) {
        AtomicFile file(options.output, common.overwrite_mode());
        file.write(converted.file.data(), static_cast<int64_t>(converted.file.size()));
        file.commit();
    }

    std::vector<tasks::TensorChange>& tensors = converted.tensors;
    std::stable_sort(tensors.begin(), tensors.end(), [](const tasks::TensorChange& a, const tasks::TensorChange& b) {
        return a.relative_error() > b.relative_error();
    });
    Result result;
    Json list = Json::array();
    Table table{{"tensor", "type", "size (bytes)", "largest value", "largest error", "relative"}, {}};
    for (const tasks::TensorChange& tensor : tensors) {
        list.push_back({{"name", tensor.name},
                        {"dtype", name_of(tensor.dtype)},
                        {"bytes", tensor.bytes},
                        {"largest_value", tensor.largest_value},
                        {"largest_error", tensor.largest_error},
                        {"relative_error", tensor.relative_error()}});
        if (common.table.empty() && table.rows.size() == kShownTensors) continue;
        table.rows.push_back({tensor.name, name_of(tensor.dtype), tensor.bytes,
                              fmt::format("{:.4g}", tensor.largest_value), fmt::format("{:.3g}", tensor.largest_error),
                              fmt::format("{:.3g}", tensor.relative_error())});
    }
    const auto bytes = static_cast<int64_t>(converted.file.size());
    result.fields["inputs"] = Json::array({options.input});
    result.fields["storage"] = options.storage;
    result.fields["bytes"] = bytes;
    result.fields["tensors"] = std::move(list);
    result.fields["outputs"] = Json::array({{{"path", options.output}, {"written", !common.dry_run}}});
    result.text = format_table(table, common.table);
    if (!common.table.empty()) return result;
    if (tensors.size() > kShownTensors)
        result.text += fmt::format("and {} tensors with smaller errors\n", tensors.size() - kShownTensors);
    result.text += fmt::format("{} {}: {}, {} bytes\n", common.dry_run ? "would write" : "wrote",
                               printable(options.output), options.storage, grouped(bytes));
    return result;
}

}  // namespace

Command add_weights_convert(Arguments& group, Common& common) {
    auto options = std::make_shared<WeightsConvertOptions>();
    Arguments& app = group.command("convert", "Store weights with fewer bits, and tell the largest errors");
    Option input = app.option("MODEL", options->input, "A .safetensors file, or the name of shipped weights");
    Option output = app.option("-o,--output", options->output, "The .safetensors file");
    Option storage = app.option("--storage", options->storage, "How the numbers are stored")
                         .one_of({"f32", "f16", "bf16", "int8-rows"})
                         .text("f32|f16|bf16|int8-rows");
    app.option("--score", options->scores, "Into the card, e.g. test_accuracy=0.88").text("NAME=VALUE...");
    app.option("--data", options->data, "Into the card: what it was trained on").text("TEXT").no_default();
    app.footer(
        "int8-rows: matrices as 8 bits with a scale for each row, the rest as f16. The relative error of a tensor is\n"
        "its largest error over its largest value.\n\n"
        "Example:\n  stipple weights convert model.safetensors --storage int8-rows -o small.safetensors");
    return {&app, [options, &common] { return run_weights_convert(*options, common); }, {input, output, storage}};
}

}  // namespace stipple::cli
