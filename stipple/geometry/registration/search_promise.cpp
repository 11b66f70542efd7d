#include "stipple/geometry/search_promise.h"

#include <algorithm>

#include "stipple/geometry/registration/point_matches.h"

namespace stipple::geometry {
namespace {

/// Some points of a scan with their descriptors of the smallest balls.
struct SomePoints {
    Array<float, 2> points, normals, descriptors;

    SomePoints(const SearchScan& scan, int64_t most) {
        const int64_t n = scan.matched.size(), kept = std::min(n, most), width = scan.descriptors[0].size(1);
        points = Array<float, 2>({kept, 3});
        normals = Array<float, 2>({kept, 3});
        descriptors = Array<float, 2>({kept, width});
        for (int64_t i = 0; i < kept; ++i) {
            const int64_t from = i * n / kept;
            std::copy_n(scan.matched.points.data() + 3 * from, 3, points.data() + 3 * i);
            std::copy_n(scan.matched.normals.data() + 3 * from, 3, normals.data() + 3 * i);
            std::copy_n(scan.descriptors[0].data() + width * from, width, descriptors.data() + width * i);
        }
    }
    DescribedPoints view() const { return {points.view(), normals.view(), descriptors.view()}; }
};

}  // namespace

SearchPromise search_promise(const SearchScan& source, const SearchScan& target, int64_t most_points,
                             int64_t most_matches) {
    STIPPLE_REQUIRE(most_points >= 3 && most_matches >= 3, "search_promise: {} points and {} matches (from 3)",
                    most_points, most_matches);
    SearchPromise promise;
    if (source.descriptors.empty() || target.descriptors.empty()) return promise;
    const SomePoints from(source, most_points), to(target, most_points);
    const bool is_sided = source.own_normals || (source.matched.sensor && target.matched.sensor);
    const std::vector<MatchedPair> pairs = match_points(from.view(), to.view(), is_sided, most_matches);
    promise.matches = static_cast<int64_t>(pairs.size());
    ConsensusOptions options;
    options.tolerance = 1.5 * target.matched.voxel;
    options.seeds = 8;
    const std::vector<ConsensusPose> poses = consensus_poses(pairs, options);
    if (poses.empty()) return promise;
    promise.inliers = poses[0].inliers;
    promise.transform = in_world(poses[0].transform, source.matched.origin, target.matched.origin);
    return promise;
}

}  // namespace stipple::geometry
