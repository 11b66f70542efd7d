#pragma once
// The step-by-step reference as a backend of training: its fine stage, on dense grids. The coarse stage is that of
// another backend, which is gone when the fine one begins: the paths differ in the fine stage alone.
//
// The rules are those of the other backends, with one exception: values at nodes that bricks do not store are kept here
// when a grid grows, as in the published training, and count as 0 there.

#include <algorithm>

#include "stipple/core/error.h"
#include "stipple/core/half.h"
#include "stipple/radiance/cuda/reference/grids.h"
#include "stipple/radiance/cuda/reference/step.h"
#include "stipple/radiance/train/backend.h"
#include "stipple/radiance/train/brick_table.h"

namespace stipple::radiance::reference {

template <class E>
class ReferenceBackend final : public Backend {
public:
    ReferenceBackend(std::unique_ptr<E> executor, const Scene& scene, const TrainOptions& options,
                     std::unique_ptr<Backend> coarse)
        : executor_(std::move(executor)),
          e_(*executor_),
          coarse_(std::move(coarse)),
          only_opaque_(scene.alpha_is_unknown),
          deterministic_(options.deterministic),
          step_(e_, options.path, options.deterministic) {
        STIPPLE_REQUIRE(options.fine.weight_tv_density <= 0 && options.fine.weight_tv_features <= 0,
                        "total variation is not part of the step-by-step paths: use path=final");
        STIPPLE_REQUIRE(options.background != Background::learned && !options.occupancy_returns,
                        "learned backgrounds and nodes that come back are not part of the step-by-step paths: use "
                        "path=final");
        std::vector<uint32_t> first = {0};
        std::vector<CameraView> cameras;
        std::vector<uint8_t> pixels;
        for (const Photograph& photo : scene.train) {
            cameras.push_back(view_of(photo.camera));
            first.push_back(first.back() + static_cast<uint32_t>(photo.pixels.width() * photo.pixels.height()));
        }
        STIPPLE_REQUIRE(first.back() < (uint32_t{1} << 31), "{} pixels are too many for the step-by-step paths",
                        first.back());
        pixels.reserve(size_t{4} * first.back());
        for (size_t i = 0; i < scene.train.size(); ++i) {
            const uint8_t* from = scene.train[i].pixels.pixels.data();
            pixels.insert(pixels.end(), from, from + size_t{4} * (first[i + 1] - first[i]));
        }
        pixels_ = e_.upload(pixels);
        first_ = e_.upload(first);
        cameras_ = e_.upload(cameras);
        step_.photos = {pixels_.get(), first_.get(), cameras_.get(), static_cast<int32_t>(cameras.size())};
        step_.squared_error = e_.upload(std::vector<double>{0});
    }

    void begin_coarse(const GridShape& grid, const StepConstants& constants) override {
        coarse_->begin_coarse(grid, constants);
    }
    std::vector<float> coarse_density() override { return coarse_->coarse_density(); }
    std::vector<uint8_t> coarse_seen(float least) override { return coarse_->coarse_seen(least); }

    void begin_fine(const GridShape& grid, const StepConstants& constants, const std::vector<uint8_t>& occupied,
                    const std::vector<float>& network) override {
        coarse_peak_ = coarse_->peak_bytes() + e_.bytes();
        coarse_.reset();
        if (std::find_if(occupied.begin(), occupied.end(), [](uint8_t o) { return o != 0; }) == occupied.end()) {
            throw Error(ErrorCode::bad_argument,
                        "nothing opaque was found in the scene's box: check cameras, box, near and far");
        }
        shape_ = grid;
        occupied_ = e_.upload(occupied);
        step_.density.value = e_.template make<float>(grid.nodes());
        step_.features.value = e_.template make<float>(grid.nodes() * kFeatures);
        e_.clear("grids", step_.density.value, grid.nodes());
        e_.clear("grids", step_.features.value, grid.nodes() * kFeatures);
        step_.network.value = e_.upload(network);
        begin_resolution(constants);
        list_pixels(constants);
        state_ = {};
        reset_rates(state_);
    }

