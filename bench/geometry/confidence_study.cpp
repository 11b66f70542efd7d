// confidence_study DATA [CASES] [FIRST] [--held-out] [--save FOLDER]: what tells right poses from wrong ones, on
// simulated scans of known poses.
//
// Each twelve cases are five pairs of depth images of one mesh of DATA/upsample_train_meshes, 20 to 120 degrees apart,
// one of different meshes, one of a symmetric body, four of fragments of a furnished room (three 15 to 25 degrees and
// 0.3 to 0.7 m apart, one 30 to 60 degrees and up to 1.2 m) and one of different rooms. Each is registered by a search,
// by ICP from a start up to 30 degrees off the truth, and by ICP from a random turn; CSV of the evidence, for
// confidence_fit.py. --held-out: with every tenth mesh, which the others do not use, and other seeds. --save: instead
// writes the pairs of fragments that overlap by 30 % or more as N_a.ply, N_b.ply and N.txt, for global_peers.py.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "stipple/core/rng.h"
#include "stipple/geometry/closest_point.h"
#include "stipple/geometry/primitives.h"
#include "stipple/io/format.h"
#include "stipple/io/text.h"
#include "stipple/tasks/registration_study/trials.h"
#include "tests/geometry/registration/shapes.h"
#include "tests/geometry/simulated_scans.h"

namespace stipple {
namespace {

using Clock = std::chrono::steady_clock;
using geometry::RigidTransform;
using test::SimulatedPair;

/// Meshes to choose constants on; every tenth is held out.
std::vector<Mesh> load_meshes(const std::string& data, bool held_out) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(data + "/upsample_train_meshes"))
        if (entry.path().extension() == ".ply") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<Mesh> meshes;
    for (size_t i = 0; i < paths.size(); ++i)
        if ((i % 10 == 9) == held_out) {
            io::Warnings warnings;
            meshes.push_back(io::load_mesh(paths[i], {}, warnings));
        }
    return meshes;
}

Mesh symmetric_body(int kind, const Rng& rng) {
    const double a = 0.3 + 0.6 * rng.uniform(90), b = 0.3 + 0.6 * rng.uniform(91);
    switch (kind % 5) {
        case 0: return geometry::sphere_mesh(0.9, 4);
        case 1: return geometry::cube_mesh(1, 2 * a, 2 * b);
        case 2: return geometry::cylinder_mesh(0.8 * a, 1.5);
        case 3: return geometry::cone_mesh(a, 1.5);
        default: return geometry::torus_mesh(0.7, 0.3 * a);
    }
}

/// Of a pair, and the mesh that both scans see; nothing for rooms.
struct Case {
    SimulatedPair pair;
    Mesh body;
};

/// Whether 95 % of the points lie within 3 % of the radius of the body's surface.
bool lies_on(const PointCloud& points, const RigidTransform& to_body, const geometry::MeshIndex& body, double radius) {
    const PointCloud moved = geometry::transformed(points, to_body);
    const int64_t n = moved.size();
    Array<float, 2> places({n, 3});
    for (int64_t i = 0; i < 3 * n; ++i)
        places.data()[i] = static_cast<float>(moved.world(i / 3, static_cast<int>(i % 3)));
    Array<float, 1> distances({n});
    geometry::closest_point(body, places.view(), {distances.view(), {}, {}, {}});
    const auto near = std::count_if(distances.data(), distances.data() + n,
                                    [&](float distance) { return distance <= 0.03 * radius; });
    return near >= 0.95 * static_cast<double>(n);
}

/// Whether all that was seen lies on the body in this pose too: then nothing in the scans tells it from the true one.
bool is_symmetry(const Case& one, const RigidTransform& pose) {
    if (one.body.faces() == 0) return false;
    const geometry::MeshIndex body(one.body);
    const double radius = geometry::rms_radius(one.pair.source);
    const RigidTransform to_body = geometry::inverse(one.pair.world);
    return lies_on(one.pair.source, to_body * pose, body, radius) &&
           lies_on(one.pair.target, to_body * one.pair.truth * geometry::inverse(pose), body, radius);
}

