#include "stipple/cli/common/many_clouds.h"

#include "stipple/cli/common/network_options.h"
#include "stipple/cli/common/profile_report.h"
#include "stipple/cli/common/shard.h"
#include "stipple/cli/common/table.h"
#include "stipple/core/interrupt.h"

namespace stipple::cli {

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

Result for_each_cloud(ManyClouds& clouds, const CloudLoop& loop, const Common& common,
                      const std::function<CloudWork(Result& result)>& begin) {
    require_one_stdin(clouds.inputs);
    const Shard shard = parse_shard(clouds.shard);
    if (!clouds.from.empty()) io::format_by_name(clouds.from);
    std::vector<data::CloudEntry> entries = data::list_clouds(clouds.inputs);
    std::vector<OutputFile> outputs = outputs_of(clouds.output, entries);
    const size_t listed = entries.size();
    keep_shard(shard, entries, outputs);
    if (entries.empty()) return nothing_of_shard(clouds.shard, listed);
    std::vector<io::Format> formats;
    for (const OutputFile& output : outputs) formats.push_back(require_output(output, common, loop.product));
    STIPPLE_REQUIRE(clouds.picture.empty() || entries.size() == 1, "--picture is for one cloud, not {}",
                    entries.size());
    require_picture(clouds.picture, common);
    require_picture_size(clouds.picture_size);
    require_profile(clouds.profile_path, common);

    Result result;
    result.fields["inputs"] = clouds.inputs;
    FileProgress file_progress(common);
    const data::ReadClouds how = reading({.clouds = {}, .from = clouds.from}, file_progress);
    const CloudWork work = begin(result);
    Json files = Json::array();
    Table table;
    for (const auto& [heading, key] : loop.columns) table.columns.push_back(heading);
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
            throw;
        }
        files.push_back(std::move(file));
        if (progress) progress->add();
    });
    if (progress) progress->finish();
    result.fields["files"] = std::move(files);
    if (!table.columns.empty() && !common.table.empty()) result.text = format_table(table, common.table);
    report_profile(clouds.profile, clouds.profile_path, common.overwrite_mode(), common, result);
    return result;
}

}  // namespace stipple::cli
