#pragma once
// A watertight mesh around any triangle soup, with what it was, what it has become, and how far apart the two are.

#include <limits>

#include "stipple/geometry/mesh_distance.h"
#include "stipple/geometry/watertight.h"
#include "stipple/tasks/mesh_facts.h"

namespace stipple::tasks {

struct SolidOptions {
    geometry::WatertightOptions conversion = {.tolerance = 0.05};
    double ratio = 0;  // in place of conversion.faces: at most so many, as a multiple of the input's
};
const Fields& solid_options_fields();
/// Throws Error{bad_argument} for numbers out of range, and for options that contradict each other.
void require_valid(const SolidOptions& options);

struct Solid {
    Mesh mesh = {};
    int64_t wanted = 0;  // faces at most, 0: any number; there may be more, where fewer would break the surface
    double hollow = 0;   // geometry::hollow_share(); 0 where inner walls are kept
    MeshFacts before = {}, after = {};
    /// NaN from a mesh without area, of which no points can be drawn.
    geometry::MeshDistance input_to_result{kNone, kNone, kNone}, result_to_input{kNone, kNone, kNone};

    static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
};
const Fields& solid_fields();

/// By geometry::watertight(), with the origin of the input. Throws as require_valid() and it do; Error{check_failed}
/// where the result is not watertight after all.
Solid make_solid(const Mesh& mesh, const SolidOptions& options);

}  // namespace stipple::tasks