Case make_case(const std::vector<Mesh>& meshes, uint64_t number) {
    const Rng rng(number, 40);
    const auto any_mesh = [&](uint64_t at) -> const Mesh& {
        return meshes[rng.below(at, static_cast<uint32_t>(meshes.size()))];
    };
    const auto between = [&](uint64_t at, double low, double high) { return low + (high - low) * rng.uniform(at); };
    const int kind = static_cast<int>(number % 12);
    if (kind < 5) {
        const Mesh& mesh = any_mesh(0);
        SimulatedPair pair =
            test::view_pair(mesh, mesh, true, kind < 3 ? between(1, 20, 60) : between(1, 60, 120), number);
        pair.kind = "views";
        return {std::move(pair), mesh.clone()};
    }
    if (kind == 5) {
        SimulatedPair pair = test::view_pair(any_mesh(0), any_mesh(1), false, between(2, 20, 60), number);
        pair.kind = "different";
        return {std::move(pair), {}};
    }
    if (kind == 6) {
        Mesh body = symmetric_body(static_cast<int>(number / 12), rng);
        SimulatedPair pair = test::view_pair(body, body, true, between(2, 20, 60), number);
        pair.kind = "symmetric";
        return {std::move(pair), std::move(body)};
    }
    std::vector<Mesh> things;
    for (uint64_t i = 0; i < 14; ++i) things.push_back(any_mesh(10 + i).clone());
    const Mesh room = test::furnished_room(things, number);
    const int frames = number / 12 % 2 ? 4 : 1;
    const bool any_pose = number / 24 % 2;
    SimulatedPair pair;
    if (kind == 11) {
        pair = test::room_pair(room, test::furnished_room(things, number + 1000000), false, frames, between(1, 15, 40),
                               between(2, 0.3, 0.7), any_pose, number);
        pair.kind = "other room";
    } else {
        pair = test::room_pair(room, room, true, frames, kind < 10 ? between(1, 15, 25) : between(1, 30, 60),
                               kind < 10 ? between(2, 0.3, 0.7) : between(2, 0.5, 1.2), any_pose, number);
        pair.kind = "room";
    }
    return {std::move(pair), {}};
}

/// From the truth, turned and moved by a little.
RigidTransform near_start(const SimulatedPair& pair, uint64_t seed) {
    const Rng rng(seed, 41);
    const double radius = geometry::rms_radius(pair.source);
    geometry::Vector3 axis;
    for (int i = 0; i < 3; ++i) axis[i] = rng.normal(static_cast<uint64_t>(i));
    const Bounds bounds = bounds_of(pair.target);
    geometry::Vector3 middle = {};
    for (int i = 0; i < 3; ++i) middle[i] = (bounds.min[i] + bounds.max[i]) / 2;
    RigidTransform off = geometry::rotation_about(axis, 30 * rng.uniform(11) * M_PI / 180, middle);
    for (int i = 0; i < 3; ++i) off.translation[i] += 0.15 * radius * rng.normal(20 + static_cast<uint64_t>(i));
    return off * pair.truth;
}

void save_fragments(const std::string& data, int64_t cases, int64_t first, bool held_out, const std::string& folder) {
    const std::vector<Mesh> meshes = load_meshes(data, held_out);
    std::filesystem::create_directories(folder);
    for (int64_t i = first; i < first + cases; ++i) {
        const SimulatedPair pair = make_case(meshes, static_cast<uint64_t>(i + (held_out ? 1000000 : 0))).pair;
        if (pair.kind != "room" || pair.overlap < 0.3) continue;
        const std::string stem = fmt::format("{}/{}", folder, i);
        const auto save = [&](const PointCloud& cloud, const std::string& path) {
            Mesh mesh;
            mesh.vertices = cloud.clone();
            mesh.triangles = Array<int32_t, 2>({0, 3});
            io::Warnings warnings;
            io::save(path, mesh, Overwrite::allow, {}, warnings);
        };
        save(pair.source, stem + "_a.ply");
        save(pair.target, stem + "_b.ply");
        const std::string text = geometry::to_text(pair.truth);
        std::FILE* file = std::fopen((stem + ".txt").c_str(), "w");
        if (!file) throw Error(ErrorCode::cannot_write, Place{stem + ".txt"}, "cannot be written");
        std::fputs(text.c_str(), file);
        std::fclose(file);
    }
}

