#include "stipple/cli/common/table.h"
#include "stipple/cli/weights/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/core/view.h"
#include "stipple/network/card.h"
#include "stipple/tasks/describe.h"
#include "stipple/tasks/weights.h"

namespace stipple::cli {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Lines for people; returns the object for --json.
Json add_card(const network::Card& card, Pairs& pairs) {
    Json fields = Json::object();
    const auto add = [&](const char* name, const std::string& text) {
        if (text.empty()) return;
        pairs.emplace_back(name, printable(text));
        fields[name] = text;
    };
    add("recipe", card.recipe);
    add("data", card.data);
    add("commit", card.commit);
    add("command", card.command);
    if (card.seed) {
        pairs.emplace_back("seed", std::to_string(*card.seed));
        fields["seed"] = *card.seed;
    }
    for (const auto& [name, value] : card.metrics) pairs.emplace_back(printable(name), fmt::format("{:g}", value));
    fields["metrics"] = card.metrics;
    add("date", card.date);
    add("licence", card.licence);
    return fields;
}

Result run_weights_info(const std::string& model, const Common& common) {
    const std::string path = tasks::find_weights(model);
    Result result;
    const tasks::FileSummary file = tasks::describe_file(path, "", {}, result.warnings);
    const auto* summary = std::get_if<tasks::WeightsSummary>(&file.content);
    if (!summary) throw Error(ErrorCode::bad_file, Place{path}, "no weights: these are .safetensors files");
    network::Weights head;  // without its tensors
    head.metadata = summary->metadata;
    const auto text_of = [&](const char* key) {
        const auto found = head.metadata.find(key);
        return found == head.metadata.end() ? std::string() : found->second;
    };

    Pairs pairs;
    result.fields["inputs"] = Json::array({model});
    result.fields["metadata"] = head.metadata;
    try {
        if (const std::string name = text_of("stipple.model"); !name.empty()) {
            const std::map<std::string, std::string> config = network::config_of(head);
            std::string settings;
            for (const auto& [key, value] : config)
                settings += fmt::format("{}{}={}", settings.empty() ? "" : " ", key, value);
            pairs.emplace_back("model", printable(name));
            pairs.emplace_back("config", printable(settings));
            result.fields["model"] = name;
            result.fields["config"] = config;
        }
        if (const std::string storage = text_of("stipple.storage"); !storage.empty())
            pairs.emplace_back("storage", printable(storage));
        pairs.emplace_back("numbers", grouped(summary->numbers));
        if (file.bytes) pairs.emplace_back("size", fmt::format("{} bytes", grouped(*file.bytes)));
        if (const std::optional<network::Card> card = network::card_of(head))
            result.fields["card"] = add_card(*card, pairs);
    } catch (const Error& error) {
        throw error.at_path(path);
    }

    Table table{{"tensor", "type", "shape", "size (bytes)"}, {}};
    Json tensors = Json::array();
    for (const io::TensorHeader::Entry& entry : summary->tensors) {
        const int64_t bytes = entry.end - entry.begin;
        table.rows.push_back({entry.name, name_of(entry.dtype),
                              shape_text(entry.shape.data(), static_cast<int>(entry.shape.size())), bytes});
        tensors.push_back(
            {{"name", entry.name}, {"dtype", name_of(entry.dtype)}, {"shape", entry.shape}, {"bytes", bytes}});
    }
    result.fields["numbers"] = summary->numbers;
    result.fields["tensors"] = std::move(tensors);
    if (file.bytes) result.fields["file_bytes"] = *file.bytes;
    result.text = common.table.empty() ? format_pairs(pairs, 0) + "\n" : "";
    result.text += format_table(table, common.table);
    return result;
}

}  // namespace

Command add_weights_info(Arguments& group, Common& common) {
    auto model = std::make_shared<std::string>();
    Arguments& app = group.command("info", "Model, configuration, card and tensors of a file of weights");
    Option input = app.option("MODEL", *model, "A .safetensors file, or the name of shipped weights");
    app.footer(
        "Example:\n  stipple weights info model.safetensors\n  stipple weights info model.safetensors --json | jq "
        ".card");
    return {&app, [model, &common] { return run_weights_info(*model, common); }, {input}};
}

}  // namespace stipple::cli
