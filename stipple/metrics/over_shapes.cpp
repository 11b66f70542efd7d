// Scores of many shapes: evaluate.h.

#include <algorithm>

#include "stipple/metrics/evaluate.h"

namespace stipple::metrics {
namespace {

using Scores = std::vector<Score> Evaluation::*;

std::vector<Score> means(std::span<const Evaluation> shapes, Scores which) {
    std::vector<Score> result;
    for (const Evaluation& shape : shapes)
        for (const Score& score : shape.*which) {
            const auto same = [&](const Score& other) { return other.name == score.name; };
            const auto known = std::find_if(result.begin(), result.end(), same);
            if (known == result.end()) {
                result.push_back(score);
                continue;
            }
            known->value += score.value;
            ++known->shapes;
            // Parameters that differ from shape to shape (a radius, a count) are of none of them.
            if (known->convention != score.convention) known->convention = info_of(score.metric).formula;
        }
    for (Score& score : result) score.value /= static_cast<double>(score.shapes);
    return result;
}

/// The value over all points of all shapes.
double value_of(std::string_view metric, const Distances& to_mesh, const Distances& from_mesh) {
    if (metric == "p2f_mean") return to_mesh.mean;
    if (metric == "p2f_deviation") return to_mesh.deviation();
    if (metric == "p2f_max") return to_mesh.max;
    if (metric == "f2p_mean") return from_mesh.mean;
    if (metric == "f2p_deviation") return from_mesh.deviation();
    STIPPLE_ASSERT(metric == "f2p_max");
    return from_mesh.max;
}

}  // namespace

std::vector<Score> over_shapes(std::span<const Evaluation> shapes) {
    std::vector<Score> result = means(shapes, &Evaluation::scores);
    Distances to_mesh, from_mesh;
    for (const Evaluation& shape : shapes) {
        to_mesh = pooled(to_mesh, shape.to_mesh);
        from_mesh = pooled(from_mesh, shape.from_mesh);
    }
    for (Score& score : result) {
        if (info_of(score.metric).across != Across::pooled) continue;
        score.value = value_of(score.metric, to_mesh, from_mesh);
        score.convention += ", over all points of all shapes";
    }
    return result;
}

std::vector<Score> floor_over_shapes(std::span<const Evaluation> shapes) {
    return means(shapes, &Evaluation::floor);
}

}  // namespace stipple::metrics
