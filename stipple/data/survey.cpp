#include "stipple/data/survey.h"

#include <algorithm>
#include <limits>

#include "stipple/data/packed.h"

namespace stipple::data {
namespace {

const Fields& split_fields() {
    using Split = SplitFacts;
    static const Fields fields = {field<&Split::name>("name", "Name of the split"),
                                  field<&Split::items>("items", "Clouds"),
                                  field<&Split::points>("points", "Points of all clouds"),
                                  field<&Split::fewest_points>("fewest_points", "Points of the smallest cloud"),
                                  field<&Split::most_points>("most_points", "Points of the largest cloud"),
                                  field<&Split::has_normals>("normals", "Points have normals"),
                                  field<&Split::has_parts>("parts", "Points have parts"),
                                  field<&Split::has_names>("names", "Clouds have names"),
                                  field<&Split::is_pairs>("pairs", "Clouds come with dense ones")};
    return fields;
}

const Fields& class_fields() {
    static const Fields fields = {field<&ClassFacts::name>("class", "Name of the class"),
                                  computed_field<ClassFacts>("items", "Clouds of each split, by its name",
                                                             [](const ClassFacts& one) {
                                                                 Json items = Json::object();
                                                                 for (const auto& [split, count] : one.items)
                                                                     items[split] = count;
                                                                 return items;
                                                             }),
                                  field<&ClassFacts::first_part>("first_part", "Number of its first part"),
                                  field<&ClassFacts::parts>("parts", "How many parts it has")};
    return fields;
}

const Fields& box_fields() {
    static const Fields fields = {field<&SetFacts::Box::min>("min", "Lowest coordinates"),
                                  field<&SetFacts::Box::max>("max", "Highest coordinates")};
    return fields;
}

SplitFacts facts_of(const DataSet& set) {
    SplitFacts facts{.name = set.split,
                     .items = set.size(),
                     .points = set.clouds.offsets.back(),
                     .fewest_points = set.clouds.size_of(0),
                     .has_normals = !set.normals.empty(),
                     .has_parts = !set.parts.empty(),
                     .has_names = !set.names.empty(),
                     .is_pairs = set.is_pairs()};
    for (int64_t i = 0; i < set.size(); ++i) {
        facts.fewest_points = std::min(facts.fewest_points, set.clouds.size_of(i));
        facts.most_points = std::max(facts.most_points, set.clouds.size_of(i));
    }
    return facts;
}

/// All splits have the same classes.
void add_classes(const DataSet& set, SetFacts& facts) {
    facts.classes.resize(set.classes.size());
    std::vector<int64_t> counts(set.classes.size());
    for (const int32_t label : set.labels) ++counts[static_cast<size_t>(label)];
    for (size_t c = 0; c < set.classes.size(); ++c) {
        ClassFacts& one = facts.classes[c];
        one.name = set.classes[c];
        one.items.emplace_back(set.split, counts[c]);
        if (set.categories.empty()) continue;
        one.first_part = set.categories[c].begin;
        one.parts = set.categories[c].end - set.categories[c].begin;
    }
}

}  // namespace

const Fields& set_facts_fields() {
    using Facts = SetFacts;
    static const Fields fields = {
        field<&Facts::layout>("layout", "How the set is stored"),
        field<&Facts::bits>("bits", "Bits of a coordinate, in a packed file"),
        objects_field<&Facts::splits>("splits", split_fields, "Its parts for training and testing"),
        objects_field<&Facts::classes>("classes", class_fields, "Its classes"),
        field<&Facts::part_names>("part_names", "Names of parts, by number"),
        object_field<&Facts::bounds>("bounds", box_fields, "The box around all clouds")};
    return fields;
}

SetFacts survey(const std::string& path, const std::string& layout,
                const std::function<DataSet(const std::string& split)>& load) {
    const RecognisedSet found = recognise_data_set(path, layout);
    SetFacts facts{.layout = found.layout};
    if (is_packed_file(path)) facts.bits = load_packed_content(path).bits;
    facts.bounds.min.fill(std::numeric_limits<double>::infinity());
    facts.bounds.max.fill(-std::numeric_limits<double>::infinity());
    for (const std::string& split : found.splits) {
        const DataSet set = load(split);
        facts.splits.push_back(facts_of(set));
        facts.part_names = set.part_names;
        add_classes(set, facts);
        for (size_t i = 0; i < set.clouds.points.size(); ++i) {
            const double x = set.clouds.points[i];
            facts.bounds.min[i % 3] = std::min(facts.bounds.min[i % 3], x);
            facts.bounds.max[i % 3] = std::max(facts.bounds.max[i % 3], x);
        }
    }
    return facts;
}

}  // namespace stipple::data
