#include "stipple/data/save_data_set.h"

#include <algorithm>
#include <array>

#include "stipple/core/folder.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/json_writer.h"
#include "stipple/data/layouts/common.h"
#include "stipple/data/save/save.h"
#include "stipple/io/text.h"

namespace stipple::data {
namespace {

constexpr const char* kMark = "converted.json";

struct Writer {
    std::string_view layout;
    bool needs_parts;
    void (*save)(const SaveRequest& request);
};
constexpr Writer kWriters[] = {{kWritableLayouts[0], false, save_modelnet_hdf5},
                               {kWritableLayouts[1], true, save_part_hdf5},
                               {kWritableLayouts[2], false, save_class_folders},
                               {kWritableLayouts[3], true, save_part_folders}};

const Writer& writer_of(const std::string& layout) {
    std::string names;
    for (const Writer& writer : kWriters) {
        if (writer.layout == layout) return writer;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", writer.layout);
    }
    throw Error(ErrorCode::bad_argument, fmt::format("{}: cannot be written; these can: {}", layout, names));
}

std::string mark_text(std::span<const DataSet> splits, const std::string& layout) {
    JsonWriter json;
    json.begin_object().field("layout", layout).field("from", splits[0].layout).key("items").begin_object();
    for (const DataSet& set : splits) json.field(set.split, set.size());
    json.end_object().end_object();
    return json.text() + "\n";
}

}  // namespace

const Fields& convert_fields() {
    static const Fields fields = {
        field<&ConvertOptions::layout>("to", "modelnet-hdf5, part-hdf5, class-folders, part-folders")
            .words(kWritableLayouts)
            .shown("LAYOUT REQUIRED"),
        field<&ConvertOptions::points>("points", "The first N of each cloud; 0: all").from(0)};
    return fields;
}

const Fields& converted_set_fields() {
    static const Fields fields = {field<&ConvertedSet::from>("from", "The layout that was read"),
                                  field<&ConvertedSet::splits>("splits", "Names of the splits"),
                                  field<&ConvertedSet::items>("items", "Clouds of all splits")};
    return fields;
}

ConvertedSet converted_set_of(std::span<const DataSet> splits) {
    ConvertedSet converted{.from = splits[0].layout, .splits = {}};
    for (const DataSet& set : splits) {
        converted.splits.push_back(set.split);
        converted.items += set.size();
    }
    return converted;
}

void require_writable_set(const std::string& folder, Overwrite overwrite) {
    require_writable_folder(folder, overwrite);
    if (is_folder(folder) && !is_file(join(folder, kMark)))
        throw Error(ErrorCode::cannot_write, Place{folder},
                    fmt::format("is a folder that was not written by a conversion: it has no {}", kMark),
                    "remove it, or choose another name");
}

void save_data_set(const std::string& folder, std::span<const DataSet> splits, const std::string& layout,
                   const SaveOptions& options, io::Warnings& warnings) {
    const Writer& writer = writer_of(layout);
    STIPPLE_REQUIRE(!splits.empty(), "no splits to write");
    int64_t total = 0, done = 0;
    for (const DataSet& set : splits) {
        STIPPLE_REQUIRE(!set.is_pairs(), "pairs of sparse and dense clouds cannot become {}", layout);
        STIPPLE_REQUIRE(!set.labels.empty(), "{} needs classes, the data set has none", layout);
        STIPPLE_REQUIRE(!writer.needs_parts || !set.parts.empty(), "{} needs parts, the data set has none", layout);
        STIPPLE_REQUIRE(set.classes == splits[0].classes, "the splits {} and {} are not of one data set",
                        splits[0].split, set.split);
        total += set.size();
    }
    require_writable_set(folder, options.overwrite);
    AtomicFolder made(folder, options.overwrite);
    const std::function<void()> advance = [&] {
        check_interrupted();
        ++done;
        if (options.on_progress) options.on_progress(done, total);
    };
    writer.save({made, splits, advance, warnings});
    save_text(join(made.path(), kMark), mark_text(splits, layout));
    made.commit();
}

void save_text(const std::string& path, std::string_view text) {
    AtomicFile file(path, Overwrite::refuse);
    file.write(text);
    file.commit();
}

std::string parts_json(const DataSet& set) {
    JsonWriter json;
    json.begin_object();
    for (const PartCategory& category : set.categories) {
        json.key(category.name).begin_array();
        for (int64_t part = category.begin; part < category.end; ++part) {
            const bool is_named = part < static_cast<int64_t>(set.part_names.size());
            json.begin_array()
                .value(part)
                .value(is_named ? set.part_names[static_cast<size_t>(part)] : fmt::format("part {}", part))
                .end_array();
        }
        json.end_array();
    }
    json.end_object();
    return json.text() + "\n";
}

void require_line_names(const std::vector<std::string>& classes, bool is_word) {
    for (const std::string& name : classes) {
        const bool reads_back =
            !name.empty() && io::trimmed(name) == name && name.find_first_of("\r\n") == std::string::npos;
        STIPPLE_REQUIRE(reads_back && (!is_word || name.find_first_of(" \t") == std::string::npos),
                        "the class {} cannot be a {} of a list", in_quotes(name), is_word ? "word" : "line");
    }
}

}  // namespace stipple::data
