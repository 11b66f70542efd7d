#include "stipple/cli/common/profile_report.h"

#include <cmath>

#include "stipple/core/terminal.h"

namespace stipple::cli {
namespace {

double milliseconds(double seconds) {
    return std::round(1e6 * seconds) / 1e3;
}

double percent(double share) {
    return std::round(1e3 * share) / 10;
}

double mebibytes(int64_t bytes) {
    return std::round(static_cast<double>(bytes) / 1048576 * 100) / 100;
}

double average(double total, int64_t calls) {
    return total / static_cast<double>(std::max<int64_t>(1, calls));
}

/// Of all rows above one, the outermost first.
std::string stage_of(const std::vector<ProfileRow>& rows, const ProfileRow& row) {
    std::string stage;
    for (int32_t at = row.parent; at >= 0; at = rows[static_cast<size_t>(at)].parent)
        stage = rows[static_cast<size_t>(at)].name + (stage.empty() ? "" : "/") + stage;
    return stage;
}

}  // namespace

void add_profile(Arguments& app, std::string& path) {
    app.option("--profile", path, "Time the network's steps: a table, and this trace").text("FILE.json");
}

void require_profile(const std::string& path, const Common& common) {
    if (path.empty()) return;
    STIPPLE_REQUIRE(path.size() > 5 && path.ends_with(".json"), "{}: a trace is JSON, name it .json", path);
    require_writable(path, common.overwrite_mode());
}

Table profile_table(const Profile& profile, const std::string& style) {
    const std::vector<ProfileRow> rows = profile.rows();
    bool has_bytes = false, has_peak = false;
    for (const ProfileRow& row : rows) {
        has_bytes = has_bytes || row.bytes > 0;
        has_peak = has_peak || row.peak_bytes > 0;
    }
    const bool has_gpu = profile.has_gpu();
    Table table;
    if (!style.empty()) table.columns.push_back("stage");
    table.columns.insert(table.columns.end(),
                         {"name", "calls", "CPU total (ms)", "CPU self (ms)", "CPU average (ms)", "CPU (%)"});
    if (has_gpu)
        table.columns.insert(table.columns.end(), {"GPU total (ms)", "GPU self (ms)", "GPU average (ms)", "GPU (%)"});
    if (has_bytes) table.columns.push_back("memory (MiB)");
    if (has_peak) table.columns.push_back("peak (MiB)");
    for (const ProfileRow& row : rows) {
        std::vector<Json>& cells = table.rows.emplace_back();
        if (style.empty()) {
            cells.push_back(std::string(2 * static_cast<size_t>(row.depth), ' ') + row.name);
        } else {
            cells.push_back(stage_of(rows, row));
            cells.push_back(row.name);
        }
        cells.push_back(row.calls);
        for (const double time : {row.cpu_total, row.cpu_self, average(row.cpu_total, row.calls)})
            cells.push_back(milliseconds(time));
        cells.push_back(percent(row.cpu_share));
        if (has_gpu) {
            for (const double time : {row.gpu_total, row.gpu_self, average(row.gpu_total, row.calls)})
                cells.push_back(milliseconds(time));
            cells.push_back(percent(row.gpu_share));
        }
        if (has_bytes) cells.push_back(mebibytes(row.bytes));
        if (has_peak) cells.push_back(mebibytes(row.peak_bytes));
    }
    return table;
}

Json profile_json(const Profile& profile) {
    const std::vector<ProfileRow> rows = profile.rows();
    const bool has_gpu = profile.has_gpu();
    Json list = Json::array();
    for (const ProfileRow& row : rows) {
        Json item = {{"name", row.name},
                     {"stage", stage_of(rows, row)},
                     {"calls", row.calls},
                     {"cpu_total_ms", 1e3 * row.cpu_total},
                     {"cpu_self_ms", 1e3 * row.cpu_self},
                     {"cpu_average_ms", 1e3 * average(row.cpu_total, row.calls)},
                     {"cpu_percent", 100 * row.cpu_share}};
        if (has_gpu) {
            item["gpu_total_ms"] = 1e3 * row.gpu_total;
            item["gpu_self_ms"] = 1e3 * row.gpu_self;
            item["gpu_average_ms"] = 1e3 * average(row.gpu_total, row.calls);
            item["gpu_percent"] = 100 * row.gpu_share;
        }
        item["bytes"] = row.bytes;
        if (row.peak_bytes > 0) item["peak_bytes"] = row.peak_bytes;
        list.push_back(std::move(item));
    }
    return list;
}

void report_profile(const Profile& profile, const std::string& path, Overwrite overwrite, const Common& common,
                    Result& result) {
    if (path.empty()) return;
    if (!common.dry_run) save_trace(profile, path, overwrite);
    if (profile.left_out() > 0)
        result.warnings.push_back(fmt::format("{}: {} spans were left out of the trace; the table counts them", path,
                                              grouped(profile.left_out())));
    result.fields["profile"] = profile_json(profile);
    result.fields["outputs"].push_back({{"path", path}, {"format", "trace"}, {"written", !common.dry_run}});
    if (common.table == "csv" || common.table == "json") return;
    result.text += "\n" + format_table(profile_table(profile, common.table), common.table);
    if (common.table.empty())
        result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(path));
}

}  // namespace stipple::cli
