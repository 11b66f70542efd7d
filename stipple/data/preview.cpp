#include "stipple/data/preview.h"

#include <algorithm>
#include <optional>

#include "stipple/io/text.h"

namespace stipple::data {
namespace {

constexpr int64_t kShown = 24;  // clouds, where they are of one class or of none

std::vector<int64_t> choose_items(const DataSet& set, const PreviewOptions& options) {
    if (set.labels.empty()) {
        STIPPLE_REQUIRE(options.only.empty(), "--class: the data set ({}) has no classes", set.layout);
        std::vector<int64_t> items;
        const int64_t wanted = options.each > 0 ? options.each : kShown;
        for (int64_t i = 0; i < std::min(wanted, set.size()); ++i) items.push_back(i);
        return items;
    }
    std::optional<int64_t> only;
    for (size_t c = 0; c < set.classes.size(); ++c)
        if (io::lower_case(set.classes[c]) == io::lower_case(options.only)) only = static_cast<int64_t>(c);
    if (!only && !options.only.empty()) {
        std::string names;
        for (const std::string& name : set.classes) names += (names.empty() ? "" : ", ") + name;
        throw Error(ErrorCode::bad_argument, fmt::format("--class {}: no such class", options.only),
                    "classes: " + names);
    }
    const int64_t wanted = options.each > 0 ? options.each : only ? kShown : set.classes.size() > 20 ? 1 : 2;
    std::vector<std::vector<int64_t>> of_class(set.classes.size());
    for (int64_t i = 0; i < set.size(); ++i) {
        const int32_t label = set.labels[static_cast<size_t>(i)];
        auto& list = of_class[static_cast<size_t>(label)];
        if ((!only || *only == label) && static_cast<int64_t>(list.size()) < wanted) list.push_back(i);
    }
    std::vector<int64_t> items;
    for (const auto& list : of_class) items.insert(items.end(), list.begin(), list.end());
    STIPPLE_REQUIRE(!items.empty(), "the split {} has no clouds of {}", set.split, options.only);
    return items;
}

}  // namespace

const Fields& preview_fields() {
    using Options = PreviewOptions;
    static const Fields fields = {field<&Options::only>("class", "Clouds of this one, with the names of its parts"),
                                  field<&Options::each>("each", "Clouds of a class; 0: as many as look well").from(0),
                                  field<&Options::points>("points", "The first N of each cloud; 0: all").from(0),
                                  field<&Options::size>("size", "Pixels of one cloud").between(48, 2048),
                                  field<&Options::columns>("columns", "Clouds in a row; 0 chooses").from(0)};
    return fields;
}

const Fields& preview_result_fields() {
    static const Fields fields = {field<&Preview::layout>("layout", "How the set is stored"),
                                  field<&Preview::split>("split", "The split that is shown"),
                                  field<&Preview::items>("items", "Numbers of the clouds")};
    return fields;
}

Preview choose_preview(const DataSet& set, const PreviewOptions& options) {
    check_fields(preview_fields(), &options);
    Preview preview{set.layout, set.split, choose_items(set, options)};
    STIPPLE_REQUIRE(preview.items.size() <= kMostPreviews, "{} clouds do not fit one picture, at most {}: fewer --each",
                    preview.items.size(), kMostPreviews);
    return preview;
}

PointCloud cloud_of(const DataSet& set, int64_t item) {
    const int64_t first = set.clouds.offsets[static_cast<size_t>(item)], n = set.clouds.size_of(item);
    PointCloud cloud(n);
    std::copy_n(set.clouds.points.data() + 3 * first, 3 * n, cloud.positions.data());
    if (set.parts.empty()) return cloud;
    const int64_t begin = set.categories[static_cast<size_t>(set.labels[static_cast<size_t>(item)])].begin;
    Attribute& label = cloud.attributes.emplace_back("label", DType::i32, n, 1);
    for (int64_t i = 0; i < n; ++i)
        label.as<int32_t>().data()[i] = static_cast<int32_t>(set.parts[static_cast<size_t>(first + i)] - begin);
    return cloud;
}

}  // namespace stipple::data
