// Summaries of files as JSON: their fields, and what has no fields: maps with keys of their own.

#include <cmath>

#include "stipple/tasks/describe.h"

namespace stipple::tasks {
namespace {

/// The names of all element types, by their values.
std::span<const char* const> dtype_words() {
    static const auto words = [] {
        std::array<const char*, static_cast<size_t>(DType::boolean) + 1> names{};
        for (size_t i = 0; i < names.size(); ++i) names[i] = name_of(static_cast<DType>(i)).data();
        return names;
    }();
    return words;
}

const Fields& bounds_fields() {
    static const Fields fields = {field<&Bounds::min>("min", "Least x, y, z"),
                                  field<&Bounds::max>("max", "Greatest x, y, z")};
    return fields;
}

const Fields& label_range_fields() {
    static const Fields fields = {field<&LabelRange::min>("min", "Least label"),
                                  field<&LabelRange::max>("max", "Greatest label")};
    return fields;
}

const Fields& tensor_fields() {
    using Entry = io::TensorHeader::Entry;
    static const Fields fields = {field<&Entry::name>("name", "Name"),
                                  field<&Entry::dtype>("dtype", "Type of its elements").words(dtype_words()),
                                  field<&Entry::shape>("shape", "Extents")};
    return fields;
}

const Fields& weights_fields() {
    static const Fields fields = {objects_field<&WeightsSummary::tensors>("tensors", tensor_fields),
                                  field<&WeightsSummary::numbers>("numbers", "Elements of all tensors")};
    return fields;
}

const Fields& las_fields() {
    using Las = io::LasSummary;
    static const Fields fields = {
        field<&Las::point_format>("point_format", "Format of the point records"),
        field<&Las::system>("system", "What made the points, by the header"),
        field<&Las::software>("software", "What wrote the file, by the header"),
        field<&Las::scale>("scale", "Unit of the integers"),
        field<&Las::offset>("offset", "Coordinates of the integer 0"),
        field<&Las::coordinate_system>("coordinate_system", "Name of the coordinate system"),
        field<&Las::epsg>("epsg", "Its number in the registry of EPSG"),
        field<&Las::records>("records", "Variable length records"),
        field<&Las::extended_records>("extended_records", "Extended variable length records")};
    return fields;
}

const Fields& cloud_summary_fields() {
    using Summary = CloudSummary;
    static const Fields fields = {
        field<&Summary::viewpoint>("viewpoint", "Where the sensor stood, x y z, and its rotation, w x y z"),
        objects_field<&Summary::attributes>("attributes", attribute_summary_fields, "Of points"),
        objects_field<&Summary::face_attributes>("face_attributes", attribute_summary_fields, "Of faces")};
    return fields;
}

Json json_of(const io::LasSummary& las) {
    Json made = {{"version", fmt::format("1.{}", las.minor)}};
    made.update(stipple::to_json(las_fields(), &las));
    if (las.has_time) {
        const bool is_adjusted = las.time_type == TimeType::gps_adjusted_standard;
        made["time_type"] = is_adjusted                          ? "gps_adjusted_standard"
                            : las.time_type == TimeType::unknown ? "unknown"
                                                                 : "gps_week_seconds";
    }
    Json returns = Json::object(), classes = Json::array();
    for (const auto& [number, points] : las.returns) returns[std::to_string(number)] = points;
    for (const auto& [number, points] : las.classes)
        classes.push_back({{"class", number}, {"name", io::las_class_name(number)}, {"points", points}});
    made["returns"] = std::move(returns);
    made["classes"] = std::move(classes);
    return made;
}

Json json_of(const CloudSummary& cloud) {
    Json made = {{"las", cloud.las ? json_of(*cloud.las) : Json()},
                 {"points", cloud.points},
                 {"faces", cloud.faces},
                 {"non_finite", cloud.non_finite()}};
    const Extent extent = extent_of(cloud.bounds, cloud.origin);
    made.update(stipple::to_json(extent_fields(), &extent));
    made.update(stipple::to_json(cloud_summary_fields(), &cloud));
    return made;
}

Json json_of(const ImageSummary& image) {
    return stipple::to_json(image_summary_fields(), &image);
}

Json json_of(const WeightsSummary& weights) {
    Json made = stipple::to_json(weights_fields(), &weights);
    made["metadata"] = Json(weights.metadata);
    return made;
}

Json json_of(const SetSummary& set) {
    return stipple::to_json(set_summary_fields(), &set);
}

}  // namespace

const Fields& attribute_summary_fields() {
    using Summary = AttributeSummary;
    static const Fields fields = {field<&Summary::name>("name", "Name"),
                                  field<&Summary::dtype>("dtype", "Type of its elements").words(dtype_words()),
                                  field<&Summary::components>("components", "Numbers of each point or face"),
                                  field<&Summary::min>("min", "Least finite value"),
                                  field<&Summary::max>("max", "Greatest finite value"),
                                  field<&Summary::non_finite>("non_finite", "Values that are not finite")};
    return fields;
}

const Fields& extent_fields() {
    static const Fields fields = {
        object_field<&Extent::bounds>("bounds", bounds_fields, "Of finite points, in the world"),
        field<&Extent::diagonal>("diagonal", "Of these bounds"),
        field<&Extent::origin>("origin", "What is added to the positions as they are held")};
    return fields;
}

Extent extent_of(const Bounds& bounds, const std::array<double, 3>& origin) {
    Extent extent{.origin = origin};
    if (bounds.finite == 0) return extent;
    double squares = 0;
    for (size_t axis = 0; axis < 3; ++axis)
        squares += (bounds.max[axis] - bounds.min[axis]) * (bounds.max[axis] - bounds.min[axis]);
    extent.bounds = bounds;
    extent.diagonal = std::sqrt(squares);
    return extent;
}

const Fields& image_summary_fields() {
    static const Fields fields = {field<&ImageSummary::width>("width", "Pixels of a row"),
                                  field<&ImageSummary::height>("height", "Rows"),
                                  field<&ImageSummary::channels>("channels", "Numbers of a pixel")};
    return fields;
}

const Fields& set_summary_fields() {
    static const Fields fields = {
        field<&SetSummary::clouds>("clouds", "Clouds in the file"),
        field<&SetSummary::points>("points", "Points of each"),
        object_field<&SetSummary::labels>("labels", label_range_fields, "Where clouds have labels")};
    return fields;
}

Json to_json(const FileSummary& file) {
    Json made = {{"format", file.format}, {"file_bytes", file.bytes ? Json(*file.bytes) : Json()}};
    made.update(std::visit([](const auto& content) { return json_of(content); }, file.content));
    return made;
}

}  // namespace stipple::tasks
