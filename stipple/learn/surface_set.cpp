// Meshes to cut patches from: read, moved to a common size, sampled.

#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/folder.h"
#include "stipple/core/parallel.h"
#include "stipple/core/rng.h"
#include "stipple/core/vec3.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/io/format.h"
#include "stipple/io/text.h"
#include "stipple/learn/surface_patches.h"
#include "stipple/ops/farthest_point_sample.h"

namespace stipple::learn {
namespace {

constexpr const char* kManifest = "manifest.tsv";
constexpr uint64_t kPoolStream = uint64_t{0x504F4F4C} << 32;

/// The box of the faces to the middle, the farthest corner to distance 1. Vertices that no face has go to 0.
void to_unit_size(Mesh& mesh) {
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

SurfacePool make_pool(const Mesh& mesh, int64_t samples, uint64_t seed) {
    SurfacePool pool;
    pool.points = geometry::sample_surface(mesh, samples, seed).points;
    const int64_t ordered = (samples + 1) / 2;
    pool.order.resize(static_cast<size_t>(ordered));
    ops::farthest_point_sample(pool.points.view(), ops::Batch::single(ordered), {pool.order.data(), {ordered}});
    std::vector<char> is_ordered(static_cast<size_t>(samples));
    for (const int32_t sample : pool.order) is_ordered[static_cast<size_t>(sample)] = 1;
    for (int64_t i = 0; i < samples; ++i)
        if (!is_ordered[static_cast<size_t>(i)]) pool.order.push_back(static_cast<int32_t>(i));
    return pool;
}

bool is_mesh_file(const std::string& name) {
    try {
        return io::info_of(io::format_by_extension(name)).holds.find("faces") != std::string_view::npos;
    } catch (const Error&) {
        return false;
    }
}

std::vector<std::string> mesh_names(const std::string& folder) {
    std::vector<std::string> names;
    const std::vector<std::string> files = list_folder(folder);
    if (std::binary_search(files.begin(), files.end(), kManifest)) {
        io::FileSource source(folder + "/" + kManifest);
        io::ByteReader reader(source);
        bool is_header = true;
        while (const auto line = reader.line()) {
            const std::string name(io::trimmed(line->substr(0, line->find('\t'))));
            if (!is_header && !name.empty()) names.push_back(name);
            is_header = false;
        }
    } else {
        for (const std::string& name : files)
            if (name[0] != '.' && is_mesh_file(name) && !is_folder(folder + "/" + name)) names.push_back(name);
    }
    if (names.empty()) throw Error(ErrorCode::bad_file, Place{folder}, "is a folder without meshes");
    return names;
}

}  // namespace

SurfaceSet make_surfaces(std::vector<Mesh> meshes, std::vector<std::string> names, const SurfaceOptions& options,
                         ProgressMode progress) {
    const auto count = static_cast<int64_t>(meshes.size());
    STIPPLE_REQUIRE(names.size() == meshes.size(), "{} names of {} meshes", names.size(), count);
    STIPPLE_REQUIRE(options.pools >= 2 && options.samples >= 2, "{} pools of {} samples", options.pools,
                    options.samples);
    SurfaceSet set;
    set.shapes.resize(static_cast<size_t>(count));
    Progress bar("sample meshes", count, progress, "meshes");
    parallel_for(count, 1, [&](int64_t i, int64_t) {
        SurfaceShape& shape = set.shapes[static_cast<size_t>(i)];
        shape.name = names[static_cast<size_t>(i)];
        shape.mesh = std::move(meshes[static_cast<size_t>(i)]);
        try {
            to_unit_size(shape.mesh);
            shape.area = area_of(shape.mesh);
            for (int64_t p = 0; p < options.pools; ++p) {
                const Rng rng(options.seed, kPoolStream | static_cast<uint64_t>(64 * i + p));
                const RandomBlock block = rng.block(0);
                shape.pools.push_back(
                    make_pool(shape.mesh, options.samples, uint64_t{block.word[1]} << 32 | block.word[0]));
            }
        } catch (const Error& error) {
            if (error.code() != ErrorCode::bad_argument) throw;
            throw Error(ErrorCode::bad_file, Place{shape.name}, error.message());
        }
        bar.add();
    });
    bar.finish();
    const int64_t every = options.held_out > 0 ? std::max<int64_t>(2, std::llround(1 / options.held_out)) : 0;
    for (int64_t i = 0; i < count; ++i) (every > 0 && i % every == every - 1 ? set.held_out : set.train).push_back(i);
    if (set.train.empty()) throw Error(ErrorCode::bad_config, "no meshes to train on");
    return set;
}

SurfaceSet load_surfaces(const std::string& folder, const SurfaceOptions& options, std::vector<std::string>& warnings,
                         ProgressMode progress) {
    std::vector<std::string> names = mesh_names(folder);
    const auto count = static_cast<int64_t>(names.size());
    std::vector<Mesh> meshes(names.size());
    std::vector<io::Warnings> told(names.size());
    Progress bar("read meshes", count, progress, "meshes");
    parallel_for(count, 1, [&](int64_t i, int64_t) {
        const auto at = static_cast<size_t>(i);
        meshes[at] = io::load_mesh(folder + "/" + names[at], {}, told[at]);
        bar.add();
    });
    bar.finish();
    for (size_t i = 0; i < told.size(); ++i)
        for (const std::string& warning : told[i]) warnings.push_back(names[i] + ": " + warning);
    return make_surfaces(std::move(meshes), std::move(names), options, progress);
}

}  // namespace stipple::learn
