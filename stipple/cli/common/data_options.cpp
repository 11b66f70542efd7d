#include "stipple/cli/common/data_options.h"

#include "stipple/geometry/sample_surface.h"

namespace stipple::cli {

void add_layout(Arguments& app, DataArguments& data) {
    app.option("--layout", data.layout, "Layout of the data set; stipple data info tells it");
}

data::DataSet load_data(const DataArguments& data, const std::string& split, int64_t points, const Common& common,
                        io::Warnings& warnings) {
    std::optional<Progress> bar;
    int64_t shown = 0;
    data::DataSetOptions options;
    options.split = split;
    options.layout = data.layout;
    options.points = points;
    options.seed = common.seed;
    options.sampler = [](const Mesh& mesh, int64_t n, uint64_t seed) {
        return geometry::cloud_of_samples(mesh, geometry::sample_surface(mesh, n, seed));
    };
    options.on_progress = [&](int64_t done, int64_t total) {
        if (!bar) bar.emplace(fmt::format("reading {}", data.path), total, progress_mode(common), "files");
        bar->add(done - shown);
        shown = done;
    };
    return data::load_data_set(data.path, options, warnings);
}

std::vector<data::DataSet> load_splits(const DataArguments& data, int64_t points, const Common& common,
                                       io::Warnings& warnings) {
    std::vector<std::string> names = {data.split};
    if (data.split.empty()) names = data::recognise_data_set(data.path, data.layout).splits;
    std::vector<data::DataSet> splits;
    for (const std::string& name : names) splits.push_back(load_data(data, name, points, common, warnings));
    return splits;
}

}  // namespace stipple::cli
