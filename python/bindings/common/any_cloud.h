#pragma once
// Clouds and meshes of functions that work on whole PointClouds: objects of stipple.io as they are, or plain arrays,
// float32 [n, 3], which become a cloud without attributes around the same memory. Only rows that do not follow each
// other (a column of a wider array) are copied.

#include <optional>

#include "python/bindings/common/cloud_object.h"

namespace stipple::python {

/// An io.PointCloud, or an array [n, 3] of any kind, which decides kind and device of the call as other arrays do.
class AnyCloud {
public:
    AnyCloud(Call& call, const py::object& object, const char* name);
    const PointCloud& operator*() const { return given_ ? given_->cloud() : made_; }
    const PointCloud* operator->() const { return &**this; }

private:
    std::optional<CloudArgument> given_;
    PointCloud made_;
};

/// An io.Mesh, or a pair (vertices, triangles): float32 [n, 3] and int32 [m, 3]. On the CPU.
class AnyMesh {
public:
    AnyMesh(const py::object& object, const char* name);
    const Mesh& operator*() const { return given_ ? given_->mesh() : made_; }

private:
    Call call_;  // keeps what is no numpy array
    std::optional<MeshArgument> given_;
    Mesh made_;
};

}  // namespace stipple::python
