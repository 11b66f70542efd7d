#pragma once
// The clouds of a task, as SampleNet evaluates them: the first 1024 or 2048 points of test clouds as they are stored,
// and for registration pairs of a cloud and the same, turned and shuffled.

#include "stipple/core/array.h"
#include "stipple/data/data_set.h"
#include "stipple/metrics/registration.h"
#include "stipple/tasks/sampling_study/names.h"

namespace stipple::tasks::study {

struct SamplingInputs {
    int64_t clouds = 0;  // at most so many clouds or pairs, evenly chosen; 0: all
    int64_t turns = 5;   // registration: pairs of each cloud
    double angle = 45;   // registration: degrees of each Euler angle, uniform within +- this
    uint64_t seed = 0;   // of turns and shuffles
};

struct SamplingClouds {
    SamplingTask task = SamplingTask::classification;
    int64_t n = 0;                         // points of every cloud
    Array<float, 2> points;                // [clouds * n, 3]; registration: sources
    Array<float, 2> templates;             // registration: the same clouds turned, in other orders
    std::vector<metrics::Motion> motions;  // registration: from source to template
    std::vector<int64_t> items;            // which of the data set
    std::vector<int32_t> labels;           // of the data set's classes
    std::vector<std::string> classes;      // their names
    bool is_short = false;                 // a cloud has fewer points than the task takes: n is of that one

    int64_t size() const { return static_cast<int64_t>(items.size()); }
    /// 2 for registration: what is sampled of each item.
    int looks() const { return task == SamplingTask::registration ? 2 : 1; }
    const Array<float, 2>& look(int i) const { return i == 0 ? points : templates; }
};

/// Throws Error{bad_argument} for a set without labels, and without clouds of a class that the task is about, which it
/// names.
SamplingClouds sampling_clouds(const data::DataSet& set, SamplingTask task, const SamplingInputs& options);

/// Rz Ry Rx of three angles within +- `angle` degrees, of 3 numbers in [0, 1).
metrics::Motion turned_by(const double uniform[3], double angle);

/// Changes with any bit of clouds, labels and motions.
std::string fingerprint(const SamplingClouds& clouds);

}  // namespace stipple::tasks::study
