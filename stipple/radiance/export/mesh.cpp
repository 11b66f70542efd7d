#include <algorithm>
#include <cmath>

#include "stipple/core/error.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/components.h"
#include "stipple/geometry/marching_cubes.h"
#include "stipple/radiance/export.h"
#include "stipple/radiance/field/dense_field.h"
#include "stipple/radiance/render/cpu_field.h"

namespace stipple::radiance {
namespace {

/// Densities with a layer of empty nodes around; node (x, y, z) of the field is (x + 1, y + 1, z + 1).
geometry::ScalarGrid padded_grid(const CpuField& field, const std::vector<uint32_t>& visible,
                                 const MeshOptions& options, float level) {
    const GridShape& shape = field.settings.grid;
    geometry::ScalarGrid grid;
    for (size_t axis = 0; axis < 3; ++axis) grid.size[axis] = shape.size[axis] + 2;
    // Empty, but no lower than needed: between a dense node and an empty one the surface is in the middle.
    const auto empty_beside = [&](float dense) { return std::min(level - 1, 2 * level - dense); };
    float densest = level;
    for (int64_t i = 0; i < shape.nodes(); ++i)
        if (bit_of(visible.data(), i)) densest = std::max(densest, field.density[static_cast<size_t>(i)]);
    const float empty = empty_beside(densest);
    grid.values.assign(static_cast<size_t>(grid.size[0] * grid.size[1] * grid.size[2]), empty);
    const auto is_in = [&](int axis, int node) {
        if (!options.box) return true;
        const double at = field.settings.origin[static_cast<size_t>(axis)] + shape.box.low[axis] +
                          static_cast<double>(node) * shape.spacing(axis);
        return at >= options.box->low[axis] && at <= options.box->high[axis];
    };
    for (int x = 0; x < shape.size[0]; ++x) {
        if (!is_in(0, x)) continue;
        for (int y = 0; y < shape.size[1]; ++y) {
            if (!is_in(1, y)) continue;
            for (int z = 0; z < shape.size[2]; ++z) {
                const int64_t node = shape.index(x, y, z);
                if (is_in(2, z) && bit_of(visible.data(), node))
                    grid.at(x + 1, y + 1, z + 1) = std::max(empty, field.density[static_cast<size_t>(node)]);
            }
        }
    }
    return grid;
}

/// Where an eye would look from that sees the place squarely.
Vec3f looking_direction(const FieldSettings& settings, Vec3f place, Vec3f normal) {
    float best = -2;
    Vec3f direction = -normal;
    for (const Camera& camera : settings.cameras) {
        const Vec3f to = unit(place - Vec3f{camera.to_world[3], camera.to_world[7], camera.to_world[11]});
        const float square = -dot(to, normal);
        if (square > best) best = square, direction = to;
    }
    return direction;
}

/// Normals and colours of the vertices.
void add_attributes(const CpuField& field, PointCloud& vertices) {
    const int64_t n = vertices.size();
    Attribute normals("normal", DType::f32, n, 3), colours("color", DType::u8, n, 3);
    parallel_for(n, 256, [&](int64_t begin, int64_t end) {
        std::vector<float> part(kHidden);
        for (int64_t i = begin; i < end; ++i) {
            const float* p = vertices.positions.data() + 3 * i;
            Vec3f place = {p[0], p[1], p[2]};
            for (int axis = 0; axis < 3; ++axis)  // the padding reaches out of the grid
                place[axis] = std::clamp(place[axis], field.grid.low[axis], field.grid.high[axis]);
            const Cell cell = cell_of(field.grid, to_nodes(field.grid, place));
            const Vec3f normal = -unit(field.gradient_at(cell));
            float features[kFeatures], colour[3];
            field.features_at(cell, features);
            if (field.colour.has_network())
                field.colour.view_part(looking_direction(field.settings, place, normal), part.data());
            const float* view = part.data();
            field.colour.colours({features, kFeatures}, {&view, 1}, colour);
            for (int c = 0; c < 3; ++c) {
                normals.as<float>()(i, c) = normal[c];
                colours.as<uint8_t>()(i, c) = static_cast<uint8_t>(std::lround(255 * colour[c]));
            }
        }
    });
    vertices.attributes.push_back(std::move(normals));
    vertices.attributes.push_back(std::move(colours));
}

}  // namespace

float density_of_opacity(const FieldSettings& settings, double opacity) {
    // 1 - exp(-ratio softplus(u)) = opacity, solved for u.
    const double softplus = -std::log1p(-opacity) / settings.voxel_ratio;
    return static_cast<float>(softplus > 30 ? softplus : std::log(std::expm1(softplus))) - settings.density_shift;
}

const Fields& mesh_export_fields() {
    using Options = MeshOptions;
    static const Fields fields = {
        field<&Options::level>("level", "Opacity of a voxel at the surface").above(0).below(1),
        field<&Options::least_part>("least_part", "Leave out parts of less than this share of the area").between(0, 1)};
    return fields;
}

Mesh export_mesh(const Field& field, const MeshOptions& options) {
    check_fields(mesh_export_fields(), &options);
    const std::string fault = fault_of(field);
    STIPPLE_REQUIRE(fault.empty(), "export_mesh: {}", fault);
    const CpuField cpu(field);
    const float level = density_of_opacity(field, options.level);
    const std::vector<uint32_t> visible = dilated(field.grid, cpu.occupied);
    Mesh mesh = geometry::marching_cubes(padded_grid(cpu, visible, options, level), level);
    PointCloud& vertices = mesh.vertices;
    vertices.attributes.clear();
    for (int64_t i = 0; i < vertices.size(); ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const double node = vertices.world(i, axis) - 1;
            vertices.positions.data()[3 * i + axis] =
                static_cast<float>(field.grid.box.low[axis] + node * field.grid.spacing(axis));
        }
    vertices.origin = field.origin;
    if (options.least_part > 0 && mesh.faces() > 0) {
        const geometry::Components parts = geometry::connected_components(mesh);
        double area = 0;
        for (double part : parts.areas) area += part;
        mesh = geometry::remove_small_components(mesh, {.min_area = options.least_part * area}).mesh;
    }
    add_attributes(cpu, mesh.vertices);
    return mesh;
}

Array<float, 3> export_density(const Field& field) {
    const std::string fault = fault_of(field);
    STIPPLE_REQUIRE(fault.empty(), "export_density: {}", fault);
    const std::vector<float> density = unpack_density(field);
    const std::vector<uint32_t> visible = dilated(field.grid, unpack_occupied(field));
    const auto& size = field.grid.size;
    Array<float, 3> grid({size[0], size[1], size[2]});
    for (int64_t i = 0; i < field.grid.nodes(); ++i) {
        const double u = static_cast<double>(density[static_cast<size_t>(i)]) + field.density_shift;
        const double softplus = std::max(u, 0.0) + std::log1p(std::exp(-std::abs(u)));
        grid.data()[i] =
            bit_of(visible.data(), i) ? static_cast<float>(softplus * field.voxel_ratio / field.grid.voxel) : 0.0f;
    }
    return grid;
}

}  // namespace stipple::radiance
