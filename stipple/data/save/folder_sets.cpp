// A PLY file for each cloud, in a folder for each class, in one for each split.

#include <set>

#include "stipple/data/layouts/common.h"
#include "stipple/data/save/save.h"

namespace stipple::data {
namespace {

Mesh cloud_of_item(const DataSet& set, int64_t item, bool with_parts) {
    const int64_t first = set.clouds.offsets[static_cast<size_t>(item)], n = set.clouds.size_of(item);
    Mesh mesh;
    mesh.vertices = PointCloud(n);
    std::copy_n(set.clouds.points.data() + 3 * first, 3 * n, mesh.vertices.positions.data());
    if (!set.normals.empty()) {
        Attribute& normal = mesh.vertices.attributes.emplace_back("normal", DType::f32, n, 3);
        std::copy_n(set.normals.data() + 3 * first, 3 * n, normal.as<float>().data());
    }
    if (with_parts) {
        Attribute& label = mesh.vertices.attributes.emplace_back("label", DType::i32, n, 1);
        std::copy_n(set.parts.data() + first, n, label.as<int32_t>().data());
    }
    return mesh;
}

/// The item's own name where that is one of a file that no other has, else its number.
std::string file_name(const DataSet& set, int64_t item, std::set<std::string>& taken) {
    std::string name;
    if (!set.names.empty()) {
        const std::string& whole = set.names[static_cast<size_t>(item)];
        name = whole.substr(whole.rfind('/') + 1);
    }
    const bool is_usable = is_plain_name(name) && name[0] != '.' && name.size() < 200;
    if (!is_usable || !taken.insert(name).second) {
        name = fmt::format("{:06}", item);
        while (!taken.insert(name).second) name += "_";
    }
    return name + ".ply";
}

void save_folders(const SaveRequest& request, bool with_parts) {
    const std::vector<std::string>& classes = request.splits[0].classes;
    for (const std::string& name : classes)
        STIPPLE_REQUIRE(is_plain_name(name) && name[0] != '.', "the class {} cannot be a folder", in_quotes(name));
    for (const DataSet& set : request.splits) {
        std::vector<std::string> folders(classes.size());
        std::vector<std::set<std::string>> taken(classes.size());
        for (int64_t item = 0; item < set.size(); ++item) {
            const auto label = static_cast<size_t>(set.labels[static_cast<size_t>(item)]);
            if (folders[label].empty())
                folders[label] =
                    request.folder.make(set.split == "all" ? classes[label] : set.split + "/" + classes[label]);
            io::save(join(folders[label], file_name(set, item, taken[label])), cloud_of_item(set, item, with_parts),
                     Overwrite::refuse, {}, request.warnings);
            request.advance();
        }
    }
}

}  // namespace

void save_class_folders(const SaveRequest& request) {
    save_folders(request, false);
}

void save_part_folders(const SaveRequest& request) {
    save_folders(request, true);
    save_text(join(request.folder.path(), "parts.json"), parts_json(request.splits[0]));
}

}  // namespace stipple::data