    void grow(const GridShape& grid, const StepConstants& constants) override {
        drop_moments();
        const DenseGrid old = dense();
        const GridView view = view_of(grid);
        const int64_t nodes = grid.nodes();
        Array<float> density = e_.template make<float>(nodes), features = e_.template make<float>(nodes * kFeatures);
        Array<uint8_t> occupied = e_.template make<uint8_t>(nodes);
        e_.each("grow", nodes, Resample{old, view, 1, step_.density.value.get(), density.get(), occupied.get()});
        e_.each("grow", nodes, Resample{old, view, kFeatures, step_.features.value.get(), features.get(), nullptr});
        e_.each("grow", nodes,
                Prune{view, density.get(), step_.constants.shift, constants.voxel_ratio, constants.threshold,
                      occupied.get()});
        e_.wait();
        shape_ = grid;
        step_.density.value = std::move(density);
        step_.features.value = std::move(features);
        occupied_ = std::move(occupied);
        begin_resolution(constants);
        reset_rates(state_);
    }

    void refresh_occupancy() override {
        if (coarse_) return coarse_->refresh_occupancy();
        const StepConstants& c = step_.constants;
        e_.each(
            "refresh", shape_.nodes(),
            Prune{view_of(shape_), step_.density.value.get(), c.shift, c.voxel_ratio, c.threshold, occupied_.get()});
    }

    int64_t steps(int64_t count) override {
        if (coarse_) return coarse_->steps(count);
        for (int64_t i = 0; i < count; ++i) {
            step_.run(state_);
            state_.rays += step_.constants.rays;
            advance(state_, step_.constants.decay);
        }
        e_.wait();
        return count;
    }

    StepState take_state() override {
        if (coarse_) return coarse_->take_state();
        StepState result = state_;
        result.squared_error = e_.download(step_.squared_error)[0];
        e_.clear("squared error", step_.squared_error, 1);
        state_.rays = 0;
        return result;
    }
    SampleCounts last_samples() override { return coarse_ ? coarse_->last_samples() : step_.last_counts(); }

    std::vector<StepPart> profile(int count) override {
        if (coarse_ || count < 1) return {};
        e_.begin_profile();
        for (int i = 0; i < count; ++i) steps(1);
        std::vector<StepPart> parts = e_.end_profile();
        for (StepPart& part : parts) part.milliseconds /= count;
        return parts;
    }

    void pack(Field& field) override {
        const std::vector<uint8_t> occupied = e_.download(occupied_);
        const std::array<int32_t, 3> bricks = shape_.bricks();
        const BrickTable all =
            number_bricks(std::vector<uint8_t>(static_cast<size_t>(int64_t{bricks[0]} * bricks[1] * bricks[2]), 1));
        const std::vector<uint64_t> bits = bits_of(occupied, all.stored());
        const BrickTable seen = number_bricks(bricks_near(shape_, all, bits));
        field.brick = seen.table;
        field.occupied.clear();
        for (const int32_t place : seen.place) field.occupied.push_back(bits[static_cast<size_t>(place)]);
        const int64_t nodes = int64_t{seen.stored()} * kBrickNodes;
        const Array<int32_t> chosen = e_.upload(seen.place);
        Array<float> density = e_.template make<float>(nodes), features = e_.template make<float>(nodes * kFeatures);
        e_.each("pack", nodes,
                TakeBricks{view_of(shape_), bricks[1], bricks[2], chosen.get(), step_.density.value.get(),
                           step_.features.value.get(), density.get(), features.get()});
        field.density = e_.download(density);
        field.features.clear();
        field.features.reserve(static_cast<size_t>(nodes * kFeatures));
        for (const float f : e_.download(features)) {
            field.features.push_back(float_to_half(std::clamp(f, -65504.0f, 65504.0f)));
        }
        unpack_network(e_.download(step_.network.value), field.network);
    }

