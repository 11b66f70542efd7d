#include "stipple/data/layouts/cloud_files.h"

#include <cmath>

#include "stipple/core/folder.h"

namespace stipple::data {
namespace {

constexpr int64_t kMeshSamples = 2048;

bool holds_one_cloud(const std::string& name) {
    try {
        return io::format_by_extension(name) != io::Format::hdf5;
    } catch (const Error&) {
        return false;
    }
}

PointCloud sampled(const SetRequest& request, const Mesh& mesh, const std::string& path, uint64_t item) {
    const DataSetOptions& options = request.options;
    if (!options.sampler) fail_at(path, "is a mesh, and the caller gave no way to sample its surface");
    const int64_t wanted = options.points > 0 ? options.points : kMeshSamples;
    PointCloud cloud;
    try {
        cloud = options.sampler(mesh, wanted, options.seed + item);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_argument) throw;
        fail_at(path, fmt::format("its surface cannot be sampled: {}", error.message()));
    }
    STIPPLE_REQUIRE(cloud.size() == wanted, "the sampler gave {} points, not {}", cloud.size(), wanted);
    return cloud;
}

}  // namespace

CloudFile load_cloud_file(const SetRequest& request, const std::string& path, bool samples_meshes, uint64_t item) {
    io::ReadOptions options;
    options.limits = request.options.limits;
    io::Warnings found;
    const Mesh mesh = io::load(path, options, found);
    for (const std::string& warning : found) request.warnings.push_back(fmt::format("{}: {}", path, warning));
    PointCloud samples;
    const bool is_sampled = samples_meshes && mesh.faces() > 0;
    if (is_sampled) samples = sampled(request, mesh, path, item);
    const PointCloud& cloud = is_sampled ? samples : mesh.vertices;
    CloudFile file;
    file.points.reserve(static_cast<size_t>(3 * cloud.size()));
    for (int64_t i = 0; i < cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) file.points.push_back(static_cast<float>(cloud.world(i, axis)));
    const Attribute* normal = find(cloud.attributes, "normal");
    if (normal && normal->dtype() == DType::f32 && normal->components() == 3) {
        const auto* values = reinterpret_cast<const float*>(normal->data());
        file.normals.assign(values, values + 3 * cloud.size());
    }
    const Attribute* label = find(cloud.attributes, "label");
    if (label && label->components() == 1) {
        file.parts.reserve(static_cast<size_t>(cloud.size()));
        for (int64_t i = 0; i < cloud.size(); ++i) {
            const double value = label->value(i);
            if (!(std::abs(value) < 1e9) || value != std::floor(value)) {  // a score, not a part
                file.parts.clear();
                break;
            }
            file.parts.push_back(static_cast<int32_t>(value));
        }
    }
    return file;
}

std::vector<std::string> cloud_names(const std::string& folder) {
    std::vector<std::string> names;
    for (const std::string& name : list_folder(folder))
        if (name[0] != '.' && holds_one_cloud(name) && is_file(join(folder, name))) names.push_back(name);
    return names;
}

}  // namespace stipple::data
