#pragma once
// The camera models of COLMAP: names, numbers and parameters.

#include <optional>

#include "stipple/io/colmap.h"

namespace stipple::io::colmap {

struct ModelInfo {
    ColmapCameraModel model;
    std::string_view name;
    int id;          // in binary files
    int parameters;  // of them
};

inline constexpr int kMostParameters = 8;

std::span<const ModelInfo> models();
const ModelInfo& info_of(ColmapCameraModel model);

/// Throws Error{bad_file} at the reader's place (line for text) with the name of a model that is not read.
const ModelInfo& model_by_name(const ByteReader& reader, std::string_view name);
const ModelInfo& model_by_id(const ByteReader& reader, int32_t id);

/// Parameters in the file's order into the lens and back.
void set_parameters(ColmapCameraModel model, std::span<const double> parameters, Lens& lens);
std::vector<double> parameters_of(const ColmapCamera& camera);

/// What is wrong with a camera (size, focal length, numbers that are not finite); empty if nothing.
std::string camera_fault(const ColmapCamera& camera, const Limits& limits);
/// Of an image; makes its rotation one of unit length.
std::string image_fault(ColmapImage& image);

}  // namespace stipple::io::colmap
