// Rows of the study as a file.

#include <cmath>

#include "stipple/core/error.h"
#include "stipple/tasks/sampling_study/run_study.h"
#include "stipple/tasks/upsampling_study/csv.h"

namespace stipple::tasks::study {
namespace {

constexpr const char* kSweepNames[] = {"size", "neighbours", "temperature"};

SamplingSweep sweep_by_name(const std::string& name) {
    for (size_t i = 0; i < std::size(kSweepNames); ++i)
        if (name == kSweepNames[i]) return static_cast<SamplingSweep>(i);
    throw Error(ErrorCode::bad_file, fmt::format("there is no sweep \"{}\"", name));
}

int64_t count_cell(const std::string& text) {
    const double value = csv_number(text);
    if (!(value >= 0 && value < 1e15) || value != std::floor(value))
        throw Error(ErrorCode::bad_file, fmt::format("\"{}\" is no whole number", text));
    return static_cast<int64_t>(value);
}

}  // namespace

const char* name_of(SamplingSweep sweep) {
    return kSweepNames[static_cast<size_t>(sweep)];
}

std::string sampling_rows_to_csv(const std::vector<SamplingRow>& rows) {
    Csv csv;
    csv.columns = {"sweep", "task", "network", "method", "points", "neighbours", "temperature", "sigma", "clouds"};
    for (const char* kind : {"hard_", "soft_"})
        for (const SamplingScoreColumn& column : sampling_score_columns())
            csv.columns.push_back(std::string(kind) + column.name);
    csv.columns.push_back("key");
    for (const SamplingRow& row : rows) {
        std::vector<std::string> cells = {
            name_of(row.sweep),         name_of(row.task),          row.network,
            name_of(row.method),        std::to_string(row.points), std::to_string(row.change.neighbours),
            csv_text(row.change.scale), csv_text(row.sigma),        std::to_string(row.clouds)};
        for (const SamplingScores* scores : {&row.hard, &row.soft})
            for (const SamplingScoreColumn& column : sampling_score_columns())
                cells.push_back(csv_text(scores->*column.member));
        cells.push_back(row.key);
        csv.rows.push_back(std::move(cells));
    }
    return to_csv(csv);
}

std::vector<SamplingRow> load_sampling_rows(const std::string& path) {
    std::vector<SamplingRow> rows;
    try {
        const Csv csv = load_csv(path);
        const auto cell = [&](const std::vector<std::string>& cells, const std::string& name) -> const std::string& {
            return cells[csv.column(name)];
        };
        csv.column("key");  // a file of something else is told before its rows are
        for (const std::vector<std::string>& cells : csv.rows) {
            SamplingRow& row = rows.emplace_back();
            row.sweep = sweep_by_name(cell(cells, "sweep"));
            row.task = sampling_task_by_name(cell(cells, "task"));
            row.network = cell(cells, "network");
            const std::string& method = cell(cells, "method");
            row.method = method == name_of(SamplingMethod::all) ? SamplingMethod::all : sampling_method_by_name(method);
            row.points = count_cell(cell(cells, "points"));
            row.change.neighbours = count_cell(cell(cells, "neighbours"));
            row.change.scale = csv_number(cell(cells, "temperature"));
            row.sigma = csv_number(cell(cells, "sigma"));
            row.clouds = count_cell(cell(cells, "clouds"));
            for (const SamplingScoreColumn& column : sampling_score_columns()) {
                row.hard.*column.member = csv_number(cell(cells, std::string("hard_") + column.name));
                row.soft.*column.member = csv_number(cell(cells, std::string("soft_") + column.name));
            }
            row.key = cell(cells, "key");
        }
    } catch (const Error& error) {
        throw Error(ErrorCode::bad_file, error.message()).at_path(path);
    }
    return rows;
}

}  // namespace stipple::tasks::study
