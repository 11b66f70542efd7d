#pragma once
// One prediction against one truth by a named protocol: the ruler.

#include <optional>

#include "stipple/metrics/nearest.h"
#include "stipple/metrics/protocol.h"
#include "stipple/metrics/registry.h"

namespace stipple::metrics {

enum class NonFinite { refuse, leave_out };

struct EvaluateOptions {
    std::vector<Extra> extras;    // raw: all but emd and emd_exact come by themselves, as far as the inputs allow,
    bool only_extras = false;     // raw: unless nothing but the extras is wanted
    bool raw_too = true;          // pu_gan: cd_raw and hd_raw, without normalisation
    double f_score_radius = 0;    // in the protocol's frame; 0: 1 % of the diagonal of the truth's box
    int64_t surface_samples = 0;  // points drawn from the mesh for mesh -> cloud; 0: as many as the prediction has
    bool floor = false;           // what a perfect sampler would score
    FloorSampling floor_sampling = FloorSampling::farthest;
    bool errors = false;        // per-point errors
    bool equal_counts = false;  // clouds of different sizes are an error instead of a note
    NonFinite nonfinite = NonFinite::refuse;
    uint64_t seed = 1;             // of everything random
    std::optional<Device> device;  // where searches run; unset: where the prediction lies
};

struct Evaluation {
    std::vector<Score> scores;       // in the protocol's order
    std::vector<Score> floor;        // the same names, as far as they have a floor; empty unless asked for
    std::string floor_text;          // how it was drawn: "8192 farthest points of 40960 on the mesh, seed 1"
    std::vector<std::string> notes;  // what the reader must know: sizes that differ, what could not be computed
    int64_t prediction_points = 0, truth_points = 0;  // finite ones
    int64_t prediction_left_out = 0, truth_left_out = 0;
    Distances to_mesh, from_mesh;  // of the prediction; count 0 without a mesh. What over_shapes pools

    /// Of every point of the prediction, in the unit of the input: the distance to the truth, and to the mesh. Empty
    /// unless asked for; NaN where the point is not finite.
    Array<float, 1> error_to_truth, error_to_mesh;
};

/// Clouds and mesh may have different origins: they are compared in the world's coordinates, in float64. CPU or CUDA;
/// the mesh on the CPU. Deterministic: equal bits for any number of threads and, as far as geometry's closest faces are
/// equal, on every device.
///
/// Throws Error{bad_argument} for a cloud without (finite) points, non-finite points unless left out, a mesh without
/// faces, and an extra whose input is missing. Two searches and one of the mesh: about 20 ms for 8192 points.
Evaluation evaluate(const PointCloud& prediction, const PointCloud& truth, const Mesh* mesh, Protocol protocol,
                    const EvaluateOptions& options = {});

/// Scores of a whole set: mean of the shapes' values; p2f and its relatives over all points of all shapes. A score that
/// some shapes lack is the mean of those that have it, and says of how many. In the order of their first appearance.
std::vector<Score> over_shapes(std::span<const Evaluation> shapes);
std::vector<Score> floor_over_shapes(std::span<const Evaluation> shapes);

}  // namespace stipple::metrics
