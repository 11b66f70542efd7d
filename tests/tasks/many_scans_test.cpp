// register_scans() of many scans: which pairs are tried, what is dropped, and where the scans end.

#include <gtest/gtest.h>

#include <algorithm>

#include "stipple/core/parallel.h"
#include "stipple/tasks/register_scans.h"
#include "stipple/tasks/registration_study/scenes.h"
#include "stipple/tasks/scans/part_merger.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/tasks/small_models.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;
using geometry::Vector3;

/// A point on a room of 6 x 4 x 2.5 m with boxes of all sizes standing around its walls.
Vector3 room_point(const Rng& rng, uint64_t number) {
    const auto dice = [&](uint64_t i) { return rng.uniform(16 * number + i); };
    const Rng layout(99);
    const auto at = static_cast<uint64_t>(40 * dice(0));
    Vector3 low = {0, 0, 0}, size = {6, 4, 2.5};
    const bool is_box = at < 24;
    if (is_box) {
        const auto box = [&](uint64_t i) { return layout.uniform(8 * at + i); };
        size = {0.3 + 0.6 * box(0), 0.3 + 0.6 * box(1), 0.3 + 1.4 * box(2)};
        const bool is_long = at % 2 == 0;
        const double side = at / 2 % 2 == 0 ? 0.1 : 0.9;
        low = is_long ? Vector3{5.2 * box(3), side * (4 - size[1]), 0} : Vector3{side * (6 - size[0]), 3.2 * box(3), 0};
    }
    // A face by its area, then a place on it.
    const double areas[3] = {size[1] * size[2], size[0] * size[2], size[0] * size[1]};
    double rest = dice(1) * (areas[0] + areas[1] + areas[2]);
    int face = 0;
    while (face < 2 && rest > areas[face]) rest -= areas[face++];
    Vector3 place;
    for (int axis = 0; axis < 3; ++axis) place[axis] = low[axis] + size[axis] * dice(static_cast<uint64_t>(2 + axis));
    const bool is_top = is_box && face == 2;  // nobody sees below
    place[face] = low[face] + (is_top || dice(5) < 0.5 ? size[face] : 0);
    for (int axis = 0; axis < 3; ++axis)
        place[axis] += 0.004 * rng.normal(16 * number + 6 + static_cast<uint64_t>(axis));
    return place;
}

/// Overlapping parts of the room, along its walls all the way round, each of its own points and in its own frame.
struct Room {
    std::vector<PointCloud> parts;
    std::vector<RigidTransform> truth;  // of each part to the room

    explicit Room(int count) {
        constexpr int64_t kPoints = 2500;
        for (int part = 0; part < count; ++part) {
            const double angle = 2 * M_PI * part / count;
            const Vector3 middle = {3 + 2.2 * std::cos(angle), 2 + 1.3 * std::sin(angle), 1};
            const Rng rng(static_cast<uint64_t>(part), 7);
            truth.push_back(test::any_pose(static_cast<uint64_t>(70 + part), 3));
            const RigidTransform away = geometry::inverse(truth.back());
            PointCloud cloud(kPoints);
            int64_t made = 0;
            for (uint64_t number = 0; made < kPoints; ++number) {
                const Vector3 p = room_point(rng, number);
                if (std::hypot(p[0] - middle[0], p[1] - middle[1]) > 1.7) continue;
                const Vector3 q = away(p);
                for (int axis = 0; axis < 3; ++axis)
                    cloud.positions.data()[3 * made + axis] = static_cast<float>(q[axis]);
                ++made;
            }
            parts.push_back(std::move(cloud));
        }
    }
    RigidTransform between(int32_t from, int32_t to) const { return geometry::inverse(truth[to]) * truth[from]; }
};

TEST(ManyScans, ChosenPairsPlaceABody) {
    // Caps of a body all round, each of its own points and in its own frame: those far from each other share nothing.
    constexpr int32_t kParts = 14;
    std::vector<PointCloud> parts;
    std::vector<RigidTransform> truth;
    for (int32_t i = 0; i < kParts; ++i) {
        const double height = 1 - (2 * i + 1.0) / kParts, turn = 2.399963 * i, ring = std::sqrt(1 - height * height);
        const PointCloud body = test::lumpy_body(1800, static_cast<uint64_t>(i));
        const PointCloud part = test::part_of(body, {ring * std::cos(turn), ring * std::sin(turn), height}, -0.2);
        truth.push_back(test::any_pose(static_cast<uint64_t>(50 + i), 3));
        parts.push_back(geometry::transformed(part, geometry::inverse(truth.back())));
    }
    std::vector<const PointCloud*> scans;
    for (const PointCloud& part : parts) scans.push_back(&part);
    ScansOptions options;
    options.pairs.method = RegisterMethod::global;
    options.pairs.global.most_points = 400;
    int calls = 0;
    const RegisteredScans found = register_scans(scans, options, [&] { ++calls; });
    EXPECT_EQ(found.all_pairs, kParts * (kParts - 1) / 2);
    const auto searched =
        std::count_if(found.pairs.begin(), found.pairs.end(), [](const ScanPair& pair) { return !pair.is_predicted; });
    EXPECT_LT(searched, found.all_pairs);
    EXPECT_EQ(calls, static_cast<int>(found.pairs.size()));
    EXPECT_EQ(found.verdict.state, geometry::RegistrationState::good) << found.verdict.text();
    for (int32_t i = 0; i < kParts; ++i) {
        ASSERT_TRUE(found.is_placed[i]) << i;
        const PoseError error = pose_error(found.poses[i], geometry::inverse(truth[0]) * truth[i], parts[i]);
        EXPECT_LT(error.degrees, 3) << i;
        EXPECT_LT(error.rms, 0.05) << i;
    }
    const int before = threads();
    set_threads(before == 1 ? 2 : 1);
    const RegisteredScans again = register_scans(scans, options);
    set_threads(before);
    EXPECT_EQ(again.poses, found.poses);
    EXPECT_EQ(again.pairs.size(), found.pairs.size());
}

