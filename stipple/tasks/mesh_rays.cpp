#include "stipple/tasks/mesh_rays.h"

#include <algorithm>

#include "stipple/geometry/cast_rays.h"
#include "stipple/geometry/sample_surface.h"
#include "stipple/metrics/normalise.h"

namespace stipple::tasks {
namespace {

struct Hits {
    Array<float, 1> t;
    Array<int32_t, 1> faces;
    Array<float, 2> barycentrics;
};

Hits first_hits(const Mesh& mesh, const RaySet& rays, Device device) {
    const Array<float, 2> vertices = mesh.vertices.positions.to(device);
    const Array<int32_t, 2> triangles = mesh.triangles.to(device);
    const Array<float, 2> origins = rays.origins.to(device), directions = rays.directions.to(device);
    const int64_t m = rays.origins.size(0);
    Hits hits{Array<float, 1>({m}, device), Array<int32_t, 1>({m}, device), Array<float, 2>({m, 3}, device)};
    const geometry::MeshIndex index(geometry::MeshView(vertices.view(), triangles.view()));
    geometry::Rays cast_rays;
    cast_rays.origins = origins.view();
    cast_rays.directions = directions.view();
    geometry::first_hit(index, cast_rays, {hits.t.view(), hits.faces.view(), hits.barycentrics.view()});
    return {hits.t.to(Device{}), hits.faces.to(Device{}), hits.barycentrics.to(Device{})};
}

PointCloud cloud_of_hits(const Mesh& mesh, const Hits& hits) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < hits.t.size(0); ++i)
        if (hits.faces.data()[i] >= 0) rows.push_back(i);
    const auto n = static_cast<int64_t>(rows.size());
    geometry::SurfaceSamples samples{Array<float, 2>(), Array<int32_t, 1>({n}), Array<float, 2>({n, 3})};
    Attribute t("t", DType::f32, n, 1), face("face", DType::i32, n, 1), ray("ray", DType::i32, n, 1);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = rows[static_cast<size_t>(i)];
        samples.faces.data()[i] = face.as<int32_t>()(i, 0) = hits.faces.data()[row];
        t.as<float>()(i, 0) = hits.t.data()[row];
        ray.as<int32_t>()(i, 0) = static_cast<int32_t>(row);
        for (int c = 0; c < 3; ++c) samples.barycentrics.data()[3 * i + c] = hits.barycentrics.data()[3 * row + c];
    }
    samples.points = geometry::interpolate(mesh, samples, mesh.vertices.positions.view());
    PointCloud cloud = geometry::cloud_of_samples(mesh, std::move(samples));
    for (Attribute* attribute : {&t, &face, &ray}) {
        std::erase_if(cloud.attributes, [&](const Attribute& other) { return other.name() == attribute->name(); });
        cloud.attributes.push_back(std::move(*attribute));
    }
    return cloud;
}

const Fields& range_fields() {
    static const Fields fields = {field<&RayRange::min>("min", "Of the nearest hit"),
                                  field<&RayRange::max>("max", "Of the farthest hit")};
    return fields;
}

}  // namespace

const Fields& one_ray_fields() {
    static const Fields fields = {field<&OneRay::origin>("origin", "One ray from X Y Z ...").shown("X Y Z"),
                                  field<&OneRay::direction>("direction", "... in this direction").shown("X Y Z")};
    return fields;
}

RaySet ray_of(const OneRay& ray, const Mesh& mesh) {
    STIPPLE_REQUIRE(ray.origin.size() == 3 && ray.direction.size() == 3, "a ray has an origin and a direction: X Y Z");
    RaySet rays{Array<float, 2>({1, 3}), Array<float, 2>({1, 3})};
    for (int axis = 0; axis < 3; ++axis) {
        const auto at = static_cast<size_t>(axis);
        rays.origins.data()[axis] = static_cast<float>(ray.origin[at] - mesh.vertices.origin[at]);
        rays.directions.data()[axis] = static_cast<float>(ray.direction[at]);
    }
    return rays;
}

RaySet rays_of(const PointCloud& cloud, const Mesh& mesh) {
    const Attribute* three = nullptr;
    for (const char* name : {"direction", "normal", "extra"})
        if (const Attribute* found = find(cloud.attributes, name); found && !three && found->components() == 3)
            three = found;
    const Attribute* one[] = {find(cloud.attributes, "dx"), find(cloud.attributes, "dy"), find(cloud.attributes, "dz")};
    if (!three && !(one[0] && one[1] && one[2]))
        throw Error(ErrorCode::bad_file, "has no directions of rays",
                    "a .csv with the columns x,y,z,dx,dy,dz, or an attribute direction or normal");
    RaySet rays{metrics::in_frame(cloud, {mesh.vertices.origin, 1}).rounded.clone(),
                Array<float, 2>({cloud.size(), 3})};
    for (int64_t i = 0; i < cloud.size(); ++i)
        for (int axis = 0; axis < 3; ++axis)
            rays.directions.data()[3 * i + axis] =
                static_cast<float>(three ? three->value(i, axis) : one[axis]->value(i));
    return rays;
}

const Fields& mesh_hits_fields() {
    static const Fields fields = {
        field<&MeshHits::rays>("rays", "Rays that were cast"), field<&MeshHits::hits>("hits", "Rays that hit the mesh"),
        object_field<&MeshHits::t_range>("t", range_fields, "Lengths of the direction up to hits"),
        field<&MeshHits::face>("face", "The face that a single ray hits"),
        field<&MeshHits::point>("point", "The place that a single ray hits").unit("unit of the mesh")};
    return fields;
}

MeshHits cast_at_mesh(const Mesh& mesh, const RaySet& rays, Device device) {
    const Hits hits = first_hits(mesh, rays, device);
    MeshHits found{.t = hits.t.clone(), .ray_faces = hits.faces.clone(), .cloud = cloud_of_hits(mesh, hits)};
    found.rays = rays.origins.size(0);
    found.hits = found.cloud.size();
    if (found.hits == 0) return found;
    const float* t = find(found.cloud.attributes, "t")->as<float>().data();
    const auto [low, high] = std::minmax_element(t, t + found.hits);
    found.t_range = {*low, *high};
    if (found.rays > 1) return found;
    found.face = find(found.cloud.attributes, "face")->as<int32_t>()(0, 0);
    found.point = {found.cloud.world(0, 0), found.cloud.world(0, 1), found.cloud.world(0, 2)};
    return found;
}

}  // namespace stipple::tasks
