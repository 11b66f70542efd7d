#include "stipple/cli/describe.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/io/hdf5.h"
#include "stipple/io/image_file.h"
#include "stipple/io/safetensors.h"
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

std::string type_text(const Attribute& attribute) {
    std::string text(name_of(attribute.dtype()));
    if (attribute.components() > 1) text += fmt::format(" x {}", attribute.components());
    return text;
}

struct Range {
    double min = std::numeric_limits<double>::infinity(), max = -min;
    int64_t non_finite = 0;
};

Range range_of(const Attribute& attribute) {
    Range range;
    const int64_t width = size_of(attribute.dtype());
    for (int64_t i = 0; i < attribute.rows() * attribute.components(); ++i) {
        const double value = load_as_double(attribute.dtype(), attribute.data() + i * width);
        if (!std::isfinite(value)) {
            ++range.non_finite;
            continue;
        }
        range.min = std::min(range.min, value);
        range.max = std::max(range.max, value);
    }
    return range;
}

void describe_attributes(const Attributes& attributes, std::string_view kind, Description& description) {
    Json list = Json::array();
    for (const Attribute& attribute : attributes) {
        const Range range = range_of(attribute);
        Json entry = {
            {"name", attribute.name()}, {"dtype", name_of(attribute.dtype())}, {"components", attribute.components()}};
        std::string text = type_text(attribute);
        if (range.min <= range.max) {
            entry["min"] = range.min;
            entry["max"] = range.max;
            text += fmt::format(", {} to {}", number_text(range.min, attribute.dtype()),
                                number_text(range.max, attribute.dtype()));
        }
        entry["non_finite"] = range.non_finite;
        if (range.non_finite) text += fmt::format(", {} not finite", grouped(range.non_finite));
        description.pairs.emplace_back(fmt::format("{} {}", kind, attribute.name()), text);
        description.summary += fmt::format("{}{}", description.summary.empty() ? "" : " ", attribute.name());
        list.push_back(std::move(entry));
    }
    description.fields[kind == "attribute" ? "attributes" : "face_attributes"] = std::move(list);
}

void describe_geometry(const Mesh& mesh, Description& description) {
    const PointCloud& cloud = mesh.vertices;
    const Bounds bounds = bounds_of(cloud);
    auto& pairs = description.pairs;
    Json& fields = description.fields;
    pairs.emplace_back("points", grouped(cloud.size()));
    fields["points"] = cloud.size();
    fields["faces"] = mesh.faces();
    if (mesh.faces() > 0) pairs.emplace_back("faces", grouped(mesh.faces()));
    fields["non_finite"] = cloud.size() - bounds.finite;
    describe_bounds(cloud, description);
    pairs.emplace_back("non-finite", grouped(cloud.size() - bounds.finite));
    describe_attributes(cloud.attributes, "attribute", description);
    describe_attributes(mesh.face_attributes, "face attribute", description);
}

Description describe_image(io::ByteReader& reader, bool is_png) {
    const Image image = is_png ? io::parse_png(reader) : io::parse_jpeg(reader);
    Description description;
    description.format = is_png ? "PNG" : "JPEG";
    static constexpr const char* kChannels[] = {"", "grey", "grey and alpha", "RGB", "RGBA"};
    description.pairs = {{"size", fmt::format("{} x {} pixels", image.width(), image.height())},
                         {"channels", kChannels[image.channels()]}};
    description.summary = fmt::format("{} x {} {}", image.width(), image.height(), kChannels[image.channels()]);
    description.fields = {{"width", image.width()}, {"height", image.height()}, {"channels", image.channels()}};
    return description;
}

Description describe_weights(io::ByteReader& reader) {
    const io::TensorHeader file = io::read_safetensors_header(reader);
    Description description;
    description.format = "safetensors";
    int64_t parameters = 0;
    Json tensors = Json::array();
    for (const io::TensorHeader::Entry& tensor : file.tensors) {
        int64_t elements = 1;
        for (int64_t extent : tensor.shape) elements *= extent;
        parameters += elements;
        const std::string shape = shape_text(tensor.shape.data(), static_cast<int>(tensor.shape.size()));
        tensors.push_back({{"name", tensor.name}, {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}});
        description.pairs.emplace_back("tensor " + tensor.name, fmt::format("{} {}", name_of(tensor.dtype), shape));
    }
    description.summary = fmt::format("{} tensors, {} numbers", file.tensors.size(), grouped(parameters));
    description.pairs.insert(description.pairs.begin(), {"numbers", grouped(parameters)});
    description.pairs.insert(description.pairs.begin(),
                             {"tensors", grouped(static_cast<int64_t>(file.tensors.size()))});
    for (const auto& [key, value] : file.metadata)
        description.pairs.emplace_back("metadata " + key, value.size() > 60 ? value.substr(0, 57) + "..." : value);
    description.fields = {{"tensors", tensors}, {"metadata", file.metadata}, {"numbers", parameters}};
    return description;
}

