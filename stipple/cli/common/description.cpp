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
    for (const tasks::AttributeSummary& attribute : attributes) {
        std::string text(name_of(attribute.dtype));
        if (attribute.components > 1) text += fmt::format(" x {}", attribute.components);
        if (attribute.min)
            text += fmt::format(", {} to {}", number_text(*attribute.min, attribute.dtype),
                                number_text(*attribute.max, attribute.dtype));
        if (attribute.non_finite) text += fmt::format(", {} not finite", grouped(attribute.non_finite));
        description.pairs.emplace_back(fmt::format("{} {}", kind, attribute.name), text);
        description.summary += fmt::format("{}{}", description.summary.empty() ? "" : " ", attribute.name);
    }
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
    if (las.has_time) {
        const bool adjusted = las.time_type == TimeType::gps_adjusted_standard;
        const bool known = las.time_type != TimeType::unknown;
        pairs.emplace_back("time", adjusted ? "adjusted standard GPS time" : known ? "GPS seconds of the week" : "GPS");
    }
    const auto text = [](const std::map<int, int64_t>& counts) {
        std::string all;
        for (const auto& [number, points] : counts)
            all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", number, grouped(points));
        return all;
    };
    if (!las.returns.empty()) pairs.emplace_back("returns", text(las.returns));
    for (const auto& [number, points] : las.classes)
        pairs.emplace_back(fmt::format("class {}", number),
                           fmt::format("{}, {} points", io::las_class_name(number), grouped(points)));
}

void add_extent(const tasks::Extent& extent, Description& description) {
    auto& pairs = description.pairs;
    const std::array<double, 3>& origin = extent.origin;
    if (extent.bounds) {
        for (size_t axis = 0; axis < 3; ++axis) {
            const double low = extent.bounds->min[axis], high = extent.bounds->max[axis];
            pairs.emplace_back(std::string(1, "xyz"[axis]),
                               fmt::format("{} to {}  ({:.6g} wide)", world_text(origin[axis], low),
                                           world_text(origin[axis], high), high - low));
        }
        pairs.emplace_back("diagonal", fmt::format("{:.6g}", *extent.diagonal));
    }
    if (origin != std::array<double, 3>{})
        pairs.emplace_back(
            "origin", fmt::format("{} {} {}", number_text(origin[0]), number_text(origin[1]), number_text(origin[2])));
}

void add(const tasks::CloudSummary& cloud, Description& description) {
    auto& pairs = description.pairs;
    if (cloud.las) add_las(*cloud.las, description);
    pairs.emplace_back("points", grouped(cloud.points));
    if (cloud.faces > 0) pairs.emplace_back("faces", grouped(cloud.faces));
    add_extent(tasks::extent_of(cloud.bounds, cloud.origin), description);
    pairs.emplace_back("non-finite", grouped(cloud.non_finite()));
    if (cloud.viewpoint) pairs.emplace_back("viewpoint", numbers_text(*cloud.viewpoint));
    add_attributes(cloud.attributes, "attribute", description);
    add_attributes(cloud.face_attributes, "face attribute", description);
}

void add(const tasks::ImageSummary& image, Description& description) {
    static constexpr const char* kChannels[] = {"", "grey", "grey and alpha", "RGB", "RGBA"};
    description.pairs.emplace_back("size", fmt::format("{} x {} pixels", image.width, image.height));
    description.pairs.emplace_back("channels", kChannels[image.channels]);
    description.summary = fmt::format("{} x {} {}", image.width, image.height, kChannels[image.channels]);
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
    size_t listed = 0;
    for (const io::TensorHeader::Entry& tensor : weights.tensors) {
        const std::string shape = shape_text(tensor.shape.data(), static_cast<int>(tensor.shape.size()));
        if (listed++ < kListed)
            pairs.emplace_back("tensor " + tensor.name, fmt::format("{} {}", name_of(tensor.dtype), shape));
    }
    if (weights.tensors.size() > kListed)
        pairs.emplace_back("", fmt::format("and {} more: --json lists all", weights.tensors.size() - kListed));
    description.summary = fmt::format("{} tensors, {} numbers", weights.tensors.size(), grouped(weights.numbers));
}

void add(const tasks::SetSummary& set, Description& description) {
    auto& pairs = description.pairs;
    pairs.emplace_back("clouds", grouped(set.clouds));
    pairs.emplace_back("points each", grouped(set.points));
    description.summary = fmt::format("{} clouds of {} points", set.clouds, set.points);
    if (set.labels) pairs.emplace_back("labels", fmt::format("{} to {}", set.labels->min, set.labels->max));
    pairs.emplace_back("one of them", "stipple info FILE --item 0");
}

}  // namespace

void add_bounds(const Bounds& bounds, const std::array<double, 3>& origin, Description& description) {
    const tasks::Extent extent = tasks::extent_of(bounds, origin);
    add_extent(extent, description);
    description.fields.update(to_json(tasks::extent_fields(), &extent));
}

Description description_of(const std::string& path, const tasks::FileSummary& file) {
    Description description;
    description.pairs.emplace_back("format", file.format);
    description.fields = {{"path", path}};
    description.fields.update(tasks::to_json(file));
    if (file.bytes) description.pairs.emplace_back("file size", bytes_text(*file.bytes));
    std::visit([&](const auto& content) { add(content, description); }, file.content);
    return description;
}

}  // namespace stipple::cli
