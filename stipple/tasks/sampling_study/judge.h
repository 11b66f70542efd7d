#pragma once
// What sampled points are worth to a task's network.

#include "stipple/tasks/network_runner.h"
#include "stipple/tasks/sampling_study/inputs.h"
#include "stipple/tasks/sampling_study/samplers.h"

namespace stipple::tasks::study {

/// Numbers of one sample of all clouds; NaN where the task has none.
struct SamplingScores {
    double accuracy = NAN, class_accuracy = NAN;   // classification: of clouds, and the mean over the classes
    double rotation = NAN, rotation_median = NAN;  // registration: geodesic angle in degrees
    double below_5 = NAN;                          // share of pairs below 5 degrees
    double rotation_doubled = NAN;                 // mean of what SampleNet's program prints: twice the angle
    double consistency = NAN;  // chamfer distance, squared, both ways, of the sampled source and the sampled template
                               // turned back; mean over pairs
    double nre = NAN;          // reconstruction: normalised reconstruction error
    double chamfer = NAN;      // mean chamfer distance, squared, both ways, of the reconstruction and the whole cloud

    bool is_empty() const;
};

struct SamplingScoreColumn {
    const char* name;
    double SamplingScores::*member;
};
/// All of them, by name.
std::span<const SamplingScoreColumn> sampling_score_columns();

/// The number that a task is about: accuracy, rotation, nre.
double main_score(const SamplingScores& scores, SamplingTask task);

/// Chamfer distances, squared, the two means summed, of each pair of clouds. Equal clouds on the CPU.
std::vector<double> chamfer_distances(const EqualClouds& a, const EqualClouds& b, Device device, int64_t batch);

/// The frozen network of a task, and the clouds that it is asked about, which must outlive it.
class TaskJudge {
public:
    /// Classification takes any network from points to logits of the classes of `set`; registration a pcrnet;
    /// reconstruction an autoencoder. Throws Error{bad_argument} for other networks, and as match_classes() does.
    TaskJudge(const std::string& weights, const data::DataSet& set, const SamplingClouds& clouds,
              const RunnerOptions& options);

    const SamplingClouds& clouds() const { return clouds_; }
    /// Changes with the weights.
    std::string checksum() const;

    /// Of m points of every cloud: [clouds * m, 3] for each look (SamplingClouds::looks()). The same for any number of
    /// threads. Throws Error{not_finite} where the network's answers are no numbers. Can be interrupted.
    SamplingScores score(const std::vector<Array<float, 2>>& looks, int64_t m);

private:
    SamplingScores score_classes(const EqualClouds& few);
    SamplingScores score_poses(const EqualClouds& sources, const EqualClouds& templates);
    SamplingScores score_shapes(const EqualClouds& few);
    /// Chamfer distances of the whole clouds and what is made of `few`.
    std::vector<double> reconstruction_errors(const EqualClouds& few);

    const SamplingClouds& clouds_;
    NetworkRunner runner_;
    std::vector<int32_t> truth_;  // classification: labels of the network's classes
    std::vector<std::string> class_names_;
    std::vector<double> whole_;  // reconstruction: errors from whole clouds, once they are needed
};

}  // namespace stipple::tasks::study
