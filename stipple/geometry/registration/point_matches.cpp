#include "stipple/geometry/registration/point_matches.h"

#include <algorithm>

#include "stipple/geometry/fpfh.h"
#include "stipple/geometry/registration/descriptor_matches.h"

namespace stipple::geometry {
namespace {

Vector3 vector_at(View<const float, 2> rows, int64_t i) {
    return {rows(i, 0), rows(i, 1), rows(i, 2)};
}

}  // namespace

std::vector<MatchedPair> match_points(const DescribedPoints& source, const DescribedPoints& target, bool is_sided,
                                      int64_t most) {
    struct SidedMatch {
        Match match;
        int sign;
    };
    std::vector<SidedMatch> matches;
    for (const Match& match : match_descriptors(source.descriptors, target.descriptors, most))
        matches.push_back({match, 1});
    if (!is_sided)
        for (const Match& match : match_descriptors(fpfh_reversed(source.descriptors).view(), target.descriptors, most))
            matches.push_back({match, -1});
    std::stable_sort(matches.begin(), matches.end(), [](const SidedMatch& a, const SidedMatch& b) {
        if (a.match.is_mutual != b.match.is_mutual) return a.match.is_mutual;
        return a.match.distance_sq < b.match.distance_sq;
    });
    if (static_cast<int64_t>(matches.size()) > most) matches.resize(static_cast<size_t>(most));
    std::vector<MatchedPair> pairs;
    pairs.reserve(matches.size());
    for (const SidedMatch& one : matches) {
        MatchedPair pair{vector_at(source.points, one.match.source), vector_at(target.points, one.match.target),
                         vector_at(source.normals, one.match.source), vector_at(target.normals, one.match.target)};
        for (double& number : pair.np) number *= one.sign;
        pairs.push_back(pair);
    }
    return pairs;
}

}  // namespace stipple::geometry
