// ShapeNet's part annotation as text, in its two forms: points and 1-based parts of a category in files of their own
// (v0), and rows of point, normal and global part (v0_normal).

#include <algorithm>

#include "stipple/core/folder.h"
#include "stipple/data/layouts/part_tables.h"

namespace stipple::data {
namespace {

constexpr const char* kSynsetFile = "synsetoffset2category.txt";

std::string shape_list(const std::string& folder, std::string_view split) {
    return join(folder, fmt::format("train_test_split/shuffled_{}_file_list.json", split));
}

/// Both forms have the same lists; folders of points tell them apart.
std::vector<std::string> splits_of_text(const std::string& folder, bool has_point_folders) {
    std::vector<std::string> splits;
    if (!is_file(join(folder, kSynsetFile))) return splits;
    bool found = false;
    for (const std::string& entry : list_folder(folder)) found = found || is_folder(join(folder, entry + "/points"));
    if (found != has_point_folders) return splits;
    for (const std::string_view split : kSplits)
        if (is_file(shape_list(folder, split))) splits.emplace_back(split);
    return splits;
}

struct Shape {
    int64_t category = 0;
    std::string synset, name;
};

/// "shape_data/02691156/1a2b": the last two count.
std::vector<Shape> load_shapes(const std::string& path, const std::vector<CategoryLine>& categories) {
    std::vector<Shape> shapes;
    for (const std::string& text : load_json_names(path, "a list of shapes")) {
        const size_t slash = text.rfind('/');
        if (slash == std::string::npos || slash == 0)
            fail_at(path, fmt::format("expected shape_data/SYNSET/NAME, found {}", in_quotes(text)));
        const size_t before = text.rfind('/', slash - 1);
        const size_t begin = before == std::string::npos ? 0 : before + 1;
        Shape shape{0, text.substr(begin, slash - begin), text.substr(slash + 1)};
        const auto found = std::find_if(categories.begin(), categories.end(),
                                        [&](const CategoryLine& c) { return c.synset == shape.synset; });
        if (found == categories.end() || !is_plain_name(shape.name))
            fail_at(path, fmt::format("{} is no shape of a category of {}", in_quotes(text), kSynsetFile));
        shape.category = found - categories.begin();
        shapes.push_back(std::move(shape));
    }
    return shapes;
}

struct Text {
    std::vector<float> points, normals;
    std::vector<int32_t> parts;
};

/// Parts are whole numbers; `first` is the number of the file's part `base`. ItemSink checks the range.
int32_t part_of(double value, int64_t base, int64_t first, const std::string& path) {
    if (value != static_cast<double>(static_cast<int32_t>(std::clamp(value, -1e9, 1e9))))
        fail_at(path, fmt::format("{} is no number of a part", value));
    return static_cast<int32_t>(static_cast<int64_t>(value) - base + first);
}

Text load_two_files(const SetRequest& request, const Shape& shape, const PartCategory& category) {
    const std::string base = join(request.folder, shape.synset);
    const std::string points = fmt::format("{}/points/{}.pts", base, shape.name),
                      labels = fmt::format("{}/points_label/{}.seg", base, shape.name);
    const int64_t wanted = request.taken(INT64_MAX);
    const Rows rows = load_rows(points, 3, wanted, request.options.limits);
    const Rows parts = load_rows(labels, 1, wanted, request.options.limits);
    if (rows.total != parts.total)
        fail_at(labels, fmt::format("{} parts for {} points of {}", parts.total, rows.total, points));
    Text text;
    for (const double value : rows.values) text.points.push_back(static_cast<float>(value));
    for (const double value : parts.values) {
        if (value < 1 || value > static_cast<double>(category.end - category.begin))
            fail_at(labels,
                    fmt::format("part {}, {} has parts 1 to {}", value, category.name, category.end - category.begin));
        text.parts.push_back(part_of(value, 1, category.begin, labels));
    }
    return text;
}

Text load_one_file(const SetRequest& request, const Shape& shape, const PartCategory&) {
    const std::string path = fmt::format("{}/{}/{}.txt", request.folder, shape.synset, shape.name);
    const Rows rows = load_rows(path, 7, request.taken(INT64_MAX), request.options.limits);
    Text text;
    for (int64_t i = 0; i < rows.kept; ++i) {
        const double* row = rows.values.data() + 7 * i;
        for (int axis = 0; axis < 3; ++axis) {
            text.points.push_back(static_cast<float>(row[axis]));
            text.normals.push_back(static_cast<float>(row[3 + axis]));
        }
        text.parts.push_back(part_of(row[6], 0, 0, path));
    }
    return text;
}

void load_text_shapes(const SetRequest& request, DataSet& set, decltype(load_one_file)* load) {
    const std::string synsets = join(request.folder, kSynsetFile);
    const std::vector<CategoryLine> categories = load_categories(synsets, true);
    for (const CategoryLine& category : categories) set.classes.push_back(category.name);
    const std::string counts = join(request.folder, "num_seg_classes.txt");
    if (is_file(counts))
        set.categories = load_part_counts(counts, categories);
    else if (const auto known = shapenet_ranges(categories))
        set.categories = *known;
    else
        fail_at(synsets, "names categories that ShapeNet-part has not",
                "num_seg_classes.txt beside it tells their parts: a name and a number a line");
    const std::vector<Shape> shapes = load_shapes(shape_list(request.folder, request.split), categories);
    ItemSink sink(request, set);
    for (size_t i = 0; i < shapes.size(); ++i) {
        request.report(static_cast<int64_t>(i), shapes.size());
        const Shape& shape = shapes[i];
        const Text text = load(request, shape, set.categories[static_cast<size_t>(shape.category)]);
        const std::string place = fmt::format("{}/{}", shape.synset, shape.name);
        sink.add({text.points, text.normals, text.parts, shape.category, place}, join(request.folder, place));
    }
    request.report(static_cast<int64_t>(shapes.size()), shapes.size());
    sink.finish();
}

}  // namespace

const Layout kPartText = {
    {"part-text",
     "synsetoffset2category.txt with SYNSET/points/*.pts and train_test_split/shuffled_SPLIT_file_list.json",
     "clouds, categories, parts"},
    [](const std::string& folder) { return splits_of_text(folder, true); },
    [](const SetRequest& request, DataSet& set) { load_text_shapes(request, set, load_two_files); }};

const Layout kPartNormalText = {
    {"part-normal-text",
     "synsetoffset2category.txt with SYNSET/*.txt and train_test_split/shuffled_SPLIT_file_list.json",
     "clouds, normals, categories, parts"},
    [](const std::string& folder) { return splits_of_text(folder, false); },
    [](const SetRequest& request, DataSet& set) { load_text_shapes(request, set, load_one_file); }};

}  // namespace stipple::data
