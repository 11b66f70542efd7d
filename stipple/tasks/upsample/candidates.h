#pragma once
// Where new points may go: what candidates are, and what every way to make them has to answer.

#include <memory>
#include <span>
#include <vector>

#include "stipple/core/view.h"
#include "stipple/ops/point_index.h"
#include "stipple/tasks/network_runner.h"

namespace stipple::tasks {

struct Candidates {
    std::vector<float> points;         // [n, 3]
    std::vector<int32_t> parents;      // [n] the input point that each belongs to
    int64_t inputs = 0;                // the first so many are their parents themselves, moved
    std::vector<float> uncertainties;  // [n] expected distance to the surface; empty: not known
    int64_t width = 0;                 // input points that a candidate is made of
    std::vector<int32_t> sources;      // [n, width] these points; -1: fewer
    std::vector<float> weights;        // [n, width] their weights

    int64_t size() const { return static_cast<int64_t>(parents.size()); }
};

/// Adds one without sources, unless it is not finite.
void add_candidate(Candidates& candidates, const float* point, int32_t parent);
/// Adds candidate i of others, of the same width.
void append(const Candidates& from, int64_t i, Candidates& to);
/// Keeps the first ones.
void truncate(Candidates& candidates, int64_t size);

/// A part of a cloud.
struct Region {
    View<const float, 2> cloud;       // [n, 3] all points, on the CPU
    std::span<const int32_t> points;  // those of the region
    bool fills_holes = false;         // places that lie in holes and beyond rims stay there
};

/// Candidates that are asked for.
struct CandidateRequest {
    Region region;
    std::span<const int32_t> around;     // its points, and others as far around them as a patch reaches
    std::span<const uint8_t> is_wanted;  // [n] points of the region whose candidates are asked for
    double ratio = 1;                    // candidates of each of them, at least
    bool has_inputs = true;              // the wanted points are candidates too, moved where a network moves them
    bool has_sources = true;             // whether it is asked what candidates are made of
    double temperature = 0;              // of the noise, for a network that takes some
    uint64_t seed = 0;
};

/// Places near a surface.
struct Queries {
    std::vector<float> points;     // [n, 3], in the coordinates of the cloud
    std::vector<int32_t> parents;  // [n] input points
    int64_t inputs = 0;            // the first so many are their parents themselves

    int64_t size() const { return static_cast<int64_t>(parents.size()); }
};

/// Moves places onto the surface.
class PointMover {
public:
    virtual ~PointMover() = default;
    /// Appends the queries to the candidates, moved, with what is known about them. Those that are not finite then are
    /// left out. `is_rough`: they will be moved again, so that most of the way is enough; their uncertainty may be
    /// missing.
    virtual void move(const Region& region, const Queries& queries, bool is_rough, Candidates& candidates) = 0;
};

/// A way to make candidates: midpoints.cpp, children.cpp, moved_queries.cpp.
class CandidateMaker {
public:
    virtual ~CandidateMaker() = default;
    /// Those that are not finite are left out. Candidates have sources() of their input points where asked for.
    virtual Candidates make(const CandidateRequest& request) = 0;
    /// Points for each point that it makes at a time, at most.
    virtual double largest_ratio() const = 0;
    /// Input points that a candidate is made of; 0: it does not say.
    virtual int64_t sources() const = 0;
    /// Numbers of noise that it takes for each candidate; 0: none.
    virtual int64_t noise_channels() const { return 0; }
    /// Returns what moves points that have been chosen once more; null: nothing does.
    virtual PointMover* mover() { return nullptr; }
    /// The next request is of another cloud.
    virtual void forget_cloud() {}
    /// The network; null: there is none.
    virtual const NetworkRunner* runner() const { return nullptr; }
    /// Counts all its networks: weights and what runs keep.
    virtual int64_t memory_bytes() const { return 0; }
};

/// In the middle between a point and each of its nearest neighbours, twice as many as the ratio asks for: [Grad-PU]
/// without its learned part.
std::unique_ptr<CandidateMaker> midpoint_maker();
/// Children of each point of patches as published for PU-Flow.
std::unique_ptr<CandidateMaker> child_maker(NetworkRunner runner);
/// Queries (queries.h) that a network moves, or that go down the distances it tells. `encoder` and `first_step` are
/// parts of the network, where it comes apart: what it makes of the input points, and what moves queries most of the
/// way.
std::unique_ptr<CandidateMaker> query_maker(NetworkRunner runner, std::optional<NetworkRunner> encoder,
                                            std::optional<NetworkRunner> first_step);

/// Points of a patch, as published for PU-Flow.
inline constexpr int64_t kPatchPoints = 256;
/// How far a patch around a point reaches, of most of `points`: what is nearer to a tile than this has a say in it.
float patch_radius(const ops::PointIndex& index, View<const float, 2> cloud, std::span<const int32_t> points);

}  // namespace stipple::tasks
