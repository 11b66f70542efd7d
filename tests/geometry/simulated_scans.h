#pragma once
// Scans of known poses that no sensor made: what a depth camera sees of meshes and of furnished rooms, with its noise.
// The confidence of registration is fitted to these (bench/geometry/confidence_study.cpp) and to real scans.

#include <string>
#include <vector>

#include "stipple/geometry/mesh_index.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::test {

struct DepthCamera {
    int width = 160, height = 120;
    double view_degrees = 58;   // across the width
    double noise = 0;           // deviation along the ray: noise + noise_sq * depth^2
    double noise_sq = 0;        // as of sensors that triangulate
    double flying = 0.3;        // share of the pixels at an edge of depth that fall between both sides
    double dust = 0;            // share of points anywhere in the scan's box
    double least_cosine = 0.1;  // surfaces seen more obliquely are not seen
    double most_depth = 1e30;   // nor what is farther
};

/// Looking along +z, x to the right, y down; `up` is upwards in the picture.
geometry::RigidTransform look_at(const geometry::Vector3& eye, const geometry::Vector3& at,
                                 const geometry::Vector3& up);

/// What the camera sees, in its own frame. Deterministic by the seed.
PointCloud depth_scan(const Mesh& mesh, const geometry::MeshIndex& index,
                      const geometry::RigidTransform& camera_to_world, const DepthCamera& camera, uint64_t seed);

/// One mesh of several.
Mesh joined(const std::vector<Mesh>& meshes);

/// A room of about 5 x 4 x 2.6 m, z upwards, floor at 0: tables, shelves, cupboards, and some of the meshes (of radius
/// 1, scaled to household size) standing around.
Mesh furnished_room(const std::vector<Mesh>& meshes, uint64_t seed);

struct SimulatedPair {
    std::string kind, name;
    PointCloud source, target;
    geometry::RigidTransform truth;  // source to target
    geometry::RigidTransform world;  // the mesh's frame to the target
    double overlap = 0;      // share of the source within a hundredth and a half of its RMS radius, or 3 spacings
    bool is_related = true;  // otherwise there is no true pose
};

/// Two views of one mesh (or of two, then not related), `degrees` apart, the source in any pose.
SimulatedPair view_pair(const Mesh& source, const Mesh& target, bool is_related, double degrees, uint64_t seed);

/// Two fragments of a room: `frames` depth images each, taken on a way of 0.3 m and 20 degrees; the second way begins
/// `degrees` and `metres` from the first. In the frame of each fragment's first camera, or with the source in any pose.
SimulatedPair room_pair(const Mesh& source_room, const Mesh& target_room, bool is_related, int frames, double degrees,
                        double metres, bool any_pose, uint64_t seed);

}  // namespace stipple::test
