// Clouds or meshes in a folder for each class, with folders for each split above or below, or without; and clouds whose
// points have a label, with a table of the parts.

#include <algorithm>
#include <set>

#include "stipple/core/folder.h"
#include "stipple/data/layouts/cloud_files.h"
#include "stipple/data/layouts/part_tables.h"

namespace stipple::data {
namespace {

constexpr const char* kPartTable = "parts.json";

struct ClassFolders {
    enum class Order { split_class, class_split, class_only } order = Order::class_only;
    std::vector<std::string> classes;  // of all splits, sorted: labels are the same in each
    std::vector<std::string> splits;

    std::string path(const std::string& root, const std::string& split, const std::string& name) const {
        if (order == Order::class_only) return join(root, name);
        return order == Order::split_class ? join(join(root, split), name) : join(join(root, name), split);
    }
};

bool has_clouds(const std::string& folder) {
    return is_folder(folder) && !cloud_names(folder).empty();
}

std::vector<std::string> folders_in(const std::string& root) {
    std::vector<std::string> names;
    for (std::string& name : list_folder(root))
        if (name[0] != '.' && is_folder(join(root, name))) names.push_back(std::move(name));
    return names;
}

/// Without classes when the folder is something else.
ClassFolders survey(const std::string& root) {
    ClassFolders tree;
    if (!is_folder(root)) return tree;
    const std::vector<std::string> folders = folders_in(root);
    std::set<std::string> classes;
    const auto take = [&](ClassFolders::Order order) {
        tree.order = order;
        for (const std::string_view split : kSplits) {
            const size_t before = tree.splits.size();
            const std::string above = join(root, split);
            const std::vector<std::string> candidates = order == ClassFolders::Order::class_split ? folders
                                                        : is_folder(above)                        ? folders_in(above)
                                                                           : std::vector<std::string>();
            for (const std::string& name : candidates) {
                if (!has_clouds(tree.path(root, std::string(split), name))) continue;
                classes.insert(name);
                if (tree.splits.size() == before) tree.splits.emplace_back(split);
            }
        }
        return !classes.empty();
    };
    if (!take(ClassFolders::Order::split_class) && !take(ClassFolders::Order::class_split)) {
        tree.order = ClassFolders::Order::class_only;
        for (const std::string& name : folders)
            if (has_clouds(join(root, name))) classes.insert(name);
        if (!classes.empty()) tree.splits = {"all"};
    }
    tree.classes.assign(classes.begin(), classes.end());
    return tree;
}

std::vector<ClassFile> files_of(const ClassFolders& tree, const std::string& root, const std::string& split) {
    std::vector<ClassFile> files;
    for (size_t c = 0; c < tree.classes.size(); ++c) {
        const std::string folder = tree.path(root, split, tree.classes[c]);
        if (!is_folder(folder)) continue;
        for (const std::string& name : cloud_names(folder))
            files.push_back(
                {join(folder, name), fmt::format("{}/{}", tree.classes[c], stem_of(name)), static_cast<int64_t>(c)});
    }
    return files;
}

void load_folders(const SetRequest& request, DataSet& set, bool with_parts) {
    const ClassFolders tree = survey(request.folder);
    set.classes = tree.classes;
    if (with_parts) {
        std::vector<CategoryLine> lines;
        for (const std::string& name : tree.classes) lines.push_back({name, {}});
        set.categories = load_named_parts(join(request.folder, kPartTable), lines, set.part_names);
    }
    const std::vector<ClassFile> files = files_of(tree, request.folder, request.split);
    ItemSink sink(request, set);
    for (size_t i = 0; i < files.size(); ++i) {
        request.report(static_cast<int64_t>(i), files.size());
        const CloudFile file = load_cloud_file(request, files[i].path, !with_parts, i);
        if (with_parts && file.parts.empty())
            fail_at(files[i].path, "its points have no label",
                    "a whole number for each, by the table " + std::string(kPartTable));
        sink.add({file.points, file.normals, with_parts ? std::span(file.parts) : std::span<const int32_t>(),
                  files[i].label, files[i].name},
                 files[i].path);
    }
    request.report(static_cast<int64_t>(files.size()), files.size());
    sink.finish();
}

}  // namespace

std::vector<ClassFile> files_of_classes(const std::string& root, const std::string& split) {
    return files_of(survey(root), root, split);
}

const Layout kPartFolders = {
    {"part-folders", "parts.json with CLASS/*, SPLIT/CLASS/* or CLASS/SPLIT/* with labelled clouds",
     "clouds, classes, parts"},
    [](const std::string& root) {
        return is_file(join(root, kPartTable)) ? survey(root).splits : std::vector<std::string>();
    },
    [](const SetRequest& request, DataSet& set) { load_folders(request, set, true); }};

const Layout kClassFolders = {{"class-folders", "CLASS/*, SPLIT/CLASS/* or CLASS/SPLIT/* with clouds or meshes",
                               "clouds or samples of meshes, classes"},
                              [](const std::string& root) { return survey(root).splits; },
                              [](const SetRequest& request, DataSet& set) { load_folders(request, set, false); }};

}  // namespace stipple::data
