// What a mesh carries, at samples of its surface.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stipple/core/parallel.h"
#include "stipple/geometry/sample_surface.h"

namespace stipple::geometry {
namespace {

/// The value of each row at its sample, in float64; whole numbers are rounded and stay within the corners'.
template <class T>
void blend(const Mesh& mesh, const SurfaceSamples& samples, const Attribute& from, Attribute& to) {
    const View<const T, 2> in = from.as<T>();
    const View<T, 2> out = to.as<T>();
    constexpr int64_t kSamples = 4096;  // that a thread takes at a time
    parallel_for(out.size(0), kSamples, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int32_t* corner = mesh.triangles.data() + 3 * int64_t{samples.faces.data()[i]};
            const float* b = samples.barycentrics.data() + 3 * i;
            for (int64_t c = 0; c < out.size(1); ++c) {
                const auto at = [&](int k) { return static_cast<double>(in(corner[k], c)); };
                const double value = at(0) + (b[1] * (at(1) - at(0)) + b[2] * (at(2) - at(0)));
                if constexpr (std::is_integral_v<T>) {
                    const auto [low, high] = std::minmax({at(0), at(1), at(2)});
                    out(i, c) = static_cast<T>(std::clamp(std::round(value), low, high));
                } else {
                    out(i, c) = static_cast<T>(value);
                }
            }
        }
    });
}

void take_nearest_corner(const Mesh& mesh, const SurfaceSamples& samples, const Attribute& from, Attribute& to) {
    const auto bytes = static_cast<size_t>(from.row_bytes());
    for (int64_t i = 0; i < to.rows(); ++i) {
        const float* b = samples.barycentrics.data() + 3 * i;
        const auto nearest = std::max_element(b, b + 3) - b;  // the first of equals
        const int64_t vertex = mesh.triangles.data()[3 * int64_t{samples.faces.data()[i]} + nearest];
        std::memcpy(to.data() + i * from.row_bytes(), from.data() + vertex * from.row_bytes(), bytes);
    }
}

void make_unit(View<float, 2> normals) {
    for (int64_t i = 0; i < normals.size(0); ++i) {
        float* n = normals.data() + 3 * i;
        const double length = std::sqrt(double{n[0]} * n[0] + double{n[1]} * n[1] + double{n[2]} * n[2]);
        for (int axis = 0; axis < 3 && length > 0; ++axis) n[axis] = static_cast<float>(n[axis] / length);
    }
}

Attribute at_samples(const Mesh& mesh, const SurfaceSamples& samples, const Attribute& from) {
    Attribute to(from.name(), from.dtype(), samples.faces.size(0), from.components());
    const bool color = from.name() == "color";
    switch (from.dtype()) {
        case DType::f32: blend<float>(mesh, samples, from, to); break;
        case DType::f64: blend<double>(mesh, samples, from, to); break;
        case DType::u8:
            color ? blend<uint8_t>(mesh, samples, from, to) : take_nearest_corner(mesh, samples, from, to);
            break;
        case DType::u16:
            color ? blend<uint16_t>(mesh, samples, from, to) : take_nearest_corner(mesh, samples, from, to);
            break;
        default: take_nearest_corner(mesh, samples, from, to);
    }
    if (from.name() == "normal" && from.dtype() == DType::f32 && from.components() == 3) make_unit(to.as<float>());
    return to;
}

}  // namespace

PointCloud cloud_of_samples(const Mesh& mesh, SurfaceSamples samples) {
    validate(mesh);
    for (const int32_t face : samples.faces.span())
        STIPPLE_REQUIRE(face >= 0 && face < mesh.faces(), "cloud_of_samples: a sample of face {} of {}", face,
                        mesh.faces());
    STIPPLE_REQUIRE(
        samples.points.size(0) == samples.faces.size(0) && samples.barycentrics.size(0) == samples.faces.size(0),
        "cloud_of_samples: {} points, {} faces, {} barycentrics", samples.points.size(0), samples.faces.size(0),
        samples.barycentrics.size(0));
    PointCloud cloud;
    cloud.origin = mesh.vertices.origin;
    for (const Attribute& attribute : mesh.vertices.attributes)
        cloud.attributes.push_back(at_samples(mesh, samples, attribute));
    for (const Attribute& attribute : mesh.face_attributes) {
        Attribute of_face = select(attribute, samples.faces.view());
        while (find(cloud.attributes, of_face.name())) of_face.rename("face_" + of_face.name());
        cloud.attributes.push_back(std::move(of_face));
    }
    cloud.positions = std::move(samples.points);
    return cloud;
}

}  // namespace stipple::geometry
