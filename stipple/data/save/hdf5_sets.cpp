// ModelNet40 and ShapeNet-part as their authors stored them: HDF5 files of clouds of one size, with lists.

#include "stipple/data/layouts/common.h"
#include "stipple/data/save/save.h"
#include "stipple/io/hdf5.h"

namespace stipple::data {
namespace {

constexpr int64_t kFileItems = 2048;  // as ModelNet40 has it

io::CloudSet part_of_set(const DataSet& set, int64_t begin, int64_t end, int64_t n, bool with_parts) {
    const int64_t m = end - begin;
    io::CloudSet file;
    file.points = Array<float, 3>({m, n, 3});
    std::copy_n(set.clouds.points.data() + 3 * n * begin, 3 * n * m, file.points.data());
    if (!set.normals.empty()) {
        file.normals = Array<float, 3>({m, n, 3});
        std::copy_n(set.normals.data() + 3 * n * begin, 3 * n * m, file.normals.data());
    }
    if (with_parts) {
        file.parts = Array<int32_t, 2>({m, n});
        std::copy_n(set.parts.data() + n * begin, n * m, file.parts.data());
    }
    file.labels.assign(set.labels.begin() + begin, set.labels.begin() + end);
    if (!set.names.empty()) file.names.assign(set.names.begin() + begin, set.names.begin() + end);
    return file;
}

/// Files of a split, and the list that names them.
void save_split(const SaveRequest& request, const DataSet& set, bool with_parts, const char* list_suffix) {
    const int64_t n = set.clouds.common_size();
    STIPPLE_REQUIRE(n > 0, "HDF5 files hold clouds of one size, those of the split {} differ", set.split);
    std::string split = set.split, list;
    if (split == "all") {
        split = "train";
        request.warnings.push_back("the data set is not split: all of it becomes the split train");
    }
    for (int64_t begin = 0; begin < set.size(); begin += kFileItems) {
        const int64_t end = std::min(begin + kFileItems, set.size());
        const std::string name = fmt::format("ply_data_{}{}.h5", split, begin / kFileItems);
        io::save_hdf5(join(request.folder.path(), name), part_of_set(set, begin, end, n, with_parts),
                      Overwrite::refuse);
        list += name + "\n";
        for (int64_t i = begin; i < end; ++i) request.advance();
    }
    save_text(join(request.folder.path(), split + list_suffix), list);
}

std::string lines_of(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += name + "\n";
    return text;
}

}  // namespace

void save_modelnet_hdf5(const SaveRequest& request) {
    const DataSet& first = request.splits[0];
    require_line_names(first.classes, false);
    for (const DataSet& set : request.splits) save_split(request, set, false, "_files.txt");
    save_text(join(request.folder.path(), "shape_names.txt"), lines_of(first.classes));
}

void save_part_hdf5(const SaveRequest& request) {
    const DataSet& first = request.splits[0];
    require_line_names(first.classes, true);
    for (const DataSet& set : request.splits) save_split(request, set, true, "_hdf5_file_list.txt");
    save_text(join(request.folder.path(), "all_object_categories.txt"), lines_of(first.classes));
    save_text(join(request.folder.path(), "parts.json"), parts_json(first));
}

}  // namespace stipple::data
