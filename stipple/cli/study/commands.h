#pragma once
// The commands of `stipple study`, and what they share.

#include "stipple/cli/common/files.h"
#include "stipple/tasks/upsampling_study/report.h"
#include "stipple/tasks/upsampling_study/run_study.h"

namespace stipple::cli {

namespace study = tasks::study;

/// upsampling-noise, -density, -ratio, -neighbours, -nonuniform, -ablation.
std::vector<Command> add_sweep_studies(Arguments& group, Common& common);
Command add_study_real(Arguments& group, Common& common);
Command add_study_rings(Arguments& group, Common& common);
Command add_study_registration(Arguments& group, Common& common);
Command add_study_cost(Arguments& group, Common& common);
Command add_study_diagrams(Arguments& group, Common& common);
Command add_study_radiance(Arguments& group, Common& common);
Command add_study_sampling(Arguments& group, Common& common);

/// A plan over the shapes of a folder, the first `shapes` or all for 0, without methods and conditions. What reading
/// meshes warns of goes into the result, which must outlive the plan.
study::StudyPlan shapes_plan(const std::string& data, int64_t shapes, const std::string& folder, const Common& common,
                             Result& result);
/// Leaves out the conditions that need a cloud beside each mesh, where one lacks it; returns how many.
size_t drop_given_truths(study::StudyPlan& plan);

/// --model and --compare.
struct MethodArguments {
    std::vector<std::string> models, compared;
};
void add_methods(Arguments& app, MethodArguments& arguments);

/// The call that makes a report again: the command with the options that were given.
std::string command_line(const Arguments& app, const Common& common);

/// Throws Error{cannot_write} for something that is no folder, and for a folder with anything in it but a study, unless
/// it may be overwritten.
void require_study_folder(const std::string& path, const Common& common);

/// A table as the terminal or --table shows it, and as --json has it.
std::string table_text(const study::ReportTable& table, const Common& common);
Json rows_json(const study::ReportTable& table);
/// Writes table.csv, table.tex and index.html into the folder, with the figures' names, and tells it. The first table
/// is the one of the files, and the text of the result.
void write_report(const std::string& folder, const study::Report& report, const Common& common, Result& result);
/// A file beside those: written, and told.
void add_text(const std::string& folder, const std::string& name, const std::string& text, const Common& common,
              Result& result);
/// A picture of the report: written, told, and listed with its caption.
void add_figure(const std::string& folder, const std::string& name, const std::string& caption,
                const std::function<Image()>& draw, const Common& common, study::Report& report, Result& result);

}  // namespace stipple::cli
