#include "stipple/cli/network_clouds.h"

#include <algorithm>
#include <cmath>

#include "stipple/cli/files.h"
#include "stipple/core/folder.h"
#include "stipple/core/rng.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/io/text.h"
#include "stipple/metrics/normalise.h"
#include "stipple/ops/farthest_point_sample.h"
#include "stipple/ops/random_sample.h"

namespace stipple::cli {
namespace {

constexpr int64_t kSurfacePoints = 2048;  // of a mesh, when all points are wanted

bool is_known(const std::string& path, io::Format& format) {
    try {
        format = io::format_by_extension(path);
        return true;
    } catch (const Error&) {
        return false;
    }
}

void add_file(const std::string& path, std::vector<CloudEntry>& entries) {
    io::Format format{};
    if (!is_known(path, format) || format != io::Format::hdf5) {
        entries.push_back({path});
        return;
    }
    try {
        auto set = std::make_shared<const io::CloudSet>(io::load_hdf5(path));
        for (int64_t i = 0; i < set->size(); ++i) entries.push_back({path, i, set});
    } catch (const Error& error) {
        entries.push_back({path, -1, {}, error});
    }
}

PointCloud cloud_of_set(const io::CloudSet& set, int64_t item) {
    const int64_t n = set.points.size(1);
    PointCloud cloud(n);
    std::copy_n(set.points.data() + 3 * n * item, 3 * n, cloud.positions.data());
    return cloud;
}

}  // namespace

std::vector<CloudEntry> list_clouds(const std::vector<std::string>& inputs) {
    std::vector<CloudEntry> entries;
    for (const std::string& input : inputs) {
        if (!is_folder(input)) {
            add_file(input, entries);
            continue;
        }
        const size_t before = entries.size();
        io::Format format{};
        for (const std::string& name : list_folder(input)) {
            const std::string path = input + (input.back() == '/' ? "" : "/") + name;
            if (name[0] != '.' && is_known(path, format) && !is_folder(path)) add_file(path, entries);
        }
        STIPPLE_REQUIRE(entries.size() > before, "{}: a folder without clouds", input);
    }
    return entries;
}

void add_cloud_options(Arguments& app, CloudOptions& options) {
    app.option("--points", options.points, "Points of a cloud that the network sees; 0: all")
        .from_zero()
        .show_default();
    app.option("--sample", options.sample, "Which, when a cloud has more")
        .one_of({"random", "fps", "first"})
        .show_default()
        .text("random|fps|first");
    app.flag("!--no-normalise", options.normalise, "Take coordinates as they are, not in the unit sphere");
    app.option("--from", options.from, "Format of the input, when its name and content do not tell");
}

void require_sense(const CloudOptions& options) {
    STIPPLE_REQUIRE(options.points <= int64_t{1} << 30, "--points {} is too many", options.points);
    if (!options.from.empty()) io::format_by_name(options.from);
}

PointCloud load_entry(const CloudEntry& entry, const CloudOptions& options, const Common& common,
                      io::Warnings& warnings) {
    if (entry.error) throw *entry.error;
    PointCloud all;
    if (entry.set) {
        all = cloud_of_set(*entry.set, entry.item);
    } else {
        Mesh mesh = load_with_progress(entry.path, options.from, -1, common, warnings);
        if (mesh.faces() > 0 && options.sample_faces) {
            const int64_t n = options.points > 0 ? options.points : kSurfacePoints;
            try {
                all = geometry::cloud_of_samples(mesh, geometry::sample_surface(mesh, n, common.seed));
            } catch (const Error& error) {
                throw Error(ErrorCode::bad_file, Place{entry.path}, error.message());
            }
        } else {
            all = std::move(mesh.vertices);
        }
    }
    PointCloud cloud = drop_nonfinite(all);
    if (cloud.size() == 0) throw Error(ErrorCode::bad_file, Place{entry.name()}, "has no finite points");
    if (cloud.size() < all.size())
        warnings.push_back(fmt::format("{}: {} of {} points not finite, dropped", entry.name(),
                                       grouped(all.size() - cloud.size()), grouped(all.size())));
    return cloud;
}

Array<float, 2> network_points(const PointCloud& cloud, const CloudOptions& options, uint64_t seed,
                               std::vector<int32_t>* chosen) {
    const metrics::Frame frame = options.normalise ? metrics::unit_sphere(cloud) : metrics::Frame{};
    Array<float, 2> points = metrics::in_frame(cloud, frame).rounded;
    const int64_t n = cloud.size(), wanted = options.points == 0 ? n : std::min(n, options.points);
    std::vector<int32_t> indices(static_cast<size_t>(wanted));
    for (int64_t i = 0; i < wanted; ++i) indices[i] = static_cast<int32_t>(i);
    if (wanted < n) {
        const View<int32_t, 1> view(indices.data(), {wanted});
        if (options.sample == "random")
            ops::random_sample(ops::Batch::single(n), ops::Batch::single(wanted), seed, view);
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

CloudBatch load_batch(const std::vector<CloudEntry>& entries, int64_t count, const CloudOptions& options,
                      const Common& common, io::Warnings& warnings) {
    const auto all = static_cast<int64_t>(entries.size());
    count = std::min(count, all);
    CloudBatch batch;
    Progress progress("reading clouds", count, progress_mode(common), "clouds");
    for (int64_t i = 0; i < count; ++i) {
        const CloudEntry& entry = entries[static_cast<size_t>(i * all / count)];
        batch.add(network_points(load_entry(entry, options, common, warnings), options, common.seed));
        progress.add();
    }
    return batch;
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

}  // namespace stipple::cli
