#pragma once

#include <memory>

#include "python/bindings/common/any_cloud.h"
#include "stipple/metrics/point_to_face.h"

namespace stipple::python {

/// stipple.metrics.IndexedMesh, which keeps its mesh.
struct IndexedMeshObject {
    std::shared_ptr<const AnyMesh> mesh;
    std::shared_ptr<metrics::IndexedMesh> index;
};

}  // namespace stipple::python
