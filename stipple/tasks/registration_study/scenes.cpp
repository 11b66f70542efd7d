#include "stipple/tasks/registration_study/scenes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "stipple/core/error.h"
#include "stipple/tasks/registration_study/trials.h"

namespace stipple::tasks::study {
namespace {

using geometry::RigidTransform;
using geometry::Vector3;

/// Some of a fragment's points, enough to tell how far it is off.
std::vector<Vector3> some_points(const PointCloud& cloud) {
    constexpr int64_t kSome = 500;
    std::vector<Vector3> points;
    const int64_t stride = std::max<int64_t>(1, cloud.size() / kSome);
    for (int64_t i = 0; i < cloud.size(); i += stride) {
        const Vector3 p = {cloud.world(i, 0), cloud.world(i, 1), cloud.world(i, 2)};
        if (std::isfinite(p[0] + p[1] + p[2])) points.push_back(p);
    }
    return points;
}

double rms_between(const std::vector<Vector3>& points, const RigidTransform& a, const RigidTransform& b) {
    double sum = 0;
    for (const Vector3& p : points) sum += std::pow(distance_between(a(p), b(p)), 2);
    return points.empty() ? 0 : std::sqrt(sum / static_cast<double>(points.size()));
}

/// The motion after `found` that fits `truth` best, by the fragments that count.
RigidTransform alignment(const std::vector<std::vector<Vector3>>& points, const std::vector<RigidTransform>& found,
                         const std::vector<RigidTransform>& truth, const std::vector<uint8_t>& counts) {
    geometry::RigidMoments moments;
    for (size_t i = 0; i < points.size(); ++i)
        for (const Vector3& p : points[i])
            if (counts[i]) moments.add(found[i](p), truth[i](p), 1 / static_cast<double>(points[i].size()));
    return geometry::best_fit(moments);
}

/// True poses along the pairs that overlap most.
void connect(PoseScene& scene) {
    const size_t n = scene.names.size();
    std::map<std::string, size_t> place;
    for (size_t i = 0; i < n; ++i) place[scene.names[i]] = i;
    std::vector<size_t> order(scene.pairs.size()), part(n);
    std::iota(order.begin(), order.end(), 0);
    std::iota(part.begin(), part.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return scene.pairs[a].overlap > scene.pairs[b].overlap; });
    scene.truth.assign(n, {});
    scene.overlap.assign(n, 0);
    for (const size_t each : order) {
        const PosePair& pair = scene.pairs[each];
        const size_t from = place[pair.source], to = place[pair.target], moved = part[from], kept = part[to];
        for (const size_t end : {from, to}) scene.overlap[end] = std::max(scene.overlap[end], pair.overlap);
        if (moved == kept) continue;
        const RigidTransform shift = scene.truth[to] * pair.truth * geometry::inverse(scene.truth[from]);
        for (size_t i = 0; i < n; ++i) {
            if (part[i] != moved) continue;
            scene.truth[i] = shift * scene.truth[i];
            part[i] = kept;
        }
    }
    STIPPLE_REQUIRE(std::count(part.begin(), part.end(), part[0]) == static_cast<int64_t>(n),
                    "scene {}: its pairs do not connect all fragments", scene.name);
    const RigidTransform back = geometry::inverse(scene.truth[0]);
    for (RigidTransform& pose : scene.truth) pose = back * pose;
}

}  // namespace

std::vector<PoseScene> scenes_of(const std::vector<PairSet>& sets) {
    std::vector<PoseScene> scenes;
    for (const PairSet& set : sets)
        for (const PosePair& pair : set.pairs) {
            if (pair.is_files) continue;
            auto scene =
                std::find_if(scenes.begin(), scenes.end(), [&](const PoseScene& s) { return s.name == pair.scene; });
            if (scene == scenes.end()) {
                scenes.emplace_back();
                scene = scenes.end() - 1;
                scene->name = pair.scene;
                scene->set = &set;
            }
            scene->pairs.push_back(pair);
            for (const std::string& name : {pair.source, pair.target})
                if (std::find(scene->names.begin(), scene->names.end(), name) == scene->names.end())
                    scene->names.push_back(name);
        }
    for (PoseScene& scene : scenes) {
        // cloud_bin_2 before cloud_bin_10
        std::sort(scene.names.begin(), scene.names.end(), [](const std::string& a, const std::string& b) {
            return a.size() != b.size() ? a.size() < b.size() : a < b;
        });
        connect(scene);
    }
    return scenes;
}

SceneScore score_scene(const PoseScene& scene, const std::vector<const PointCloud*>& fragments,
                       const RegisteredScans& found, const SceneRules& rules) {
    const size_t n = scene.names.size();
    STIPPLE_REQUIRE(fragments.size() == n && found.poses.size() == n, "score_scene: {} fragments, {} poses of {}",
                    fragments.size(), found.poses.size(), n);
    std::vector<std::vector<Vector3>> points;
    for (const PointCloud* fragment : fragments) points.push_back(some_points(*fragment));
    std::vector<uint8_t> counts = found.is_placed;
    RigidTransform align = alignment(points, found.poses, scene.truth, counts);
    for (int round = 0; round < 10; ++round) {
        std::vector<uint8_t> near(n, 0);
        for (size_t i = 0; i < n; ++i)
            near[i] = found.is_placed[i] &&
                      rms_between(points[i], align * found.poses[i], scene.truth[i]) < rules.distance * (10 - round);
        if (2 * std::count(near.begin(), near.end(), 1) < std::count(counts.begin(), counts.end(), 1)) break;
        align = alignment(points, found.poses, scene.truth, near);
    }
    SceneScore score;
    std::vector<double> degrees, distances;
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
        ++score.fragments;
        const bool is_counted = scene.overlap[i] >= rules.overlap;
        score.counted += is_counted;
        if (!found.is_placed[i]) continue;
        const RigidTransform pose = align * found.poses[i];
        const double turn = geometry::rotation_angle(geometry::inverse(scene.truth[i]) * pose) * 180 / M_PI,
                     shift = distance_between(pose.translation, scene.truth[i].translation),
                     rms = rms_between(points[i], pose, scene.truth[i]);
        degrees.push_back(turn);
        distances.push_back(shift);
        sum += rms * rms;
        score.worst = std::max(score.worst, rms);
        score.placed += is_counted;
        score.right += is_counted && turn <= rules.degrees && shift <= rules.distance;
    }
    score.degrees = median_of(degrees);
    score.distance = median_of(distances);
    score.rms = degrees.empty() ? NAN : std::sqrt(sum / static_cast<double>(degrees.size()));
    for (const ScanPair& pair : found.pairs) {
        if (!pair.is_edge) continue;
        const RigidTransform off =
            geometry::inverse(geometry::inverse(scene.truth[pair.target]) * scene.truth[pair.source]) *
            pair.registration.found.transform;
        const bool is_wrong = geometry::rotation_angle(off) * 180 / M_PI > 15 ||
                              std::hypot(off.translation[0], off.translation[1], off.translation[2]) > 0.3;
        ++(pair.is_dropped ? score.dropped : score.edges);
        (pair.is_dropped ? score.wrong_dropped : score.wrong_edges) += is_wrong;
    }
    return score;
}

}  // namespace stipple::tasks::study
