#pragma once
// What is in a file: any that stipple reads.

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/io/format.h"
#include "stipple/io/las_summary.h"
#include "stipple/io/safetensors.h"

namespace stipple::tasks {

struct AttributeSummary {
    std::string name;
    DType dtype = DType::f32;
    int64_t components = 1;
    std::optional<double> min = {}, max = {};  // of all finite values
    int64_t non_finite = 0;
};
const Fields& attribute_summary_fields();

/// How far finite points reach in the world.
struct Extent {
    std::optional<Bounds> bounds = {};  // none without finite points
    std::optional<double> diagonal = {};
    std::array<double, 3> origin = {};
};
const Fields& extent_fields();
Extent extent_of(const Bounds& bounds, const std::array<double, 3>& origin);

struct CloudSummary {
    int64_t points = 0, faces = 0;
    Bounds bounds;  // of the finite points
    std::array<double, 3> origin = {};
    std::vector<AttributeSummary> attributes, face_attributes;
    std::optional<io::LasSummary> las = {};               // of a LAS file
    std::optional<std::array<double, 7>> viewpoint = {};  // of a PCD file that has one; see FileFacts

    int64_t non_finite() const { return points - bounds.finite; }
};

struct ImageSummary {
    int64_t width = 0, height = 0, channels = 0;
};
const Fields& image_summary_fields();

struct WeightsSummary {
    std::vector<io::TensorHeader::Entry> tensors;
    std::map<std::string, std::string> metadata;
    int64_t numbers = 0;  // of all tensors
};

struct LabelRange {
    int64_t min = 0, max = 0;
};
/// A file of many clouds.
struct SetSummary {
    int64_t clouds = 0, points = 0;  // of each
    std::optional<LabelRange> labels = {};
};
const Fields& set_summary_fields();

struct FileSummary {
    std::string format;                 // "PLY", "PNG", "safetensors"
    std::optional<int64_t> bytes = {};  // of a regular file
    std::variant<CloudSummary, ImageSummary, WeightsSummary, SetSummary> content;
};

/// All of it; what a file does not have is null.
Json to_json(const FileSummary& file);

CloudSummary summarise(const Mesh& mesh);

/// Clouds, meshes, sets of clouds (one cloud of them with options.item), pictures and weights, by content and name;
/// with `from`, the name of a format, a cloud or mesh of it. "-" is standard input and, like a pipe, taken for a cloud.
/// Throws as the file's reader does, with the path.
FileSummary describe_file(const std::string& path, const std::string& from, const io::ReadOptions& options,
                          io::Warnings& warnings);

}  // namespace stipple::tasks
