#include "stipple/cli/common/data_options.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/data/commands.h"
#include "stipple/core/terminal.h"
#include "stipple/data/survey.h"

namespace stipple::cli {
namespace {

std::string range_text(int64_t fewest, int64_t most) {
    return fewest == most ? grouped(most) : fmt::format("{} to {}", grouped(fewest), grouped(most));
}

Table split_table(const data::SetFacts& facts) {
    Table table{{"split", "items", "points", "has"}, {}};
    for (const data::SplitFacts& split : facts.splits) {
        std::string has;
        for (const auto& [there, name] : {std::pair{!facts.classes.empty(), "classes"},
                                          {split.has_parts, "parts"},
                                          {split.has_normals, "normals"},
                                          {split.has_names, "names"},
                                          {split.is_pairs, "dense clouds"}})
            if (there) has += fmt::format("{}{}", has.empty() ? "" : ", ", name);
        table.rows.push_back({split.name, split.items, range_text(split.fewest_points, split.most_points), has});
    }
    return table;
}

Table class_counts_table(const data::SetFacts& facts) {
    Table table{{"class"}, {}};
    for (const data::SplitFacts& split : facts.splits) table.columns.push_back(split.name);
    const bool has_parts = !facts.classes.empty() && facts.classes[0].parts;
    if (has_parts) table.columns.push_back("parts");
    for (const data::ClassFacts& one : facts.classes) {
        std::vector<Json> row = {one.name};
        for (const auto& [split, items] : one.items) row.push_back(items);
        if (has_parts) {
            std::string parts;
            for (int64_t part = *one.first_part; part < *one.first_part + *one.parts; ++part) {
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

Result run_data_info(const DataArguments& data, const Common& common) {
    Result result;
    const data::SetFacts facts = data::survey(data.path, data.layout, [&](const std::string& split) {
        return load_data(data, split, 0, common, result.warnings);
    });
    result.fields = {{"inputs", Json::array({data.path})}};
    result.fields.update(to_json(data::set_facts_fields(), &facts));
    if (!common.table.empty()) {
        result.text =
            format_table(facts.classes.empty() ? split_table(facts) : class_counts_table(facts), common.table);
        return result;
    }
    result.text =
        fmt::format("{}: layout {}{}\n\n{}", printable(data.path), facts.layout,
                    facts.bits ? fmt::format(", {} bits", *facts.bits) : "", format_table(split_table(facts), ""));
    if (!facts.classes.empty()) result.text += "\n" + format_table(class_counts_table(facts), "");
    const auto& [lower, upper] = facts.bounds;
    result.text += fmt::format("\nbounds  {:.6g} {:.6g} {:.6g} to {:.6g} {:.6g} {:.6g}\n", lower[0], lower[1], lower[2],
                               upper[0], upper[1], upper[2]);
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
