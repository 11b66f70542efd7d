// Meshes to cut patches from: read, moved to a common size, sampled.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/dedupe.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/io/format.h"
#include "stipple/io/text.h"
#include "stipple/learn/upsampling/scan_surface.h"
#include "stipple/learn/upsampling/surface_patches.h"
#include "stipple/learn/upsampling/virtual_scan.h"
#include "stipple/ops/farthest_point_sample.h"

namespace stipple::learn {
namespace {

constexpr const char* kManifest = "manifest.tsv";
constexpr uint64_t kPoolStream = uint64_t{0x504F4F4C} << 32;
constexpr uint64_t kScanStream = uint64_t{0x5343414E} << 32;
constexpr uint64_t kRegionStream = uint64_t{0x52454749} << 32;
constexpr int64_t kMostRegions = 16;  // of one scan, however large

/// The box of the faces to the middle, the farthest corner to distance 1. Vertices that no face has go to 0. Returns
/// what was subtracted, then what was multiplied by.
std::pair<Vec3d, double> to_unit_size(Mesh& mesh) {
    const int64_t corners = 3 * mesh.faces();
    float* positions = mesh.vertices.positions.data();
    std::vector<char> is_used(static_cast<size_t>(mesh.vertices.size()));
    Vec3d low = {INFINITY, INFINITY, INFINITY}, high = -low;
    for (int64_t i = 0; i < corners; ++i) {
        const int32_t vertex = mesh.triangles.data()[i];
        is_used[static_cast<size_t>(vertex)] = 1;
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min<double>(low[axis], positions[3 * vertex + axis]);
            high[axis] = std::max<double>(high[axis], positions[3 * vertex + axis]);
        }
    }
    const Vec3d middle = 0.5 * (low + high);
    const auto offset = [&](int64_t vertex) {
        return Vec3d{positions[3 * vertex], positions[3 * vertex + 1], positions[3 * vertex + 2]} - middle;
    };
    double radius = 0;
    for (int64_t i = 0; i < mesh.vertices.size(); ++i)
        if (is_used[static_cast<size_t>(i)]) radius = std::max(radius, length(offset(i)));
    STIPPLE_REQUIRE(radius > 0 && std::isfinite(radius), "a mesh of radius {}", radius);
    for (int64_t i = 0; i < mesh.vertices.size(); ++i) {
        const Vec3d moved = is_used[static_cast<size_t>(i)] ? (1 / radius) * offset(i) : Vec3d{};
        for (int axis = 0; axis < 3; ++axis) positions[3 * i + axis] = static_cast<float>(moved[axis]);
    }
    return {middle, 1 / radius};
}

double area_of(const Mesh& mesh) {
    double area = 0;
    const auto corner = [&](int64_t i) {
        const float* row = mesh.vertices.positions.data() + 3 * int64_t{mesh.triangles.data()[i]};
        return Vec3d{row[0], row[1], row[2]};
    };
    for (int64_t face = 0; face < mesh.faces(); ++face) {
        const Vec3d a = corner(3 * face);
        area += 0.5 * length(cross(corner(3 * face + 1) - a, corner(3 * face + 2) - a));
    }
    return area;
}

/// The first half of the points in farthest point order, then the rest as stored.
std::vector<int32_t> order_of(const Array<float, 2>& points) {
    const int64_t samples = points.size(0), ordered = (samples + 1) / 2;
    std::vector<int32_t> order(static_cast<size_t>(ordered));
    ops::farthest_point_sample(points.view(), ops::Batch::single(ordered), {order.data(), {ordered}});
    std::vector<char> is_ordered(static_cast<size_t>(samples));
    for (const int32_t sample : order) is_ordered[static_cast<size_t>(sample)] = 1;
    for (int64_t i = 0; i < samples; ++i)
        if (!is_ordered[static_cast<size_t>(i)]) order.push_back(static_cast<int32_t>(i));
    return order;
}

uint64_t seed_of(const Rng& rng) {
    const RandomBlock block = rng.block(0);
    return uint64_t{block.word[1]} << 32 | block.word[0];
}

SurfaceShape mesh_shape(Mesh mesh, std::string name, const SurfaceOptions& options, int64_t item) {
    SurfaceShape shape;
    shape.name = std::move(name);
    shape.mesh = std::move(mesh);
    to_unit_size(shape.mesh);
    shape.area = area_of(shape.mesh);
    for (int64_t p = 0; p < options.pools; ++p) {
        const Rng rng(options.seed, kPoolStream | static_cast<uint64_t>(64 * item + p));
        SurfacePool& pool = shape.pools.emplace_back();
        pool.points = geometry::sample_surface(shape.mesh, options.samples, seed_of(rng)).points;
        pool.order = order_of(pool.points);
    }
    return shape;
}

/// A virtual scan of a mesh of unit size; without a surface where next to nothing of it was seen.
SurfaceShape virtual_scan_shape(const Mesh& mesh, std::string name, const SurfaceOptions& options, const Rng& rng) {
    constexpr double kLeastArea = 0.05;
    SurfaceShape shape;
    shape.name = std::move(name);
    VirtualScan scan = scan_virtually(mesh, rng);
    shape.mesh = std::move(scan.surface);
    if (shape.mesh.faces() == 0 || area_of(shape.mesh) < kLeastArea) return {};
    const auto [middle, scale] = to_unit_size(shape.mesh);
    const auto moved = [&](Vec3d at) { return scale * (at - middle); };
    for (int64_t i = 0; i < scan.scene.vertices.size(); ++i) {
        float* at = scan.scene.vertices.positions.data() + 3 * i;
        const Vec3d to = moved({at[0], at[1], at[2]});
        for (int axis = 0; axis < 3; ++axis) at[axis] = static_cast<float>(to[axis]);
    }
    for (Vec3d& place : scan.places) place = moved(place);
    scan.surface = std::move(shape.mesh);
    shape.area = area_of(scan.surface);
    for (int64_t p = 0; p < options.pools; ++p) {
        const Rng of_pool(seed_of(rng), static_cast<uint64_t>(p));
        SurfacePool& pool = shape.pools.emplace_back();
        geometry::SurfaceSamples samples = geometry::sample_surface(scan.surface, options.samples, seed_of(of_pool));
        ScanErrors errors = scan_errors(scan, samples.points.view(), samples.faces.view(), of_pool);
        pool.points = std::move(samples.points);
        pool.order = order_of(pool.points);
        pool.noise = std::move(errors.noise);
        pool.mixed = std::move(errors.mixed);
    }
    shape.mesh = std::move(scan.surface);
    return shape;
}

/// All numbers below n, shuffled.
std::vector<int32_t> shuffled(int64_t n, const Rng& rng) {
    std::vector<int32_t> numbers(static_cast<size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    for (int64_t i = n - 1; i > 0; --i)
        std::swap(numbers[static_cast<size_t>(i)],
                  numbers[rng.below(static_cast<uint64_t>(i), static_cast<uint32_t>(i + 1))]);
    return numbers;
}

/// Its pools are points of the scan, no two the same in one; of different pools neither, where there are enough.
SurfaceShape scan_shape(Array<float, 2> points, std::string name, const SurfaceOptions& options, const Rng& rng) {
    SurfaceShape shape;
    shape.name = std::move(name);
    shape.mesh = surface_of_points(std::move(points));
    to_unit_size(shape.mesh);
    shape.area = area_of(shape.mesh);
    const int64_t n = shape.mesh.vertices.size();
    const std::vector<int32_t> order = shuffled(n, rng);
    for (int64_t p = 0; p < options.pools; ++p) {
        SurfacePool& pool = shape.pools.emplace_back();
        pool.points = Array<float, 2>({options.samples, 3});
        for (int64_t i = 0; i < options.samples; ++i)
            std::copy_n(shape.mesh.vertices.positions.data() +
                            3 * int64_t{order[static_cast<size_t>((p * options.samples + i) % n)]},
                        3, pool.points.data() + 3 * i);
        pool.order = order_of(pool.points);
    }
    return shape;
}

/// The mesh, and virtual scans of it.
std::vector<SurfaceShape> mesh_shapes(Mesh mesh, const std::string& name, const SurfaceOptions& options, int64_t item) {
    std::vector<SurfaceShape> shapes;
    shapes.push_back(mesh_shape(std::move(mesh), name, options, item));
    for (int64_t s = 0; s < options.scans; ++s) {
        const Rng rng(options.seed, kScanStream | static_cast<uint64_t>(64 * item + s));
        SurfaceShape scan = virtual_scan_shape(shapes[0].mesh, fmt::format("{}, scan {}", name, s), options, rng);
        if (scan.mesh.faces() > 0) shapes.push_back(std::move(scan));
    }
    return shapes;
}

/// Finite points, each place once.
Array<float, 2> clean_points(const PointCloud& cloud) {
    std::vector<int32_t> finite;
    for (int64_t i = 0; i < cloud.size(); ++i) {
        const float* row = cloud.positions.data() + 3 * i;
        if (std::isfinite(row[0]) && std::isfinite(row[1]) && std::isfinite(row[2]))
            finite.push_back(static_cast<int32_t>(i));
    }
    PointCloud points(static_cast<int64_t>(finite.size()));
    for (size_t i = 0; i < finite.size(); ++i)
        std::copy_n(cloud.positions.data() + 3 * int64_t{finite[i]}, 3, points.positions.data() + 3 * i);
    return std::move(geometry::dedupe_points(points).positions);
}

/// The `count` points nearest to one of them.
Array<float, 2> region_of(const Array<float, 2>& points, int64_t centre, int64_t count) {
    std::vector<std::pair<float, int32_t>> keyed(static_cast<size_t>(points.size(0)));
    for (int64_t i = 0; i < points.size(0); ++i)
        keyed[static_cast<size_t>(i)] = {distance_sq(points.data() + 3 * i, points.data() + 3 * centre),
                                         static_cast<int32_t>(i)};
    std::nth_element(keyed.begin(), keyed.begin() + (count - 1), keyed.end());
    Array<float, 2> region({count, 3});
    for (int64_t i = 0; i < count; ++i)
        std::copy_n(points.data() + 3 * int64_t{keyed[static_cast<size_t>(i)].second}, 3, region.data() + 3 * i);
    return region;
}

/// The scan, or regions of it.
std::vector<SurfaceShape> scan_shapes(const PointCloud& cloud, const std::string& name, const SurfaceOptions& options,
                                      int64_t item) {
    Array<float, 2> points = clean_points(cloud);
    const int64_t n = points.size(0);
    if (n < options.samples)
        throw Error(
            ErrorCode::bad_file, Place{name},
            fmt::format("a scan of {} different points, fewer than patch.samples, which is {}", n, options.samples),
            "--set patch.samples takes fewer: at least twice patch.cloud_max and four times patch.cloud_min");
    const Rng rng(options.seed, kRegionStream | static_cast<uint64_t>(item));
    std::vector<SurfaceShape> shapes;
    if (n <= options.region) {
        shapes.push_back(scan_shape(std::move(points), name, options, rng));
        return shapes;
    }
    const int64_t regions = std::min(kMostRegions, (n + options.region - 1) / options.region);
    for (int64_t r = 0; r < regions; ++r) {
        const RandomBlock block = rng.block(uint64_t{1} << 40 | static_cast<uint64_t>(r));
        const auto centre = static_cast<int64_t>((uint64_t{block.word[0]} * static_cast<uint64_t>(n)) >> 32);
        shapes.push_back(scan_shape(region_of(points, centre, options.region), fmt::format("{}, region {}", name, r),
                                    options, Rng(seed_of(rng), static_cast<uint64_t>(r))));
    }
    return shapes;
}

/// Meshes and scans one after the other: no more of them in memory than there are threads.
SurfaceSet build_surfaces(const std::vector<std::string>& names, const SurfaceOptions& options, ProgressMode progress,
                          const std::function<Mesh(int64_t item)>& load) {
    const auto count = static_cast<int64_t>(names.size());
    STIPPLE_REQUIRE(options.pools >= 2 && options.samples >= 2 && options.region >= options.samples,
                    "{} pools of {} samples, regions of {}", options.pools, options.samples, options.region);
    std::vector<std::vector<SurfaceShape>> made(names.size());
    std::vector<char> is_scan(names.size());
    Progress bar("sample surfaces", count, progress, "files");
    parallel_for(count, 1, [&](int64_t i, int64_t) {
        const auto at = static_cast<size_t>(i);
        Mesh mesh = load(i);
        is_scan[at] = mesh.faces() == 0;
        try {
            if (is_scan[at])
                made[at] = scan_shapes(mesh.vertices, names[at], options, i);
            else
                made[at] = mesh_shapes(std::move(mesh), names[at], options, i);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_argument) throw;
            throw Error(ErrorCode::bad_file, Place{names[at]}, error.message());
        }
        bar.add();
    });
    bar.finish();
    for (size_t i = 1; i < names.size(); ++i)
        if (is_scan[i] != is_scan[0])
            throw Error(ErrorCode::bad_file, Place{names[is_scan[0] ? 0 : i]},
                        fmt::format("has no faces, {} has: meshes and scans are not trained on together",
                                    in_quotes(names[is_scan[0] ? i : 0])),
                        "one kind a folder");
    SurfaceSet set;
    std::vector<int64_t> train, held_out;
    split_items(count, options.held_out, train, held_out);
    for (size_t i = 0; i < names.size(); ++i) {
        const bool is_held_out = std::binary_search(held_out.begin(), held_out.end(), static_cast<int64_t>(i));
        for (SurfaceShape& shape : made[i]) {
            (is_held_out ? set.held_out : set.train).push_back(static_cast<int64_t>(set.shapes.size()));
            set.shapes.push_back(std::move(shape));
        }
    }
    if (set.train.empty()) throw Error(ErrorCode::bad_config, "no meshes or scans to train on");
    return set;
}

std::vector<std::string> listed_names(const std::string& folder) {
    std::vector<std::string> names;
    io::FileSource source(folder + "/" + kManifest);
    io::ByteReader reader(source);
    bool is_header = true;
    while (const auto line = reader.line()) {
        const std::string name(io::trimmed(line->substr(0, line->find('\t'))));
        if (!is_header && !name.empty()) names.push_back(name);
        is_header = false;
    }
    return names;
}

bool is_cloud_name(const std::string& name) {
    try {
        return io::format_by_extension(name) != io::Format::hdf5;
    } catch (const Error&) {
        return false;
    }
}

Mesh load_file(const std::string& path, std::vector<std::string>& warnings) {
    return io::load(path, {}, warnings);
}

/// By the manifest; else those of formats that have faces, and where the first of these has none, or there are none of
/// them, all that can be clouds.
std::vector<std::string> surface_names(const std::string& folder) {
    const std::vector<std::string> files = list_folder(folder);
    std::vector<std::string> meshes, clouds;
    if (std::binary_search(files.begin(), files.end(), kManifest)) {
        meshes = listed_names(folder);
    } else {
        for (const std::string& name : files) {
            if (name[0] == '.' || is_folder(folder + "/" + name)) continue;
            if (is_mesh_name(name)) meshes.push_back(name);
            if (is_cloud_name(name)) clouds.push_back(name);
        }
        std::vector<std::string> ignored;
        if (meshes.empty() || load_file(folder + "/" + meshes[0], ignored).faces() == 0) meshes = clouds;
    }
    if (meshes.empty())
        throw Error(ErrorCode::bad_file, Place{folder}, "is a folder without meshes or clouds",
                    "what upsamplers learn from: docs/training.md");
    return meshes;
}

}  // namespace

