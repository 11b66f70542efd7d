#pragma once
// Numbers of trainings on whole shapes: samplers, PCRNet, autoencoders. No torch here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stipple/core/fields.h"

namespace stipple::learn {

/// Of a sampler: task + alpha (L_a + beta L_m + (gamma + delta m) L_b) + lambda sigma [Lang et al. 2020], squared
/// distances between the m points Q that the network gives and the cloud P: L_a the mean of Q to P, L_m the largest of
/// Q to P, L_b the mean of P to Q.
///
/// Of a gumbel-subset the same without sigma, for the points that a softmax of scores with Gumbel noise chooses.
struct SamplingOptions {
    std::string task = {};     // one of kSamplingTaskWords; empty: that of the samplenet's shape
    std::string network = {};  // frozen weights of the task, by path or name; empty: those shipped for it
    double alpha = 30, beta = 1, gamma = 1, delta = 0, lambda = 1;
    int64_t smallest = 8;  // progressive: beginnings of so many points, twice as many and so on have the loss too
    bool mean = false;     // progressive: the mean over the beginnings, else their sum
    /// Classification: this share of the task's loss is by what the frozen network says of the whole cloud (the
    /// divergence of the two predictions), the rest by the labels, which it knows by heart on the clouds it was trained
    /// on.
    double teacher = 0;
    /// Of a gumbel-subset: what scores are divided by, at the beginning of the run and at its end.
    double temperature = 1, last_temperature = 0.1;
    /// The task sees the points that are sampled, with the gradients of the soft ones.
    bool straight_through = false;
};
const Fields& sampling_fields();

/// Registration, reconstruction: inputs of fewer points, so that the network serves sampled clouds too. Both clouds of
/// a pair are thinned apart; what is reconstructed is the whole cloud.
struct ThinOptions {
    double share = 0;    // of the clouds
    int64_t least = 16;  // points that are left: the logarithm uniform from this to all
};
const Fields& thin_fields();

/// What sampled points are for.
enum class SamplingTask { classification, segmentation, registration, reconstruction };
inline constexpr const char* kSamplingTaskWords[] = {"classification", "segmentation", "registration",
                                                     "reconstruction"};

/// The one that the options name; none where they name none. Throws Error{bad_config} for another name.
std::optional<SamplingTask> sampling_task(const SamplingOptions& options);

/// Of pairs for registration: the template is the source, turned and moved.
struct PoseOptions {
    double angle = 45;              // degrees of each of three Euler angles, uniform within +- this
    double shift = 0;               // of each coordinate, likewise
    double rotation_weight = 1;     // of |R_found R^T - I|_F^2
    double translation_weight = 1;  // of |t_found - t|^2
    double chamfer_weight = 1;      // of the chamfer distance, squared, both ways
};
const Fields& pose_fields();

/// Beginnings of a progressive sampler of `count` points: smallest, 2 smallest, .. and count itself, ascending.
std::vector<int64_t> sampled_sizes(int64_t smallest, int64_t count, bool is_progressive);

}  // namespace stipple::learn
