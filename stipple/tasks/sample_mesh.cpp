#include "stipple/tasks/sample_mesh.h"

#include "stipple/geometry/mesh_normals.h"
#include "stipple/geometry/sample_surface.h"

namespace stipple::tasks {
namespace {

/// The normal of the face that each sample lies on.
Attribute normals_at(const Mesh& mesh, View<const int32_t, 1> faces) {
    Array<float, 2> of_faces({mesh.faces(), 3});
    geometry::face_normals(mesh, of_faces.view());
    Attribute normals("normal", DType::f32, faces.size(0), 3);
    const View<float, 2> out = normals.as<float>();
    for (int64_t i = 0; i < faces.size(0); ++i)
        for (int axis = 0; axis < 3; ++axis) out(i, axis) = of_faces.data()[3 * int64_t{faces(i)} + axis];
    return normals;
}

}  // namespace

const Fields& sample_mesh_fields() {
    using Options = SampleMeshOptions;
    static const Fields fields = {
        field<&Options::count>("count", "Points wanted").short_name('n').from(0).no_default(),
        field<&Options::method>("method", "poisson: spread evenly; uniform: independent, by area")
            .words(kSurfaceSamplingWords),
        field<&Options::normals>("normals", "The normals of the faces as attribute normal")};
    return fields;
}

const Fields& sampled_mesh_fields() {
    using Made = SampledMesh;
    static const Fields fields = {field<&Made::faces>("faces", "Faces of the mesh"),
                                  field<&Made::method>("method", "How points were spread").words(kSurfaceSamplingWords),
                                  field<&Made::sampled>("sampled", "Points of the cloud")};
    return fields;
}

SampledMesh sample_mesh(const Mesh& mesh, const SampleMeshOptions& options) {
    check_fields(sample_mesh_fields(), &options);
    STIPPLE_REQUIRE(options.count > 0, "how many points? The count must be above 0");
    geometry::SurfaceSamples samples = options.method == SurfaceSampling::uniform
                                           ? geometry::sample_surface(mesh, options.count, options.seed)
                                           : geometry::sample_surface_poisson(mesh, options.count, options.seed);
    const Array<int32_t, 1> faces = samples.faces.clone();
    SampledMesh made{
        .cloud = geometry::cloud_of_samples(mesh, std::move(samples)), .faces = mesh.faces(), .method = options.method};
    made.sampled = made.cloud.size();
    if (options.normals) {
        std::erase_if(made.cloud.attributes, [](const Attribute& attribute) { return attribute.name() == "normal"; });
        made.cloud.attributes.push_back(normals_at(mesh, faces.view()));
    }
    return made;
}

}  // namespace stipple::tasks
