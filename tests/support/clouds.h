#pragma once
// Clouds and meshes for tests, and how two of them differ.

#include <string>

#include "stipple/io/format.h"

namespace stipple::test {

/// n points in the unit cube, float32 coordinates that are not round.
Mesh random_cloud(int64_t n, uint64_t seed = 1);

/// random_cloud with two triangles for each three points.
Mesh random_mesh(int64_t n, uint64_t seed = 1);

/// Attributes of the types named in core/attribute.h.
void add_normals(PointCloud& cloud);
void add_colors(PointCloud& cloud, int64_t components = 3);
void add_attribute(PointCloud& cloud, const std::string& name, DType dtype, int64_t components = 1);

/// Empty when equal bit for bit (positions, origin, attributes, triangles, face attributes), else the first difference.
std::string difference(const Mesh& a, const Mesh& b);

/// The bytes of a mesh in a format, and back.
std::vector<std::byte> to_bytes(const Mesh& mesh, io::Format format, const io::WriteOptions& options = {},
                                io::Warnings* warnings = nullptr);
Mesh from_bytes(std::span<const std::byte> bytes, io::Format format, io::Warnings* warnings = nullptr);
Mesh from_text(std::string_view text, io::Format format, io::Warnings* warnings = nullptr);

/// The message of the Error that reading throws; "" when it throws none.
std::string error_of(std::span<const std::byte> bytes, io::Format format);
std::string error_of(std::string_view text, io::Format format);

}  // namespace stipple::test
