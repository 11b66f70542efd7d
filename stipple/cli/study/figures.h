#pragma once
// The figures of a study of upsampling, from the clouds that it has kept. Shapes are brought into the unit sphere, so
// that one camera and one scale serve all panels.

#include "stipple/cli/study/commands.h"
#include "stipple/core/image.h"

namespace stipple::cli {

struct FigureSource {
    const study::StudyPlan* plan = nullptr;
    std::string up = "z";
    int64_t size = 0;  // pixels of a panel; 0: as fits

    /// The method that figures of a single one show: the first network, else midpoints.
    const study::Method& shown() const;
};

/// Shapes by methods, coloured by the distance to the true surface, and the truth; one zoom box, one scale. As
/// surfaces: what is reconstructed from each cloud.
Image draw_error_grid(const FigureSource& source, const study::Condition& condition, bool as_surfaces);
/// Inputs above, outputs of one method below, a column for each condition; coloured by the distance to the surface.
Image draw_step_grid(const FigureSource& source, const study::Shape& shape);
/// Up to four shapes: inputs above, outputs below, coloured by the nearest input point.
Image draw_source_grid(const FigureSource& source, const study::Condition& condition);
/// Input, output and truth of up to four conditions of a shape, a row each.
Image draw_truth_grid(const FigureSource& source, const study::Shape& shape);

/// A curve for each method over the conditions' values; published and stored values are discs. Methods of conditions
/// whose value is NaN alone are level lines.
Image draw_sweep(const std::vector<study::Condition>& conditions, const std::vector<study::Mean>& means, size_t score,
                 const std::string& axis);

}  // namespace stipple::cli
