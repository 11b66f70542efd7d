#include "stipple/geometry/components.h"

#include <algorithm>
#include <numeric>

#include "stipple/geometry/mesh/mesh_vectors.h"
#include "stipple/geometry/mesh_edges.h"

namespace stipple::geometry {
namespace {

/// Disjoint sets; the lowest member stands for its set, so the result does not depend on the order of joins.
class Sets {
public:
    explicit Sets(int64_t n) : parent_(static_cast<size_t>(n)) { std::iota(parent_.begin(), parent_.end(), 0); }

    int32_t find(int32_t i) {
        while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
        return i;
    }
    void join(int32_t a, int32_t b) {
        a = find(a), b = find(b);
        parent_[std::max(a, b)] = std::min(a, b);
    }

private:
    std::vector<int32_t> parent_;
};

}  // namespace

Components connected_components(const MeshView& mesh, Connection connection) {
    require_cpu_mesh("connected_components", mesh);
    const int64_t n = mesh.vertices.size(0), m = mesh.faces();
    const int32_t* corner = mesh.triangles.data();
    const bool by_vertex = connection == Connection::vertices;
    Sets sets(by_vertex ? n : m);
    if (by_vertex) {
        for (int64_t f = 0; f < m; ++f)
            sets.join(corner[3 * f], corner[3 * f + 1]), sets.join(corner[3 * f], corner[3 * f + 2]);
    } else {
        const MeshEdges edges = mesh_edges(mesh);
        for (int64_t e = 0; e < edges.size(); ++e)
            for (int64_t i = edges.offsets[e] + 1; i < edges.offsets[e + 1]; ++i)
                sets.join(static_cast<int32_t>(edges.half_edges[i - 1] / 3),
                          static_cast<int32_t>(edges.half_edges[i] / 3));
    }
    Components components;
    components.of_face = Array<int32_t, 1>({m});
    components.of_vertex = Array<int32_t, 1>({n});
    std::fill_n(components.of_vertex.data(), n, -1);
    std::vector<int32_t> number(static_cast<size_t>(by_vertex ? n : m), -1);  // of the sets
    for (int64_t f = 0; f < m; ++f) {
        int32_t& label = number[sets.find(by_vertex ? corner[3 * f] : static_cast<int32_t>(f))];
        if (label < 0) {
            label = static_cast<int32_t>(components.size());
            components.faces.push_back(0);
            components.areas.push_back(0);
        }
        components.of_face.data()[f] = label;
        ++components.faces[label];
        components.areas[label] += 0.5 * length(area_vector(mesh, f));
        for (int c = 0; c < 3; ++c) {
            int32_t& of_vertex = components.of_vertex.data()[corner[3 * f + c]];
            of_vertex = of_vertex < 0 ? label : std::min(of_vertex, label);
        }
    }
    return components;
}

MeshPart remove_small_components(const Mesh& mesh, const ComponentLimits& limits) {
    STIPPLE_REQUIRE(limits.largest >= 0, "remove_small_components: the largest {} components", limits.largest);
    validate(mesh);
    const Components components = connected_components(mesh, limits.connection);
    std::vector<int32_t> by_area(static_cast<size_t>(components.size()));
    std::iota(by_area.begin(), by_area.end(), 0);
    std::stable_sort(by_area.begin(), by_area.end(),
                     [&](int32_t a, int32_t b) { return components.areas[a] > components.areas[b]; });
    std::vector<char> keep(by_area.size(), 0);
    for (int64_t rank = 0; rank < std::min(limits.largest, components.size()); ++rank) {
        const int32_t c = by_area[rank];
        keep[c] = components.faces[c] >= limits.min_faces && components.areas[c] >= limits.min_area;
    }
    // A vertex may be in a component that goes and in one that stays.
    Array<uint8_t, 1> keep_vertex({mesh.vertices.size()});
    for (int64_t v = 0; v < mesh.vertices.size(); ++v) keep_vertex.data()[v] = components.of_vertex.data()[v] < 0;
    std::vector<int32_t> faces;
    for (int64_t f = 0; f < mesh.faces(); ++f) {
        if (!keep[components.of_face.data()[f]]) continue;
        faces.push_back(static_cast<int32_t>(f));
        for (int c = 0; c < 3; ++c) keep_vertex.data()[mesh.triangles.data()[3 * f + c]] = 1;
    }
    MeshPart chosen = select_faces(mesh, View<const int32_t, 1>(faces.data(), {static_cast<int64_t>(faces.size())}));
    MeshPart part = select_vertices(chosen.mesh, keep_vertex.view());
    part.faces = std::move(chosen.faces);
    return part;
}

}  // namespace stipple::geometry
