#pragma once
// The tables of the study of samplers, from its rows, and the samples that its pictures show.

#include "stipple/core/point_cloud.h"
#include "stipple/tasks/sampling_study/run_study.h"
#include "stipple/tasks/upsampling_study/report.h"

namespace stipple::tasks::study {

struct SamplingTable {
    std::string name;  // of its files: "classification", "neighbours"
    ReportTable table;
};

/// One for each task that has rows, method by method and size by size, sampled and soft points in columns of their own,
/// the networks of classification beside each other; then one for each sweep that has rows.
std::vector<SamplingTable> sampling_tables(const std::vector<SamplingRow>& rows);

/// The same at a glance, one for each task and network: a row for each method, a column for each size, soft points in
/// brackets. For pages.
std::vector<ReportTable> sampling_summaries(const std::vector<SamplingRow>& rows);

/// All rows in one table, a column for each number: for programs.
ReportTable results_table(const std::vector<SamplingRow>& rows);

/// Rows of a sweep, a task, a network and a method.
std::vector<const SamplingRow*> rows_of(const std::vector<SamplingRow>& rows, SamplingSweep sweep, SamplingTask task,
                                        const std::string& network, SamplingMethod method);

/// Networks of a task that have rows, in the order of task_networks().
std::vector<std::string> networks_with_rows(const std::vector<SamplingRow>& rows, SamplingTask task);

/// A cloud, and what a method takes of it.
struct SamplePicture {
    std::string shape;   // its class
    std::string method;  // as tables call it
    PointCloud cloud, chosen;
};
/// Samples of m points of a few clouds of a task, shape by shape, of each all methods that have their weights; networks
/// of classification: the last that the plan has. Without any where the task has no network.
std::vector<SamplePicture> sample_pictures(const SamplingPlan& plan, SamplingTask task, int64_t m, int64_t shapes);

}  // namespace stipple::tasks::study