class PartsOfARoom : public testing::Test {
protected:
    PartsOfARoom() : room(8) {
        for (const PointCloud& part : room.parts) scans.push_back(geometry::search_scan(part, 0.1, 0.1, false, {5.0}));
    }
    SureEdge edge(int32_t from, int32_t to, double confidence) const {
        SureEdge made;
        made.edge.from = from;
        made.edge.to = to;
        made.edge.transform = room.between(from, to);
        for (int i = 0; i < 6; ++i) made.edge.information[i][i] = 1;
        made.confidence = confidence;
        made.radius = 1;
        return made;
    }
    Room room;
    std::vector<geometry::SearchScan> scans;
};

TEST_F(PartsOfARoom, WrongEdgesJoinNothing) {
    std::vector<SureEdge> edges;
    for (int32_t i = 1; i < 8; ++i) edges.push_back(edge(i, i - 1, 0.97));
    SureEdge wrong = edge(5, 1, 0.999);  // surer than all others: half a turn off
    wrong.edge.transform = wrong.edge.transform * geometry::rotation_about({0.3, 0.2, 1}, M_PI);
    edges.push_back(wrong);
    PartMerger merger(scans);
    const ScanParts parts = merger.merge(edges, 0.05);
    for (int32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(parts.part[i], 0) << i;
        const RigidTransform off = geometry::inverse(room.between(i, 0)) * parts.poses[i];
        EXPECT_LT(geometry::rotation_angle(off), 1e-3) << i;
    }
    for (size_t e = 0; e < edges.size(); ++e) EXPECT_EQ(parts.agrees[e], e + 1 < edges.size()) << e;
}

TEST_F(PartsOfARoom, ADoubtfulEdgeWantsAnother) {
    // Of two edges that are each likelier right than wrong none joins scans by itself, both do.
    std::vector<SureEdge> edges = {edge(1, 0, 0.97), edge(2, 1, 0.8)};
    PartMerger merger(scans);
    EXPECT_EQ(merger.merge(edges, 0.05).part, (std::vector<int32_t>{0, 0, 2, 3, 4, 5, 6, 7}));
    edges.push_back(edge(2, 0, 0.8));
    EXPECT_EQ(merger.merge(edges, 0.05).part, (std::vector<int32_t>{0, 0, 0, 3, 4, 5, 6, 7}));
    edges[2].edge.transform.translation[2] += 1;  // that contradicts the first
    EXPECT_EQ(merger.merge(edges, 0.05).part, (std::vector<int32_t>{0, 0, 2, 3, 4, 5, 6, 7}));
}

/// A scene of four fragments in a row, and what a perfect registration finds.
class SceneOfFour : public testing::Test {
protected:
    SceneOfFour() {
        set.name = "small";
        for (int i = 1; i < 4; ++i) {
            study::PosePair pair;
            pair.scene = "row";
            pair.source = "cloud_bin_" + std::to_string(i);
            pair.target = "cloud_bin_" + std::to_string(i - 1);
            pair.truth = test::any_pose(static_cast<uint64_t>(i), 1);
            pair.overlap = i == 3 ? 0.2 : 0.5;
            set.pairs.push_back(pair);
        }
        for (int i = 0; i < 4; ++i) clouds.push_back(test::lumpy_body(300, static_cast<uint64_t>(i)));
        for (const PointCloud& cloud : clouds) fragments.push_back(&cloud);
    }
    study::PairSet set;
    std::vector<PointCloud> clouds;
    std::vector<const PointCloud*> fragments;
};

TEST_F(SceneOfFour, IsJudgedAfterTheBestMotion) {
    const std::vector<study::PoseScene> scenes = study::scenes_of({set});
    ASSERT_EQ(scenes.size(), 1u);
    const study::PoseScene& scene = scenes[0];
    ASSERT_EQ(scene.names, (std::vector<std::string>{"cloud_bin_0", "cloud_bin_1", "cloud_bin_2", "cloud_bin_3"}));
    EXPECT_LT(geometry::rotation_angle(geometry::inverse(set.pairs[0].truth) * scene.truth[1]), 1e-9);
    RegisteredScans found;
    for (const RigidTransform& pose : scene.truth) found.poses.push_back(test::any_pose(9, 5) * pose);
    found.is_placed = {1, 1, 1, 1};
    study::SceneScore score = study::score_scene(scene, fragments, found, {});
    EXPECT_EQ(score.counted, 3);  // the last one shares too little
    EXPECT_EQ(score.right, 3);
    EXPECT_LT(score.rms, 1e-6);
    found.poses[1] = found.poses[1] * geometry::rotation_about({0, 0, 1}, 0.2);
    score = study::score_scene(scene, fragments, found, {});
    EXPECT_EQ(score.right, 2);
    EXPECT_LT(score.degrees, 0.1);
    found.is_placed[2] = 0;
    EXPECT_EQ(study::score_scene(scene, fragments, found, {}).placed, 2);
    study::PairSet broken = set;
    broken.pairs.erase(broken.pairs.begin() + 1);
    EXPECT_TRUE(test::contains(test::message_of([&] { study::scenes_of({broken}); }), "do not connect"));
}

}  // namespace
}  // namespace stipple::tasks
