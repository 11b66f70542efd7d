#pragma once
// The motion between two looks at one whole shape, by PCRNet [Sarode et al. 2019]: a start for ICP where none is known.
//
// The network was trained on shapes that are turned by up to 45 degrees about each axis, points of all of the shape on
// both sides. Of scans that overlap in part it knows nothing: register_globally() is for those.

#include "stipple/geometry/rigid_transform.h"
#include "stipple/tasks/network_sample.h"

namespace stipple::tasks {

/// Looks of the network: each moves the source and looks again.
inline constexpr int64_t kPoseIterations = 8;
/// Points of a cloud that the network sees at most: of larger clouds farthest points.
inline constexpr int64_t kPosePoints = 1024;

class PoseNetwork {
public:
    /// Throws Error{bad_argument} for another network than a pcrnet, and as NetworkRunner does.
    PoseNetwork(ModelOrEngine source, const RunnerOptions& options);
    /// The network then sees `sampled` points of a larger cloud, which this one chooses of the farthest points. Throws
    /// Error{bad_argument} for more than kPosePoints, and fewer than the sampler chooses.
    void sample_by(NetworkSampler sampler, int64_t sampled);

    const NetworkRunner& runner() const { return runner_; }
    /// Looks in all: kPoseIterations, or what a run of the network has where that is more.
    int64_t iterations() const { return iterations_; }

    struct Found {
        geometry::RigidTransform transform;            // source to target, world coordinates
        int64_t source_points = 0, target_points = 0;  // that the network saw
    };
    /// Both clouds are centred at the means of what is seen of them and scaled by one length, the larger radius, so
    /// that the motion stays rigid. Of all poses on the way, the start without a turn included, that with the least
    /// mean distances between nearest points, both ways, is the answer. Points that are not finite do not count,
    /// duplicates count once. Points of one place or line leave a pose open, and so does what is found of them. Throws
    /// Error{bad_argument} for a cloud without finite points, Error{not_finite} where the network gives no motion. The
    /// same for any number of threads.
    Found find(const PointCloud& source, const PointCloud& target);

private:
    /// What a run finds, in the frame of the network.
    geometry::RigidTransform look(const Array<float, 2>& source, const Array<float, 2>& target);

    NetworkRunner runner_;
    std::optional<NetworkSampler> sampler_;
    int64_t sampled_ = 0, per_run_ = 1, iterations_ = 1;
};

/// A pcrnet by path or name, "" for the shipped one; a model, whatever its iterations, is asked one at a time.
/// `sampled`: 0, or the points that the installed samplenet-reg chooses. Throws Error{bad_file} for weights that are
/// not there, and as above.
PoseNetwork load_pose_network(const std::string& model, int64_t sampled, const RunnerOptions& options);

}  // namespace stipple::tasks
