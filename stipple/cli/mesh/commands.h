#pragma once
// The commands of `stipple mesh`, and what they share.

#include "stipple/cli/common/files.h"
#include "stipple/geometry/mesh_check.h"

namespace stipple::cli {

Command add_mesh_info(Arguments& group, Common& common);
Command add_mesh_sample(Arguments& group, Common& common);
Command add_mesh_watertight(Arguments& group, Common& common);
Command add_mesh_distance(Arguments& group, Common& common);
Command add_mesh_rays(Arguments& group, Common& common);
Command add_mesh_surface(Arguments& group, Common& common);
Command add_mesh_simplify(Arguments& group, Common& common);

/// What was counted, for people and for --json.
std::vector<std::pair<std::string, std::string>> check_pairs(const Mesh& mesh, const geometry::MeshCheck& check);
Json check_json(const Mesh& mesh, const geometry::MeshCheck& check);

/// "yes", or what stands in the way: "no: 12 boundary edges, 1 non-manifold vertex".
std::string watertight_text(const Mesh& mesh, const geometry::MeshCheck& check);

}  // namespace stipple::cli
