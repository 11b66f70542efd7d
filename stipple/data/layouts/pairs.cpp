// Sparse and dense clouds of the same shapes, for upsampling: patches in an HDF5 file as PU-GAN and PU1K have them, and
// two folders of clouds.

#include <algorithm>

#include "stipple/core/folder.h"
#include "stipple/data/layouts/cloud_files.h"
#include "stipple/data/shape_pairs.h"
#include "stipple/io/text.h"

namespace stipple::data {
namespace {

void require_whole_pairs(const SetRequest& request) {
    STIPPLE_REQUIRE(request.options.points == 0, "{}: pairs are read whole, not the first {} points of each",
                    request.folder, request.options.points);
}

// === Patches

struct Patches {
    std::string key;
    int64_t points = 0;  // by its name; 0: not told
};

bool is_hdf5_name(std::string_view name) {
    return name.ends_with(".h5") || name.ends_with(".hdf5");
}

/// Datasets of patches, from sparse to dense; fewer than two: no file of patches.
std::vector<Patches> patches_of(const std::string& path) {
    constexpr std::string_view kPrefix = "poisson_";
    const std::vector<std::string> keys = io::list_hdf5(path);
    std::vector<Patches> found;
    for (const std::string& key : keys) {
        int64_t points = 0;
        if (key.starts_with(kPrefix) && io::parse_number(std::string_view(key).substr(kPrefix.size()), points))
            found.push_back({key, points});
    }
    std::sort(found.begin(), found.end(), [](const Patches& a, const Patches& b) { return a.points < b.points; });
    if (!found.empty()) return found;
    if (std::count(keys.begin(), keys.end(), "input") && std::count(keys.begin(), keys.end(), "gt"))
        return {{"input"}, {"gt"}};
    return {};
}

/// The path itself, or the files of patches in it.
std::vector<std::string> patch_files(const std::string& path) {
    if (!is_folder(path)) {
        if (!is_hdf5_name(path) || patches_of(path).size() < 2) return {};
        return {path};
    }
    std::vector<std::string> files;
    for (const std::string& name : list_folder(path)) {
        if (!is_hdf5_name(name) || name[0] == '.') continue;
        try {
            if (patches_of(join(path, name)).size() >= 2) files.push_back(join(path, name));
        } catch (const Error&) {  // another file in the folder
        }
    }
    return files;
}

std::vector<std::string> splits_of_patches(const std::string& path) {
    if (patch_files(path).empty()) return {};
    return {"all"};
}

const Patches& choose_target(const std::string& path, const std::vector<Patches>& all, int64_t ratio) {
    if (ratio == 0 && all.size() == 2) return all[1];
    std::string names;
    for (const Patches& patches : all) names += (names.empty() ? "" : ", ") + patches.key;
    for (size_t i = 1; i < all.size(); ++i)
        if (ratio > 0 && all[0].points > 0 && all[i].points == ratio * all[0].points) return all[i];
    throw Error(ErrorCode::bad_argument, Place{path},
                ratio == 0 ? fmt::format("has several sizes of patches: {}", names)
                           : fmt::format("has no patches {} times as dense: {}", ratio, names),
                "choose the ratio of a pair");
}

/// The first three columns; others (normals of PU-Net's files) are left out.
void append_patches(const std::string& path, const Patches& patches, const io::Limits& limits, Clouds& clouds) {
    const Array<float, 3> values = io::load_hdf5_array(path, patches.key, limits);
    const int64_t m = values.size(0), n = values.size(1), columns = values.size(2);
    if (columns < 3 || (patches.points > 0 && n != patches.points))
        fail_at(path, fmt::format("{}: must be [m, {}, 3] or with more columns, got [{}, {}, {}]", patches.key,
                                  patches.points > 0 ? std::to_string(patches.points) : "n", m, n, columns));
    std::vector<float> row(static_cast<size_t>(3 * n));
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t p = 0; p < n; ++p) std::copy_n(values.data() + (i * n + p) * columns, 3, row.data() + 3 * p);
        append_cloud(clouds, row, n, fmt::format("{}: {}[{}]", path, patches.key, i));
    }
}

void load_patches(const SetRequest& request, DataSet& set) {
    require_whole_pairs(request);
    const std::vector<std::string> files = patch_files(request.folder);
    if (files.size() > 1)
        throw Error(ErrorCode::bad_argument, Place{request.folder},
                    fmt::format("has {} files of patches: name one of them, as {}", files.size(), files[0]));
    const std::string& path = files.at(0);
    const std::vector<Patches> all = patches_of(path);
    const Patches& target = choose_target(path, all, request.options.ratio);
    request.report(0, 1);
    append_patches(path, all[0], request.options.limits, set.clouds);
    append_patches(path, target, request.options.limits, set.targets);
    if (set.clouds.size() != set.targets.size())
        fail_at(path, fmt::format("{} patches of {} and {} of {}", set.clouds.size(), all[0].key, set.targets.size(),
                                  target.key));
    request.report(1, 1);
}

// === Folders

/// The one folder that is called PREFIX or PREFIX_NUMBER; empty for none, and for several.
std::string sized_folder(const std::string& root, std::string_view prefix) {
    std::string found;
    for (const std::string& name : list_folder(root)) {
        int64_t points = 0;
        std::string_view rest = name;
        if (!rest.starts_with(prefix)) continue;
        rest.remove_prefix(prefix.size());
        if (!rest.empty() && (rest[0] != '_' || !io::parse_number(rest.substr(1), points))) continue;
        if (!is_folder(join(root, name))) continue;
        if (!found.empty()) return {};
        found = join(root, name);
    }
    return found;
}

std::vector<std::string> splits_of_pair_folders(const std::string& root) {
    if (!is_folder(root) || sized_folder(root, "input").empty() || sized_folder(root, "gt").empty()) return {};
    return {"all"};
}

void load_pair_folders(const SetRequest& request, DataSet& set) {
    require_whole_pairs(request);
    const std::vector<ShapePair> pairs =
        pair_shapes(sized_folder(request.folder, "input"), sized_folder(request.folder, "gt"), "");
    for (size_t i = 0; i < pairs.size(); ++i) {
        request.report(static_cast<int64_t>(i), pairs.size());
        for (const auto& [path, clouds] :
             {std::pair{&pairs[i].prediction, &set.clouds}, {&pairs[i].truth, &set.targets}}) {
            const CloudFile file = load_cloud_file(request, *path, false, 0);
            append_cloud(*clouds, file.points, file.size(), *path);
        }
        set.names.push_back(pairs[i].shape);
    }
    request.report(static_cast<int64_t>(pairs.size()), pairs.size());
}

}  // namespace

const Layout kPatchHdf5 = {{"patches-hdf5", "an HDF5 file with datasets poisson_256 and poisson_1024, or input and gt",
                            "pairs of sparse and dense clouds"},
                           splits_of_patches,
                           load_patches};

const Layout kPairFolders = {{"pair-folders", "one folder input or input_N and one gt or gt_N with clouds",
                              "pairs of sparse and dense clouds, names"},
                             splits_of_pair_folders,
                             load_pair_folders};

}  // namespace stipple::data
