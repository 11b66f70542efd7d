#include "stipple/geometry/sweep_rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "stipple/core/rng.h"
#include "tests/support/sweep.h"

namespace stipple::geometry {
namespace {

using test::sweep_of_room;

PointCloud shuffled(const PointCloud& cloud) {
    std::vector<int32_t> order(static_cast<size_t>(cloud.size()));
    std::iota(order.begin(), order.end(), 0);
    const Rng rng(5);
    for (size_t i = order.size() - 1; i > 0; --i)
        std::swap(order[i], order[rng.below(i, static_cast<uint32_t>(i + 1))]);
    return select(cloud, {order.data(), {cloud.size()}});
}

/// Whether the rings are those of sweep_of_room(): `ring_of` says which one a point was made for.
template <class RingOf>
void expect_rings(const PointCloud& cloud, const test::SweepRoom& room, const RingOf& ring_of) {
    const std::optional<SweepRings> sweep = find_sweep_rings(cloud);
    ASSERT_TRUE(sweep);
    ASSERT_EQ(sweep->rings.size(), static_cast<size_t>(room.rings));
    EXPECT_NEAR(sweep->step, 2 * M_PI / room.steps, 1e-5);
    for (size_t r = 0; r < sweep->rings.size(); ++r) {
        ASSERT_EQ(sweep->rings[r].size(), static_cast<size_t>(room.steps));
        double last = -1;
        for (const int32_t i : sweep->rings[r]) {
            EXPECT_EQ(ring_of(i), static_cast<int>(r));
            const SweepView view = seen_from(sweep->sensor, {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)});
            EXPECT_GT(view.azimuth, last);
            last = view.azimuth;
        }
    }
}

TEST(SweepRings, AreFoundByOrder) {
    // Lines of equal elevation would not do: the sensor stands askew.
    const test::SweepRoom room;
    PointCloud cloud = sweep_of_room(room);
    for (int64_t i = 0; i < cloud.size(); ++i)
        cloud.positions.data()[3 * i + 2] += 0.02f * cloud.positions.data()[3 * i];
    expect_rings(cloud, room, [&](int32_t i) { return i / room.steps; });
    shift_origin(cloud, {0, 0, 1e-3});  // the order stays
    EXPECT_TRUE(find_sweep_rings(cloud));
}

TEST(SweepRings, AreFoundByElevation) {
    const test::SweepRoom room;
    const PointCloud cloud = shuffled(sweep_of_room(room));
    expect_rings(cloud, room, [&](int32_t i) {
        const SweepView view = seen_from({}, {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)});
        const double share = (view.elevation * 180 / M_PI - room.highest) / (room.lowest - room.highest);
        return static_cast<int>(std::lround(share * (room.rings - 1)));
    });
}

TEST(SweepRings, AreFoundByTheirAttributeAndFromTheViewpoint) {
    const test::SweepRoom room;
    PointCloud cloud = sweep_of_room(room);
    Attribute ring("ring", DType::u16, cloud.size(), 1);
    for (int64_t i = 0; i < cloud.size(); ++i) ring.as<uint16_t>()(i, 0) = static_cast<uint16_t>(i / room.steps);
    cloud.attributes.push_back(std::move(ring));
    const PointCloud mixed = shuffled(cloud);
    const auto ring_of = [&](int32_t i) { return static_cast<int>(find(mixed.attributes, "ring")->value(i)); };
    expect_rings(mixed, room, ring_of);
    PointCloud elsewhere = shuffled(cloud);
    shift_origin(elsewhere, {500, -200, 30});
    EXPECT_FALSE(find_sweep_rings(elsewhere));
    elsewhere.facts.viewpoint = {500, -200, 30, 1, 0, 0, 0};
    expect_rings(elsewhere, room, ring_of);
}

TEST(SweepRings, OtherCloudsHaveNone) {
    const Rng rng(2);
    PointCloud scattered(20000);
    for (int64_t i = 0; i < scattered.positions.elements(); ++i)
        scattered.positions.data()[i] = rng.normal(static_cast<uint64_t>(i));
    EXPECT_FALSE(find_sweep_rings(scattered));
    EXPECT_FALSE(find_sweep_rings(PointCloud(0)));
    EXPECT_FALSE(find_sweep_rings(PointCloud(5000)));  // all at the sensor
    for (int64_t i = 0; i < scattered.positions.elements(); i += 7) scattered.positions.data()[i] = NAN;
    EXPECT_FALSE(find_sweep_rings(scattered));

    // A thinned sweep lies in rings, but has lost its regular steps.
    const PointCloud sweep = sweep_of_room({});
    for (const float share : {0.2f, 0.4f, 0.5f}) {
        std::vector<int32_t> few;
        for (int32_t i = 0; i < static_cast<int32_t>(sweep.size()); ++i)
            if (rng.uniform(static_cast<uint64_t>(i)) < share) few.push_back(i);
        EXPECT_FALSE(find_sweep_rings(select(sweep, {few.data(), {static_cast<int64_t>(few.size())}}))) << share;
    }

    // A number of the ring that is no number, or that all points share, is no ring.
    PointCloud odd = sweep.clone();
    odd.attributes.emplace_back("ring", DType::f32, odd.size(), 1);
    EXPECT_FALSE(find_sweep_rings(odd));
    for (int64_t i = 0; i < odd.size(); ++i) odd.attributes.back().as<float>()(i, 0) = NAN;
    EXPECT_FALSE(find_sweep_rings(odd));
}

}  // namespace
}  // namespace stipple::geometry
