#include "stipple/cli/common/many_clouds.h"

#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/interrupt.h"

namespace stipple::cli {

namespace {

/// The failure of a loop in which the work itself refused some clouds.
Error refusal(const char* words, int64_t refused, size_t clouds, const std::vector<Error>& errors) {
    const int64_t unread = static_cast<int64_t>(errors.size()) - refused;
    return Error(errors[0].code(), fmt::format("{} of {} clouds {}{}", refused, clouds, words,
                                               unread > 0 ? fmt::format(", {} could not be read", unread) : ""));
}

}  // namespace

std::vector<Option> add_inputs_and_output(Arguments& app, ManyClouds& clouds, const char* inputs) {
    return {app.option("INPUT", clouds.inputs, inputs),
            app.option("-o,--output", clouds.output.path, "File, or folder for many; - is standard output")};
}

void add_picture(Arguments& app, ManyClouds& clouds, const char* picture) {
    app.option("--picture", clouds.picture, picture);
    add_picture_size(app, clouds.picture_size);
}

void add_input_format(Arguments& app, ManyClouds& clouds) {
    app.option("--from", clouds.from, "Format of the inputs, when name and content do not tell it");
}

void add_shard(Arguments& app, ManyClouds& clouds) {
    add_shard(app, clouds.shard);
}

void add_profile(Arguments& app, ManyClouds& clouds) {
    add_profile(app, clouds.profile_path);
}

std::vector<data::CloudEntry> list_clouds(const ManyClouds& clouds, Result& result, std::vector<OutputFile>* outputs) {
    require_one_stdin(clouds.inputs);
    const Shard shard = parse_shard(clouds.shard);
    if (!clouds.from.empty()) io::format_by_name(clouds.from);
    std::vector<data::CloudEntry> entries = data::list_clouds(clouds.inputs);
    const size_t listed = entries.size();
    if (outputs) {
        *outputs = outputs_of(clouds.output, entries);
        keep_shard(shard, *outputs);
    }
    keep_shard(shard, entries);
    if (entries.empty())
        result = nothing_of_shard(clouds.shard, listed);
    else
        result.fields["inputs"] = clouds.inputs;
    return entries;
}

void require_drawing(const ManyClouds& clouds, const Common& common) {
    require_picture(clouds.picture, common);
    require_picture_size(clouds.picture_size);
    require_profile(clouds.profile_path, common);
}

void report_network(const tasks::NetworkRunner& runner, Result& result) {
    result.fields["model"] = runner.source().name();
    result.fields["precision"] = name_of(runner.precision());
}

Result for_each_cloud(ManyClouds& clouds, const CloudLoop& loop, const Common& common,
                      const std::function<CloudWork(Result& result)>& begin) {
    std::vector<OutputFile> outputs;
    Result result;
    const std::vector<data::CloudEntry> entries = list_clouds(clouds, result, &outputs);
    if (entries.empty()) return result;
    const std::vector<io::Format> formats = require_outputs(outputs, common, loop.product);
    STIPPLE_REQUIRE(clouds.picture.empty() || entries.size() == 1, "--picture is for one cloud, not {}",
                    entries.size());
    require_drawing(clouds, common);

    FileProgress file_progress(common);
    const data::ReadClouds how = reading({.clouds = {}, .from = clouds.from}, file_progress);
    const CloudWork work = begin(result);
    Json files = Json::array();
    Table table;
    for (const auto& [heading, key] : loop.columns) table.columns.push_back(heading);
    int64_t refused = 0;
    std::optional<Progress> progress;
    if (*loop.progress)
        progress.emplace(loop.progress, static_cast<int64_t>(entries.size()), progress_mode(common), "clouds");
    for_each_input(entries.size(), "clouds", result, [&](size_t i) {
        check_interrupted();
        const std::string name = entries[i].name();
        Json file = {{"path", name}};
        try {
            file.update(work({entries[i], outputs[i], formats[i], how, entries.size() == 1, result}));
            std::vector<Json> row;
            for (const auto& [heading, key] : loop.columns)
                row.push_back(key == "written" ? Json(!common.dry_run) : file.value(key));
            table.rows.push_back(std::move(row));
        } catch (const Error& error) {
            file["error"] = error.message();
            files.push_back(std::move(file));
            if (progress) progress->add();
            if (error.code() != ErrorCode::check_failed) throw;
            if (entries.size() == 1) throw error.at_path(name);
            result.errors.push_back(error.at_path(name));
            ++refused;
            return;
        }
        files.push_back(std::move(file));
        if (progress) progress->add();
    });
    if (progress) progress->finish();
    if (refused > 0) result.failure = refusal(loop.refused, refused, entries.size(), result.errors);
    result.fields["files"] = std::move(files);
    if (loop.table)
        result.text = format_table(*loop.table, common.table) + (common.table.empty() ? result.text : "");
    else if (!table.columns.empty() && !common.table.empty())
        result.text = format_table(table, common.table);
    report_profile(clouds.profile, clouds.profile_path, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace stipple::cli
