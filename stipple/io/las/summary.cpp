#include <algorithm>
#include <cctype>
#include <charconv>

#include "stipple/io/las/head.h"
#include "stipple/io/las_summary.h"

namespace stipple::io {

using namespace las;

namespace {

constexpr uint16_t kGeoKeys = 34735, kGeoTexts = 34737;
// Keys that name a coordinate system, the most telling first: projected, geographic; and their citations.
constexpr uint16_t kProjectedKey = 3072, kGeographicKey = 2048, kProjectedText = 3073, kGeographicText = 2049,
                   kText = 1026;
constexpr uint16_t kUserDefined = 32767;

std::string printable_part(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\0') break;
        if (std::isprint(static_cast<unsigned char>(c))) out += c;
    }
    return out;
}

const FileFacts::Record* record_with(const FileFacts& facts, uint16_t id) {
    for (const FileFacts::Record& record : facts.coordinate_system)
        if (record.id == id) return &record;
    return nullptr;
}

/// PROJCS["name", ... AUTHORITY["EPSG","32633"]] or ... ID["EPSG",32633]]: the number that stands directly in the
/// whole, or in the first part of a compound system that has none of its own.
void read_wkt(std::string_view text, LasSummary& summary) {
    const size_t open = text.find('"'), close = open == text.npos ? open : text.find('"', open + 1);
    if (close == text.npos) return;
    summary.coordinate_system = printable_part(text.substr(open + 1, close - open - 1));
    const bool compound = text.substr(0, 5) == "COMPD" || text.substr(0, 8) == "COMPOUND";
    std::optional<int> of_part;
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"') quoted = !quoted;
        if (quoted) continue;
        if (text[i] == ']' || text[i] == ')') --depth;
        if (text[i] != '[' && text[i] != '(') continue;
        ++depth;
        std::string_view inside = text.substr(i + 1);
        if (inside.substr(0, 7) != "\"EPSG\",") continue;
        inside.remove_prefix(7);
        while (!inside.empty() && (inside[0] == '"' || inside[0] == ' ')) inside.remove_prefix(1);
        int number = 0;
        const auto [stop, error] = std::from_chars(inside.data(), inside.data() + inside.size(), number);
        if (error != std::errc() || number <= 0) continue;
        if (depth == 2) summary.epsg = number;
        if (depth == 3 && compound && !of_part) of_part = number;
    }
    if (!summary.epsg) summary.epsg = of_part;
}

/// Rows of four: key, where its value stands (0: here), how many, value or index.
void read_keys(const std::string& keys, const FileFacts::Record* texts, LasSummary& summary) {
    const auto at = [&](size_t i) {
        return number_at<uint16_t>(reinterpret_cast<const std::byte*>(keys.data()), static_cast<int64_t>(2 * i));
    };
    const size_t numbers = keys.size() / 2;
    int best = 0;
    size_t best_text = 0;
    for (size_t i = 4; i + 4 <= numbers; i += 4) {
        const uint16_t key = at(i), where = at(i + 1), count = at(i + 2), value = at(i + 3);
        const int rank = key == kProjectedKey ? 2 : key == kGeographicKey ? 1 : 0;
        if (rank > best && where == 0 && value != 0 && value != kUserDefined) {
            best = rank;
            summary.epsg = value;
        }
        const size_t text_rank = key == kProjectedText ? 3 : key == kGeographicText ? 2 : key == kText ? 1 : 0;
        if (text_rank > best_text && texts && where == kGeoTexts && size_t{value} + count <= texts->bytes.size()) {
            best_text = text_rank;
            std::string name = printable_part(std::string_view(texts->bytes).substr(value, count));
            while (!name.empty() && (name.back() == '|' || name.back() == ' ')) name.pop_back();
            summary.coordinate_system = name;
        }
    }
}

std::map<int, int64_t> counts_of(const PointCloud& cloud, std::string_view name) {
    std::map<int, int64_t> counts;
    const Attribute* attribute = find(cloud.attributes, name);
    if (!attribute || attribute->components() != 1) return counts;
    std::array<int64_t, 256> seen = {};
    for (int64_t i = 0; i < attribute->rows(); ++i) {
        // stipple's own files restore other types than uint8.
        const double value = attribute->value(i);
        if (!(value >= 0 && value <= 255)) return counts;
        ++seen[static_cast<size_t>(value)];
    }
    for (size_t v = 0; v < seen.size(); ++v)
        if (seen[v] > 0) counts[static_cast<int>(v)] = seen[v];
    return counts;
}

}  // namespace

std::optional<LasSummary> summarise_las(const PointCloud& cloud) {
    const FileFacts& facts = cloud.facts;
    if (!facts.las || !facts.grid) return std::nullopt;
    const std::string& header = facts.las->header;
    const auto* bytes = reinterpret_cast<const std::byte*>(header.data());
    LasSummary summary;
    summary.minor = minor_of(*facts.las);
    summary.point_format = format_of(*facts.las);
    summary.system = printable_part(header.substr(at::kSystem, 32));
    summary.software = printable_part(header.substr(at::kSoftware, 32));
    summary.day = number_at<uint16_t>(bytes, at::kDate);
    summary.year = number_at<uint16_t>(bytes, at::kDate + 2);
    summary.scale = facts.grid->scale;
    summary.offset = facts.grid->offset;
    summary.time_type = facts.time_type;
    summary.has_time = find(cloud.attributes, "time");
    summary.records = static_cast<int64_t>(facts.las->records.size());
    summary.extended_records = static_cast<int64_t>(facts.las->extended.size());
    if (const auto* keys = record_with(facts, kGeoKeys)) read_keys(keys->bytes, record_with(facts, kGeoTexts), summary);
    if (const auto* wkt = record_with(facts, kWktRecord)) read_wkt(wkt->bytes, summary);
    summary.returns = counts_of(cloud, "return_number");
    summary.classes = counts_of(cloud, "label");
    return summary;
}

std::string_view las_class_name(int number) {
    static constexpr std::string_view kNames[] = {"never classified",
                                                  "unclassified",
                                                  "ground",
                                                  "low vegetation",
                                                  "medium vegetation",
                                                  "high vegetation",
                                                  "building",
                                                  "low point (noise)",
                                                  "model key point",
                                                  "water",
                                                  "rail",
                                                  "road surface",
                                                  "overlap",
                                                  "wire, guard",
                                                  "wire, conductor",
                                                  "transmission tower",
                                                  "wire connector",
                                                  "bridge deck",
                                                  "high noise",
                                                  "overhead structure",
                                                  "ignored ground",
                                                  "snow",
                                                  "temporal exclusion"};
    if (number >= 0 && number < static_cast<int>(std::size(kNames))) return kNames[number];
    return number < 64 ? "reserved" : "user defined";
}

}  // namespace stipple::io
