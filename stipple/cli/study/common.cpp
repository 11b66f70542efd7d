#include "stipple/cli/common/step_words.h"
#include "stipple/cli/common/table.h"
#include "stipple/cli/study/commands.h"
#include "stipple/core/program_files.h"
#include "stipple/core/terminal.h"
#include "stipple/io/image_file.h"
#include "stipple/tasks/upsampling_study/csv.h"

namespace stipple::cli {
namespace {

Json cell_json(const study::Cell& cell, const study::Column& column) {
    const std::string& text = cell.exact.empty() ? cell.text : cell.exact;
    if (!column.is_number) return text;
    return text.empty() ? Json() : Json(study::csv_number(text));
}

/// For the terminal as people read it, for programs all digits.
Table shown_table(const study::ReportTable& table, const std::string& style) {
    const bool is_exact = style == "csv" || style == "json";
    Table shown;
    for (const study::Column& column : table.columns)
        if (is_exact || column.is_for_print)
            shown.columns.push_back(is_exact && !column.csv.empty() ? column.csv : column.title);
    for (const std::vector<study::Cell>& row : table.rows) {
        std::vector<Json>& cells = shown.rows.emplace_back();
        for (size_t c = 0; c < row.size(); ++c)
            if (is_exact)
                cells.push_back(cell_json(row[c], table.columns[c]));
            else if (table.columns[c].is_for_print)
                cells.push_back(row[c].text);
    }
    return shown;
}

void tell_written(const std::string& path, const char* format, const Common& common, Result& result) {
    result.fields["outputs"].push_back({{"path", path}, {"format", format}, {"written", !common.dry_run}});
    if (common.table.empty())
        result.text += fmt::format("{} {}\n", common.dry_run ? "would write" : "wrote", printable(path));
}

}  // namespace

study::StudyPlan shapes_plan(const std::string& data, int64_t shapes, const std::string& folder, const Common& common,
                             Result& result) {
    study::StudyPlan plan;
    plan.shapes = study::list_shapes(data, shapes);
    plan.first_seed = common.seed;
    plan.folder = folder;
    plan.device = common.device;
    plan.load_mesh = [&common, &result](const std::string& path) {
        Common quiet = common;
        quiet.progress = ProgressMode::never;
        return load_faces({path, "", -1}, quiet, result);
    };
    return plan;
}

size_t drop_given_truths(study::StudyPlan& plan) {
    const bool has_truths = std::none_of(plan.shapes.begin(), plan.shapes.end(),
                                         [](const study::Shape& shape) { return shape.truth.empty(); });
    if (has_truths) return 0;
    return std::erase_if(plan.conditions, [](const study::Condition& condition) {
        return condition.given_truth || condition.draw == study::Draw::given;
    });
}

void add_methods(Arguments& app, MethodArguments& arguments) {
    app.option("--model", arguments.models, "Weights, with a name of their own: NAME=FILE [upsampler]")
        .text("[NAME=]FILE")
        .one_word();
    app.option("--compare", arguments.compared, "What another program made of the inputs")
        .text("NAME=FOLDER")
        .one_word();
}

std::string command_line(const Arguments& app, const Common& common) {
    std::string line = "stipple " + app.path(' '), positional;
    for (const Option& option : app.options()) {
        if (!option.given()) continue;
        for (const std::string& value : option.is_flag() ? std::vector<std::string>{""} : option.values()) {
            if (option.is_positional())
                positional += " " + shell_word(value);
            else
                line += " --" + option.name() + (option.is_flag() ? "" : " " + shell_word(value));
        }
    }
    if (common.seed != 0) line += fmt::format(" --seed {}", common.seed);
    if (common.device != "auto") line += " --device " + common.device;
    return line + positional;
}

void require_study_folder(const std::string& path, const Common& common) {
    STIPPLE_REQUIRE(!path.empty(), "the output folder's name is empty");
    if (is_file(path)) throw Error(ErrorCode::cannot_write, Place{path}, "is a file: a folder is wanted");
    if (!is_folder(path) || common.overwrite || list_folder(path).empty()) return;
    // What a study writes first, be it interrupted.
    if (is_folder(path + "/inputs") || is_folder(path + "/trained")) return;
    for (const char* name : {"results.csv", "index.html"})
        if (is_file(path + "/" + name)) return;
    throw Error(ErrorCode::cannot_write, Place{path}, "is a folder of other things", "--overwrite writes into it");
}

std::string table_text(const study::ReportTable& table, const Common& common) {
    return format_table(shown_table(table, common.table), common.table);
}

Json rows_json(const study::ReportTable& table) {
    Json rows = Json::array();
    for (const std::vector<study::Cell>& row : table.rows) {
        Json object = Json::object();
        for (size_t c = 0; c < row.size(); ++c) {
            const study::Column& column = table.columns[c];
            object[column.csv.empty() ? column.title : column.csv] = cell_json(row[c], column);
        }
        rows.push_back(std::move(object));
    }
    return rows;
}

void write_report(const std::string& folder, const study::Report& report, const Common& common, Result& result) {
    std::string name = stem_of(folder + ".");
    const study::ReportTable& table = report.tables.at(0);
    const std::pair<const char*, std::string> files[] = {
        {"table.csv", study::to_csv(table)},
        {"table.tex", study::to_latex(table, name)},
        {"index.html", study::to_page(report)},
    };
    if (!common.dry_run) study::make_folders(folder);
    for (const auto& [file, text] : files) add_text(folder, file, text, common, result);
    const std::string shown = table_text(table, common);
    result.text = common.table.empty() ? shown + "\n" + result.text : shown;
    result.fields["rows"] = rows_json(table);
    result.fields["notes"] = report.paragraphs;
    if (common.table.empty())
        for (const std::string& paragraph : report.paragraphs) result.text += paragraph + "\n";
}

void add_text(const std::string& folder, const std::string& name, const std::string& text, const Common& common,
              Result& result) {
    const std::string path = folder + "/" + name;
    if (!common.dry_run) study::write_text(path, text);
    tell_written(path, path.c_str() + path.rfind('.') + 1, common, result);
}

void add_figure(const std::string& folder, const std::string& name, const std::string& caption,
                const std::function<Image()>& draw, const Common& common, study::Report& report, Result& result) {
    const std::string path = folder + "/" + name;
    if (!common.dry_run) io::save_png(path, draw(), Overwrite::allow);
    tell_written(path, "png", common, result);
    report.figures.push_back({name, caption});
}

}  // namespace stipple::cli
