#include "stipple/data/part_categories.h"

#include "stipple/core/error.h"
#include "stipple/core/json_walk.h"
#include "stipple/io/text.h"

namespace stipple::data {
namespace {

constexpr int64_t kShapeNetParts = 50;

const std::vector<PartCategory>& shapenet_categories() {
    static const std::vector<PartCategory> categories = {
        {"airplane", 0, 4}, {"bag", 4, 6},        {"cap", 6, 8},          {"car", 8, 12},
        {"chair", 12, 16},  {"earphone", 16, 19}, {"guitar", 19, 22},     {"knife", 22, 24},
        {"lamp", 24, 28},   {"laptop", 28, 30},   {"motorbike", 30, 36},  {"mug", 36, 38},
        {"pistol", 38, 41}, {"rocket", 41, 44},   {"skateboard", 44, 47}, {"table", 47, 50}};
    return categories;
}

std::vector<PartCategory> parse_categories(const std::string& json) {
    std::vector<PartCategory> categories;
    int fields = 0;
    const bool valid = walk_json(json, [&](std::string_view path, const JsonValue& value) {
        const size_t slash = path.rfind('/');
        const std::string_view index = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
        if ((index != "0" && index != "1") || value.kind != JsonValue::Kind::integer)
            throw Error(ErrorCode::bad_file,
                        "stipple.categories of the metadata has more than a first and a last part");
        if (index == "0") categories.push_back({std::string(path.substr(0, slash))});
        if (index == "1" && (categories.empty() || categories.back().name != path.substr(0, slash)))
            throw Error(ErrorCode::bad_file, "stipple.categories of the metadata is out of order");
        (index == "0" ? categories.back().begin : categories.back().end) = value.integer;
        ++fields;
    });
    if (!valid || fields != 2 * static_cast<int>(categories.size()))
        throw Error(ErrorCode::bad_file, "stipple.categories of the metadata is no JSON object of ranges");
    return categories;
}

}  // namespace

std::vector<PartCategory> part_categories(const std::map<std::string, std::string>& metadata, int64_t categories,
                                          int64_t parts) {
    std::vector<PartCategory> found;
    if (const auto text = metadata.find("stipple.categories"); text != metadata.end())
        found = parse_categories(text->second);
    else if (categories == static_cast<int64_t>(shapenet_categories().size()) && parts == kShapeNetParts)
        found = shapenet_categories();
    else
        for (int64_t i = 0; i < categories; ++i) found.push_back({fmt::format("category {}", i), 0, parts});
    if (static_cast<int64_t>(found.size()) != categories)
        throw Error(ErrorCode::bad_file,
                    fmt::format("stipple.categories of the metadata names {} categories, the network has {}",
                                found.size(), categories));
    for (const PartCategory& category : found)
        if (category.begin < 0 || category.begin >= category.end || category.end > parts)
            throw Error(ErrorCode::bad_file, fmt::format("category {} has parts {} to {}, the network {}",
                                                         category.name, category.begin, category.end, parts));
    return found;
}

size_t find_category(const std::vector<PartCategory>& categories, const std::string& text) {
    int64_t number = 0;
    if (io::parse_number(text, number) && number >= 0 && number < static_cast<int64_t>(categories.size()))
        return static_cast<size_t>(number);
    std::string names;
    for (size_t i = 0; i < categories.size(); ++i) {
        if (io::lower_case(categories[i].name) == io::lower_case(text)) return i;
        names += (i ? ", " : "") + categories[i].name;
    }
    throw Error(ErrorCode::bad_argument,
                text.empty() ? "this network wants to know what it sees: which category?"
                             : fmt::format("{}: no such category", text),
                "categories: " + names);
}

}  // namespace stipple::data
