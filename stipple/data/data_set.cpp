#include "stipple/data/data_set.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "stipple/core/folder.h"
#include "stipple/data/layouts/common.h"

namespace stipple::data {
namespace {

// In the order in which they are tried: those that one file tells come first.
const Layout* const kLayouts[] = {&kPacked,      &kModelNetHdf5,   &kModelNetText, &kPartHdf5,
                                  &kPartText,    &kPartNormalText, &kPatchHdf5,    &kPatchRecords,
                                  &kPairFolders, &kPartFolders,    &kClassFolders};

struct Found {
    const Layout* layout = nullptr;
    std::vector<std::string> splits = {};
};

std::string without_slash(std::string folder) {
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    return folder;
}

Found find_layout(const std::string& folder, const std::string& name) {
    if (!is_folder(folder) && !is_file(folder)) fail_at(folder, "cannot open: no such file or folder");
    std::string looked_for, names;
    for (const Layout* layout : kLayouts) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", layout->info.name);
        if (name != "auto" && name != layout->info.name) continue;
        if (Found found{layout, layout->splits(folder)}; !found.splits.empty()) return found;
        looked_for += fmt::format("{}{} ({})", looked_for.empty() ? "" : "; ", layout->info.files, layout->info.name);
    }
    STIPPLE_REQUIRE(!looked_for.empty(), "{}: no such layout; there are auto, {}", name, names);
    fail_at(folder, name == "auto" ? "no data set of a known layout" : fmt::format("no data set of layout {}", name),
            "looked for " + looked_for);
}

std::string choose_split(const std::string& folder, const std::string& wanted, const std::vector<std::string>& splits) {
    const auto has = [&](std::string_view name) {
        return std::find(splits.begin(), splits.end(), name) != splits.end();
    };
    if (has(wanted)) return wanted;
    std::string names;
    for (const std::string& name : splits) names += (names.empty() ? "" : ", ") + name;
    if (!wanted.empty())
        throw Error(ErrorCode::bad_argument, Place{folder}, fmt::format("no split {}; there are: {}", wanted, names));
    if (has("train")) return "train";
    if (has("all")) return "all";
    throw Error(ErrorCode::bad_argument, Place{folder}, fmt::format("which split? There are: {}", names));
}

}  // namespace

void to_unit_spheres(Clouds& clouds) {
    for (int64_t cloud = 0; cloud < clouds.size(); ++cloud) {
        float* points = clouds.points.data() + 3 * clouds.offsets[static_cast<size_t>(cloud)];
        const int64_t n = clouds.size_of(cloud);
        double centre[3] = {};
        for (int64_t i = 0; i < 3 * n; ++i) centre[i % 3] += points[i] / static_cast<double>(n);
        double largest = 0;
        for (int64_t i = 0; i < n; ++i) {
            double square = 0;
            for (int axis = 0; axis < 3; ++axis) {
                const double offset = points[3 * i + axis] - centre[axis];
                square += offset * offset;
            }
            largest = std::max(largest, square);
        }
        const double radius = largest > 0 ? std::sqrt(largest) : 1;
        for (int64_t i = 0; i < 3 * n; ++i) points[i] = static_cast<float>((points[i] - centre[i % 3]) / radius);
    }
}

int64_t Clouds::common_size() const {
    if (size() == 0) return -1;
    const int64_t n = size_of(0);
    for (int64_t i = 1; i < size(); ++i)
        if (size_of(i) != n) return -1;
    return n;
}

std::span<const LayoutInfo> layouts() {
    static const auto infos = [] {
        std::array<LayoutInfo, std::size(kLayouts)> all;
        std::transform(std::begin(kLayouts), std::end(kLayouts), all.begin(), [](const Layout* l) { return l->info; });
        return all;
    }();
    return infos;
}

RecognisedSet recognise_data_set(const std::string& folder, const std::string& layout) {
    const Found found = find_layout(without_slash(folder), layout);
    return {std::string(found.layout->info.name), found.splits};
}

DataSet load_data_set(const std::string& folder, const DataSetOptions& options, io::Warnings& warnings) {
    STIPPLE_REQUIRE(options.points >= 0, "data set: {} points of each cloud", options.points);
    STIPPLE_REQUIRE(options.ratio >= 0, "data set: a ratio of {}", options.ratio);
    const std::string root = without_slash(folder);
    const Found found = find_layout(root, options.layout);
    DataSet set;
    set.layout = found.layout->info.name;
    set.split = choose_split(root, options.split, found.splits);
    found.layout->load({root, set.split, options, warnings}, set);
    if (set.size() == 0) fail_at(root, fmt::format("the split {} has no items", set.split));
    return set;
}

}  // namespace stipple::data
