// ModelNet40 as HDF5 files of clouds of one size, each with a class.

#include "stipple/data/class_names.h"
#include "stipple/data/layouts/common.h"

namespace stipple::data {
namespace {

std::string list_of_modelnet(std::string_view split) {
    return fmt::format("{}_files.txt", split);
}

std::vector<std::string> splits_of_modelnet(const std::string& folder) {
    std::vector<std::string> splits;
    for (const std::string_view split : kSplits)
        if (is_file(join(folder, list_of_modelnet(split)))) splits.emplace_back(split);
    return splits;
}

void load_modelnet(const SetRequest& request, DataSet& set) {
    const std::string names = join(request.folder, "shape_names.txt");
    set.classes = load_names(names);
    if (set.classes.empty()) fail_at(names, "names no classes");
    const std::vector<std::string> files = listed_files(request.folder, list_of_modelnet(request.split), "");
    ItemSink sink(request, set);
    for (size_t i = 0; i < files.size(); ++i) {
        request.report(static_cast<int64_t>(i), files.size());
        const io::CloudSet file = io::load_hdf5(files[i], request.options.limits);
        if (file.labels.empty())
            fail_at(files[i], "has no dataset label", "the layout is data [m, n, 3], label [m, 1]");
        sink.add(file, files[i]);
    }
    request.report(static_cast<int64_t>(files.size()), files.size());
    sink.finish();
}

}  // namespace

const Layout kModelNetHdf5 = {
    {"modelnet-hdf5", "train_files.txt or test_files.txt", "clouds, classes"}, splits_of_modelnet, load_modelnet};

}  // namespace stipple::data