Description describe_cloud_set(const std::string& path) {
    const io::CloudSet set = io::load_hdf5(path);
    Description description;
    description.format = "HDF5";
    description.pairs = {{"clouds", grouped(set.points.size(0))}, {"points each", grouped(set.points.size(1))}};
    description.summary = fmt::format("{} clouds of {} points", set.points.size(0), set.points.size(1));
    description.fields = {{"clouds", set.points.size(0)}, {"points", set.points.size(1)}};
    if (!set.labels.empty()) {
        const auto [low, high] = std::minmax_element(set.labels.begin(), set.labels.end());
        description.pairs.emplace_back("labels", fmt::format("{} to {}", *low, *high));
        description.fields["labels"] = {{"min", *low}, {"max", *high}};
    }
    description.pairs.emplace_back("one of them", "stipple info FILE --item 0");
    return description;
}

}  // namespace

void describe_bounds(const PointCloud& cloud, Description& description) {
    const Bounds bounds = bounds_of(cloud);
    auto& pairs = description.pairs;
    Json& fields = description.fields;
    if (bounds.finite > 0) {
        double diagonal_sq = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double extent = bounds.max[axis] - bounds.min[axis];
            diagonal_sq += extent * extent;
            pairs.emplace_back(std::string(1, static_cast<char>('x' + axis)),
                               fmt::format("{} to {}  ({:.6g} wide)", world_text(cloud.origin[axis], bounds.min[axis]),
                                           world_text(cloud.origin[axis], bounds.max[axis]), extent));
        }
        fields["bounds"] = {{"min", bounds.min}, {"max", bounds.max}};
        fields["diagonal"] = std::sqrt(diagonal_sq);
        pairs.emplace_back("diagonal", fmt::format("{:.6g}", std::sqrt(diagonal_sq)));
    }
    fields["origin"] = cloud.origin;
    if (cloud.origin != std::array<double, 3>{})
        pairs.emplace_back("origin", fmt::format("{} {} {}", number_text(cloud.origin[0]), number_text(cloud.origin[1]),
                                                 number_text(cloud.origin[2])));
}

Description describe_file(const std::string& path, const std::string& from, int64_t item, const Common& common,
                          io::Warnings& warnings) {
    Description description;
    bool is_described = false;
    struct stat status {};
    const bool is_file = path != "-" && ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    // A pipe (`<(...)`) can be read once only: it is taken for a cloud.
    if (from.empty() && is_file) {
        try {
            io::FileSource source(path);
            io::ByteReader reader(source);
            const auto head = reader.peek(64);
            const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
            const size_t dot = path.rfind('.');
            const std::string extension = dot == std::string::npos ? "" : io::lower_case(path.substr(dot + 1));
            is_described = true;
            if (bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n" || extension == "png")
                description = describe_image(reader, true);
            else if (bytes.substr(0, 3) == "\xff\xd8\xff" || extension == "jpg" || extension == "jpeg")
                description = describe_image(reader, false);
            else if (extension == "safetensors")
                description = describe_weights(reader);
            else if (bytes.substr(0, 8) == "\x89HDF\r\n\x1a\n" && item < 0)
                description = describe_cloud_set(path);
            else
                is_described = false;
        } catch (const Error& error) {
            throw error.at_path(path);
        }
    }
    if (!is_described) {
        io::Format used{};
        const Mesh mesh = load_with_progress(path, from, item, common, warnings, &used);
        description.format = io::info_of(used).name;
        describe_geometry(mesh, description);
    }
    description.pairs.insert(description.pairs.begin(), {"format", description.format});
    Json fields = {{"path", path}, {"format", description.format}};
    if (is_file) {
        fields["file_bytes"] = status.st_size;
        description.pairs.insert(description.pairs.begin() + 1, {"file size", bytes_text(status.st_size)});
    }
    fields.update(description.fields);
    description.fields = std::move(fields);
    return description;
}

}  // namespace stipple::cli
