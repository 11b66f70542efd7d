#include "stipple/geometry/orient_faces.h"

#include <utility>

#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/mesh_edges.h"

namespace stipple::geometry {
namespace {

/// For each half-edge the other one on its edge, where the edge has exactly two faces; else -1.
std::vector<int64_t> twins_of(const MeshView& mesh) {
    const MeshEdges edges = mesh_edges(mesh);
    std::vector<int64_t> twins(3 * static_cast<size_t>(mesh.faces()), -1);
    for (int64_t e = 0; e < edges.size(); ++e) {
        if (edges.faces_on(e) != 2) continue;
        const int64_t a = edges.half_edges[edges.offsets[e]], b = edges.half_edges[edges.offsets[e] + 1];
        if (a / 3 == b / 3) continue;  // both of one face that has a vertex twice
        twins[a] = b, twins[b] = a;
    }
    return twins;
}

/// Six times the volume between the faces and a point of theirs, which keeps the terms small.
double volume_of(const MeshView& mesh, const std::vector<int64_t>& faces, const uint8_t* turned) {
    const Vec3d about = corner_of(mesh, faces[0], 0);
    double sum = 0;
    for (const int64_t f : faces) {
        const double term = dot(corner_of(mesh, f, 0) - about, area_vector(mesh, f));
        sum += turned[f] ? -term : term;
    }
    return sum;
}

}  // namespace

Orientation find_orientation(const MeshView& mesh) {
    require_cpu_mesh("find_orientation", mesh);
    const int64_t m = mesh.faces();
    const std::vector<int64_t> twins = twins_of(mesh);
    Orientation result;
    result.turned = Array<uint8_t, 1>({m});
    result.patch_of_face = Array<int32_t, 1>({m});
    uint8_t* turned = result.turned.data();
    int32_t* patch_of_face = result.patch_of_face.data();
    std::fill_n(patch_of_face, m, -1);
    std::vector<int64_t> patch;  // also the queue: faces are looked at in the order in which they were reached
    for (int64_t seed = 0; seed < m; ++seed) {
        if (patch_of_face[seed] >= 0) continue;
        const auto number = static_cast<int32_t>(result.patches());
        bool closed = true, orientable = true;
        int64_t turned_faces = 0;
        patch.assign(1, seed);
        patch_of_face[seed] = number, turned[seed] = 0;
        for (size_t next = 0; next < patch.size(); ++next) {
            const int64_t f = patch[next];
            turned_faces += turned[f];
            for (int c = 0; c < 3; ++c) {
                const int64_t twin = twins[3 * f + c];
                if (twin < 0) {
                    closed = false;
                    continue;
                }
                const int64_t other = twin / 3;
                // Two half-edges that start at one vertex run the same way: one of the faces has to be turned.
                const bool same_way = mesh.triangles.data()[3 * f + c] == mesh.triangles.data()[twin];
                const uint8_t wanted = turned[f] ^ static_cast<uint8_t>(same_way);
                if (patch_of_face[other] < 0) {
                    patch_of_face[other] = number, turned[other] = wanted;
                    patch.push_back(other);
                } else {
                    orientable = orientable && turned[other] == wanted;
                }
            }
        }
        const auto count = static_cast<int64_t>(patch.size());
        if (!orientable) {
            for (const int64_t f : patch) turned[f] = 0;
            turned_faces = 0;
        } else if (closed ? volume_of(mesh, patch, turned) < 0 : 2 * turned_faces > count) {
            for (const int64_t f : patch) turned[f] ^= 1;
            turned_faces = count - turned_faces;
        }
        result.turned_faces += turned_faces;
        result.closed.push_back(closed);
        result.orientable.push_back(orientable);
    }
    return result;
}

Orientation orient_faces(Mesh& mesh) {
    validate(mesh);
    Orientation found = find_orientation(mesh);
    Attribute* normal = find(mesh.face_attributes, "normal");
    if (normal && (normal->dtype() != DType::f32 || normal->components() != 3)) normal = nullptr;
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        if (!found.turned.data()[f]) continue;
        std::swap(mesh.triangles.data()[3 * f + 1], mesh.triangles.data()[3 * f + 2]);
        if (!normal) continue;
        float* n = normal->as<float>().data() + 3 * f;
        for (int axis = 0; axis < 3; ++axis) n[axis] = -n[axis];
    }
    return found;
}

}  // namespace stipple::geometry
