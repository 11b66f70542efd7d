#include "stipple/data/layouts/part_tables.h"

#include <algorithm>

#include "stipple/core/json_walk.h"
#include "stipple/data/class_names.h"
#include "stipple/io/text.h"

namespace stipple::data {
namespace {

constexpr int64_t kNoOwner = -1;
constexpr int64_t kMaxPartNumber = 1 << 16;

/// Ranges, from the category of each part.
std::vector<PartCategory> ranges_of(const std::string& path, const std::vector<CategoryLine>& categories,
                                    const std::vector<int64_t>& owners) {
    std::vector<PartCategory> ranges;
    for (size_t c = 0; c < categories.size(); ++c) {
        const auto owner = static_cast<int64_t>(c);
        const auto first = std::find(owners.begin(), owners.end(), owner);
        if (first == owners.end()) fail_at(path, fmt::format("{} has no parts", categories[c].name));
        const auto last = std::find_if(first, owners.end(), [&](int64_t o) { return o != owner; });
        if (std::find(last, owners.end(), owner) != owners.end())
            fail_at(path, fmt::format("the parts of {} are not consecutive", categories[c].name));
        ranges.push_back({categories[c].name, first - owners.begin(), last - owners.begin()});
    }
    return ranges;
}

int64_t find_line(const std::vector<CategoryLine>& categories, std::string_view text,
                  std::string CategoryLine::*member) {
    for (size_t c = 0; c < categories.size(); ++c)
        if (categories[c].*member == text) return static_cast<int64_t>(c);
    return kNoOwner;
}

}  // namespace

std::vector<CategoryLine> load_categories(const std::string& path, bool with_synsets) {
    std::vector<CategoryLine> categories;
    for (const std::string& line : load_names(path)) {
        std::string_view rest = line;
        const std::string_view name = io::next_word(rest), synset = io::next_word(rest);
        if (!io::next_word(rest).empty() || (with_synsets && synset.empty()))
            fail_at(path, fmt::format("expected a name and a synset, found {}", in_quotes(line)));
        if (!synset.empty() && !is_plain_name(synset))
            fail_at(path, fmt::format("{} is no name of a folder", in_quotes(synset)));
        if (find_line(categories, name, &CategoryLine::name) != kNoOwner ||
            (!synset.empty() && find_line(categories, synset, &CategoryLine::synset) != kNoOwner))
            fail_at(path, fmt::format("{} is there twice", in_quotes(line)));
        categories.push_back({std::string(name), std::string(synset)});
    }
    if (categories.empty()) fail_at(path, "names no categories");
    return categories;
}

std::optional<std::vector<PartCategory>> shapenet_ranges(const std::vector<CategoryLine>& categories) {
    const std::vector<PartCategory> known = part_categories({}, 16, 50);
    std::vector<PartCategory> ranges;
    for (const CategoryLine& category : categories) {
        const auto found = std::find_if(known.begin(), known.end(), [&](const PartCategory& k) {
            return io::lower_case(k.name) == io::lower_case(category.name);
        });
        if (found == known.end()) return std::nullopt;
        ranges.push_back({category.name, found->begin, found->end});
    }
    return ranges;
}

std::vector<PartCategory> load_overall_ids(const std::string& path, const std::vector<CategoryLine>& categories) {
    std::vector<int64_t> owners;
    bool wants_part = false;
    const auto fail = [&] { fail_at(path, "must be a list of synset and part: [[\"02691156\", 1], ...]"); };
    const bool valid = walk_json("{\"a\":" + load_text(path) + "}", [&](std::string_view at, const JsonValue& value) {
        if (wants_part) {
            if (at != fmt::format("a/{}/1", owners.size() - 1) || value.kind != JsonValue::Kind::integer) fail();
            wants_part = false;
            return;
        }
        if (at != fmt::format("a/{}/0", owners.size()) || value.kind != JsonValue::Kind::string) fail();
        const int64_t owner = find_line(categories, value.text, &CategoryLine::synset);
        if (owner == kNoOwner)
            fail_at(path, fmt::format("part {} is of {}, which is no category", owners.size(), in_quotes(value.text)));
        owners.push_back(owner);
        wants_part = true;
    });
    if (!valid || wants_part) fail();
    return ranges_of(path, categories, owners);
}

std::vector<PartCategory> load_named_parts(const std::string& path, const std::vector<CategoryLine>& categories,
                                           std::vector<std::string>& part_names) {
    std::vector<int64_t> owners;
    int64_t part = -1;  // whose name is next
    const auto fail = [&] { fail_at(path, "must be categories with parts: {\"Airplane\": [[0, \"body\"], ...]}"); };
    const bool valid = walk_json(load_text(path), [&](std::string_view at, const JsonValue& value) {
        const size_t column = at.rfind('/');
        const size_t row = column == std::string_view::npos ? column : at.rfind('/', column - 1);
        if (row == std::string_view::npos || row == 0) fail();
        if (part >= 0) {
            if (at.substr(column) != "/1" || value.kind != JsonValue::Kind::string) fail();
            part_names[static_cast<size_t>(part)] = value.text;
            part = -1;
            return;
        }
        if (at.substr(column) != "/0" || value.kind != JsonValue::Kind::integer) fail();
        const int64_t owner = find_line(categories, at.substr(0, row), &CategoryLine::name);
        if (owner == kNoOwner) fail_at(path, fmt::format("{} is no category", in_quotes(at.substr(0, row))));
        part = value.integer;
        if (part < 0 || part >= kMaxPartNumber) fail_at(path, fmt::format("part {} is out of range", part));
        if (part >= static_cast<int64_t>(owners.size())) {
            owners.resize(static_cast<size_t>(part) + 1, kNoOwner);
            part_names.resize(owners.size());
        }
        if (owners[static_cast<size_t>(part)] != kNoOwner) fail_at(path, fmt::format("part {} is there twice", part));
        owners[static_cast<size_t>(part)] = owner;
    });
    if (!valid || part >= 0) fail();
    return ranges_of(path, categories, owners);
}

std::vector<PartCategory> load_part_counts(const std::string& path, const std::vector<CategoryLine>& categories) {
    std::vector<int64_t> counts(categories.size(), 0);
    for (const std::string& line : load_names(path)) {
        std::string_view rest = line;
        const int64_t owner = find_line(categories, io::next_word(rest), &CategoryLine::name);
        int64_t count = 0;
        if (!io::parse_number(io::next_word(rest), count) || !io::next_word(rest).empty() || count < 1 ||
            count > kMaxPartNumber)
            fail_at(path, fmt::format("expected a name and a number of parts, found {}", in_quotes(line)));
        if (owner != kNoOwner) counts[static_cast<size_t>(owner)] = count;
    }
    std::vector<PartCategory> ranges;
    int64_t next = 0;
    for (size_t c = 0; c < categories.size(); ++c) {
        if (counts[c] == 0) fail_at(path, fmt::format("does not name {}", in_quotes(categories[c].name)));
        ranges.push_back({categories[c].name, next, next + counts[c]});
        next += counts[c];
    }
    return ranges;
}

}  // namespace stipple::data
