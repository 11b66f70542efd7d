#pragma once
// A denser cloud of the surface that a cloud was sampled from, of any size.
//
// The cloud is worked through in tiles. Around each a network makes candidates, several for each point that is wanted,
// and elimination keeps as many of them as the tile is to have, evenly spread, in view of those around the tile. So
// memory is bounded by the tile, time is linear, the count is exact, and the borders of tiles do not show.

#include <functional>
#include <memory>

#include "stipple/core/fields.h"
#include "stipple/core/point_cloud.h"
#include "stipple/tasks/network_runner.h"

namespace stipple::tasks {

class CandidateMaker;

/// Points that an upsampled cloud must have at least, duplicates not counted.
inline constexpr int64_t kFewestUpsampled = 32;

/// This decides what becomes of places without input points.
enum class Holes {
    keep,  // no points beyond rims, and none in holes wider than two spacings (upsample/support.h)
    fill,  // as far as the network reaches
};
inline constexpr const char* kHolesWords[] = {"keep", "fill"};

/// What becomes of a sweep of a spinning LiDAR (geometry/sweep_rings.h).
enum class Rings {
    find,    // its rings are found and it gets points between them (upsample/between_rings.h), unless input points are
             // freed of noise or the network moves none
    ignore,  // it is a cloud like others
};
inline constexpr const char* kRingsWords[] = {"auto", "ignore"};

struct UpsampleOptions {
    // One of three says how many points are wanted, at least as many as there are.
    double ratio = 0;    // points for each point
    int64_t count = 0;   // points
    double spacing = 0;  // a point for each square of this edge, in the unit of the cloud

    /// Above 0: normal numbers times this are added to the latents that points are made of, so that every seed makes
    /// another cloud. The network must have an input for them.
    double temperature = 0;
    uint64_t seed = 0;

    Holes holes = Holes::keep;
    double hole_size = 0;  // with Holes::fill, the width of the widest one that is filled; 0: any

    Rings rings = Rings::find;

    /// All input points are among the output, as they are. Without it so they are where a network moves points, but not
    /// of midpoints and children.
    bool keeps_input = false;
    /// Input points that the network finds beside the surface are moved onto it. Needs one that moves points.
    bool denoises = false;
    int64_t tile_points = 8192;                        // input points that are worked on at a time
    std::function<void(int64_t points)> advance = {};  // so many more points of upsampling_work() are done
};
const Fields& upsample_fields();

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
    Upsampler();
    /// Throws Error{bad_argument} for a network of other inputs and outputs, and as NetworkRunner does.
    /// options.batch and options.points do not count.
    Upsampler(ModelOrEngine source, RunnerOptions options);
    Upsampler(Upsampler&&) noexcept;
    Upsampler& operator=(Upsampler&&) noexcept;
    ~Upsampler();

    bool has_network() const { return runner() != nullptr; }
    /// The network; null without one.
    const NetworkRunner* runner() const;
    /// Numbers of noise that it takes for each point; 0: none.
    int64_t noise_channels() const;
    /// The largest ratio that one pass makes: larger ones take several.
    double largest_ratio() const;
    /// Counts all its networks: weights and what runs keep.
    int64_t memory_bytes() const;
    /// How it makes candidates (upsample/candidates.h).
    CandidateMaker& maker() { return *maker_; }

private:
    std::unique_ptr<CandidateMaker> maker_;
};

/// The points, of the finite ones of a cloud, that options.ratio, count or spacing ask for. Throws Error{bad_argument}
/// unless exactly one of the three is given, and for one that is not finite or asks for fewer points than there are (of
/// a spacing: fewer than one less in a hundred).
int64_t upsampled_count(const PointCloud& cloud, const UpsampleOptions& options);

/// Points that upsample() goes through, those of later passes too: what advance() adds up to, about.
int64_t upsampling_work(const Upsampler& upsampler, const PointCloud& cloud, int64_t count);

struct Upsampled {
    PointCloud cloud;        // with attributes and origin
    int64_t measured = 0;    // its first points, which are input points as they were
    int64_t dropped = 0;     // candidates that were left out beyond rims and in holes, in all passes
    int64_t duplicates = 0;  // input points at the place of another one, which were passed over
    int64_t nonfinite = 0;   // input points that are not finite, which were left out
    int64_t rings = 0;       // of a spinning LiDAR's sweep; 0: of another cloud, or rings were not looked for
    int64_t between = 0;     // new points between rings; the others lie along them
    int64_t points = 0;      // of the input
    int64_t upsampled = 0;   // of the output
    double spacing = 0, spacing_after = 0;  // mean distances of neighbours, in the unit of the cloud
};
const Fields& upsampled_fields();

/// Exactly upsampled_count() points. The cloud is on the CPU.
///
/// Attributes are interpolated with the network's weights: numbers of float type, colours and intensities by their
/// weighted mean, normals likewise and brought to length 1, labels and other whole numbers by the heaviest of the
/// points. Order: input points that stay, in their order, and then by tiles. The same for any number of threads; with a
/// GPU the network's rounding may differ. Throws Error{bad_argument} for fewer than kFewestUpsampled distinct points,
/// for a temperature below 0 or above 0 of a network that takes no noise, for options that contradict each other, and
/// as upsampled_count. Can be interrupted.
Upsampled upsample(Upsampler& upsampler, const PointCloud& cloud, const UpsampleOptions& options);

}  // namespace stipple::tasks
