#include "stipple/geometry/mesh_index.h"

#include "stipple/geometry/query/mesh_queries_cuda.h"
#include "stipple/geometry/query/mesh_tree.h"

namespace stipple::geometry {

MeshIndex::MeshIndex(const MeshView& mesh, [[maybe_unused]] Stream stream)
    : faces_(mesh.faces()), device_(mesh.device()) {
    require_mesh("MeshIndex", mesh);
    switch (device_.type) {
        case DeviceType::cpu: cpu_ = cpu::build(mesh); return;
        case DeviceType::cuda: STIPPLE_CUDA_CALL(cuda_ = cuda::build, mesh, stream);
    }
}

}  // namespace stipple::geometry
