#include "stipple/radiance/evaluate.h"

#include <limits>

#include "stipple/core/error.h"
#include "stipple/metrics/image_quality.h"

namespace stipple::radiance {

const Fields& view_score_fields() {
    using Score = ViewScore;
    static const Fields fields = {field<&Score::file>("file", "The photograph"),
                                  field<&Score::psnr>("psnr", "Its PSNR").unit("dB"),
                                  field<&Score::ssim>("ssim", "Its SSIM; null: it is smaller than 11 x 11"),
                                  field<&Score::seconds>("seconds", "Of the render").unit("s")};
    return fields;
}

const Fields& view_scores_fields() {
    using Scores = ViewScores;
    static const Fields fields = {field<&Scores::psnr>("psnr", "The mean of the views").unit("dB"),
                                  field<&Scores::ssim>("ssim", "The mean of the views"),
                                  field<&Scores::seconds>("seconds_per_view", "Of the renders").unit("s"),
                                  objects_field<&Scores::views>("scores", view_score_fields, "Of each view")};
    return fields;
}

Array<float, 3> composited(const Photograph& photograph, Background background) {
    const Image& image = photograph.pixels;
    STIPPLE_REQUIRE(image.channels() == 4, "{}: {} channels, not 4", photograph.file, image.channels());
    Array<float, 3> colours({image.height(), image.width(), 3});
    const float behind = background == Background::white ? 1.0f : 0.0f;
    const uint8_t* from = image.pixels.data();
    float* to = colours.data();
    for (int64_t i = 0; i < image.height() * image.width(); ++i, from += 4, to += 3) {
        const float alpha = static_cast<float>(from[3]) / 255;
        for (int c = 0; c < 3; ++c) to[c] = static_cast<float>(from[c]) / 255 * alpha + (1 - alpha) * behind;
    }
    return colours;
}

ViewScore score_view(const RenderedView& view, const Photograph& truth, Background background, bool alpha_is_unknown) {
    Array<float, 3> colours = composited(truth, alpha_is_unknown ? Background::black : background);
    STIPPLE_REQUIRE(colours.shape() == view.colour.shape(), "{}: {} x {} pixels, its camera has {} x {}", truth.file,
                    colours.size(1), colours.size(0), view.colour.size(1), view.colour.size(0));
    const uint8_t* pixels = truth.pixels.pixels.data();
    for (int64_t i = 0; alpha_is_unknown && i < colours.elements(); ++i)
        colours.data()[i] += (1 - static_cast<float>(pixels[i / 3 * 4 + 3]) / 255) * view.colour.data()[i];
    constexpr int64_t kWindow = 11;
    ViewScore score;
    score.file = truth.file;
    score.psnr = metrics::psnr(view.colour.view(), colours.view());
    score.ssim = colours.size(0) < kWindow || colours.size(1) < kWindow
                     ? std::numeric_limits<double>::quiet_NaN()
                     : metrics::ssim(view.colour.view(), colours.view());
    return score;
}

ViewScores mean_of(std::vector<ViewScore> views) {
    ViewScores scores;
    scores.views = std::move(views);
    const auto n = static_cast<double>(scores.views.size());
    for (const ViewScore& view : scores.views) {
        scores.psnr += view.psnr / n;
        scores.ssim += view.ssim / n;
        scores.seconds += view.seconds / n;
    }
    return scores;
}

ViewScores evaluate(Renderer& renderer, const std::vector<Photograph>& photographs, Background background,
                    bool alpha_is_unknown, const std::function<void(int64_t)>& done) {
    STIPPLE_REQUIRE(!photographs.empty(), "evaluate: no photographs");
    std::vector<ViewScore> views;
    for (const Photograph& photograph : photographs) {
        const RenderedView view = renderer.render(photograph.camera);
        views.push_back(score_view(view, photograph, background, alpha_is_unknown));
        views.back().seconds = renderer.seconds();
        if (done) done(static_cast<int64_t>(views.size()));
    }
    return mean_of(std::move(views));
}

void move_cameras(std::vector<Photograph>& photographs, const std::array<double, 3>& from,
                  const std::array<double, 3>& to) {
    for (Photograph& photograph : photographs)
        for (size_t axis = 0; axis < 3; ++axis) {
            float& place = photograph.camera.to_world[4 * axis + 3];
            place = static_cast<float>(static_cast<double>(place) + from[axis] - to[axis]);
        }
}

}  // namespace stipple::radiance
