#include "stipple/tasks/describe.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stipple/io/hdf5.h"
#include "stipple/io/image_file.h"
#include "stipple/io/text.h"

namespace stipple::tasks {
namespace {

std::vector<AttributeSummary> summaries_of(const Attributes& attributes) {
    std::vector<AttributeSummary> summaries;
    for (const Attribute& attribute : attributes) {
        AttributeSummary summary{attribute.name(), attribute.dtype(), attribute.components()};
        double low = std::numeric_limits<double>::infinity(), high = -low;
        const int64_t width = size_of(attribute.dtype());
        for (int64_t i = 0; i < attribute.rows() * attribute.components(); ++i) {
            const double value = load_as_double(attribute.dtype(), attribute.data() + i * width);
            if (!std::isfinite(value)) {
                ++summary.non_finite;
                continue;
            }
            low = std::min(low, value);
            high = std::max(high, value);
        }
        if (low <= high) summary.min = low, summary.max = high;
        summaries.push_back(std::move(summary));
    }
    return summaries;
}

FileSummary describe_image(io::ByteReader& reader, bool is_png) {
    const Image image = is_png ? io::parse_png(reader) : io::parse_jpeg(reader);
    return {is_png ? "PNG" : "JPEG", {}, ImageSummary{image.width(), image.height(), image.channels()}};
}

FileSummary describe_weights(io::ByteReader& reader) {
    const io::TensorHeader file = io::read_safetensors_header(reader);
    WeightsSummary summary{file.tensors, {file.metadata.begin(), file.metadata.end()}, 0};
    for (const io::TensorHeader::Entry& tensor : file.tensors) {
        int64_t elements = 1;
        for (const int64_t extent : tensor.shape) elements *= extent;
        summary.numbers += elements;
    }
    return {"safetensors", {}, std::move(summary)};
}

FileSummary describe_set(const std::string& path) {
    const io::CloudSet set = io::load_hdf5(path);
    SetSummary summary{set.points.size(0), set.points.size(1)};
    if (!set.labels.empty()) {
        const auto [low, high] = std::minmax_element(set.labels.begin(), set.labels.end());
        summary.labels = LabelRange{*low, *high};
    }
    return {"HDF5", {}, summary};
}

/// What is no cloud and no mesh, by the first bytes and the name.
std::optional<FileSummary> describe_other(const std::string& path, bool one_item) {
    io::FileSource source(path);
    io::ByteReader reader(source);
    const auto head = reader.peek(64);
    const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
    const size_t dot = path.rfind('.');
    const std::string extension = dot == std::string::npos ? "" : io::lower_case(path.substr(dot + 1));
    if (bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n" || extension == "png") return describe_image(reader, true);
    if (bytes.substr(0, 3) == "\xff\xd8\xff" || extension == "jpg" || extension == "jpeg")
        return describe_image(reader, false);
    if (extension == "safetensors" || extension == "engine") return describe_weights(reader);
    if (bytes.substr(0, 8) == "\x89HDF\r\n\x1a\n" && !one_item) return describe_set(path);
    return std::nullopt;
}

}  // namespace

CloudSummary summarise(const Mesh& mesh) {
    const PointCloud& cloud = mesh.vertices;
    return {cloud.size(),
            mesh.faces(),
            bounds_of(cloud),
            cloud.origin,
            summaries_of(cloud.attributes),
            summaries_of(mesh.face_attributes),
            io::summarise_las(cloud),
            cloud.facts.viewpoint};
}

FileSummary describe_file(const std::string& path, const std::string& from, const io::ReadOptions& options,
                          io::Warnings& warnings) {
    struct stat status {};
    const bool is_file = path != "-" && ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    std::optional<FileSummary> summary;
    // A pipe (`<(...)`) can be read once only: it is taken for a cloud.
    if (from.empty() && is_file) {
        try {
            summary = describe_other(path, options.item >= 0);
        } catch (const Error& error) {
            throw error.at_path(path);
        }
    }
    if (!summary) {
        io::Format format{}, used{};
        if (!from.empty()) format = io::format_by_name(from);
        io::Warnings found;
        const Mesh mesh = io::load(path, options, found, from.empty() ? nullptr : &format, &used);
        for (const std::string& warning : found) warnings.push_back(fmt::format("{}: {}", path, warning));
        summary = FileSummary{std::string(io::info_of(used).name), {}, summarise(mesh)};
    }
    if (is_file) summary->bytes = static_cast<int64_t>(status.st_size);
    return std::move(*summary);
}

}  // namespace stipple::tasks