bool is_mesh_name(const std::string& name) {
    try {
        return io::info_of(io::format_by_extension(name)).holds.find("faces") != std::string_view::npos;
    } catch (const Error&) {
        return false;
    }
}

void split_items(int64_t count, double share, std::vector<int64_t>& train, std::vector<int64_t>& held_out) {
    const int64_t every = share > 0 ? std::max<int64_t>(2, std::llround(1 / share)) : 0;
    for (int64_t i = 0; i < count; ++i) (every > 0 && i % every == every - 1 ? held_out : train).push_back(i);
}

SurfaceSet make_surfaces(std::vector<Mesh> meshes, std::vector<std::string> names, const SurfaceOptions& options,
                         ProgressMode progress) {
    STIPPLE_REQUIRE(names.size() == meshes.size(), "{} names of {} meshes", names.size(), meshes.size());
    return build_surfaces(names, options, progress,
                          [&](int64_t i) { return std::move(meshes[static_cast<size_t>(i)]); });
}

SurfaceSet load_surfaces(const std::string& folder, const SurfaceOptions& options, std::vector<std::string>& warnings,
                         ProgressMode progress) {
    if (!is_folder(folder))
        throw Error(ErrorCode::bad_file, Place{folder}, "is no folder, nor a file of patches (.h5, .tfrecord)",
                    "what upsamplers learn from: docs/training.md");
    const std::vector<std::string> names = surface_names(folder);
    std::vector<std::vector<std::string>> told(names.size());
    SurfaceSet set = build_surfaces(names, options, progress, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        return load_file(folder + "/" + names[at], told[at]);
    });
    for (size_t i = 0; i < told.size(); ++i)
        for (const std::string& warning : told[i]) warnings.push_back(names[i] + ": " + warning);
    return set;
}

}  // namespace stipple::learn
