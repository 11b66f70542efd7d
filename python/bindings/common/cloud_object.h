#pragma once
// io.PointCloud and io.Mesh: C++ clouds and meshes as Python's objects, whose arrays numpy views without a copy.
//
//   [](const CloudLike& source_) {
//       const CloudArgument source(source_, "source");                 // named TypeError for anything else
//       PointCloud made = without_gil([&] { return geometry::some(source.cloud()); });
//       return give(std::move(made));                                  // a CloudObject
//   }
//
// A view keeps its owner. Memory that is replaced while others may look at it is kept until they are gone; what a call
// reads without the GIL cannot be replaced meanwhile by another thread (Reading).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/common/call.h"
#include "python/bindings/common/values.h"
#include "stipple/core/point_cloud.h"

namespace stipple::python {

/// What the objects of one cloud or mesh share: a PointCloud and the Mesh it is the vertices of are one.
struct Held {
    Mesh mesh;
    int readers = 0;                                         // calls that look at it without the GIL
    std::shared_ptr<char> views = std::make_shared<char>();  // shared by every view of its memory
    std::vector<std::shared_ptr<void>> retired;              // memory that was replaced while there were views

    /// Lets memory that is out of use go, or keeps it for the views that there are.
    template <class Owned>
    void retire(Owned&& old) {
        if (views.use_count() > 1)
            retired.push_back(std::make_shared<std::decay_t<Owned>>(std::forward<Owned>(old)));
        else
            retired.clear();
    }

    /// Throws Error{bad_argument} when a call in another thread looks at it.
    void require_free(const char* what) const;
};

struct CloudObject {
    std::shared_ptr<Held> held;
    PointCloud& cloud() const { return held->mesh.vertices; }
};

struct MeshObject {
    std::shared_ptr<Held> held;
    Mesh& mesh() const { return held->mesh; }
};

/// The attributes of the points, or of the faces.
struct AttributesObject {
    std::shared_ptr<Held> held;
    bool of_faces = false;
    Attributes& list() const { return of_faces ? held->mesh.face_attributes : held->mesh.vertices.attributes; }
    int64_t rows() const { return of_faces ? held->mesh.faces() : held->mesh.vertices.size(); }
};

CloudObject give(PointCloud&& cloud);
MeshObject give(Mesh&& mesh);

/// While it lives nobody replaces the arrays of a cloud. Made and ended with the GIL.
class Reading {
public:
    explicit Reading(std::shared_ptr<Held> held) : held_(std::move(held)) { ++held_->readers; }
    ~Reading() {
        if (held_) --held_->readers;
    }
    Reading(Reading&& other) noexcept = default;
    Reading(const Reading&) = delete;
    Reading& operator=(Reading&&) = delete;
    const Mesh& mesh() const { return held_->mesh; }

private:
    std::shared_ptr<Held> held_;
};

/// An argument that is an io.PointCloud.
class CloudLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(CloudLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};
/// An argument that is an io.Mesh.
class MeshLike : public py::object {
public:
    PYBIND11_OBJECT_DEFAULT(MeshLike, py::object, is_any)
    static bool is_any(PyObject*) { return true; }
};

/// TypeError that names the argument, unless it is an io.PointCloud.
class CloudArgument {
public:
    CloudArgument(const py::object& object, const char* name);
    const PointCloud& cloud() const { return reading_.mesh().vertices; }

private:
    Reading reading_;
};

/// The same for an io.Mesh.
class MeshArgument {
public:
    MeshArgument(const py::object& object, const char* name);
    const Mesh& mesh() const { return reading_.mesh(); }

private:
    Reading reading_;
};

/// Either, as writers take it: a cloud is a mesh without triangles. Points of a mesh, given as a cloud, are copied.
class ShapeArgument {
public:
    ShapeArgument(const py::object& object, const char* name);
    const Mesh& mesh() const { return copy_ ? *copy_ : reading_->mesh(); }
    bool is_cloud() const { return is_cloud_; }

private:
    std::optional<Reading> reading_;
    std::optional<Mesh> copy_;
    bool is_cloud_ = false;
};

/// All of a cloud or mesh as plain objects of Python, numbers as arrays, and back: for pickle.
py::tuple state_of(const std::shared_ptr<Held>& held);
std::shared_ptr<Held> held_of(const py::tuple& state);

/// Numbers that a cloud owns, as a numpy array that keeps it alive; bfloat16 as stipple.Array.
py::object view_of(const std::shared_ptr<Held>& held, void* data, DType dtype, std::span<const int64_t> shape);
/// [n] for one component, else [n, c].
py::object view_of(const std::shared_ptr<Held>& held, Attribute& attribute);

/// Whether a cloud that is made may share the memory of the arrays it is made of: where that may be written, numbers
/// are adjacent and the type is the one wanted. Else they are copied.
enum class Sharing { allowed, copied };
/// A column: [rows] or [rows, c] of any type and strides.
Attribute attribute_argument(const py::object& array, const std::string& name, int64_t rows, Sharing sharing);
/// [n, 3] numbers of float32.
Array<float, 2> positions_argument(const py::object& array, const char* name, Sharing sharing);
/// [m, 3] indices of int32, or of int64, which are copied; each checked against the count of vertices.
Array<int32_t, 2> triangles_argument(const py::object& array, const char* name, int64_t vertices);

}  // namespace stipple::python

namespace pybind11::detail {
template <>
struct handle_type_name<stipple::python::CloudLike> {
    static constexpr auto name = const_name("PointCloud");
};
template <>
struct handle_type_name<stipple::python::MeshLike> {
    static constexpr auto name = const_name("Mesh");
};
}  // namespace pybind11::detail
