#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/json_reader.h"
#include "stipple/core/json_writer.h"
#include "stipple/tasks/confidence.h"

namespace stipple::tasks {
namespace {

constexpr const char* kKey = "stipple.confidence";
constexpr std::string_view kWhat = "the confidence";

/// Six digits: more would be noise, and three times the text.
double rounded(double x) {
    if (x == 0 || !std::isfinite(x)) return x;
    const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(x))));
    return std::round(x * scale) / scale;
}

/// Lists of numbers by name.
struct Lists {
    std::vector<double> temperature, means, factors, points, shifts, limits;

    std::vector<double>* find(std::string_view name) {
        if (name == "temperature") return &temperature;
        if (name == "means") return &means;
        if (name == "factors") return &factors;
        if (name == "points") return &points;
        if (name == "shifts") return &shifts;
        if (name == "limits") return &limits;
        return nullptr;
    }
};

void put(JsonWriter& json, std::string_view name, const std::vector<double>& list) {
    json.key(name).begin_array();
    for (const double x : list) json.value(rounded(x));
    json.end_array();
}

}  // namespace

std::string confidence_json(const Confidence& confidence) {
    Lists lists;
    for (const Confidence::Class& one : confidence.classes) {
        lists.means.insert(lists.means.end(), one.mean.begin(), one.mean.end());
        lists.factors.insert(lists.factors.end(), one.factor.begin(), one.factor.end());
    }
    JsonWriter json;
    json.begin_object().field("temperature", rounded(confidence.temperature)).key("points").begin_array();
    for (const Confidence::Size& size : confidence.sizes) {
        json.value(size.points);
        lists.shifts.insert(lists.shifts.end(), size.shift.begin(), size.shift.end());
        lists.limits.push_back(size.limit);
    }
    json.end_array();
    put(json, "shifts", lists.shifts);
    put(json, "limits", lists.limits);
    put(json, "means", lists.means);
    put(json, "factors", lists.factors);
    return json.end_object().text();
}

Confidence parse_confidence(std::string_view text) {
    Lists lists;
    read_json(kWhat, text, [&](JsonField& field) {
        const std::string_view name = field.word();
        std::vector<double>* list = lists.find(name);
        if (!list) field.fail("is not known");
        if (name != "temperature" && field.word() != std::to_string(list->size())) field.fail("is no list of numbers");
        double number = 0;
        field.take(number);
        if (!std::isfinite(number)) field.fail("must be finite");
        list->push_back(number);
    });
    const size_t classes = lists.means.size() / kShapeMeasures, sizes = lists.points.size();
    const auto fail = [](const std::string& why) {
        throw Error(ErrorCode::bad_file, fmt::format("{} {}", kWhat, why));
    };
    if (lists.temperature.size() != 1 || !(lists.temperature[0] > 0)) fail("has no temperature above 0");
    if (classes == 0 || lists.means.size() != classes * kShapeMeasures ||
        lists.factors.size() != classes * Confidence::kFactor)
        fail(fmt::format("has {} means and {} factors: {} and {} for each class", lists.means.size(),
                         lists.factors.size(), kShapeMeasures, Confidence::kFactor));
    if (sizes == 0 || lists.shifts.size() != sizes * kShapeMeasures || lists.limits.size() != sizes)
        fail(fmt::format("has {} sizes, {} shifts and {} limits", sizes, lists.shifts.size(), lists.limits.size()));
    Confidence confidence;
    confidence.temperature = lists.temperature[0];
    confidence.classes.resize(classes);
    for (size_t c = 0; c < classes; ++c) {
        std::copy_n(lists.means.begin() + static_cast<std::ptrdiff_t>(c * kShapeMeasures), kShapeMeasures,
                    confidence.classes[c].mean.begin());
        std::copy_n(lists.factors.begin() + static_cast<std::ptrdiff_t>(c * Confidence::kFactor), Confidence::kFactor,
                    confidence.classes[c].factor.begin());
    }
    for (size_t s = 0; s < sizes; ++s) {
        Confidence::Size size{.points = static_cast<int64_t>(lists.points[s]), .shift = {}, .limit = lists.limits[s]};
        std::copy_n(lists.shifts.begin() + static_cast<std::ptrdiff_t>(s * kShapeMeasures), kShapeMeasures,
                    size.shift.begin());
        const int64_t before = s == 0 ? 0 : confidence.sizes.back().points;
        if (!(lists.points[s] <= 1e9) || size.points <= before || !(size.limit > 0))
            fail("has sizes that do not grow, or a limit of 0");
        confidence.sizes.push_back(size);
    }
    return confidence;
}

std::optional<Confidence> confidence_of(const std::map<std::string, std::string>& metadata, int64_t classes) {
    const auto found = metadata.find(kKey);
    if (found == metadata.end()) return {};
    Confidence confidence = parse_confidence(found->second);
    if (static_cast<int64_t>(confidence.classes.size()) != classes)
        throw Error(ErrorCode::bad_file, fmt::format("{} is about {} classes, the network has {}", kWhat,
                                                     confidence.classes.size(), classes));
    return confidence;
}

void set_confidence(std::map<std::string, std::string>& metadata, const Confidence& confidence) {
    metadata[kKey] = confidence_json(confidence);
}

}  // namespace stipple::tasks
