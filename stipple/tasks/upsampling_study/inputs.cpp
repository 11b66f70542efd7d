#include "stipple/tasks/upsampling_study/inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "stipple/core/folder.h"
#include "stipple/core/rng.h"
#include "stipple/data/cloud_list.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/metrics/normalise.h"
#include "stipple/tasks/sample.h"

namespace stipple::tasks::study {
namespace {

// Input, truth and floor are samples of their own, those of bench/upsampling/quality.sh.
constexpr uint64_t kInputSeed = 1000, kTruthSeed = 2000, kFloorSeed = 3000;
constexpr uint64_t kNoiseStream = 1, kDirectionStream = 2, kKeepStream = 3, kCentreStream = 4;
constexpr double kGradient = 8, kRegionShare = 0.2, kRegionDensity = 0.1;

PointCloud uniform_points(const Mesh& mesh, int64_t count, uint64_t seed) {
    PointCloud cloud = geometry::cloud_of_samples(mesh, geometry::sample_surface(mesh, count, seed));
    cloud.attributes.clear();
    return cloud;
}

/// Density of each sample, from above 0 to 1, along a random direction.
std::vector<double> gradient_densities(const PointCloud& samples, uint64_t seed) {
    const Rng random(seed, kDirectionStream);
    const double direction[3] = {random.normal(0), random.normal(1), random.normal(2)};
    std::vector<double> densities;
    for (int64_t i = 0; i < samples.size(); ++i) {
        const float* p = samples.positions.data() + 3 * i;
        densities.push_back(direction[0] * p[0] + direction[1] * p[1] + direction[2] * p[2]);
    }
    const auto [low, high] = std::minmax_element(densities.begin(), densities.end());
    const double from = *low, extent = std::max(*high - *low, 1e-300);
    for (double& density : densities) density = (1 + (kGradient - 1) * (density - from) / extent) / kGradient;
    return densities;
}

std::vector<double> region_densities(const PointCloud& samples, uint64_t seed) {
    const auto n = static_cast<uint32_t>(samples.size());
    const float* centre = samples.positions.data() + 3 * int64_t{Rng(seed, kCentreStream).below(0, n)};
    std::vector<double> distances;
    for (int64_t i = 0; i < samples.size(); ++i) {
        const float* p = samples.positions.data() + 3 * i;
        distances.push_back(std::hypot(p[0] - centre[0], p[1] - centre[1], p[2] - centre[2]));
    }
    std::vector<double> sorted = distances;
    const auto border = sorted.begin() + static_cast<int64_t>(kRegionShare * n);
    std::nth_element(sorted.begin(), border, sorted.end());
    const double radius = *border;
    for (double& distance : distances) distance = distance < radius ? kRegionDensity : 1;
    return distances;
}

/// The first `count` samples that are kept, each with the probability of its density.
PointCloud thinned(const PointCloud& samples, const std::vector<double>& densities, int64_t count, uint64_t seed) {
    const Rng random(seed, kKeepStream);
    std::vector<int32_t> kept;
    for (int64_t i = 0; i < samples.size() && static_cast<int64_t>(kept.size()) < count; ++i)
        if (random.uniform(static_cast<uint64_t>(i)) < densities[static_cast<size_t>(i)])
            kept.push_back(static_cast<int32_t>(i));
    STIPPLE_ASSERT(static_cast<int64_t>(kept.size()) == count);  // 16 for each, of which an eighth stays at least
    return select(samples, View<const int32_t, 1>(kept.data(), {count}));
}

void add_noise(PointCloud& cloud, double percent, uint64_t seed) {
    if (percent == 0) return;
    const double deviation = percent / 100 * metrics::unit_sphere(cloud).scale;
    const Rng random(seed, kNoiseStream);
    for (int64_t i = 0; i < 3 * cloud.size(); ++i) {
        float& x = cloud.positions.data()[i];
        x = static_cast<float>(x + deviation * random.normal(static_cast<uint64_t>(i)));
    }
}

const PointCloud& require_given(const PointCloud* given, const Condition& condition) {
    STIPPLE_REQUIRE(given, "input {} needs a truth that comes with the shapes, in gt_8192", condition.title);
    return *given;
}

PointCloud noiseless_input(const Mesh& mesh, const PointCloud* given, const Condition& condition, uint64_t seed) {
    const int64_t count = condition.points;
    if (condition.draw == Draw::even) return even_points(mesh, count, kInputSeed + seed);
    if (condition.draw == Draw::given) {
        const PointCloud& all = require_given(given, condition);
        STIPPLE_REQUIRE(count <= all.size(), "{} points of a truth of {}", count, all.size());
        return sample_cloud(all, {.method = SampleMethod::random, .count = count, .seed = seed}, {});
    }
    if (condition.draw == Draw::random) return uniform_points(mesh, count, kInputSeed + seed);
    const PointCloud samples = uniform_points(mesh, std::max<int64_t>(40000, 16 * count), kInputSeed + seed);
    return thinned(
        samples, condition.draw == Draw::gradient ? gradient_densities(samples, seed) : region_densities(samples, seed),
        count, seed);
}

/// Paths of the clouds of a folder by their names without extension.
std::map<std::string, std::string> files_by_name(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const data::CloudEntry& entry : data::list_clouds({folder})) {
        const auto [before, is_new] = files.emplace(stem_of(entry.path), entry.path);
        STIPPLE_REQUIRE(is_new, "{} and {} would be one shape", before->second, entry.path);
    }
    return files;
}

}  // namespace

