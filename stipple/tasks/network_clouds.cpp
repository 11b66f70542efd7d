#include "stipple/tasks/network_clouds.h"

#include <algorithm>
#include <cmath>

#include "stipple/core/number_text.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/metrics/normalise.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/random_sample.h"

namespace stipple::tasks {
namespace {

constexpr int64_t kSurfacePoints = 2048;  // of a mesh, when all points are wanted
constexpr const char* kChoiceWords[] = {"random", "fps", "first"};

}  // namespace

const Fields& cloud_fields() {
    static const Fields fields = {
        field<&CloudOptions::points>("points", "Points of a cloud that the network sees; 0: all")
            .between(0, int64_t{1} << 30),
        field<&CloudOptions::sample>("sample", "Which, when a cloud has more").words(kChoiceWords),
        field<&CloudOptions::normalise>("normalise", "Take coordinates as they are, not in the unit sphere")};
    return fields;
}

void require_valid(const CloudOptions& options) {
    check_fields(cloud_fields(), &options);
    const bool is_known =
        std::find(std::begin(kChoiceWords), std::end(kChoiceWords), options.sample) != std::end(kChoiceWords);
    STIPPLE_REQUIRE(is_known, "points are chosen by random, fps or first, not {}", options.sample);
}

PointCloud load_points(const data::CloudEntry& entry, const CloudOptions& options, const data::ReadClouds& how,
                       io::Warnings& warnings, const std::function<void(const Mesh&)>& look) {
    Mesh mesh = data::load_entry(entry, how, warnings);
    if (look) look(mesh);
    return points_of(std::move(mesh), options, entry.name(), warnings);
}

PointCloud points_of(Mesh mesh, const CloudOptions& options, const std::string& name, io::Warnings& warnings) {
    PointCloud all;
    if (mesh.faces() > 0 && options.sample_faces) {
        const int64_t n = options.points > 0 ? options.points : kSurfacePoints;
        try {
            all = geometry::cloud_of_samples(mesh, geometry::sample_surface(mesh, n, options.seed));
        } catch (const Error& error) {
            throw Error(ErrorCode::bad_file, Place{name}, error.message());
        }
    } else {
        all = std::move(mesh.vertices);
    }
    PointCloud cloud = drop_nonfinite(all);
    if (cloud.size() == 0) throw Error(ErrorCode::bad_file, Place{name}, "has no finite points");
    if (cloud.size() < all.size())
        warnings.push_back(fmt::format("{}: {} of {} points not finite, dropped", name,
                                       grouped(all.size() - cloud.size()), grouped(all.size())));
    return cloud;
}

Array<float, 2> network_points(const PointCloud& cloud, const CloudOptions& options, std::vector<int32_t>* chosen) {
    const metrics::Frame frame = options.normalise ? metrics::unit_sphere(cloud) : metrics::Frame{};
    Array<float, 2> points = metrics::in_frame(cloud, frame).rounded;
    const int64_t n = cloud.size(), wanted = options.points == 0 ? n : std::min(n, options.points);
    std::vector<int32_t> indices(static_cast<size_t>(wanted));
    for (int64_t i = 0; i < wanted; ++i) indices[i] = static_cast<int32_t>(i);
    if (wanted < n) {
        const View<int32_t, 1> view(indices.data(), {wanted});
        if (options.sample == "random")
            ops::random_sample(ops::Batch::single(n), ops::Batch::single(wanted), options.seed, view);
        if (options.sample == "fps") ops::farthest_point_sample(points.view(), ops::Batch::single(wanted), view);
        Array<float, 2> few({wanted, 3});
        for (int64_t i = 0; i < wanted; ++i)
            std::copy_n(points.data() + 3 * int64_t{indices[i]}, 3, few.data() + 3 * i);
        points = std::move(few);
    }
    if (chosen) *chosen = std::move(indices);
    return points;
}

void CloudBatch::add(const Array<float, 2>& points) {
    rows.insert(rows.end(), points.data(), points.data() + points.elements());
    offsets.push_back(offsets.back() + points.size(0));
}

void CloudBatch::clear() {
    rows.clear();
    offsets = {0};
}

Array<float, 2> CloudBatch::points_on(Device device, int64_t begin, int64_t end) const {
    const int64_t first = offsets[static_cast<size_t>(begin)], count = offsets[static_cast<size_t>(end)] - first;
    Array<float, 2> points({count, 3});
    std::copy_n(rows.data() + 3 * first, 3 * count, points.data());
    return device.type == DeviceType::cuda ? points.to(device) : std::move(points);
}

LoadedBatch load_batch(const std::vector<data::CloudEntry>& entries, int64_t count, const CloudOptions& options,
                       const data::ReadClouds& how, io::Warnings& warnings, const std::function<void()>& advance) {
    const auto all = static_cast<int64_t>(entries.size());
    count = std::min(count, all);
    LoadedBatch loaded;
    for (int64_t i = 0; i < count; ++i) {
        loaded.chosen.push_back(i * all / count);
        const data::CloudEntry& entry = entries[static_cast<size_t>(loaded.chosen.back())];
        loaded.clouds.add(network_points(load_points(entry, options, how, warnings), options));
        if (advance) advance();
    }
    return loaded;
}

CloudBatch synthetic_clouds(int64_t count, int64_t n, uint64_t seed) {
    CloudBatch batch;
    for (int64_t cloud = 0; cloud < count; ++cloud) {
        const Rng rng(seed, 0x53594E54ull << 32 ^ static_cast<uint64_t>(cloud));
        const float half[3] = {0.2f + 0.4f * rng.uniform(0), 0.2f + 0.4f * rng.uniform(1),
                               0.2f + 0.4f * rng.uniform(2)};
        const uint32_t shape = rng.below(3, 3);
        Array<float, 2> points({n, 3});
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t at = 16 + 8 * static_cast<uint64_t>(i);
            float p[3];
            for (int axis = 0; axis < 3; ++axis) p[axis] = 2 * rng.uniform(at + static_cast<uint64_t>(axis)) - 1;
            if (shape == 0) {  // an ellipsoid
                const float length = std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) + 1e-6f;
                for (float& x : p) x /= length;
            } else if (shape == 1) {  // a box: one coordinate goes to a face
                p[rng.below(at + 3, 3)] = rng.uniform(at + 4) < 0.5f ? -1.0f : 1.0f;
            } else {  // the mantle of a cylinder
                const float angle = 3.14159265f * p[0];
                p[0] = std::cos(angle);
                p[1] = std::sin(angle);
            }
            for (int axis = 0; axis < 3; ++axis) points.data()[3 * i + axis] = half[axis] * p[axis];
        }
        batch.add(points);
    }
    return batch;
}

}  // namespace stipple::tasks
