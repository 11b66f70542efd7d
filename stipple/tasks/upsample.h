#pragma once
// A denser cloud of the surface that a cloud was sampled from, of any size.
//
// The cloud is worked through in tiles. Around each a network makes candidates, several for each point that is wanted,
// and elimination keeps as many of them as the tile is to have, evenly spread, in view of what the tiles before have
// kept. So memory is bounded by the tile, time is linear, the count is exact, and the borders of tiles do not show.

#include <functional>

#include "stipple/core/point_cloud.h"
#include "stipple/tasks/network_runner.h"

namespace stipple::tasks {

/// Points that an upsampled cloud must have at least, duplicates not counted.
inline constexpr int64_t kFewestUpsampled = 32;

struct UpsampleOptions {
    // One of three says how many points are wanted, at least as many as there are.
    double ratio = 0;    // points for each point
    int64_t count = 0;   // points
    double spacing = 0;  // a point for each square of this edge, in the unit of the cloud

    /// Above 0: normal numbers times this are added to the latents that points are made of, so that every seed makes
    /// another cloud. The network must have an input for them.
    double temperature = 0;
    uint64_t seed = 0;

    bool keeps_input = false;                          // all input points are among the output, as its first points
    int64_t tile_points = 8192;                        // input points that are worked on at a time
    std::function<void(int64_t points)> advance = {};  // so many more points of upsampling_work() are done
};

/// The name of upsampling without a network.
inline constexpr const char* kMidpoints = "midpoints";

/// What makes candidates. A network: of points [B, N, 3], with children upsampled [B, N, R, 3] of each point of a
/// patch; or of points and queries [B, M, 3], with moved queries upsampled [B, M, 3], or with their distance [B, M, 1]
/// to the surface, down which they are moved (upsample/descend.h). Outputs `neighbours` and `weights` say of which
/// input points an output is made, for attributes; where distances are told, it is the nearest ones. Of a network with
/// children an input noise [B, N, R, c] is what temperature adds to. Without a network: the points in the middle
/// between a point and each of its nearest neighbours, twice as many as the ratio asks for.
class Upsampler {
public:
    /// Without a network.
    Upsampler() : sources_(2) {}
    /// Throws Error{bad_argument} for a network of other inputs and outputs, and as NetworkRunner does.
    /// options.batch and options.points do not count.
    Upsampler(ModelOrEngine source, RunnerOptions options);

    bool has_network() const { return runner_.has_value(); }
    NetworkRunner& runner() { return *runner_; }
    const NetworkRunner& runner() const { return *runner_; }
    /// What moves queries most of the way, where they are to be moved again: the first step of the network, where it
    /// has several and is a model; else runner().
    NetworkRunner& first_step() { return first_step_ ? *first_step_ : *runner_; }
    /// Of `points` [n, 3], on the CPU: what the input "features" of runner() and first_step() takes, [n, channels] on
    /// their device; null where they have none. Those of the last points are kept until forget_features().
    const Array<float, 2>* features_of(const Array<float, 2>& points);
    void forget_features() { encoded_ = {}, features_ = {}; }
    /// Of all its networks: weights and what runs keep.
    int64_t memory_bytes() const;
    /// Whether it moves queries; else it makes children.
    bool takes_queries() const { return takes_queries_; }
    /// Whether it tells distances of queries, and does not move them itself.
    bool tells_distances() const { return tells_distances_; }
    /// Children of a point; 0 where it takes queries or is no network.
    int64_t children() const { return children_; }
    /// Input points that an output is made of; 0: it does not say.
    int64_t sources() const { return sources_; }
    bool knows_uncertainty() const { return knows_uncertainty_; }
    /// Channels of the noise that it takes for each child; 0: none.
    int64_t noise_channels() const { return noise_channels_; }
    /// The largest ratio that one pass makes: larger ones take several.
    double largest_ratio() const;

private:
    void compile(ModelOrEngine source, const RunnerOptions& options);
    void check_types();

    std::optional<NetworkRunner> runner_, encoder_, first_step_;
    Array<float, 2> encoded_, features_;  // the last points, and what they became
    bool takes_queries_ = false, tells_distances_ = false, knows_uncertainty_ = false;
    int64_t children_ = 0, sources_ = 0, noise_channels_ = 0;
};

/// The points of a cloud that options.ratio, count or spacing ask for. Throws Error{bad_argument} unless exactly one of
/// the three is given, and for one that is not finite or asks for fewer points than there are (of a spacing: fewer than
/// one less in a hundred).
int64_t upsampled_count(const PointCloud& cloud, const UpsampleOptions& options);

/// Points that upsample() goes through, those of later passes too: what advance() adds up to, about.
int64_t upsampling_work(const Upsampler& upsampler, const PointCloud& cloud, int64_t count);

struct Upsampled {
    PointCloud cloud;        // with attributes and origin
    int64_t duplicates = 0;  // input points at the place of another one, which were passed over
};

/// Exactly upsampled_count() points. The cloud is on the CPU and has finite points.
///
/// Attributes are interpolated with the network's weights: numbers of float type, colours and intensities by their
/// weighted mean, normals likewise and brought to length 1, labels and other whole numbers by the heaviest of the
/// points. Order: by tiles; input points that are kept come first, in their order. The same for any number of threads;
/// with a GPU the network's rounding may differ. Throws Error{bad_argument} for fewer than kFewestUpsampled distinct
/// points, for a temperature below 0 or above 0 of a network that takes no noise, and as upsampled_count. Can be
/// interrupted.
Upsampled upsample(Upsampler& upsampler, const PointCloud& cloud, const UpsampleOptions& options);

}  // namespace stipple::tasks