int64_t Condition::wanted() const {
    return std::llround(ratio * static_cast<double>(points));
}

std::vector<Shape> list_shapes(const std::string& folder, int64_t count) {
    if (!is_folder(folder)) throw Error(ErrorCode::bad_file, Place{folder}, "there is no such folder");
    const std::string meshes = folder + "/meshes", truths = folder + "/gt_8192";
    std::map<std::string, std::string> given;
    if (is_folder(truths)) given = files_by_name(truths);
    std::vector<Shape> shapes;
    for (const auto& [name, path] : files_by_name(is_folder(meshes) ? meshes : folder)) {
        if (count > 0 && static_cast<int64_t>(shapes.size()) == count) break;
        const auto truth = given.find(name);
        shapes.push_back({name, path, truth == given.end() ? "" : truth->second});
    }
    return shapes;
}

PointCloud even_points(const Mesh& mesh, int64_t count, uint64_t seed) {
    STIPPLE_REQUIRE(count >= 1, "{} points of a surface", count);
    const int64_t samples = count <= 8192 ? 40000 : 160000 * ((count + 32767) / 32768);
    return sample_cloud(uniform_points(mesh, samples, seed), {.method = SampleMethod::fps, .count = count}, {});
}

PointCloud draw_input(const Mesh& mesh, const PointCloud* given, const Condition& condition, uint64_t seed) {
    STIPPLE_REQUIRE(condition.points >= 1, "{} points of a surface", condition.points);
    PointCloud cloud = noiseless_input(mesh, given, condition, seed);
    add_noise(cloud, condition.noise, seed);
    return cloud;
}

PointCloud draw_truth(const Mesh& mesh, const PointCloud* given, const Condition& condition, uint64_t seed) {
    if (condition.given_truth) return require_given(given, condition).clone();
    return even_points(mesh, condition.wanted(), kTruthSeed + seed);
}

PointCloud draw_floor(const Mesh& mesh, const Condition& condition, uint64_t seed) {
    return even_points(mesh, condition.wanted(), kFloorSeed + seed);
}

std::string fingerprint(const PointCloud& cloud) {
    uint64_t hash = 0xcbf29ce484222325u;
    const auto* bytes = reinterpret_cast<const unsigned char*>(cloud.positions.data());
    for (int64_t i = 0; i < 12 * cloud.size(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return fmt::format("{:016x}", hash);
}

}  // namespace stipple::tasks::study
