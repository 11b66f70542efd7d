#include "stipple/geometry/registration/icp_pairs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stipple/core/numeric.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "tests/support/clouds.h"

namespace stipple::test {
namespace {

using namespace geometry;

/// n points in the unit cube, or on a coarse lattice, where ties are the rule.
Array<float, 2> points_of(int64_t n, uint64_t seed, bool lattice) {
    Array<float, 2> points({n, 3});
    const Rng rng(seed);
    for (int64_t i = 0; i < 3 * n; ++i)
        points.data()[i] = lattice ? static_cast<float>(rng.below(static_cast<uint64_t>(i), 8)) / 8
                                   : rng.uniform(static_cast<uint64_t>(i));
    return points;
}

/// What every pair must be: the nearest by float32 distance of the moved point, ties to the lowest index.
void expect_nearest(const Pairs& pairs, const PairTarget& target, const Array<float, 2>& points,
                    const RigidTransform& motion, float max_distance) {
    for (int64_t rank = 0; rank < pairs.size(); ++rank) {
        const Vector3 moved = motion(pairs.source(rank));
        const float at[3] = {static_cast<float>(moved[0]), static_cast<float>(moved[1]), static_cast<float>(moved[2])};
        int64_t nearest = -1;
        float least = std::numeric_limits<float>::infinity();
        for (int64_t i = 0; i < points.size(0); ++i) {
            const float sq = distance_sq(points.data() + 3 * i, at);
            if (sq < least) least = sq, nearest = i;
        }
        if (!(least <= max_distance * max_distance)) nearest = -1;
        const int32_t slot = pairs.slot(rank);
        const int64_t found = slot < 0 ? -1 : target.index_at(slot);
        ASSERT_EQ(found < 0, nearest < 0) << rank;
        if (nearest < 0) continue;
        EXPECT_EQ(pairs.distance_sq(rank), least) << rank;
        // A point that came to rest where two are equally near may keep either.
        if (found != nearest) {
            EXPECT_EQ(distance_sq(points.data() + 3 * found, at), least) << rank;
        }
    }
}

TEST(GeometryIcpPairs, AreTheNearestAtEveryStepOfAWalk) {
    for (const int64_t n : {1, 2, 17, 700}) {
        for (const bool lattice : {false, true}) {
            for (const float max_distance : {0.02f, 0.2f, std::numeric_limits<float>::infinity()}) {
                SCOPED_TRACE(fmt::format("{} points, lattice {}, up to {}", n, lattice, max_distance));
                Array<float, 2> points = points_of(n, 1, lattice), source = points_of(501, 2, lattice);
                if (n > 10) points.data()[3 * 5] = NAN;
                source.data()[3 * 8 + 1] = INFINITY;
                const PairTarget target(points.view());
                Pairs pairs(target, source.view(), max_distance);
                ASSERT_EQ(pairs.size(), 500);
                RigidTransform motion;
                // From strides to steps of nothing, as registration goes, then a jump and a rest.
                for (const double step : {0.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4, 1e-5, 0.0, 0.5, 0.0}) {
                    RigidTransform next = rotation_about({1, 2, -1}, step, {0.5, 0.5, 0.5});
                    next.translation[0] += step / 2;
                    motion = next * motion;
                    const int64_t searched = pairs.update(motion);
                    if (step == 0 && motion != RigidTransform{}) {
                        EXPECT_EQ(searched, 0);
                    }
                    expect_nearest(pairs, target, points, motion, max_distance);
                }
            }
        }
    }
}

TEST(GeometryIcpPairs, SmallStepsSearchFewPoints) {
    const Array<float, 2> points = points_of(5000, 1, false), source = points_of(2000, 2, false);
    const PairTarget target(points.view());
    Pairs pairs(target, source.view(), 0.5f);
    EXPECT_EQ(pairs.update({}), 2000);
    RigidTransform motion;
    motion.translation[1] = 1e-4;  // a five-hundredth of the spacing
    const int64_t searched = pairs.update(motion);
    EXPECT_GT(searched, 0);
    EXPECT_LT(searched, 100);
}

TEST(GeometryIcpPairs, FewQueriesAmongManyPointsAndNoPointsAtAll) {
    const Array<float, 2> points = points_of(20000, 1, false), source = points_of(20, 2, false);
    const PairTarget target(points.view());
    Pairs pairs(target, source.view(), 1.0f);
    RigidTransform motion;
    for (const double shift : {0.0, 0.01, 0.02}) {
        motion.translation[2] = shift;
        pairs.update(motion);
        expect_nearest(pairs, target, points, motion, 1.0f);
    }
    const Array<float, 2> nothing({0, 3});
    const PairTarget empty(nothing.view());
    Pairs alone(empty, source.view(), 1.0f);
    alone.update({});
    for (int64_t rank = 0; rank < alone.size(); ++rank) EXPECT_EQ(alone.slot(rank), -1);
    Pairs none(target, nothing.view(), 1.0f);
    EXPECT_EQ(none.update({}), 0);
    EXPECT_EQ(none.size(), 0);
}

}  // namespace
}  // namespace stipple::test
