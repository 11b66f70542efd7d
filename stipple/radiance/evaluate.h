#pragma once
// How well a field shows what photographs show.

#include <functional>

#include "stipple/radiance/render.h"

namespace stipple::radiance {

struct ViewScore {
    std::string file;
    double psnr = 0;  // dB, of renders that are neither clipped nor rounded
    double ssim = 0;  // NaN for pictures smaller than 11 x 11
    double seconds = 0;
};
const Fields& view_score_fields();

struct ViewScores {
    std::vector<ViewScore> views;
    double psnr = 0, ssim = 0, seconds = 0;  // means over the views
};
const Fields& view_scores_fields();

/// A photograph as floats in 0 to 1 [height, width, 3], composited on the background (random and
/// learned: black).
Array<float, 3> composited(const Photograph& photograph, Background background);

/// Of a render of the photograph's camera. With `alpha_is_unknown` (Scene) transparent pixels count as right.
ViewScore score_view(const RenderedView& view, const Photograph& truth, Background background, bool alpha_is_unknown);

/// Renders every photograph's camera and compares; `done` is called with the number of views that are done. The
/// protocol of the papers: truth composited on the field's background, mean of the views' PSNRs. Throws
/// Error{bad_argument} for no photographs.
ViewScores evaluate(Renderer& renderer, const std::vector<Photograph>& photographs, Background background,
                    bool alpha_is_unknown = false, const std::function<void(int64_t)>& done = {});

/// Cameras about one origin become cameras about another.
void move_cameras(std::vector<Photograph>& photographs, const std::array<double, 3>& from,
                  const std::array<double, 3>& to);

/// The means of scores that are there.
ViewScores mean_of(std::vector<ViewScore> views);

}  // namespace stipple::radiance
