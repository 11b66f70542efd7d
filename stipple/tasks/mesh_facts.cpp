#include "stipple/tasks/mesh_facts.h"

#include "stipple/core/number_text.h"

namespace stipple::tasks {

const Fields& mesh_facts_fields() {
    using Facts = MeshFacts;
    static const Fields fields = {
        field<&Facts::vertices>("vertices", "Vertices"),
        field<&Facts::faces>("faces", "Faces"),
        field<&Facts::watertight>("watertight", "Closed, manifold, oriented and with a face"),
        field<&Facts::closed>("closed", "No boundary edges"),
        field<&Facts::manifold>("manifold", "No edges of more than two faces, no vertices of several fans"),
        field<&Facts::oriented>("oriented", "The two faces of every edge run along it in opposite directions"),
        field<&Facts::volume>("volume", "Volume of a mesh that is closed and oriented").unit("unit of the mesh, cubed"),
        object_field<&Facts::check>("", geometry::mesh_check_fields)};
    return fields;
}

MeshFacts mesh_facts(const Mesh& mesh) {
    MeshFacts facts{.vertices = mesh.vertices.size(), .faces = mesh.faces(), .check = geometry::check_mesh(mesh)};
    facts.watertight = facts.check.is_watertight(mesh);
    facts.closed = facts.check.is_closed();
    facts.manifold = facts.check.is_manifold();
    facts.oriented = facts.check.is_oriented();
    if (facts.closed && facts.oriented && facts.check.nonmanifold_edges == 0) facts.volume = facts.check.volume;
    return facts;
}

std::string watertight_text(const MeshFacts& facts) {
    if (facts.watertight) return "yes";
    std::string text;
    for (const MeshFault& fault : mesh_faults(facts.check))
        if (fault.is_opening && fault.count > 0)
            text += fmt::format("{}{} {}", text.empty() ? "no: " : ", ", grouped(fault.count),
                                fault.count == 1 ? fault.one : fault.many);
    return text.empty() ? "no: no faces" : text;
}

std::vector<MeshFault> mesh_faults(const geometry::MeshCheck& check) {
    return {{"boundary edge", "boundary edges", check.boundary_edges, true},
            {"non-manifold edge", "non-manifold edges", check.nonmanifold_edges, true},
            {"misoriented edge", "misoriented edges", check.misoriented_edges, true},
            {"non-manifold vertex", "non-manifold vertices", check.nonmanifold_vertices, true},
            {"degenerate face", "degenerate faces", check.degenerate_faces, false},
            {"duplicate face", "duplicate faces", check.duplicate_faces, false},
            {"unused vertex", "unused vertices", check.unreferenced_vertices, false}};
}

}  // namespace stipple::tasks
