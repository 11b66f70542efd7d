#pragma once
// A full cloud from few points, by an autoencoder of clouds [Achlioptas et al. 2018]: the points become some numbers,
// and these a cloud of a shape that the network knows. What it was not trained on it cannot rebuild, and says so
// (tasks/likeness.h). geometry/surface is the other way: any shape, from points that cover all of it.

#include <memory>
#include <optional>

#include "stipple/metrics/normalise.h"
#include "stipple/tasks/likeness.h"
#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/network_runner.h"
#include "stipple/tasks/pose.h"

namespace stipple::tasks {

/// Distinct points that a cloud must have to be rebuilt.
inline constexpr int64_t kFewestRebuilt = 8;
/// Points of a cloud that the network sees at most: as many as training clouds have. Of larger clouds farthest points.
inline constexpr int64_t kMostSeen = 2048;

/// What a network sees of a cloud of finite points: its distinct points, of more than kMostSeen farthest ones, with
/// their mean at 0 and the largest radius 1. Throws Error{bad_argument} for fewer than kFewestRebuilt.
struct SeenCloud {
    Array<float, 2> points;  // [n, 3] on the CPU
    metrics::Frame frame;    // that they are in
};
SeenCloud seen_cloud(const PointCloud& cloud);

class Reconstructor {
public:
    /// Throws Error{bad_argument} unless the network takes points [B, N, 3] alone and gives reconstructed [B, n, 3],
    /// Error{bad_file} for metadata that do not fit it, and as NetworkRunner does.
    Reconstructor(ModelOrEngine source, const RunnerOptions& options);

    const NetworkRunner& runner() const { return runner_; }
    /// Points that it makes of a cloud.
    int64_t count() const { return count_; }
    /// Names of the classes that it was trained on; none where the weights do not tell.
    const std::vector<std::string>& classes() const { return classes_; }
    /// What tells clouds that it cannot rebuild; nothing where the weights do not.
    const std::optional<Likeness>& likeness() const { return likeness_; }
    /// The upward axis of the clouds that it was trained on.
    Axis up() const { return up_; }

    /// Made of clouds in the unit sphere: [clouds * count(), 3], on the device of the network. At most
    /// runner().max_batch() clouds.
    Array<float, 2> run(const CloudBatch& batch);

    /// What is made of each cloud of a batch, and how far it is from the cloud.
    struct Made {
        Array<float, 2> points;  // as run()
        std::vector<Gaps> gaps;  // one a cloud
    };
    Made run_and_compare(const CloudBatch& batch);

private:
    NetworkRunner runner_;
    int64_t count_ = 0;
    std::vector<std::string> classes_;
    std::optional<Likeness> likeness_;
    Axis up_;
};

/// Where a cloud may lie: of all poses and turns the one whose result is most like the cloud counts.
struct ReconstructOptions {
    int64_t count = 0;                   // points wanted, at most those that the network makes; 0: these
    std::vector<Pose> poses = {Pose{}};  // by quarter turns
    int64_t turns = 1;                   // of each, evenly spread about the network's up axis: 1 to 360
    bool force = false;                  // clouds that are unlike the network's are rebuilt all the same
};

struct Reconstructed {
    PointCloud cloud;                  // in the frame and the unit of the input; no attributes: nothing tells them
    int64_t points = 0;                // that the network saw
    Gaps gaps;                         // over the radius of the input
    double radius = 0;                 // of the input, from the mean of the points that the network saw
    size_t pose = 0;                   // of those given
    double turned = 0;                 // then by so many degrees about the up axis
    std::optional<double> unlikeness;  // above 1: unlike the clouds of the network. Nothing where weights do not tell

    bool is_unlike() const { return unlikeness && *unlikeness > 1; }
};

/// Throws Error{bad_argument}, with what makes more, for a count that the network does not make; 0 is all.
void require_count(const Reconstructor& reconstructor, int64_t count);

/// Of finite points, at any place and of any size. The network sees them with their mean at 0 and the largest radius 1,
/// as its training clouds are, of more than kMostSeen a farthest point sample; duplicates count once. Fewer points than
/// the network makes are chosen by farthest point sampling.
///
/// Throws Error{check_failed} that names the classes for a cloud that is unlike them, unless options.force;
/// Error{bad_argument} for fewer than kFewestRebuilt distinct points, for a count below 1 or above what the network
/// makes, and for turns out of range. Points of one plane or line are clouds as others: unlike, as a rule. The same for
/// any number of threads.
Reconstructed reconstruct(Reconstructor& reconstructor, const PointCloud& cloud, const ReconstructOptions& options);

/// A network and what is wanted of it, as a command or a request says it.
struct RebuildOptions {
    std::string model;  // weights by path or name, or an engine; "": the shipped ones
    int64_t count = 0, turns = 1;
    PoseChoice pose;
    bool force = false;
    std::string device = "auto";
};
const Fields& rebuild_fields();

/// What is said about a cloud that was rebuilt.
struct RebuiltCloud {
    int64_t seen = 0, rebuilt = 0;                    // points that the network saw, and of the result
    double rms_to_rebuilt = 0, rms_from_rebuilt = 0;  // in the unit of the cloud
    std::optional<double> unlikeness;                 // as in Reconstructed
    std::optional<bool> unlike;
    std::optional<std::string> pose;       // where several were tried
    std::optional<double> turned_degrees;  // where turns were tried
};
const Fields& rebuilt_fields();

/// A reconstructor with what was asked of it.
class CloudRebuilder {
public:
    /// Loads the network. Throws as Reconstructor and require_count() do.
    explicit CloudRebuilder(const RebuildOptions& options);
    const Reconstructor& reconstructor() const { return *network_; }

    /// The cloud has finite points only; what is made of it takes its place. Throws as reconstruct().
    RebuiltCloud rebuild(PointCloud& cloud);

private:
    RebuildOptions options_;
    std::unique_ptr<Reconstructor> network_;
    ReconstructOptions how_;
};

}  // namespace stipple::tasks
