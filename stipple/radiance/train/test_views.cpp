#include "stipple/radiance/train/test_views.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "stipple/core/half.h"
#include "stipple/io/image_file.h"
#include "stipple/radiance/train/brick_table.h"
#include "stipple/radiance/view_images.h"

namespace stipple::radiance {
namespace {

/// Two pictures of one size side by side.
Image beside(const Image& left, const Image& right) {
    Image both(left.width() + right.width(), left.height(), 3);
    for (int64_t y = 0; y < both.height(); ++y) {
        std::memcpy(both.at(0, y), left.at(0, y), static_cast<size_t>(3 * left.width()));
        std::memcpy(both.at(left.width(), y), right.at(0, y), static_cast<size_t>(3 * right.width()));
    }
    return both;
}

}  // namespace

std::vector<size_t> spread_views(size_t views, int count) {
    const size_t taken = std::min(views, static_cast<size_t>(std::max(count, 0)));
    std::vector<size_t> chosen;
    for (size_t i = 0; i < taken; ++i) chosen.push_back(i * views / taken);
    return chosen;
}

ViewScores render_test_views(const Field& field, const Scene& scene, const std::vector<size_t>& chosen, Device device,
                             const std::string& folder, int64_t step) {
    Renderer renderer(field, device);
    std::vector<ViewScore> scores;
    for (const size_t i : chosen) {
        const Photograph& photo = scene.test[i];
        const RenderedView view = renderer.render(photo.camera);
        scores.push_back(score_view(view, photo, field.background, scene.alpha_is_unknown));
        scores.back().seconds = renderer.seconds();
        RenderedView truth;
        truth.colour = composited(photo, scene.alpha_is_unknown ? Background::black : field.background);
        io::save_png(fmt::format("{}/step-{:08}-{:04}.png", folder, step, i),
                     beside(colour_image(view), colour_image(truth)), Overwrite::allow);
    }
    return mean_of(std::move(scores));
}

void pack_coarse(const TrainState& state, Field& field) {
    field.brick = bricks_at(state.grid, state.place).table;
    field.occupied = state.occupied;
    field.density = state.density.value;
    field.features.assign(state.density.value.size() * kFeatures, 0);
    for (size_t i = 0; i < state.features.value.size(); ++i)
        field.features[i / 3 * kFeatures + i % 3] =
            float_to_half(std::clamp(state.features.value[i], -65504.0f, 65504.0f));
    field.network = {};
    const double texels = static_cast<double>(state.environment.value.size() / 3);
    field.environment = {static_cast<int32_t>(std::lround(std::sqrt(texels))), state.environment.value};
}

}  // namespace stipple::radiance
