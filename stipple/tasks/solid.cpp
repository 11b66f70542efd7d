#include "stipple/tasks/solid.h"

#include <algorithm>
#include <cmath>

#include "stipple/geometry/mesh_normals.h"

namespace stipple::tasks {

const Fields& solid_options_fields() {
    static const Fields fields = {
        object_field<&SolidOptions::conversion>("", geometry::watertight_fields),
        field<&SolidOptions::ratio>("ratio", "The same, as a multiple of the input's faces: 2")
            .from(0)
            .shown("R")
            .no_default()};
    return fields;
}

void require_valid(const SolidOptions& options) {
    check_fields(solid_options_fields(), &options);
    const geometry::WatertightOptions& conversion = options.conversion;
    STIPPLE_REQUIRE(options.ratio == 0 || conversion.faces == 0, "--faces and --ratio: give one of them");
    STIPPLE_REQUIRE(conversion.cap_holes <= conversion.resolution,
                    "--cap-holes must be 0 to the resolution, {}, got {}", conversion.resolution, conversion.cap_holes);
    STIPPLE_REQUIRE(conversion.cap_holes == 0 || !conversion.keep_inner,
                    "--cap-holes fills what --keep-inner would keep");
}

const Fields& solid_fields() {
    static const Fields fields = {
        field<&Solid::hollow>("hollow", "Share of what the input encloses that is outside of the result"),
        object_field<&Solid::before>("before", mesh_facts_fields, "The input"),
        object_field<&Solid::after>("after", mesh_facts_fields, "The result"),
        object_field<&Solid::input_to_result>("input_to_result", geometry::mesh_distance_fields,
                                              "How far the input is from the result"),
        object_field<&Solid::result_to_input>("result_to_input", geometry::mesh_distance_fields,
                                              "How far the result is from the input")};
    return fields;
}

Solid make_solid(const Mesh& mesh, const SolidOptions& options) {
    require_valid(options);
    Solid made{.wanted = options.conversion.faces, .before = mesh_facts(mesh)};
    if (options.ratio > 0)
        made.wanted =
            std::max<int64_t>(1, std::llround(std::min(1e15, options.ratio * static_cast<double>(mesh.faces()))));
    geometry::WatertightOptions conversion = options.conversion;
    conversion.faces = made.wanted;
    made.mesh = geometry::watertight(mesh, conversion);
    made.mesh.vertices.origin = mesh.vertices.origin;
    made.after = mesh_facts(made.mesh);
    if (!made.after.watertight)
        throw Error(ErrorCode::check_failed,
                    fmt::format("the result is not watertight ({}): nothing is written", watertight_text(made.after)),
                    "try another --resolution");
    if (!conversion.keep_inner) made.hollow = geometry::hollow_share(mesh, made.mesh);
    if (geometry::surface_area(mesh) > 0) made.input_to_result = geometry::mesh_distance(mesh, made.mesh);
    if (geometry::surface_area(made.mesh) > 0) made.result_to_input = geometry::mesh_distance(made.mesh, mesh);
    return made;
}

}  // namespace stipple::tasks
