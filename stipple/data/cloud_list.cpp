#include "stipple/data/cloud_list.h"

#include <algorithm>

#include "stipple/core/folder.h"
#include "stipple/data/class_names.h"
#include "stipple/data/layouts/cloud_files.h"
#include "stipple/data/packed.h"

namespace stipple::data {
namespace {

bool is_known(const std::string& path, io::Format& format) {
    try {
        format = io::format_by_extension(path);
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// An HDF5 file of clouds, with the names of classes that a set has beside it.
DataSet set_of_file(const std::string& path) {
    const io::CloudSet file = io::load_hdf5(path);
    DataSet set;
    set.clouds.points.assign(file.points.span().begin(), file.points.span().end());
    for (int64_t i = 0; i < file.size(); ++i) set.clouds.offsets.push_back((i + 1) * file.points.size(1));
    for (const int64_t label : file.labels) set.labels.push_back(static_cast<int32_t>(label));
    const size_t slash = path.rfind('/');
    const std::string names = (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + "shape_names.txt";
    if (is_file(names)) set.classes = load_names(names);
    return set;
}

void add_set(const std::string& path, DataSet set, std::vector<CloudEntry>& entries) {
    const auto shared = std::make_shared<const DataSet>(std::move(set));
    for (int64_t i = 0; i < shared->size(); ++i) entries.push_back({path, i, shared});
}

/// What is not trained on, where a set tells it.
std::string split_to_look_at(const std::vector<std::string>& splits) {
    return std::find(splits.begin(), splits.end(), "test") != splits.end() ? "test" : splits.front();
}

void add_file(const std::string& path, std::vector<CloudEntry>& entries) {
    io::Format format{};
    const bool is_packed = path.ends_with(".stpk") && is_packed_file(path);
    if (!is_packed && (!is_known(path, format) || format != io::Format::hdf5)) {
        entries.push_back({path});
        return;
    }
    try {
        io::Warnings none;  // a packed set has nothing to tell
        if (is_packed)
            add_set(path, load_data_set(path, {.split = split_to_look_at(recognise_data_set(path).splits)}, none),
                    entries);
        else
            add_set(path, set_of_file(path), entries);
    } catch (const Error& error) {
        entries.push_back({path, -1, {}, error});
    }
}

/// Nothing where the folder is no set.
void add_data_set(const std::string& folder, std::vector<CloudEntry>& entries) {
    RecognisedSet found;
    try {
        found = recognise_data_set(folder);
    } catch (const Error&) {
        return;
    }
    const std::string split = split_to_look_at(found.splits);
    const std::vector<ClassFile> files = files_of_classes(folder, split);
    for (const ClassFile& file : files) entries.push_back({file.path});
    if (!files.empty()) return;
    io::Warnings none;
    add_set(folder, load_data_set(folder, {.split = split}, none), entries);
}

}  // namespace

std::string CloudEntry::name() const {
    return item < 0 ? path : fmt::format("{}[{}]", path, item);
}

std::optional<int64_t> CloudEntry::label() const {
    if (!set || set->labels.empty()) return std::nullopt;
    return set->labels[static_cast<size_t>(item)];
}

std::string CloudEntry::class_name() const {
    if (set) {
        const int64_t number = label().value_or(-1);
        const bool is_named = number >= 0 && number < static_cast<int64_t>(set->classes.size());
        return is_named ? set->classes[static_cast<size_t>(number)] : "";
    }
    std::string above = path;
    for (int level = 0; level < 2; ++level) {
        const size_t slash = above.rfind('/');
        if (slash == std::string::npos) return "";
        above.resize(slash);
        const std::string folder = above.substr(above.rfind('/') + 1);
        if (std::find(std::begin(kSplits), std::end(kSplits), folder) == std::end(kSplits)) return folder;
    }
    return "";
}

std::vector<CloudEntry> list_clouds(const std::vector<std::string>& inputs) {
    std::vector<CloudEntry> entries;
    for (std::string input : inputs) {
        if (!is_folder(input)) {
            add_file(input, entries);
            continue;
        }
        while (input.size() > 1 && input.back() == '/') input.pop_back();
        const size_t before = entries.size();
        io::Format format{};
        for (const std::string& name : list_folder(input)) {
            const std::string path = join(input, name);
            if (name[0] != '.' && is_known(path, format) && !is_folder(path)) add_file(path, entries);
        }
        if (entries.size() == before) add_data_set(input, entries);
        STIPPLE_REQUIRE(entries.size() > before, "{}: a folder without clouds", input);
    }
    return entries;
}

Mesh load_entry(const CloudEntry& entry, const ReadClouds& how, io::Warnings& warnings) {
    if (entry.error) throw *entry.error;
    Mesh mesh;
    if (entry.set) {
        const View<const float, 2> points = entry.set->points_of(entry.item);
        mesh.vertices = PointCloud(points.size(0));
        std::copy_n(points.data(), points.elements(), mesh.vertices.positions.data());
        return mesh;
    }
    io::ReadOptions options;
    if (how.on_progress)
        options.on_progress = [&](int64_t done, int64_t total) { how.on_progress(entry.path, done, total); };
    io::Format format{};
    if (!how.format.empty()) format = io::format_by_name(how.format);
    io::Warnings found;
    mesh = io::load(entry.path, options, found, how.format.empty() ? nullptr : &format);
    for (const std::string& warning : found) warnings.push_back(fmt::format("{}: {}", entry.path, warning));
    return mesh;
}

}  // namespace stipple::data
