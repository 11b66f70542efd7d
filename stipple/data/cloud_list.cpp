#include "stipple/data/cloud_list.h"

#include <algorithm>

#include "stipple/core/folder.h"

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

void add_file(const std::string& path, std::vector<CloudEntry>& entries) {
    io::Format format{};
    if (!is_known(path, format) || format != io::Format::hdf5) {
        entries.push_back({path});
        return;
    }
    try {
        auto set = std::make_shared<const io::CloudSet>(io::load_hdf5(path));
        for (int64_t i = 0; i < set->size(); ++i) entries.push_back({path, i, set});
    } catch (const Error& error) {
        entries.push_back({path, -1, {}, error});
    }
}

PointCloud cloud_of_set(const io::CloudSet& set, int64_t item) {
    const int64_t n = set.points.size(1);
    PointCloud cloud(n);
    std::copy_n(set.points.data() + 3 * n * item, 3 * n, cloud.positions.data());
    return cloud;
}

}  // namespace

std::string CloudEntry::name() const {
    return item < 0 ? path : fmt::format("{}[{}]", path, item);
}

std::optional<int64_t> CloudEntry::label() const {
    if (!set || set->labels.empty()) return std::nullopt;
    return set->labels[static_cast<size_t>(item)];
}

std::vector<CloudEntry> list_clouds(const std::vector<std::string>& inputs) {
    std::vector<CloudEntry> entries;
    for (const std::string& input : inputs) {
        if (!is_folder(input)) {
            add_file(input, entries);
            continue;
        }
        const size_t before = entries.size();
        io::Format format{};
        for (const std::string& name : list_folder(input)) {
            const std::string path = input + (input.back() == '/' ? "" : "/") + name;
            if (name[0] != '.' && is_known(path, format) && !is_folder(path)) add_file(path, entries);
        }
        STIPPLE_REQUIRE(entries.size() > before, "{}: a folder without clouds", input);
    }
    return entries;
}

Mesh load_entry(const CloudEntry& entry, const ReadClouds& how, io::Warnings& warnings) {
    if (entry.error) throw *entry.error;
    Mesh mesh;
    if (entry.set) {
        mesh.vertices = cloud_of_set(*entry.set, entry.item);
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
