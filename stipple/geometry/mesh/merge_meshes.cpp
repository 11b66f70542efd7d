#include <algorithm>
#include <cstring>
#include <limits>

#include "stipple/geometry/mesh_parts.h"

namespace stipple::geometry {
namespace {

/// NaN, 0 or false.
void fill_missing(const Attribute& like, std::byte* to, int64_t rows) {
    std::memset(to, 0, static_cast<size_t>(rows * like.row_bytes()));
    if (!is_float(like.dtype())) return;
    // A quiet NaN of any of our float types: the exponent and the top bit of the fraction.
    const int64_t width = size_of(like.dtype()), count = rows * like.components();
    const uint64_t bits = like.dtype() == DType::f64    ? 0x7ff8'0000'0000'0000u
                          : like.dtype() == DType::f32  ? 0x7fc0'0000u
                          : like.dtype() == DType::bf16 ? 0x7fc0u
                                                        : 0x7e00u;
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * width, &bits, static_cast<size_t>(width));
}

/// The union by name, rows in the order of the lists; `rows` says how many each list has.
Attributes merge(const std::vector<const Attributes*>& lists, const std::vector<int64_t>& rows, const char* what,
                 std::vector<std::string>* filled) {
    int64_t total = 0;
    for (const int64_t count : rows) total += count;
    Attributes merged;
    for (size_t first = 0; first < lists.size(); ++first) {
        for (const Attribute& like : *lists[first]) {
            if (find(merged, like.name())) continue;
            Attribute all(like.name(), like.dtype(), total, like.components());
            std::byte* to = all.data();
            bool missing = false;
            for (size_t i = 0; i < lists.size(); ++i) {
                const Attribute* part = find(*lists[i], like.name());
                if (!part) {
                    fill_missing(like, to, rows[i]);
                    missing = missing || rows[i] > 0;
                } else {
                    STIPPLE_REQUIRE(part->dtype() == like.dtype() && part->components() == like.components(),
                                    "merge_meshes: {} attribute {} is {} x {} in mesh {} and {} x {} in mesh {}", what,
                                    like.name(), name_of(like.dtype()), like.components(), first,
                                    name_of(part->dtype()), part->components(), i);
                    if (rows[i] > 0) std::memcpy(to, part->data(), static_cast<size_t>(rows[i] * part->row_bytes()));
                }
                to += rows[i] * like.row_bytes();
            }
            if (missing && filled) filled->push_back(like.name());
            merged.push_back(std::move(all));
        }
    }
    return merged;
}

std::array<double, 3> common_origin(std::span<const Mesh* const> meshes) {
    const Mesh* first = nullptr;
    bool same = true;
    Bounds all;
    for (const Mesh* mesh : meshes) {
        if (mesh->vertices.size() == 0) continue;
        if (!first) first = mesh;
        same = same && mesh->vertices.origin == first->vertices.origin;
        const Bounds bounds = bounds_of(mesh->vertices);
        for (int axis = 0; axis < 3 && bounds.finite > 0; ++axis) {
            all.min[axis] = all.finite ? std::min(all.min[axis], bounds.min[axis]) : bounds.min[axis];
            all.max[axis] = all.finite ? std::max(all.max[axis], bounds.max[axis]) : bounds.max[axis];
        }
        all.finite += bounds.finite;
    }
    if (!first) return {};
    return same ? first->vertices.origin : choose_origin(all.min, all.max);
}

}  // namespace

Mesh merge_meshes(std::span<const Mesh* const> meshes, std::vector<std::string>* filled) {
    int64_t n = 0, m = 0;
    std::vector<const Attributes*> of_vertices, of_faces;
    std::vector<int64_t> vertex_rows, face_rows;
    for (const Mesh* mesh : meshes) {
        STIPPLE_REQUIRE(mesh->vertices.positions.device() == Device{} && mesh->triangles.device() == Device{},
                        "merge_meshes: works on the CPU");
        validate(*mesh);
        of_vertices.push_back(&mesh->vertices.attributes);
        of_faces.push_back(&mesh->face_attributes);
        vertex_rows.push_back(mesh->vertices.size());
        face_rows.push_back(mesh->faces());
        n += mesh->vertices.size(), m += mesh->faces();
    }
    constexpr int64_t kMost = INT32_MAX;
    STIPPLE_REQUIRE(n <= kMost && m <= kMost, "merge_meshes: {} vertices and {} faces, at most {}", n, m, kMost);
    if (filled) filled->clear();
    Mesh merged;
    merged.vertices = PointCloud(n);
    merged.vertices.origin = common_origin(meshes);
    merged.triangles = Array<int32_t, 2>({m, 3});
    float* position = merged.vertices.positions.data();
    int32_t* corner = merged.triangles.data();
    int32_t first_vertex = 0;
    for (const Mesh* mesh : meshes) {
        double shift[3];
        for (int axis = 0; axis < 3; ++axis) shift[axis] = mesh->vertices.origin[axis] - merged.vertices.origin[axis];
        const float* from = mesh->vertices.positions.data();
        for (int64_t i = 0; i < 3 * mesh->vertices.size(); ++i)
            *position++ = shift[i % 3] == 0 ? from[i] : static_cast<float>(from[i] + shift[i % 3]);
        for (const int32_t v : mesh->triangles.span()) *corner++ = v + first_vertex;
        first_vertex += static_cast<int32_t>(mesh->vertices.size());
    }
    merged.vertices.attributes = merge(of_vertices, vertex_rows, "vertex", filled);
    merged.face_attributes = merge(of_faces, face_rows, "face", filled);
    return merged;
}

}  // namespace stipple::geometry
