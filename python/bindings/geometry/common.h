#pragma once
// What the bindings of geometry share.

#include <utility>

#include "docstrings.h"
#include "python/bindings/common/cloud_object.h"
#include "python/bindings/common/record.h"
#include "python/bindings/module.h"
#include "stipple/geometry/affine_transform.h"
#include "stipple/geometry/mesh_view.h"
#include "stipple/geometry/rigid_transform.h"

namespace stipple::python {

/// An io.Mesh, or (vertices [n, 3] float32, triangles [m, 3] int32) of any kind and device.
class SurfaceLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(SurfaceLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

class SurfaceArgument {
public:
    SurfaceArgument(Call& call, const py::object& object, const char* name);
    const geometry::MeshView& view() const { return *view_; }

private:
    std::optional<Reading> reading_;
    std::optional<geometry::MeshView> view_;
};

/// [n, 3] float32 of any kind and device, contiguous, or the positions of an io.PointCloud.
class PointsArgument {
public:
    PointsArgument(Call& call, const py::object& object, const char* name);
    const View<const float, 2>& view() const { return view_; }
    int64_t size() const { return view_.size(0); }

private:
    std::optional<Reading> reading_;
    View<const float, 2> view_;
};

/// [n] of 0 and 1 that a function of C++ writes as uint8 and Python sees as booleans.
class Mask {
public:
    Mask(Call& call, int64_t rows) : rows_(rows), buffer_(call.allocate(DType::boolean, {&rows_, 1})) {}
    View<uint8_t, 1> view() { return {reinterpret_cast<uint8_t*>(buffer_.data()), {rows_}, buffer_.device()}; }
    ArrayResult give(const Call& call) {
        const int64_t shape[] = {rows_};
        return call.give(std::move(buffer_), DType::boolean, shape);
    }

private:
    int64_t rows_;
    Buffer buffer_;
};

/// [n] bool or uint8.
View<const uint8_t, 1> mask_argument(Call& call, const py::object& object, const char* name);

/// 4 x 4 numbers, the last row 0 0 0 1; None is the identity. Nothing may be singular; rotations are made exact.
geometry::AffineTransform affine_of(const py::object& matrix, const char* name);
geometry::RigidTransform rigid_of(const py::object& matrix, const char* name);
/// [4, 4] float64.
py::object matrix_of(const geometry::AffineTransform& transform);
py::object matrix_of(const geometry::RigidTransform& transform);
/// [6, 6] float64.
py::object matrix_of(const std::array<std::array<double, 6>, 6>& numbers);
std::array<std::array<double, 6>, 6> six_by_six(const py::object& matrix, const char* name);

/// What Python does otherwise than the contract says, before the contract.
inline std::string noted(const char* note, const char* contract) {
    return std::string(note) + "\n\n" + contract;
}

inline py::object number(double value) {
    return py::float_(value);
}
inline py::object number(int64_t value) {
    return py::int_(value);
}
inline py::object number(int value) {
    return py::int_(value);
}
inline py::object truth(bool value) {
    return py::bool_(value);
}

}  // namespace stipple::python

namespace pybind11::detail {
template <>
struct handle_type_name<stipple::python::SurfaceLike> {
    static constexpr auto name = const_name("MeshLike");
};
}  // namespace pybind11::detail
