#pragma once
// The study of samplers: every method, size and task network on the test clouds of every task, scored twice, with the
// points that were really taken and with what SampleNet and S-NET hand over while they are trained. A row is stored as
// soon as it is made, so that a study that was killed goes on.

#include <functional>
#include <map>
#include <optional>

#include "stipple/tasks/sampling_study/judge.h"

namespace stipple::tasks::study {

enum class SamplingSweep {
    size,         // of the sample: the main tables
    neighbours,   // of the soft projection, at use
    temperature,  // likewise
};
const char* name_of(SamplingSweep sweep);

struct SamplingRow {
    SamplingSweep sweep = SamplingSweep::size;
    SamplingTask task = SamplingTask::classification;
    std::string network;  // "plain", "robust", "pcrnet", "autoencoder"
    SamplingMethod method = SamplingMethod::all;
    int64_t points = 0;      // m
    SoftChange change = {};  // neighbours, temperature
    int64_t clouds = 0;      // or pairs
    SamplingScores hard;     // of points of the cloud
    double sigma = NAN;      // of the soft projection: what squared distances are divided by
    SamplingScores soft;     // before they were replaced by points of the cloud; empty where there is no such thing
    std::string key;         // fingerprints of clouds and weights: a stored row counts while they are the same
};

struct SamplingPlan {
    const data::DataSet* set = nullptr;
    const data::DataSet* reconstruction_set = nullptr;  // of reconstruction, whose clouds are larger; null: `set`
    std::vector<SamplingTask> tasks;
    std::vector<SamplingMethod> methods;
    std::vector<int64_t> sizes;  // empty: those of usual_sizes()
    SamplingInputs inputs;
    std::map<std::string, std::string> networks;  // weights by TaskNetworkName::network; what is not there is left out
    std::function<std::string(const std::string& name)> find_sampler;  // weights by sampler_name(), "" for none
    std::string folder;                                                // results.csv goes there
    bool again = false;                                                // rows that are there do not count
    std::string device = "auto";
    int64_t batch = 32;

    std::function<void(int64_t rows)> advance = {};            // so many more of sampling_rows() are done
    std::function<void(const std::string& line)> report = {};  // a row is done
};

const data::DataSet& set_of(const SamplingPlan& plan, SamplingTask task);

/// 8 to 512; registration 16 to 128.
std::vector<int64_t> usual_sizes(SamplingTask task);
inline constexpr int64_t kSweptNeighbours[] = {1, 3, 7, 16};
inline constexpr double kSweptScales[] = {0, 0.25, 0.5, 1, 2, 4, 16};
/// The size whose SampleNet the sweeps are of, where there is one.
inline constexpr int64_t kSweptSize = 32;

std::string sampling_rows_to_csv(const std::vector<SamplingRow>& rows);
/// Throws Error{bad_file} with the path for anything else.
std::vector<SamplingRow> load_sampling_rows(const std::string& path);

/// Rows of a plan with the weights that are there; fewer where clouds have fewer points than a size asks for.
int64_t sampling_rows(const SamplingPlan& plan);

/// Samplers that a plan looks for: name, and what they are of.
struct WantedSampler {
    std::string name;
    SamplingMethod method;
    SamplingTask task;
    std::string network;
    int64_t size;  // 0: progressive
};
std::vector<WantedSampler> wanted_samplers(const SamplingPlan& plan);

struct SamplingResult {
    std::vector<SamplingRow> rows;   // by task, network, sweep, method and size
    std::vector<std::string> notes;  // what was left out, and why
};
/// Only what is not stored is computed. Throws what reading weights, networks and data throw, Error{cannot_write}; can
/// be interrupted.
SamplingResult run_sampling_study(const SamplingPlan& plan);

}  // namespace stipple::tasks::study
