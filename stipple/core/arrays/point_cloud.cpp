#include "stipple/core/point_cloud.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "stipple/core/box.h"

namespace stipple {
namespace {

Attributes clone_all(const Attributes& attributes) {
    Attributes copies;
    copies.reserve(attributes.size());
    for (const Attribute& attribute : attributes) copies.push_back(attribute.clone());
    return copies;
}

void validate_rows(const Attributes& attributes, int64_t rows) {
    std::set<std::string_view> names;
    for (const Attribute& attribute : attributes) {
        STIPPLE_REQUIRE(attribute.rows() == rows, "attribute {} has {} rows for {}", attribute.name(), attribute.rows(),
                        rows);
        STIPPLE_REQUIRE(names.insert(attribute.name()).second, "two attributes are named {}", attribute.name());
    }
}

bool is_finite(const float* p) {
    return std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]);
}

}  // namespace

PointCloud PointCloud::clone() const {
    PointCloud copy;
    copy.positions = positions.clone();
    copy.origin = origin;
    copy.facts = facts;
    copy.attributes = clone_all(attributes);
    return copy;
}

Mesh Mesh::clone() const {
    Mesh copy;
    copy.vertices = vertices.clone();
    copy.triangles = triangles.clone();
    copy.face_attributes = clone_all(face_attributes);
    return copy;
}

void validate(const PointCloud& cloud) {
    STIPPLE_REQUIRE(cloud.size() == 0 || cloud.positions.size(1) == 3, "positions must be [n, 3], got {}",
                    shape_text(cloud.positions.shape().data(), 2));
    validate_rows(cloud.attributes, cloud.size());
}

void validate(const Mesh& mesh) {
    validate(mesh.vertices);
    STIPPLE_REQUIRE(mesh.faces() == 0 || mesh.triangles.size(1) == 3, "triangles must be [m, 3], got {}",
                    shape_text(mesh.triangles.shape().data(), 2));
    validate_rows(mesh.face_attributes, mesh.faces());
    for (int32_t index : mesh.triangles.span())
        STIPPLE_REQUIRE(index >= 0 && index < mesh.vertices.size(), "triangle index {} of {} vertices", index,
                        mesh.vertices.size());
}

PointCloud select(const PointCloud& cloud, View<const int32_t, 1> indices) {
    PointCloud result(indices.size(0));
    result.origin = cloud.origin;
    result.facts = cloud.facts;
    float* to = result.positions.data();
    const float* from = cloud.positions.data();
    for (int64_t i = 0; i < indices.size(0); ++i) {
        const int64_t row = indices(i);
        STIPPLE_REQUIRE(row >= 0 && row < cloud.size(), "index {} of {} points", row, cloud.size());
        std::copy_n(from + 3 * row, 3, to + 3 * i);
    }
    for (const Attribute& attribute : cloud.attributes) result.attributes.push_back(select(attribute, indices));
    return result;
}

Bounds bounds_of(const PointCloud& cloud) {
    auto box = Box<float>::none();
    Bounds bounds;
    const float* p = cloud.positions.data();
    for (int64_t i = 0; i < cloud.size(); ++i, p += 3) {
        if (!is_finite(p)) continue;
        ++bounds.finite;
        box.add(p);
    }
    if (bounds.finite == 0) return bounds;
    for (int axis = 0; axis < 3; ++axis) {
        bounds.min[axis] = cloud.origin[axis] + box.low[axis];
        bounds.max[axis] = cloud.origin[axis] + box.high[axis];
    }
    return bounds;
}

PointCloud drop_nonfinite(const PointCloud& cloud) {
    checked_narrow<int32_t>(cloud.size(), "the number of points");  // indices are int32
    Array<int32_t, 1> kept({cloud.size()});
    int64_t count = 0;
    for (int64_t i = 0; i < cloud.size(); ++i)
        if (is_finite(cloud.positions.data() + 3 * i)) kept.data()[count++] = static_cast<int32_t>(i);
    return select(cloud, kept.view().slice(0, count));
}

void shift_origin(PointCloud& cloud, const std::array<double, 3>& by) {
    for (size_t axis = 0; axis < 3; ++axis) {
        cloud.origin[axis] += by[axis];
        if (cloud.facts.grid) cloud.facts.grid->offset[axis] += by[axis];
        if (cloud.facts.viewpoint) (*cloud.facts.viewpoint)[axis] += by[axis];
    }
    cloud.facts.coordinate_system.clear();
}

double move_origin(PointCloud& cloud, const std::array<double, 3>& origin) {
    double worst = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
        const double by = cloud.origin[axis] - origin[axis];
        for (int64_t i = 0; by != 0 && i < cloud.size(); ++i) {
            float& p = cloud.positions.data()[3 * i + static_cast<int64_t>(axis)];
            const double exact = p + by;
            p = static_cast<float>(exact);
            if (std::isfinite(exact)) worst = std::max(worst, std::abs(p - exact));
        }
    }
    cloud.origin = origin;
    return worst;
}

std::array<double, 3> choose_origin(const std::array<double, 3>& min, const std::array<double, 3>& max) {
    double extent = 0;
    for (int axis = 0; axis < 3; ++axis) extent = std::max(extent, max[axis] - min[axis]);
    std::array<double, 3> origin = {};
    for (int axis = 0; axis < 3; ++axis) {
        const double largest = std::max(std::abs(min[axis]), std::abs(max[axis]));
        // Beyond 2^53 there is no whole number to gain, and a cloud that wide has nothing to lose.
        if (largest > 8 * extent && largest < 9e15) origin[axis] = std::round(0.5 * min[axis] + 0.5 * max[axis]);
    }
    return origin;
}

std::array<double, 3> choose_origin(std::span<const double> sample) {
    const size_t n = sample.size() / 3;
    std::array<double, 3> origin = {}, low, high;
    if (n == 0) return origin;
    std::vector<double> values(n);
    double widest = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
        for (size_t i = 0; i < n; ++i) values[i] = sample[3 * i + axis];
        std::sort(values.begin(), values.end());
        low[axis] = values[n / 50];
        high[axis] = values[n - 1 - n / 50];
        widest = std::max(widest, high[axis] - low[axis]);
    }
    for (size_t axis = 0; axis < 3; ++axis) {
        const double largest = std::max(std::abs(low[axis]), std::abs(high[axis]));
        const double extent = high[axis] - low[axis];
        // Of a plane nothing is known about the digits that count: those of the other axes do.
        if (!(largest > 8 * (extent > 0 ? extent : widest) && largest < 9e15)) continue;
        // Divided by the inverse: 1e-2 is no double, 100 is.
        double inverse = 1;
        while (extent > 0 && inverse < 1e6 && extent * inverse < 1) inverse *= 10;
        origin[axis] = std::round((0.5 * low[axis] + 0.5 * high[axis]) * inverse) / inverse;
    }
    return origin;
}

}  // namespace stipple
