#include "stipple/cli/common/files.h"
#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/weights/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/io/text.h"
#include "stipple/tasks/convert_weights.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

constexpr size_t kShownTensors = 10;  // those with the largest errors; --table and --json have all

struct WeightsConvertCommand {
    std::string input, output;
    std::vector<std::string> scores;  // NAME=VALUE
    tasks::ConvertWeightsOptions how;
};

std::map<std::string, double> scores_of(const std::vector<std::string>& texts) {
    std::map<std::string, double> scores;
    for (const auto& [name, text] : pairs_of(texts, "--score"))
        STIPPLE_REQUIRE(io::parse_number(text, scores[name]), "--score {}={}: not a number", name, text);
    return scores;
}

Table change_table(const tasks::ConvertedWeights& converted, size_t most) {
    Table table{{"tensor", "type", "size (bytes)", "largest value", "largest error", "relative"}, {}};
    for (const tasks::TensorChange& tensor : converted.tensors) {
        if (table.rows.size() == most) break;
        table.rows.push_back({tensor.name, name_of(tensor.dtype), tensor.bytes,
                              fmt::format("{:.4g}", tensor.largest_value), fmt::format("{:.3g}", tensor.largest_error),
                              fmt::format("{:.3g}", tensor.relative_error())});
    }
    return table;
}

Result run_weights_convert(WeightsConvertCommand& command, const Common& common) {
    require_writable(command.output, common.overwrite_mode());
    network::Weights weights = network::load_weights(tasks::find_weights(command.input));
    command.how.scores = scores_of(command.scores);
    tasks::complete_card(weights, command.how);
    tasks::ConvertedWeights converted = tasks::convert_weights(weights, command.how.storage);
    if (!common.dry_run) {
        AtomicFile file(command.output, common.overwrite_mode());
        file.write(converted.file.data(), converted.bytes());
        file.commit();
    }
    converted.sort_by_error();
    Result result;
    result.fields["inputs"] = Json::array({command.input});
    result.fields.update(to_json(tasks::converted_weights_fields(), &converted));
    result.fields["outputs"] = Json::array({{{"path", command.output}, {"written", !common.dry_run}}});
    const size_t tensors = converted.tensors.size();
    result.text = format_table(change_table(converted, common.table.empty() ? kShownTensors : tensors), common.table);
    if (!common.table.empty()) return result;
    if (tensors > kShownTensors)
        result.text += fmt::format("and {} tensors with smaller errors\n", tensors - kShownTensors);
    result.text +=
        fmt::format("{} {}: {}, {} bytes\n", common.dry_run ? "would write" : "wrote", printable(command.output),
                    network::name_of(converted.storage), grouped(converted.bytes()));
    return result;
}

}  // namespace

Command add_weights_convert(Arguments& group, Common& common) {
    auto command = std::make_shared<WeightsConvertCommand>();
    Arguments& app = group.command("convert", "Store weights with fewer bits, and tell the largest errors");
    Option input = app.option("MODEL", command->input, "A .safetensors file, or the name of shipped weights");
    Option output = app.option("-o,--output", command->output, "The .safetensors file");
    Option storage = app.add(tasks::convert_weights_fields(), &command->how, "storage");
    app.option("--score", command->scores, "Into the card, e.g. test_accuracy=0.88").text("NAME=VALUE...");
    app.add(tasks::convert_weights_fields(), &command->how, "data");
    app.footer(
        "int8-rows: matrices as 8 bits with a scale for each row, the rest as f16. The relative error of a tensor is\n"
        "its largest error over its largest value.\n\n"
        "Example:\n  stipple weights convert model.safetensors --storage int8-rows -o small.safetensors");
    return {&app, [command, &common] { return run_weights_convert(*command, common); }, {input, output, storage}};
}

}  // namespace stipple::cli
