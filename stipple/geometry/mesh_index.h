#pragma once
// MeshIndex: built once over the triangles of a mesh, queried many times by closest_point, cast_rays and
// signed_distance.
//
// CPU: Embree 3 where the build has it, else a small hierarchy of our own that gives the same answers more slowly.
// CUDA: a linear bounding-volume hierarchy built on the device. The index copies what it needs: the mesh may go.

#include <memory>

#include "stipple/geometry/mesh_view.h"

namespace stipple::geometry {

namespace cpu {
struct MeshTree;
}
namespace cuda {
struct MeshHierarchy;
}

class MeshIndex {
public:
    /// Degenerate triangles (segments, points) are kept and found as what they are. A mesh without faces is legal and
    /// found by nobody. Throws as require_mesh does, Error{out_of_memory}. Copies share the tree; it is never changed,
    /// so any number of threads may query it. O(m log m) time, O(m) memory. On CUDA the stream must outlive the index.
    explicit MeshIndex(const MeshView& mesh, Stream stream = {});

    int64_t faces() const { return faces_; }
    Device device() const { return device_; }

    const cpu::MeshTree& on_cpu() const { return *cpu_; }
    const cuda::MeshHierarchy& on_cuda() const { return *cuda_; }

private:
    int64_t faces_ = 0;
    Device device_;
    std::shared_ptr<const cpu::MeshTree> cpu_;
    std::shared_ptr<const cuda::MeshHierarchy> cuda_;
};

/// "Embree 3.13.5" or "own hierarchy": what answers on the CPU.
std::string mesh_query_engine();

}  // namespace stipple::geometry
