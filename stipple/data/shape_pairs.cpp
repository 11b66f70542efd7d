#include "stipple/data/shape_pairs.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "stipple/core/folder.h"
#include "stipple/io/format.h"

namespace stipple::data {
namespace {

using Shapes = std::map<std::string, std::string>;  // name without extension -> path

bool has_known_extension(const std::string& name) {
    try {
        io::format_by_extension(name);
        return true;
    } catch (const Error&) {
        return false;
    }
}

Shapes shapes_in(const std::string& folder, const char* what) {
    Shapes shapes;
    for (const std::string& name : list_folder(folder)) {
        const std::string path = folder + (folder.back() == '/' ? "" : "/") + name;
        if (name[0] == '.' || !has_known_extension(name) || is_folder(path)) continue;
        const auto [at, is_new] = shapes.emplace(stem_of(name), path);
        STIPPLE_REQUIRE(is_new, "{} and {} would both be the shape {}", at->second, path, at->first);
    }
    if (shapes.empty()) throw Error(ErrorCode::bad_file, Place{folder}, fmt::format("is a folder without {}", what));
    return shapes;
}

void require_exists(const std::string& path) {
    struct stat status {};
    if (path != "-" && ::stat(path.c_str(), &status) != 0)
        throw Error(ErrorCode::bad_file, Place{path}, fmt::format("cannot open: {}", std::strerror(errno)));
}

/// Every shape of `wanted` must be in `there`, the shapes of `folder`.
void require_all_of(const Shapes& wanted, const Shapes& there, const std::string& folder, const char* why) {
    constexpr size_t kNamed = 3;
    std::vector<std::string> missing;
    for (const auto& [shape, path] : wanted)
        if (there.count(shape) == 0) missing.push_back(shape);
    if (missing.empty()) return;
    std::string names;
    for (size_t i = 0; i < missing.size() && i < kNamed; ++i) names += (i ? ", " : "") + missing[i];
    if (missing.size() > kNamed) names += fmt::format(" and {} more", missing.size() - kNamed);
    throw Error(ErrorCode::bad_file, Place{folder},
                fmt::format("{} missing for {} of {} {}: {}", missing.size() == 1 ? "a file is" : "files are",
                            missing.size(), wanted.size(), why, names),
                "shapes are paired by their names without extension");
}

}  // namespace

std::vector<ShapePair> pair_shapes(const std::string& prediction, const std::string& truth, const std::string& mesh) {
    for (const std::string& path : {prediction, truth, mesh})
        if (!path.empty()) require_exists(path);
    const bool folders = is_folder(prediction);
    STIPPLE_REQUIRE(folders == is_folder(truth), "{} is a folder and {} is not: give two files or two folders",
                    folders ? prediction : truth, folders ? truth : prediction);
    STIPPLE_REQUIRE(mesh.empty() || folders == is_folder(mesh), "mesh {}: a {} is wanted, for {}", mesh,
                    folders ? "folder" : "file", folders ? "folders of clouds" : "one pair of clouds");
    if (!folders) return {{stem_of(prediction), prediction, truth, mesh}};
    const Shapes predictions = shapes_in(prediction, "clouds"), truths = shapes_in(truth, "clouds");
    require_all_of(predictions, truths, truth, "predictions");
    require_all_of(truths, predictions, prediction, "truths");
    Shapes meshes;
    if (!mesh.empty()) {
        meshes = shapes_in(mesh, "meshes");
        require_all_of(predictions, meshes, mesh, "shapes");
    }
    std::vector<ShapePair> pairs;
    for (const auto& [shape, path] : predictions)
        pairs.push_back({shape, path, truths.at(shape), mesh.empty() ? "" : meshes.at(shape)});
    return pairs;
}

}  // namespace stipple::data
