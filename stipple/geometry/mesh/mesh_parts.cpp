#include "stipple/geometry/mesh_parts.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "stipple/geometry/mesh/mesh_vectors.h"

namespace stipple::geometry {
namespace {

void require_parts(const char* who, const Mesh& mesh) {
    STIPPLE_REQUIRE(mesh.vertices.positions.device() == Device{} && mesh.triangles.device() == Device{},
                    "{}: works on the CPU", who);
    constexpr int64_t kMost = INT32_MAX;
    STIPPLE_REQUIRE(mesh.vertices.size() <= kMost && mesh.faces() <= kMost, "{}: {} vertices and {} faces, at most {}",
                    who, mesh.vertices.size(), mesh.faces(), kMost);
    validate(mesh);
}

Array<int32_t, 1> array_of(const std::vector<int32_t>& values) {
    Array<int32_t, 1> array({static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), array.data());
    return array;
}

/// The indices i in [0, n) with keep(i).
template <class Keep>
Array<int32_t, 1> indices_where(int64_t n, const Keep& keep) {
    std::vector<int32_t> kept;
    for (int64_t i = 0; i < n; ++i)
        if (keep(i)) kept.push_back(static_cast<int32_t>(i));
    return array_of(kept);
}

/// The part of these vertices and faces; the faces' vertices are among them.
MeshPart make_part(const Mesh& mesh, Array<int32_t, 1> vertices, Array<int32_t, 1> faces) {
    MeshPart part;
    part.new_vertices = Array<int32_t, 1>({mesh.vertices.size()});
    std::fill_n(part.new_vertices.data(), mesh.vertices.size(), -1);
    for (int64_t v = 0; v < vertices.size(0); ++v)
        part.new_vertices.data()[vertices.data()[v]] = static_cast<int32_t>(v);
    part.mesh.vertices = select(mesh.vertices, vertices.view());
    part.mesh.triangles = Array<int32_t, 2>({faces.size(0), 3});
    for (int64_t f = 0; f < faces.size(0); ++f)
        for (int c = 0; c < 3; ++c)
            part.mesh.triangles.data()[3 * f + c] =
                part.new_vertices.data()[mesh.triangles.data()[3 * int64_t{faces.data()[f]} + c]];
    for (const Attribute& attribute : mesh.face_attributes)
        part.mesh.face_attributes.push_back(select(attribute, faces.view()));
    part.vertices = std::move(vertices);
    part.faces = std::move(faces);
    return part;
}

Array<int32_t, 1> all_indices(int64_t n) {
    Array<int32_t, 1> indices({n});
    std::iota(indices.data(), indices.data() + n, 0);
    return indices;
}

}  // namespace

MeshPart select_faces(const Mesh& mesh, View<const int32_t, 1> faces) {
    require_parts("select_faces", mesh);
    Array<int32_t, 1> chosen({faces.size(0)});
    for (int64_t i = 0; i < faces.size(0); ++i) {
        STIPPLE_REQUIRE(faces(i) >= 0 && faces(i) < mesh.faces(), "select_faces: face {} of {}", faces(i),
                        mesh.faces());
        chosen.data()[i] = faces(i);
    }
    return make_part(mesh, all_indices(mesh.vertices.size()), std::move(chosen));
}

MeshPart select_vertices(const Mesh& mesh, View<const uint8_t, 1> keep) {
    require_parts("select_vertices", mesh);
    STIPPLE_REQUIRE(keep.size(0) == mesh.vertices.size(), "select_vertices: {} marks for {} vertices", keep.size(0),
                    mesh.vertices.size());
    const int32_t* corner = mesh.triangles.data();
    return make_part(mesh, indices_where(keep.size(0), [&](int64_t v) { return keep(v) != 0; }),
                     indices_where(mesh.faces(), [&](int64_t f) {
                         return keep(corner[3 * f]) && keep(corner[3 * f + 1]) && keep(corner[3 * f + 2]);
                     }));
}

MeshPart drop_unreferenced_vertices(const Mesh& mesh) {
    require_parts("drop_unreferenced_vertices", mesh);
    std::vector<char> used(static_cast<size_t>(mesh.vertices.size()), 0);
    for (const int32_t v : mesh.triangles.span()) used[v] = 1;
    return make_part(mesh, indices_where(mesh.vertices.size(), [&](int64_t v) { return used[v] != 0; }),
                     all_indices(mesh.faces()));
}

MeshPart drop_degenerate_faces(const Mesh& mesh) {
    require_parts("drop_degenerate_faces", mesh);
    const MeshView view(mesh);
    return make_part(mesh, all_indices(mesh.vertices.size()), indices_where(mesh.faces(), [&](int64_t f) {
                         const int32_t* t = mesh.triangles.data() + 3 * f;
                         if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0]) return false;
                         const Vec3d area = area_vector(view, f);
                         return area.x != 0 || area.y != 0 || area.z != 0;  // so one with a NaN stays
                     }));
}

MeshPart drop_duplicate_faces(const Mesh& mesh, bool either_direction) {
    require_parts("drop_duplicate_faces", mesh);
    struct Key {
        std::array<int32_t, 3> corners;
        int32_t face;
        bool operator<(const Key& o) const { return corners != o.corners ? corners < o.corners : face < o.face; }
    };
    std::vector<Key> keys(static_cast<size_t>(mesh.faces()));
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        std::array<int32_t, 3> t = {};
        std::copy_n(mesh.triangles.data() + 3 * f, 3, t.begin());
        if (either_direction)
            std::sort(t.begin(), t.end());
        else
            std::rotate(t.begin(), std::min_element(t.begin(), t.end()), t.end());
        keys[f] = {t, static_cast<int32_t>(f)};
    }
    std::sort(keys.begin(), keys.end());
    std::vector<char> again(keys.size(), 0);
    for (size_t i = 1; i < keys.size(); ++i) again[keys[i].face] = keys[i].corners == keys[i - 1].corners;
    return make_part(mesh, all_indices(mesh.vertices.size()),
                     indices_where(mesh.faces(), [&](int64_t f) { return !again[f]; }));
}

}  // namespace stipple::geometry
