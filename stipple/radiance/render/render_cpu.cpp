#include <chrono>
#include <limits>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/radiance/march/environment.h"
#include "stipple/radiance/march/opacity.h"
#include "stipple/radiance/render/cpu_field.h"
#include "stipple/radiance/render/view_renderer.h"

namespace stipple::radiance {
namespace {

constexpr size_t kBatch = 512;  // samples that the colour network sees together

/// A row of a picture: rays march one after the other, the colours of their samples are evaluated in batches. Colours
/// are added to a pixel in the order of its samples, so that batches do not matter.
class RowRenderer {
public:
    RowRenderer(const CpuField& field, const CameraView& camera, RenderedView& view, const RenderOptions& options)
        : field_(field),
          bricks_(field.brick_grid()),
          camera_(camera),
          view_(view),
          geometry_(options.geometry),
          colour_(options.colour) {
        view_parts_.resize(field.colour.has_network() ? static_cast<size_t>(camera.width) * kHidden : 0);
        left_.resize(static_cast<size_t>(camera.width));
        features_.reserve(kBatch * kFeatures);
    }

    void render(int y) {
        const auto row = static_cast<int64_t>(y) * camera_.width;
        for (int x = 0; x < camera_.width; ++x) march(x, y, row + x);
        flush();
        const Background background = field_.settings.background;
        if (!colour_ || background == Background::black || background == Background::random) return;
        const Environment& map = field_.settings.environment;
        for (int x = 0; x < camera_.width; ++x) {
            float colour[3] = {1, 1, 1};
            if (background == Background::learned) {
                const Texels texels = texels_of(camera_ray(camera_, x, y).direction, map.side);
                for (int c = 0; c < 3; ++c) colour[c] = sigmoid(interpolate(texels, map.texels.data(), c));
            }
            for (int64_t c = 0; c < 3; ++c)
                view_.colour.data()[3 * (row + x) + c] += left_[static_cast<size_t>(x)] * colour[c];
        }
    }

private:
    struct Sample {
        int64_t pixel;
        float weight;
    };

    void march(int x, int y, int64_t pixel) {
        const FieldSettings& settings = field_.settings;
        const GridView& grid = field_.grid;
        const Ray ray = camera_ray(camera_, x, y);
        const March samples =
            march_through(ray, grid.low, grid.high, settings.near, settings.step * settings.grid.voxel);
        const SampleRange inside = samples_inside(grid, samples);
        const Vec3f per_node = samples_per_node(grid, samples);
        const float* view_part = nullptr;
        float left = 1, depth = std::numeric_limits<float>::infinity();
        Vec3f normal;
        for (int32_t i = inside.begin; left >= kLeastTransmittance; ++i) {
            i = next_sample(bricks_, samples, per_node, i, inside.end);
            if (i >= inside.end) break;
            const Vec3f node = to_nodes(grid, samples.at(i));
            if (!is_occupied(bricks_, node)) continue;
            const Cell cell = cell_of(grid, node);
            const float alpha = field_.opacity_of(field_.density_at(cell), settings.step);
            if (!(alpha > settings.least_weight)) continue;
            const float weight = left * alpha, before = left;
            left *= 1 - alpha;
            if (geometry_ && before > 0.5f && left <= 0.5f)  // a sample stands for half a step before and behind it
                depth = samples.first_depth +
                        samples.depth_step * (static_cast<float>(i) - 0.5f + (before - 0.5f) / (before - left));
            if (!(weight > settings.least_weight)) continue;
            if (geometry_) normal = normal - weight * unit(field_.gradient_at(cell));
            if (!colour_) continue;
            if (!view_part) view_part = view_part_of(ray, x);
            keep(cell, pixel, weight, view_part);
        }
        finish(pixel, left, depth, unit(normal));
    }

    const float* view_part_of(const Ray& ray, int x) {
        static constexpr float kNone = 0;
        if (view_parts_.empty()) return &kNone;
        float* part = view_parts_.data() + static_cast<size_t>(x) * kHidden;
        field_.colour.view_part(unit(ray.direction), part);
        return part;
    }

    void keep(const Cell& cell, int64_t pixel, float weight, const float* view_part) {
        features_.resize(features_.size() + kFeatures);
        field_.features_at(cell, features_.data() + features_.size() - kFeatures);
        samples_.push_back({pixel, weight});
        views_.push_back(view_part);
        if (samples_.size() == kBatch) flush();
    }

    void flush() {
        float colours[3 * kBatch];
        field_.colour.colours(features_, views_, colours);
        float* to = view_.colour.data();
        for (size_t i = 0; i < samples_.size(); ++i)
            for (size_t c = 0; c < 3; ++c)
                to[3 * samples_[i].pixel + static_cast<int64_t>(c)] += samples_[i].weight * colours[3 * i + c];
        samples_.clear(), views_.clear(), features_.clear();
    }

    void finish(int64_t pixel, float left, float depth, Vec3f normal) {
        left_[static_cast<size_t>(pixel % camera_.width)] = left;
        view_.alpha.data()[pixel] = 1 - left;
        if (!geometry_) return;
        view_.depth.data()[pixel] = depth;
        for (int axis = 0; axis < 3; ++axis) view_.normal.data()[3 * pixel + axis] = normal[axis];
    }

    const CpuField& field_;
    const BrickGrid bricks_;
    const CameraView& camera_;
    RenderedView& view_;
    const bool geometry_, colour_;
    std::vector<Sample> samples_;
    std::vector<float> features_, view_parts_;
    std::vector<float> left_;  // behind the last sample of each pixel
    std::vector<const float*> views_;
};

class CpuRenderer : public ViewRenderer {
public:
    explicit CpuRenderer(const Field& field) : field_(field) {}

    RenderedView render(const Camera& camera, const RenderOptions& options) override {
        const auto start = std::chrono::steady_clock::now();
        const int64_t height = camera.height, width = camera.width;
        RenderedView view;
        if (options.colour) {
            view.colour = Array<float, 3>({height, width, 3});
            std::fill_n(view.colour.data(), view.colour.elements(), 0.0f);
        }
        view.alpha = Array<float, 3>({height, width, 1});
        if (options.geometry) {
            view.depth = Array<float, 3>({height, width, 1});
            view.normal = Array<float, 3>({height, width, 3});
        }
        const CameraView camera_view = view_of(camera);
        parallel_for(height, 4, [&](int64_t begin, int64_t end) {
            check_interrupted();
            RowRenderer rows(field_, camera_view, view, options);
            for (int64_t y = begin; y < end; ++y) rows.render(static_cast<int>(y));
        });
        seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return view;
    }

    double seconds() const override { return seconds_; }

private:
    const CpuField field_;
    double seconds_ = 0;
};

}  // namespace

std::unique_ptr<ViewRenderer> make_cpu_renderer(const Field& field) {
    return std::make_unique<CpuRenderer>(field);
}

}  // namespace stipple::radiance