    TrainState save() override { throw Error(ErrorCode::bad_argument, "step-by-step paths have no checkpoints"); }
    void restore(TrainState, const StepConstants&) override { save(); }

    int64_t peak_bytes() const override {
        return std::max(coarse_ ? coarse_->peak_bytes() + e_.bytes() : coarse_peak_, e_.peak_bytes());
    }

private:
    template <class T>
    using Array = typename E::template Array<T>;

    DenseGrid dense() const { return {view_of(shape_), occupied_.get()}; }

    /// A bit for each node of the bricks, all of which are stored, in their order.
    std::vector<uint64_t> bits_of(const std::vector<uint8_t>& occupied, int32_t bricks) const {
        std::vector<uint64_t> bits(static_cast<size_t>(bricks));
        const std::array<int32_t, 3> count = shape_.bricks();
        for (int32_t x = 0; x < shape_.size[0]; ++x) {
            for (int32_t y = 0; y < shape_.size[1]; ++y) {
                for (int32_t z = 0; z < shape_.size[2]; ++z) {
                    if (!occupied[static_cast<size_t>(shape_.index(x, y, z))]) continue;
                    const int64_t brick = (int64_t{x / kBrick} * count[1] + y / kBrick) * count[2] + z / kBrick;
                    bits[static_cast<size_t>(brick)] |= uint64_t{1} << BrickGrid::place(x, y, z);
                }
            }
        }
        return bits;
    }

    /// Of all rays, those that meet what is occupied.
    void list_pixels(const StepConstants& constants) {
        const auto pixels = static_cast<int64_t>(pixels_.count() / 4);
        Array<uint8_t> flag = e_.template make<uint8_t>(pixels);
        e_.each("pixels", pixels,
                SeesOccupied{step_.photos, dense(), only_opaque_, constants.near, constants.step, flag.get()});
        list_ = e_.template make<int32_t>(pixels);
        const int64_t count = e_.choose("pixels", flag.get(), pixels, list_.get());
        if (count == 0) throw Error(ErrorCode::bad_argument, "no photograph shows what was found");
        step_.pool = {reinterpret_cast<const uint32_t*>(list_.get()), static_cast<uint32_t>(count), false};
    }

    void drop_moments() {
        e_.wait();
        for (Parameters<E>* p : {&step_.density, &step_.features, &step_.network}) {
            p->mean = {}, p->square = {}, p->gradient = {}, p->fixed = {}, p->mask = {};
        }
    }

    void begin_resolution(const StepConstants& constants) {
        step_.density.make(e_, shape_.nodes(), deterministic_);
        step_.features.make(e_, shape_.nodes() * kFeatures, deterministic_);
        step_.network.make(e_, kNetworkNumbers, false);
        step_.constants = constants;
        step_.grid = dense();
        step_.nodes = shape_.nodes();
        double square = 0;
        for (int axis = 0; axis < 3; ++axis) square += double{shape_.box.extent(axis)} * shape_.box.extent(axis);
        const double most = std::ceil(std::sqrt(square) / constants.step) + 2;
        STIPPLE_REQUIRE(most < 65535 && most * constants.rays < 2147483647.0, "{} rays of {} samples are too many",
                        constants.rays, most);
        step_.capacity = static_cast<int32_t>(most);
    }

    std::unique_ptr<E> executor_;
    E& e_;
    std::unique_ptr<Backend> coarse_;  // null in the fine stage
    int64_t coarse_peak_ = 0;
    bool only_opaque_, deterministic_;
    Array<uint8_t> pixels_, occupied_;
    Array<uint32_t> first_;
    Array<int32_t> list_;
    Array<CameraView> cameras_;
    GridShape shape_;
    StepState state_;
    Step<E> step_;
};

}  // namespace stipple::radiance::reference
