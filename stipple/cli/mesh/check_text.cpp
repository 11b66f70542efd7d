#include "stipple/cli/mesh/commands.h"

namespace stipple::cli {
namespace {

using geometry::MeshCheck;

struct Count {
    const char *key, *singular, *plural;
    int64_t value;
    bool opens;  // any of these, and the mesh is not watertight
};

std::vector<Count> counts_of(const MeshCheck& check) {
    return {{"boundary_edges", "boundary edge", "boundary edges", check.boundary_edges, true},
            {"nonmanifold_edges", "non-manifold edge", "non-manifold edges", check.nonmanifold_edges, true},
            {"misoriented_edges", "misoriented edge", "misoriented edges", check.misoriented_edges, true},
            {"nonmanifold_vertices", "non-manifold vertex", "non-manifold vertices", check.nonmanifold_vertices, true},
            {"degenerate_faces", "degenerate face", "degenerate faces", check.degenerate_faces, false},
            {"duplicate_faces", "duplicate face", "duplicate faces", check.duplicate_faces, false},
            {"unreferenced_vertices", "unused vertex", "unused vertices", check.unreferenced_vertices, false}};
}

/// Volume means something only where the surface has two sides and no holes.
bool has_volume(const MeshCheck& check) {
    return check.is_closed() && check.is_oriented() && check.nonmanifold_edges == 0;
}

}  // namespace

std::string watertight_text(const Mesh& mesh, const MeshCheck& check) {
    if (check.is_watertight(mesh)) return "yes";
    std::string text;
    for (const Count& count : counts_of(check))
        if (count.opens && count.value > 0)
            text += fmt::format("{}{} {}", text.empty() ? "no: " : ", ", grouped(count.value),
                                count.value == 1 ? count.singular : count.plural);
    return text.empty() ? "no: no faces" : text;
}

std::vector<std::pair<std::string, std::string>> check_pairs(const Mesh& mesh, const MeshCheck& check) {
    std::vector<std::pair<std::string, std::string>> pairs = {
        {"watertight", check.is_watertight(mesh) ? "yes" : "no"},
        {"components", grouped(check.components)},
        {"Euler number", check.is_watertight(mesh)
                             ? fmt::format("{}, genus {}", check.euler, check.components - check.euler / 2)
                             : std::to_string(check.euler)},
        {"area", fmt::format("{:.6g}", check.area)},
        {"volume", has_volume(check) ? fmt::format("{:.6g}", check.volume) : "none: not closed and oriented"}};
    for (const Count& count : counts_of(check)) pairs.emplace_back(count.plural, grouped(count.value));
    return pairs;
}

Json check_json(const Mesh& mesh, const MeshCheck& check) {
    Json fields = {{"watertight", check.is_watertight(mesh)},
                   {"closed", check.is_closed()},
                   {"manifold", check.is_manifold()},
                   {"oriented", check.is_oriented()},
                   {"components", check.components},
                   {"euler", check.euler},
                   {"area", check.area},
                   {"volume", has_volume(check) ? Json(check.volume) : Json()}};
    for (const Count& count : counts_of(check)) fields[count.key] = count.value;
    return fields;
}

}  // namespace stipple::cli
