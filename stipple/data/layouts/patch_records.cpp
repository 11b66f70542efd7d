// Patches of upsampling sets in TFRecord files, as PUGeo has them: in every record a list of floats for the sparse
// patch and one for the dense.

#include <cmath>

#include "stipple/core/folder.h"
#include "stipple/data/layouts/common.h"
#include "stipple/io/tfrecord.h"

namespace stipple::data {
namespace {

bool is_record_name(std::string_view name) {
    return name.ends_with(".tfrecord") || name.ends_with(".tfrecords");
}

/// The path itself, or all such files in it by name.
std::vector<std::string> record_files(const std::string& path) {
    if (!is_folder(path)) return is_record_name(path) ? std::vector<std::string>{path} : std::vector<std::string>{};
    std::vector<std::string> files;
    for (const std::string& name : list_folder(path))
        if (name[0] != '.' && is_record_name(name) && is_file(join(path, name))) files.push_back(join(path, name));
    return files;
}

std::vector<std::string> splits_of_records(const std::string& path) {
    if (record_files(path).empty()) return {};
    return {"all"};
}

[[noreturn]] void fail_record(const io::TfExample& example, std::string message) {
    throw Error(ErrorCode::bad_file, Place{{}, {}, example.begin}, std::move(message));
}

/// Whether all rows of six end in a vector of unit length: points with normals.
bool has_normals(const std::vector<float>& values) {
    if (values.empty() || values.size() % 6 != 0) return false;
    for (size_t i = 0; i < values.size(); i += 6)
        if (!(std::fabs(std::hypot(values[i + 3], values[i + 4], values[i + 5]) - 1) < 0.01)) return false;
    return true;
}

/// What the first record says of all.
struct PairForm {
    std::string sparse, dense;  // names of the lists
    size_t sparse_values = 0, dense_values = 0, columns = 3;
};

PairForm form_of(const io::TfExample& example) {
    const std::vector<io::FloatFeature>& lists = example.features;
    if (lists.size() != 2) {
        std::string names;
        for (const io::FloatFeature& list : lists) names += (names.empty() ? ": " : ", ") + in_quotes(list.name);
        fail_record(example, fmt::format("{} lists of floats, two are wanted: a sparse patch and a dense one{}",
                                         lists.size(), names));
    }
    const bool is_ordered = lists[0].values.size() < lists[1].values.size();
    const io::FloatFeature &sparse = lists[is_ordered ? 0 : 1], &dense = lists[is_ordered ? 1 : 0];
    PairForm form{sparse.name, dense.name, sparse.values.size(), dense.values.size()};
    if (has_normals(sparse.values) && has_normals(dense.values)) form.columns = 6;
    for (const io::FloatFeature* list : {&sparse, &dense})
        if (list->values.empty() || list->values.size() % form.columns != 0)
            fail_record(example, fmt::format("{}: {} numbers are no points, nor points with normals",
                                             in_quotes(list->name), list->values.size()));
    if (form.sparse_values == form.dense_values)
        fail_record(example, fmt::format("two patches of {} points: a sparse one and a dense one are wanted",
                                         form.sparse_values / form.columns));
    return form;
}

void append_list(const io::TfExample& example, const std::string& name, size_t wanted, size_t columns, Clouds& clouds,
                 const std::string& place) {
    const io::FloatFeature* list = nullptr;
    for (const io::FloatFeature& one : example.features)
        if (one.name == name) list = &one;
    if (!list || list->values.size() != wanted)
        fail_record(example, fmt::format("{}: {} numbers, the first record has {}", in_quotes(name),
                                         list ? list->values.size() : 0, wanted));
    std::vector<float> points;
    points.reserve(wanted / columns * 3);
    for (size_t i = 0; i < wanted; i += columns)
        points.insert(points.end(), list->values.begin() + static_cast<int64_t>(i),
                      list->values.begin() + static_cast<int64_t>(i) + 3);
    append_cloud(clouds, points, static_cast<int64_t>(points.size() / 3), place);
}

void load_records(const SetRequest& request, DataSet& set) {
    STIPPLE_REQUIRE(request.options.points == 0, "{}: pairs are read whole, not the first {} points of each",
                    request.folder, request.options.points);
    const std::vector<std::string> files = record_files(request.folder);
    PairForm form;
    for (size_t i = 0; i < files.size(); ++i) {
        request.report(static_cast<int64_t>(i), files.size());
        try {
            io::FileSource source(files[i]);
            io::ByteReader reader(source, request.options.limits);
            int64_t number = 0;
            for (io::TfExample example; io::read_example(reader, example); ++number) {
                if (form.sparse_values == 0) form = form_of(example);
                const std::string place = fmt::format("{}: record {}", files[i], number);
                append_list(example, form.sparse, form.sparse_values, form.columns, set.clouds, place);
                append_list(example, form.dense, form.dense_values, form.columns, set.targets, place);
            }
        } catch (const Error& error) {
            if (!error.place().path.empty()) throw;
            throw error.at_path(files[i]);
        }
    }
    request.report(static_cast<int64_t>(files.size()), files.size());
    const int64_t ratio = request.options.ratio;
    if (ratio > 0 && form.dense_values != static_cast<size_t>(ratio) * form.sparse_values)
        throw Error(ErrorCode::bad_argument, Place{request.folder},
                    fmt::format("has no patches {} times as dense: {} and {} points", ratio,
                                form.sparse_values / form.columns, form.dense_values / form.columns));
}

}  // namespace

const Layout kPatchRecords = {
    {"patches-tfrecord", "a file .tfrecord, or a folder with such files", "pairs of sparse and dense clouds"},
    splits_of_records,
    load_records};

}  // namespace stipple::data
