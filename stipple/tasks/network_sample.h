#pragma once
// Samples that a network chooses: S-NET, SampleNet, Gumbel subset sampling, and the critical points of a PointNet.
//
// A network proposes points, at most as many as it was trained for; each proposal becomes the nearest point of the
// cloud; of several that become the same point the first counts; what is then missing is completed by farthest point
// sampling from there. So a sample has exactly the points asked for, all of the input, none twice.

#include <memory>
#include <string>
#include <vector>

#include "stipple/tasks/network_clouds.h"
#include "stipple/tasks/network_runner.h"
#include "stipple/tasks/sample.h"

namespace stipple::tasks {

struct CriticalLayer;  // sample/critical_points.h

class NetworkSampler {
public:
    /// A samplenet, a gumbel-subset or a pointnet-classifier, the last as a model, not an engine. Throws
    /// Error{bad_argument} for other networks, Error{bad_file} for metadata that do not fit, and as NetworkRunner.
    NetworkSampler(ModelOrEngine source, const RunnerOptions& options);

    const NetworkRunner& runner() const { return runner_; }
    /// Most points that it proposes.
    int64_t count() const { return count_; }
    /// Points of a cloud that the network sees; of a larger cloud it sees a random subset of as many.
    int64_t points() const { return points_; }
    /// Any beginning of its proposals is a sample too.
    bool is_progressive() const { return is_progressive_; }

    /// What the network proposes for clouds in its frame (the unit sphere), on its device: [clouds, count()] positions
    /// in the cloud, -1 for none. Other points than `clouds` are never named. At most runner().max_batch() clouds of
    /// one point or more. `seed`: of the subset of large clouds.
    Array<int32_t, 2> propose(const ops::Clouds& clouds, uint64_t seed, Stream stream = {});

    /// m points of every cloud: `indices` [clouds * m], and how far each was from those before it, squared (0: the
    /// cloud has no more distinct points), both on the network's device; nothing waits for the host. Proposals as
    /// above. Throws Error{bad_argument} for m above a cloud's size, and for m below count() unless it is progressive.
    void choose(const ops::Clouds& clouds, const Array<int32_t, 2>& proposals, int64_t m, View<int32_t, 1> indices,
                View<float, 1> distances_sq, Stream stream = {}) const;

private:
    std::shared_ptr<const CriticalLayer>
        critical_;  // of a classifier; before the runner, which runs what lies below it
    NetworkRunner runner_;
    int64_t count_ = 0, points_ = 0;
    bool is_progressive_ = false, has_scores_ = false;
};

/// The sampler of a method that has a network, for samples of m points: `model` by path or name; where that is empty
/// the installed weights METHOD-m, else METHOD-progressive, of critical the classifier. Throws Error{bad_argument}
/// where none are installed and for a model that is of another method, which it names; and as above.
NetworkSampler load_sampler(SampleMethod method, const std::string& model, int64_t m, const RunnerOptions& options);

/// A sample of one cloud, with attributes and origin.
struct NetworkSample {
    PointCloud cloud;
    std::vector<int32_t> indices;  // of the points in the input
    int64_t proposed = 0;          // of them the network's; the rest by farthest point sampling
};
/// The cloud has finite points only. Throws as choose(), and Error{bad_argument} for a cloud with fewer distinct points
/// than asked for.
NetworkSample sample_by_network(NetworkSampler& sampler, const PointCloud& cloud, int64_t m, uint64_t seed);

/// What a sample is, by any method.
struct Sampled {
    PointCloud cloud;
    SampleMethod method = SampleMethod::fps;
    int64_t points = 0, sampled = 0;       // of the input and of the sample
    std::optional<int64_t> proposed;       // by a network: points that it chose itself
    std::optional<double> voxel, spacing;  // as set, of the methods of these names
};
const Fields& sampled_fields();

/// Samples clouds by any method; a network is loaded once.
class CloudSampler {
public:
    /// Settings as resolved() makes them. Throws as load_sampler() does.
    CloudSampler(const SampleSettings& settings, const std::string& device);
    const SampleSettings& settings() const { return settings_; }

    /// The cloud has finite points only. Throws as sample_cloud() and sample_by_network() do.
    Sampled sample(const PointCloud& cloud);

private:
    SampleSettings settings_;
    Device device_;
    std::optional<NetworkSampler> network_;
};

}  // namespace stipple::tasks
