#include <limits>

#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/data/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/data/packed.h"

namespace stipple::cli {
namespace {

/// What is told of one split.
struct SplitFacts {
    std::string name;
    int64_t items = 0, points = 0, fewest = 0, most = 0;
    bool has_normals = false, has_parts = false, has_names = false, is_pairs = false;
    std::vector<int64_t> counts = {};  // items of each class
};

struct SetFacts {
    std::string layout;
    int bits = 0;  // of a packed file
    std::vector<SplitFacts> splits;
    std::vector<std::string> classes, part_names;
    std::vector<data::PartCategory> categories;
    double lower[3], upper[3];
};

SplitFacts facts_of(const data::DataSet& set) {
    SplitFacts facts{.name = set.split,
                     .items = set.size(),
                     .points = set.clouds.offsets.back(),
                     .fewest = set.clouds.size_of(0),
                     .has_normals = !set.normals.empty(),
                     .has_parts = !set.parts.empty(),
                     .has_names = !set.names.empty(),
                     .is_pairs = set.is_pairs()};
    for (int64_t i = 0; i < set.size(); ++i) {
        facts.fewest = std::min(facts.fewest, set.clouds.size_of(i));
        facts.most = std::max(facts.most, set.clouds.size_of(i));
    }
    facts.counts.assign(set.classes.size(), 0);
    for (const int32_t label : set.labels) ++facts.counts[static_cast<size_t>(label)];
    return facts;
}

/// Splits are read one after the other: the largest alone is in memory.
SetFacts survey(const DataArguments& data, const Common& common, io::Warnings& warnings) {
    const data::RecognisedSet found = data::recognise_data_set(data.path, data.layout);
    SetFacts facts;
    facts.layout = found.layout;
    if (data::is_packed_file(data.path)) facts.bits = data::load_packed_content(data.path).bits;
    std::fill_n(facts.lower, 3, std::numeric_limits<double>::infinity());
    std::fill_n(facts.upper, 3, -std::numeric_limits<double>::infinity());
    for (const std::string& split : found.splits) {
        const data::DataSet set = load_data(data, split, 0, common, warnings);
        facts.splits.push_back(facts_of(set));
        facts.classes = set.classes;
        facts.categories = set.categories;
        facts.part_names = set.part_names;
        for (size_t i = 0; i < set.clouds.points.size(); ++i) {
            const double x = set.clouds.points[i];
            facts.lower[i % 3] = std::min(facts.lower[i % 3], x);
            facts.upper[i % 3] = std::max(facts.upper[i % 3], x);
        }
    }
    return facts;
}

std::string range_text(int64_t fewest, int64_t most) {
    return fewest == most ? grouped(most) : fmt::format("{} to {}", grouped(fewest), grouped(most));
}

Table split_table(const SetFacts& facts) {
    Table table{{"split", "items", "points", "has"}, {}};
    for (const SplitFacts& split : facts.splits) {
        std::string has;
        for (const auto& [there, name] : {std::pair{!facts.classes.empty(), "classes"},
                                          {split.has_parts, "parts"},
                                          {split.has_normals, "normals"},
                                          {split.has_names, "names"},
                                          {split.is_pairs, "dense clouds"}})
            if (there) has += fmt::format("{}{}", has.empty() ? "" : ", ", name);
        table.rows.push_back({split.name, split.items, range_text(split.fewest, split.most), has});
    }
    return table;
}

Table class_counts_table(const SetFacts& facts) {
    Table table{{"class"}, {}};
    for (const SplitFacts& split : facts.splits) table.columns.push_back(split.name);
    if (!facts.categories.empty()) table.columns.push_back("parts");
    for (size_t c = 0; c < facts.classes.size(); ++c) {
        std::vector<Json> row = {facts.classes[c]};
        for (const SplitFacts& split : facts.splits) row.push_back(split.counts[c]);
        if (!facts.categories.empty()) {
            std::string parts;
            for (int64_t part = facts.categories[c].begin; part < facts.categories[c].end; ++part) {
                const auto at = static_cast<size_t>(part);
                parts += (parts.empty() ? "" : ", ") +
                         (at < facts.part_names.size() ? facts.part_names[at] : std::to_string(part));
            }
            row.push_back(parts);
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

Json facts_json(const SetFacts& facts) {
    Json fields = {{"layout", facts.layout}};
    if (facts.bits > 0) fields["bits"] = facts.bits;
    fields["splits"] = Json::array();
    for (const SplitFacts& split : facts.splits)
        fields["splits"].push_back({{"name", split.name},
                                    {"items", split.items},
                                    {"points", split.points},
                                    {"fewest_points", split.fewest},
                                    {"most_points", split.most},
                                    {"normals", split.has_normals},
                                    {"parts", split.has_parts},
                                    {"names", split.has_names},
                                    {"pairs", split.is_pairs}});
    fields["classes"] = Json::array();
    for (size_t c = 0; c < facts.classes.size(); ++c) {
        Json items = Json::object();
        for (const SplitFacts& split : facts.splits) items[split.name] = split.counts[c];
        Json entry = {{"class", facts.classes[c]}, {"items", std::move(items)}};
        if (!facts.categories.empty()) {
            entry["first_part"] = facts.categories[c].begin;
            entry["parts"] = facts.categories[c].end - facts.categories[c].begin;
        }
        fields["classes"].push_back(std::move(entry));
    }
    if (!facts.part_names.empty()) fields["part_names"] = facts.part_names;
    fields["bounds"] = {{"min", {facts.lower[0], facts.lower[1], facts.lower[2]}},
                        {"max", {facts.upper[0], facts.upper[1], facts.upper[2]}}};
    return fields;
}

Result run_data_info(const DataArguments& data, const Common& common) {
    Result result;
    const SetFacts facts = survey(data, common, result.warnings);
    result.fields = {{"inputs", Json::array({data.path})}};
    result.fields.update(facts_json(facts));
    if (!common.table.empty()) {
        result.text =
            format_table(facts.classes.empty() ? split_table(facts) : class_counts_table(facts), common.table);
        return result;
    }
    result.text =
        fmt::format("{}: layout {}{}\n\n{}", printable(data.path), facts.layout,
                    facts.bits > 0 ? fmt::format(", {} bits", facts.bits) : "", format_table(split_table(facts), ""));
    if (!facts.classes.empty()) result.text += "\n" + format_table(class_counts_table(facts), "");
    result.text += fmt::format("\nbounds  {:.6g} {:.6g} {:.6g} to {:.6g} {:.6g} {:.6g}\n", facts.lower[0],
                               facts.lower[1], facts.lower[2], facts.upper[0], facts.upper[1], facts.upper[2]);
    return result;
}

}  // namespace

Command add_data_info(Arguments& group, Common& common) {
    auto data = std::make_shared<DataArguments>();
    Arguments& app = group.command("info", "Say what a data set holds");
    Option input = app.option("DATA", data->path, "Folder, or file, of the data set");
    add_layout(app, *data);
    std::string names;
    for (const data::LayoutInfo& layout : data::layouts())
        names += fmt::format("  {:<18}{}\n", layout.name, layout.holds);
    app.footer(
        fmt::format("Layouts (docs/data.md):\n{}\nExample:\n  stipple data info modelnet40_ply_hdf5_2048", names));
    return {&app, [data, &common] { return run_data_info(*data, common); }, {input}};
}

}  // namespace stipple::cli
