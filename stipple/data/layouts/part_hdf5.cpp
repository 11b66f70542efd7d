// Part segmentation as HDF5 files of clouds of one size: ShapeNet-part as its authors stored it, and sets made like it.

#include <algorithm>

#include "stipple/core/folder.h"
#include "stipple/data/layouts/part_tables.h"

namespace stipple::data {
namespace {

constexpr const char* kCategoryFile = "all_object_categories.txt";

std::vector<std::string> part_files(const std::string& folder, std::string_view split) {
    return listed_files(folder, fmt::format("{}_hdf5_file_list.txt", split), fmt::format("ply_data_{}", split));
}

std::vector<std::string> splits_of_part_hdf5(const std::string& folder) {
    std::vector<std::string> splits;
    if (!is_file(join(folder, kCategoryFile))) return splits;
    const std::vector<std::string> entries = list_folder(folder);
    for (const std::string_view split : kSplits) {
        const std::string list = fmt::format("{}_hdf5_file_list.txt", split),
                          prefix = fmt::format("ply_data_{}", split);
        if (std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
                return entry == list || (entry.starts_with(prefix) && entry.ends_with(".h5"));
            }))
            splits.emplace_back(split);
    }
    return splits;
}

void load_part_hdf5(const SetRequest& request, DataSet& set) {
    const std::string path = join(request.folder, kCategoryFile);
    const std::vector<CategoryLine> categories = load_categories(path, false);
    for (const CategoryLine& category : categories) set.classes.push_back(category.name);
    const std::string ids = join(request.folder, "overallid_to_catid_partid.json"),
                      named = join(request.folder, "parts.json");
    if (is_file(ids))
        set.categories = load_overall_ids(ids, categories);
    else if (is_file(named))
        set.categories = load_named_parts(named, categories, set.part_names);
    else if (const auto known = shapenet_ranges(categories))
        set.categories = *known;
    else
        fail_at(path, "the parts of its categories are not known",
                "overallid_to_catid_partid.json or parts.json beside it tells them");
    const std::vector<std::string> files = part_files(request.folder, request.split);
    ItemSink sink(request, set);
    for (size_t i = 0; i < files.size(); ++i) {
        request.report(static_cast<int64_t>(i), files.size());
        const io::CloudSet file = io::load_hdf5(files[i], request.options.limits);
        for (const auto& [name, there] : {std::pair{"label", !file.labels.empty()}, {"pid", file.parts.elements() > 0}})
            if (!there)
                fail_at(files[i], fmt::format("has no dataset {}", name),
                        "the layout is data [m, n, 3], label [m, 1], pid [m, n]");
        sink.add(file, files[i]);
    }
    request.report(static_cast<int64_t>(files.size()), files.size());
    sink.finish();
}

}  // namespace

const Layout kPartHdf5 = {{"part-hdf5", "all_object_categories.txt with ply_data_SPLIT*.h5 or SPLIT_hdf5_file_list.txt",
                           "clouds, categories, parts"},
                          splits_of_part_hdf5,
                          load_part_hdf5};

}  // namespace stipple::data
