#pragma once
// What all patches for training an upsampler have in common, be they of meshes, of scans or of files: random numbers,
// clouds of uneven density, and the patch that is cut from a cloud.

#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/learn/upsampling/surface_patches.h"

namespace stipple::learn {

/// What numbers are drawn for; each has a stream of its own.
enum class Draws : uint64_t { plan, cloud, noise, centre, turn, queries, more_queries, query_noise, query_kinds };

/// Those of one patch: a function of its key.
class PatchRandom {
public:
    explicit PatchRandom(const PatchKey& key) : item_(static_cast<uint64_t>(key.item)) {
        const RandomBlock block = Rng(key.seed, kPatchStream).block(static_cast<uint64_t>(key.epoch));
        key_ = uint64_t{block.word[1]} << 32 | block.word[0];
    }
    Rng of(Draws what) const { return Rng(key_, 16 * item_ + static_cast<uint64_t>(what)); }
    uint64_t seed(Draws what) const {
        const RandomBlock block = of(what).block(0);
        return uint64_t{block.word[1]} << 32 | block.word[0];
    }

private:
    static constexpr uint64_t kPatchStream = uint64_t{0x50415443} << 32;

    uint64_t key_ = 0, item_;
};

/// The direction has length 1 and takes three numbers.
Vec3d random_direction(const Rng& rng, uint64_t first);

/// Puts the numbers of n of the points [m, 3] into scratch.chosen, all different, n <= m.
///
///   random    any of them, all alike
///   gradient  with a density that falls to an eighth along a direction, from one end of the unit sphere to the other
///   scan      as a scanner outside of the unit sphere would: on lines of equal elevation some spacings apart, by solid
///             angle. `area` is that of the surface
///   voxel     the first of `points` in each cell of a grid, whose edge leaves about n; some more or less at random
void choose_points(View<const float, 2> points, double area, PatchSampling sampling, int64_t n, const Rng& rng,
                   PatchScratch& scratch);

/// The chosen points, moved by a Gaussian of this standard deviation, into scratch.cloud.
void take_points(View<const float, 2> points, double noise, const Rng& rng, PatchScratch& scratch);

/// Where the truth of a patch is taken from: these points [m, 3] in this order; `is_whole`: wherever they lie, else
/// near the inner points.
struct TruthSource {
    View<const float, 2> points;
    std::span<const int32_t> order;
    bool is_whole = false;
};

/// The patch around a point of scratch.cloud: what make_patch says of points, queries, truth and frame.
PatchFrame cut_patch(int64_t centre, const TruthSource& source, const PatchOptions& options, const PatchRandom& random,
                     const PatchArrays& arrays, PatchScratch& scratch);

/// p = R (x - centre) / scale.
void to_patch(const PatchFrame& frame, const float* x, float* p);

}  // namespace stipple::learn
