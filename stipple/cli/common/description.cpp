#include "stipple/cli/common/description.h"

#include <cmath>
#include <map>
#include <span>

#include "stipple/io/text.h"

namespace stipple::cli {
namespace {

/// The shortest text that names the number: 84.7, not the 84.6999969 that its float32 is.
std::string number_text(double value, DType dtype = DType::f64) {
    std::string text;
    if (dtype == DType::f32)
        io::append_number(text, static_cast<float>(value));
    else
        io::append_number(text, value);
    return text;
}

/// A coordinate, as the writers of text formats write it.
std::string world_text(double origin, double value) {
    std::string text;
    io::append_world(text, origin, static_cast<float>(value - origin));
    return text;
}

void add_attributes(const std::vector<tasks::AttributeSummary>& attributes, std::string_view kind,
                    Description& description) {
    Json list = Json::array();
    for (const tasks::AttributeSummary& attribute : attributes) {
        Json entry = {
            {"name", attribute.name}, {"dtype", name_of(attribute.dtype)}, {"components", attribute.components}};
        std::string text(name_of(attribute.dtype));
        if (attribute.components > 1) text += fmt::format(" x {}", attribute.components);
        if (attribute.range) {
            const auto [low, high] = *attribute.range;
            entry["min"] = low;
            entry["max"] = high;
            text += fmt::format(", {} to {}", number_text(low, attribute.dtype), number_text(high, attribute.dtype));
        }
        entry["non_finite"] = attribute.non_finite;
        if (attribute.non_finite) text += fmt::format(", {} not finite", grouped(attribute.non_finite));
        description.pairs.emplace_back(fmt::format("{} {}", kind, attribute.name), text);
        description.summary += fmt::format("{}{}", description.summary.empty() ? "" : " ", attribute.name);
        list.push_back(std::move(entry));
    }
    description.fields[kind == "attribute" ? "attributes" : "face_attributes"] = std::move(list);
}

std::string numbers_text(std::span<const double> values) {
    std::string text;
    for (const double value : values) text += (text.empty() ? "" : " ") + number_text(value == 0 ? 0 : value);
    return text;
}

void add_las(const io::LasSummary& las, Description& description) {
    auto& pairs = description.pairs;
    pairs.emplace_back("version", fmt::format("LAS 1.{}, point format {}", las.minor, las.point_format));
    if (!las.system.empty()) pairs.emplace_back("system", las.system);
    if (!las.software.empty()) pairs.emplace_back("software", las.software);
    if (las.year > 0) pairs.emplace_back("created", fmt::format("day {} of {}", las.day, las.year));
    pairs.emplace_back("scale", numbers_text(las.scale));
    pairs.emplace_back("offset", numbers_text(las.offset));
    std::string place = las.coordinate_system;
    if (las.epsg) place += fmt::format("{}EPSG:{}", place.empty() ? "" : ", ", *las.epsg);
    pairs.emplace_back("coordinate system", place.empty() ? "not told" : place);
    Json fields = {{"version", fmt::format("1.{}", las.minor)},
                   {"point_format", las.point_format},
                   {"system", las.system},
                   {"software", las.software},
                   {"scale", las.scale},
                   {"offset", las.offset},
                   {"coordinate_system", las.coordinate_system},
                   {"epsg", nullptr},
                   {"records", las.records},
                   {"extended_records", las.extended_records}};
    if (las.epsg) fields["epsg"] = *las.epsg;
    if (las.has_time) {
        const bool adjusted = las.time_type == TimeType::gps_adjusted_standard;
        const bool known = las.time_type != TimeType::unknown;
        pairs.emplace_back("time", adjusted ? "adjusted standard GPS time" : known ? "GPS seconds of the week" : "GPS");
        fields["time_type"] = adjusted ? "gps_adjusted_standard" : known ? "gps_week_seconds" : "unknown";
    }
    const auto text = [](const std::map<int, int64_t>& counts) {
        std::string all;
        for (const auto& [number, points] : counts)
            all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", number, grouped(points));
        return all;
    };
    if (!las.returns.empty()) pairs.emplace_back("returns", text(las.returns));
    Json returns = Json::object(), classes = Json::array();
    for (const auto& [number, points] : las.returns) returns[std::to_string(number)] = points;
    for (const auto& [number, points] : las.classes) {
        const std::string name(io::las_class_name(number));
        pairs.emplace_back(fmt::format("class {}", number), fmt::format("{}, {} points", name, grouped(points)));
        classes.push_back({{"class", number}, {"name", name}, {"points", points}});
    }
    fields["returns"] = std::move(returns);
    fields["classes"] = std::move(classes);
    description.fields["las"] = std::move(fields);
}

void add(const tasks::CloudSummary& cloud, Description& description) {
    auto& pairs = description.pairs;
    Json& fields = description.fields;
    if (cloud.las) add_las(*cloud.las, description);
    pairs.emplace_back("points", grouped(cloud.points));
    fields["points"] = cloud.points;
    fields["faces"] = cloud.faces;
    if (cloud.faces > 0) pairs.emplace_back("faces", grouped(cloud.faces));
    fields["non_finite"] = cloud.non_finite();
    add_bounds(cloud.bounds, cloud.origin, description);
    pairs.emplace_back("non-finite", grouped(cloud.non_finite()));
    if (cloud.viewpoint) {
        pairs.emplace_back("viewpoint", numbers_text(*cloud.viewpoint));
        fields["viewpoint"] = *cloud.viewpoint;
    }
    add_attributes(cloud.attributes, "attribute", description);
    add_attributes(cloud.face_attributes, "face attribute", description);
}

void add(const tasks::ImageSummary& image, Description& description) {
    static constexpr const char* kChannels[] = {"", "grey", "grey and alpha", "RGB", "RGBA"};
    description.pairs.emplace_back("size", fmt::format("{} x {} pixels", image.width, image.height));
    description.pairs.emplace_back("channels", kChannels[image.channels]);
    description.summary = fmt::format("{} x {} {}", image.width, image.height, kChannels[image.channels]);
    description.fields.update({{"width", image.width}, {"height", image.height}, {"channels", image.channels}});
}

void add(const tasks::WeightsSummary& weights, Description& description) {
    constexpr size_t kListed = 24;
    auto& pairs = description.pairs;
    // What the file is comes before what it consists of.
    for (const auto& [key, value] : weights.metadata) {
        constexpr std::string_view kOwn = "stipple.";
        const std::string name = key.starts_with(kOwn) ? key.substr(kOwn.size()) : "metadata " + key;
        pairs.emplace_back(name, value.size() > 60 ? value.substr(0, 57) + "..." : value);
    }
    pairs.emplace_back("tensors", grouped(static_cast<int64_t>(weights.tensors.size())));
    pairs.emplace_back("numbers", grouped(weights.numbers));
    Json tensors = Json::array();
    size_t listed = 0;
    for (const io::TensorHeader::Entry& tensor : weights.tensors) {
        const std::string shape = shape_text(tensor.shape.data(), static_cast<int>(tensor.shape.size()));
        tensors.push_back({{"name", tensor.name}, {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}});
        if (listed++ < kListed)
            pairs.emplace_back("tensor " + tensor.name, fmt::format("{} {}", name_of(tensor.dtype), shape));
    }
    if (weights.tensors.size() > kListed)
        pairs.emplace_back("", fmt::format("and {} more: --json lists all", weights.tensors.size() - kListed));
    description.summary = fmt::format("{} tensors, {} numbers", weights.tensors.size(), grouped(weights.numbers));
    description.fields.update({{"tensors", tensors}, {"metadata", weights.metadata}, {"numbers", weights.numbers}});
}

void add(const tasks::SetSummary& set, Description& description) {
    auto& pairs = description.pairs;
    pairs.emplace_back("clouds", grouped(set.clouds));
    pairs.emplace_back("points each", grouped(set.points));
    description.summary = fmt::format("{} clouds of {} points", set.clouds, set.points);
    description.fields.update({{"clouds", set.clouds}, {"points", set.points}});
    if (set.labels) {
        const auto [low, high] = *set.labels;
        pairs.emplace_back("labels", fmt::format("{} to {}", low, high));
        description.fields["labels"] = {{"min", low}, {"max", high}};
    }
    pairs.emplace_back("one of them", "stipple info FILE --item 0");
}

}  // namespace

void add_bounds(const Bounds& bounds, const std::array<double, 3>& origin, Description& description) {
    auto& pairs = description.pairs;
    Json& fields = description.fields;
    if (bounds.finite > 0) {
        double diagonal_sq = 0;
        for (size_t axis = 0; axis < 3; ++axis) {
            const double extent = bounds.max[axis] - bounds.min[axis];
            diagonal_sq += extent * extent;
            pairs.emplace_back(std::string(1, "xyz"[axis]),
                               fmt::format("{} to {}  ({:.6g} wide)", world_text(origin[axis], bounds.min[axis]),
                                           world_text(origin[axis], bounds.max[axis]), extent));
        }
        fields["bounds"] = {{"min", bounds.min}, {"max", bounds.max}};
        fields["diagonal"] = std::sqrt(diagonal_sq);
        pairs.emplace_back("diagonal", fmt::format("{:.6g}", std::sqrt(diagonal_sq)));
    }
    fields["origin"] = origin;
    if (origin != std::array<double, 3>{})
        pairs.emplace_back(
            "origin", fmt::format("{} {} {}", number_text(origin[0]), number_text(origin[1]), number_text(origin[2])));
}

Description description_of(const std::string& path, const tasks::FileSummary& file) {
    Description description;
    description.pairs.emplace_back("format", file.format);
    description.fields = {{"path", path}, {"format", file.format}};
    if (file.bytes) {
        description.fields["file_bytes"] = *file.bytes;
        description.pairs.emplace_back("file size", bytes_text(*file.bytes));
    }
    std::visit([&](const auto& content) { add(content, description); }, file.content);
    return description;
}

}  // namespace stipple::cli
