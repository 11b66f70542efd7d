#pragma once
// What the two sources that call Embree share; nobody else includes it.
//
// Embree computes in single precision, and its rays do slip through vertices now and then. So it proposes and
// triangle.h decides: Embree gets a copy of the mesh about the origin, of size 1 to 2, in which every face is a little
// wider than it is, by more than its roundings. A proposal well inside a face, before all others, is taken at its word.
// One at the very border of a face is a place of doubt: a neighbour seen all but edge-on may have been overlooked, so
// the faces about it are tested.

#include <embree3/rtcore.h>

#include "stipple/geometry/query/mesh_tree_embree.h"

namespace stipple::geometry::cpu {

struct EmbreeScene {
    RTCDevice device = nullptr;
    RTCScene scene = nullptr;
    Vec3d center = {0, 0, 0};  // a place p of the mesh is (p - center) * scale to Embree
    double scale = 1;          // a power of two
    float longest = 0;         // edge of any face, to Embree
    Array<float, 2> corners;   // [3 m, 4]
    Array<int32_t, 2> faces;   // [m, 3]: 0, 1, 2 ...

    EmbreeScene() = default;
    EmbreeScene(const EmbreeScene&) = delete;
    EmbreeScene& operator=(const EmbreeScene&) = delete;
    ~EmbreeScene() {
        if (scene) rtcReleaseScene(scene);
        if (device) rtcReleaseDevice(device);
    }
};

constexpr float kWiden = 0x1p-16f;  // roundings of Embree about a mesh of size 1 to 2 are below 2^-21
constexpr float kError = 0x1p-19f;  // of Embree across a ray, some times over

inline Vec3d to_local(const EmbreeScene& scene, const float* p) {
    return {(p[0] - scene.center.x) * scene.scale, (p[1] - scene.center.y) * scene.scale,
            (p[2] - scene.center.z) * scene.scale};
}

}  // namespace stipple::geometry::cpu