constexpr const char* kMethods[] = {"global", "icp", "icp-random"};

/// "1" within 2 degrees and 3 % of the source's RMS radius, or where all that both scans saw lies on the body in this
/// pose too; "" within 5 degrees and 10 %, which is neither; else "0".
const char* label_of(bool is_related, bool is_same, double degrees, double rms) {
    if (!is_related) return "0";
    if (is_same || (degrees <= 2 && rms <= 0.03)) return "1";
    return degrees <= 5 && rms <= 0.1 ? "" : "0";
}

void study(const std::string& data, int64_t cases, int64_t first, bool held_out) {
    const std::vector<Mesh> meshes = load_meshes(data, held_out);
    fmt::print("case,scene,related,given_overlap,method,degrees,rms,right,verdict");
    for (const char* column : tasks::study::kEvidenceColumns) fmt::print(",{}", column);
    fmt::print(",seconds\n");
    for (int64_t i = first; i < first + cases; ++i) {
        const auto number = static_cast<uint64_t>(i + (held_out ? 1000000 : 0));
        const Case one = make_case(meshes, number);
        const SimulatedPair& pair = one.pair;
        if (pair.source.size() < 500 || pair.target.size() < 500) continue;
        const double radius = geometry::rms_radius(pair.source);
        for (const int method : {0, 1, 2}) {
            tasks::RegisterOptions options;
            options.method = method == 0 ? tasks::RegisterMethod::global : tasks::RegisterMethod::icp;
            if (method == 1) options.initial = near_start(pair, number);
            if (method == 2) {
                const Bounds a = bounds_of(pair.source), b = bounds_of(pair.target);
                geometry::Vector3 from = {}, to = {};
                for (int k = 0; k < 3; ++k) {
                    from[k] = (a.min[k] + a.max[k]) / 2;
                    to[k] = (b.min[k] + b.max[k]) / 2;
                }
                const Rng rng(number, 42);
                options.initial =
                    geometry::from_quaternion({rng.normal(0), rng.normal(1), rng.normal(2), rng.normal(3)});
                const geometry::Vector3 turned = (*options.initial)(from);
                for (int k = 0; k < 3; ++k) options.initial->translation[k] = to[k] - turned[k];
            }
            const auto begin = Clock::now();
            const tasks::Registration found = tasks::register_clouds(pair.source, pair.target, options);
            const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
            const tasks::PoseError error = tasks::pose_error(found.found.transform, pair.truth, pair.source);
            const bool is_same = pair.is_related && is_symmetry(one, found.found.transform);
            fmt::print("{},{},{},{:.3f},{},{:.3f},{:.4f},{},{}", i, pair.kind, int{pair.is_related}, pair.overlap,
                       kMethods[method], error.degrees, error.rms / radius,
                       label_of(pair.is_related, is_same, error.degrees, error.rms / radius),
                       geometry::to_string(found.verdict.state));
            for (const double value : tasks::study::evidence_columns_of(found)) fmt::print(",{:.6g}", value);
            fmt::print(",{:.2f}\n", seconds);
            std::fflush(stdout);
        }
    }
}

}  // namespace
}  // namespace stipple

int main(int argc, char** argv) {
    int64_t cases = 240, first = 0;
    std::string folder;
    bool held_out = false, is_good = true;
    std::vector<std::string> words;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--held-out")
            held_out = true;
        else if (word == "--save" && i + 1 < argc)
            folder = argv[++i];
        else
            words.emplace_back(word);
    }
    if (words.size() > 1) is_good &= stipple::io::parse_number(words[1], cases);
    if (words.size() > 2) is_good &= stipple::io::parse_number(words[2], first);
    if (words.empty() || words.size() > 3 || !is_good) {
        std::fputs("usage: confidence_study DATA [CASES] [FIRST] [--held-out] [--save FOLDER]\n", stderr);
        return 2;
    }
    try {
        if (folder.empty())
            stipple::study(words[0], cases, first, held_out);
        else
            stipple::save_fragments(words[0], cases, first, held_out, folder);
    } catch (const stipple::Error& error) {
        fmt::print(stderr, "confidence_study: {}\n", error.what());
        return 1;
    }
}
