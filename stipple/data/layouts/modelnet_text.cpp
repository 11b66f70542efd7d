// ModelNet40 resampled with normals, as text: a file of points and normals for each shape, lists of shapes for each
// split.

#include <algorithm>

#include "stipple/data/class_names.h"
#include "stipple/data/layouts/common.h"

namespace stipple::data {
namespace {

constexpr const char* kShapeNames = "modelnet40_shape_names.txt";

std::string list_of_modelnet_text(const std::string& folder, std::string_view split) {
    return join(folder, fmt::format("modelnet40_{}.txt", split));
}

std::vector<std::string> splits_of_modelnet_text(const std::string& folder) {
    std::vector<std::string> splits;
    if (!is_file(join(folder, kShapeNames))) return splits;
    for (const std::string_view split : kSplits)
        if (is_file(list_of_modelnet_text(folder, split))) splits.emplace_back(split);
    return splits;
}

void load_modelnet_text(const SetRequest& request, DataSet& set) {
    set.classes = load_names(join(request.folder, kShapeNames));
    const std::string list = list_of_modelnet_text(request.folder, request.split);
    const std::vector<std::string> shapes = load_names(list);
    ItemSink sink(request, set);
    for (size_t i = 0; i < shapes.size(); ++i) {
        request.report(static_cast<int64_t>(i), shapes.size());
        // "night_stand_0012": the class is what is before the number.
        const size_t bar = shapes[i].rfind('_');
        const std::string name = shapes[i].substr(0, bar);
        const auto found = std::find(set.classes.begin(), set.classes.end(), name);
        if (bar == std::string::npos || found == set.classes.end() || !is_plain_name(shapes[i]))
            fail_at(list, fmt::format("expected CLASS_NUMBER with a class of {}, found {}", kShapeNames,
                                      in_quotes(shapes[i])));
        if (!is_plain_name(name))
            fail_at(join(request.folder, kShapeNames), fmt::format("{} is no class", in_quotes(name)));
        const std::string path = fmt::format("{}/{}/{}.txt", request.folder, name, shapes[i]);
        const Rows rows = load_rows(path, 6, request.taken(INT64_MAX), request.options.limits);
        std::vector<float> points, normals;
        for (size_t v = 0; v < rows.values.size(); ++v)
            (v % 6 < 3 ? points : normals).push_back(static_cast<float>(rows.values[v]));
        sink.add({points, normals, {}, found - set.classes.begin(), shapes[i]}, path);
    }
    request.report(static_cast<int64_t>(shapes.size()), shapes.size());
    sink.finish();
}

}  // namespace

const Layout kModelNetText = {
    {"modelnet-text", "modelnet40_shape_names.txt with modelnet40_SPLIT.txt", "clouds, normals, classes"},
    splits_of_modelnet_text,
    load_modelnet_text};

}  // namespace stipple::data
