#pragma once
// A training step, operation by operation, in the order of the published training. Which operations are fused is the
// path's choice.

#include "stipple/radiance/cuda/reference/adam.h"
#include "stipple/radiance/cuda/reference/colours.h"
#include "stipple/radiance/cuda/reference/losses.h"
#include "stipple/radiance/cuda/reference/memory.h"
#include "stipple/radiance/train.h"

namespace stipple::radiance::reference {

template <class E>
class Step {
public:
    StepConstants constants;
    Photos photos;
    PixelPool pool;
    DenseGrid grid;
    int64_t nodes = 0;
    int32_t capacity = 0;  // most samples of a ray
    Parameters<E> density, features, network;
    typename E::template Array<double> squared_error;  // one number
    SampleCounts counts;

    Step(E& executor, StepPath path, bool deterministic) : e_(executor), path_(path), deterministic_(deterministic) {}

    void run(const StepState& state) {
        draw(state.step);
        const bool is_fused = path_ >= StepPath::fused_rendering;
        if (is_fused) {
            render_rays();
        } else {
            sample_rays();
            find_weights();
        }
        find_colours();
        compare();
        colours_back();
        clear_gradient(density, "density gradient: zeros");
        if (is_fused) {
            rays_back();
        } else {
            weights_back();
        }
        take_gradient(density, "density gradient: from integers");
        const float rate = state.rate * state.correction;
        optimise(density, "density", constants.rate_density * rate, true);
        optimise(features, "features", constants.rate_features * rate, true);
        optimise(network, "network", constants.rate_network * rate, false);
    }

    /// Of the last step; opaque ones are those up to the last that is seen.
    SampleCounts last_counts() {
        SampleCounts result = counts;
        const auto sum = [&](const auto& array) {
            int64_t total = 0;
            const std::vector<int32_t> values = e_.download(array);
            for (int32_t r = 0; r < constants.rays; ++r) total += values[static_cast<size_t>(r)];
            return total;
        };
        if (path_ >= StepPath::fused_rendering) {
            result.in_box = sum(a_.slot_in_box);
            result.in_mask = sum(a_.slot_in_mask);
            result.opaque = sum(a_.slot_samples);
        } else {
            result.opaque = sum(a_.seen_end) - sum(a_.opaque_begin);
        }
        return result;
    }

private:
    int32_t rays() const { return constants.rays; }
    template <class T>
    T* room_of(typename E::template Array<T>& array, int64_t n) {
        return room<E, T>(e_, array, n);
    }

    void draw(int64_t number) {
        const int64_t n = rays();
        const Rays to = {room_of<March>(a_.march, n), room_of<int32_t>(a_.samples, n), room_of<Vec3f>(a_.direction, n),
                         room_of<float>(a_.colour, 3 * n), room_of<float>(a_.background, 3 * n)};
        e_.each("rays", n,
                DrawRays{photos, pool, constants.draw, grid.view, constants.near, constants.step, number, rays(), to});
    }

    /// The samples whose flags are set, as a list of their own.
    void choose(const char* part, ListArrays<E>& from, ListArrays<E>& to) {
        int32_t* place = room_of<int32_t>(to.place, from.count);
        const int64_t n = e_.choose(part, from.flag.get(), from.count, place);
        const SampleList list = to.make(e_, n);
        e_.each(part, n, TakeSamples{place, from.view(), list});
    }

    void sample_rays() {
        int32_t* first = room_of<int32_t>(a_.first, rays());
        const int64_t n = e_.sum_before("samples of rays", a_.samples.get(), rays(), first);
        const SampleList all = a_.all.make(e_, n);
        e_.each("rays of samples", n, FindRay{first, rays(), all.ray});
        e_.each("positions", n, FindPosition{a_.march.get(), first, all});
        e_.each("box", n, IsInBox{grid.view, all.position, room_of<uint8_t>(a_.all.flag, n)});
        choose("samples in the box", a_.all, a_.in_box);
        counts.in_box = a_.in_box.count;
        e_.each("mask", a_.in_box.count,
                IsInMask{grid, a_.in_box.position.get(), room_of<uint8_t>(a_.in_box.flag, a_.in_box.count)});
        choose("samples in the mask", a_.in_box, a_.in_mask);
        counts.in_mask = a_.in_mask.count;
    }

    void find_weights() {
        const int64_t n = a_.in_mask.count;
        float* raw = room_of<float>(a_.mask_raw, n);
        float* alpha = room_of<float>(a_.mask_alpha, n);
        e_.each("density", n, TrilinearDensity{grid.view, density.value.get(), a_.in_mask.position.get(), raw});
        e_.each("opacity", n, OpacityOfDensity{raw, constants.shift, constants.opacity_length, alpha});
        e_.each("opaque", n, IsAbove{alpha, constants.threshold, room_of<uint8_t>(a_.in_mask.flag, n)});
        choose("opaque samples", a_.in_mask, a_.opaque);
        const int64_t m = a_.opaque.count;
        e_.each("opaque samples", m, TakeNumbers{a_.opaque.place.get(), raw, room_of<float>(a_.raw, m)});
        e_.each("opaque samples", m, TakeNumbers{a_.opaque.place.get(), alpha, room_of<float>(a_.alpha, m)});
        find_ends(a_.opaque, a_.opaque_begin, a_.opaque_end);
        e_.each("weights", rays(),
                WeightsOfRay{a_.opaque_begin.get(), a_.opaque_end.get(), a_.alpha.get(), room_of<float>(a_.weight, m),
                             room_of<float>(a_.before, m), room_of<float>(a_.left, rays()),
                             room_of<int32_t>(a_.seen_end, rays())});
        e_.each("seen", m, IsAbove{a_.weight.get(), constants.threshold, room_of<uint8_t>(a_.opaque.flag, m)});
        choose("seen samples", a_.opaque, a_.kept);
        const int64_t k = a_.kept.count;
        e_.each("seen samples", k,
                TakeNumbers{a_.kept.place.get(), a_.weight.get(), room_of<float>(a_.kept_weight, k)});
        find_ends(a_.kept, a_.kept_begin, a_.kept_end);
        counts.kept = k;
    }

    void find_ends(const ListArrays<E>& list, typename E::template Array<int32_t>& begin,
                   typename E::template Array<int32_t>& end) {
        room_of<int32_t>(begin, rays());
        room_of<int32_t>(end, rays());
        e_.clear("ends of rays", begin, rays());
        e_.clear("ends of rays", end, rays());
        e_.each("ends of rays", list.count, FindEnds{list.ray.get(), list.count, begin.get(), end.get()});
    }

    void render_rays() {
        const int64_t n = rays(), places = n * capacity;
        RaySamples& slots = a_.slots;
        slots.capacity = capacity;
        slots.index = room_of<uint16_t>(a_.slot_index, places);
        slots.alpha = room_of<float>(a_.slot_alpha, places);
        slots.weight = room_of<float>(a_.slot_weight, places);
        slots.samples = room_of<int32_t>(a_.slot_samples, n);
        slots.kept = room_of<int32_t>(a_.slot_kept, n);
        slots.in_box = room_of<int32_t>(a_.slot_in_box, n);
        slots.in_mask = room_of<int32_t>(a_.slot_in_mask, n);
        slots.left = room_of<float>(a_.left, n);
        e_.each("rendering", n,
                RenderRay{grid, density.value.get(), constants.shift, constants.opacity_length, constants.threshold,
                          a_.march.get(), slots});
        int32_t* begin = room_of<int32_t>(a_.kept_begin, n);
        const int64_t k = e_.sum_before("seen samples", slots.kept, n, begin);
        const SampleList kept = a_.kept.make(e_, k);
        e_.each("seen samples", n,
                ListKept{a_.march.get(), slots, begin, kept, room_of<float>(a_.kept_weight, k),
                         room_of<int32_t>(a_.kept.place, k), room_of<int32_t>(a_.kept_end, n)});
        counts.kept = k;
    }

    void find_colours() {
        const int64_t k = a_.kept.count;
        const float* numbers = network.value.get();
        float* inputs = room_of<float>(a_.inputs, k * kNetworkInputs);
        e_.each("features", k,
                TrilinearFeatures{grid.view, nodes, features.value.get(), a_.kept.position.get(),
                                  room_of<float>(a_.features, k * kFeatures)});
        e_.each("view code", rays(),
                ViewCodes{a_.direction.get(), room_of<float>(a_.code, int64_t{rays()} * kViewCode)});
        e_.each("inputs", k * kNetworkInputs, JoinInputs{a_.features.get(), a_.code.get(), a_.kept.ray.get(), inputs});
        float* product1 = room_of<float>(a_.product1, k * kHidden);
        e_.multiply("layer 1", Product{inputs, kNetworkInputs, 1, numbers, 1, kNetworkInputs, product1, k, kHidden,
                                       kNetworkInputs});
        float* hidden1 = room_of<float>(a_.hidden1, k * kHidden);
        e_.each("rectifiers", k * kHidden, Rectify{product1, hidden1});
        float* product2 = room_of<float>(a_.product2, k * kHidden);
        e_.multiply("layer 2",
                    Product{hidden1, kHidden, 1, numbers + kWeight2, 1, kHidden, product2, k, kHidden, kHidden});
        e_.each("biases", k * kHidden, AddBias{numbers + kBias2, kHidden, product2});
        e_.each("rectifiers", k * kHidden, Rectify{product2, room_of<float>(a_.hidden2, k * kHidden)});
        float* outputs = room_of<float>(a_.outputs, 3 * k);
        e_.each("layer 3", 3 * k, LastLayer{numbers, a_.hidden2.get(), outputs});
        e_.each("biases", 3 * k, AddBias{numbers + kBias3, 3, outputs});
        e_.each("sigmoid", 3 * k, SigmoidOf{outputs, room_of<float>(a_.rgb, 3 * k)});
    }

    /// Pixels, losses, and back to the colours and weights of samples.
    void compare() {
        const int64_t n = rays(), k = a_.kept.count;
        const float per_ray = 1.0f / static_cast<float>(n);
        e_.each("composite", n,
                Composite{a_.kept_begin.get(), a_.kept_end.get(), a_.kept_weight.get(), a_.rgb.get(), a_.left.get(),
                          a_.background.get(), room_of<float>(a_.pixel, 3 * n)});
        e_.each("squared error", n,
                SquaredError{a_.pixel.get(), a_.colour.get(), per_ray, room_of<float>(a_.error, n),
                             room_of<float>(a_.to_pixel, 3 * n)});
        e_.add_all("squared error", a_.error.get(), n, squared_error.get());
        e_.each("entropy back", n,
                EntropyBack{a_.left.get(), constants.weight_entropy * per_ray, room_of<float>(a_.to_left, n)});
        e_.each("background back", n, BackgroundBack{a_.to_pixel.get(), a_.background.get(), a_.to_left.get()});
        e_.each("composite back", k,
                CompositeBack{a_.kept.ray.get(), a_.kept_weight.get(), a_.rgb.get(), a_.to_pixel.get(),
                              room_of<float>(a_.to_rgb, 3 * k), room_of<float>(a_.to_kept_weight, k)});
        e_.each("colour loss back", k,
                ColourLossBack{a_.kept.ray.get(), a_.kept_weight.get(), a_.rgb.get(), a_.colour.get(),
                               2 * constants.weight_rgbper * per_ray, a_.to_rgb.get()});
    }

    void colours_back() {
        const int64_t k = a_.kept.count;
        const float* numbers = network.value.get();
        float* gradient = network.gradient.get();
        float* to_outputs = room_of<float>(a_.to_outputs, 3 * k);
        float* partial = room_of<float>(a_.partial, int64_t{kSlices} * kHidden * kHidden);
        e_.each("sigmoid back", 3 * k, SigmoidBack{a_.rgb.get(), a_.to_rgb.get(), to_outputs});
        const auto columns = [&](const char* part, const float* left, int rows, const float* right, int width,
                                 float* to) {
            e_.each(part, int64_t{kSlices} * rows * width, SumColumns{left, right, k, rows, width, partial});
            e_.each(part, int64_t{rows} * width, SumSlices{partial, int64_t{rows} * width, kSlices, to});
        };
        columns("biases back", to_outputs, 3, nullptr, 1, gradient + kBias3);
        columns("weights of layer 3 back", to_outputs, 3, a_.hidden2.get(), kHidden, gradient + kWeight3);
        float* to_hidden2 = room_of<float>(a_.to_hidden2, k * kHidden);
        e_.each("layer 3 back", k * kHidden, LastLayerBack{numbers, to_outputs, to_hidden2});
        e_.each("rectifiers back", k * kHidden, RectifyBack{a_.hidden2.get(), to_hidden2});
        columns("biases back", to_hidden2, kHidden, nullptr, 1, gradient + kBias2);
        const auto weights = [&](const char* part, const float* to_hidden, const float* inputs, int width, float* to) {
            e_.multiply(part, Product{to_hidden, 1, kHidden, inputs, width, 1, partial, kHidden, width, k, kSlices});
            e_.each(part, int64_t{kHidden} * width, SumSlices{partial, int64_t{kHidden} * width, kSlices, to});
        };
        weights("weights of layer 2 back", to_hidden2, a_.hidden1.get(), kHidden, gradient + kWeight2);
        float* to_hidden1 = room_of<float>(a_.to_hidden1, k * kHidden);
        e_.multiply("layer 2 back",
                    Product{to_hidden2, kHidden, 1, numbers + kWeight2, kHidden, 1, to_hidden1, k, kHidden, kHidden});
        e_.each("rectifiers back", k * kHidden, RectifyBack{a_.hidden1.get(), to_hidden1});
        weights("weights of layer 1 back", to_hidden1, a_.inputs.get(), kNetworkInputs, gradient);
        float* to_inputs = room_of<float>(a_.to_inputs, k * kNetworkInputs);
        e_.multiply("layer 1 back",
                    Product{to_hidden1, kHidden, 1, numbers, kNetworkInputs, 1, to_inputs, k, kNetworkInputs, kHidden});
        clear_gradient(features, "features gradient: zeros");
        e_.each("features back", k,
                TrilinearFeaturesBack{grid.view, nodes, a_.kept.position.get(), to_inputs, features.sums()});
        take_gradient(features, "features gradient: from integers");
    }

    void clear_gradient(Parameters<E>& p, const char* part) {
        if (deterministic_) {
            e_.clear(part, p.fixed, p.count());
        } else {
            e_.clear(part, p.gradient, p.count());
        }
    }
    void take_gradient(Parameters<E>& p, const char* part) {
        if (deterministic_) e_.each(part, p.count(), FromFixed{p.fixed.get(), p.gradient.get()});
    }

    /// Cleared places for sums of what lies behind samples.
    Sums behind_sums(int64_t n) {
        float* behind = room_of<float>(a_.behind, n);
        if (!deterministic_) {
            e_.clear("behind: zeros", a_.behind, n);
            return {behind, nullptr};
        }
        int64_t* fixed = room_of<int64_t>(a_.behind_fixed, n);
        e_.clear("behind: zeros", a_.behind_fixed, n);
        return {behind, fixed};
    }
    const float* take_behind(const Sums& sums, int64_t n) {
        if (sums.fixed) e_.each("behind: from integers", n, FromFixed{sums.fixed, sums.plain});
        return sums.plain;
    }

    void weights_back() {
        const int64_t m = a_.opaque.count, k = a_.kept.count;
        float* to_weight = room_of<float>(a_.to_weight, m);
        e_.clear("seen samples back", a_.to_weight, m);
        e_.each("seen samples back", k, PutNumbers{a_.kept.place.get(), a_.to_kept_weight.get(), to_weight});
        const Sums behind = behind_sums(m);
        e_.each("weights back, atomics", m,
                AddBehind{a_.opaque.ray.get(), a_.opaque_begin.get(), to_weight, a_.weight.get(), behind});
        float* to_alpha = room_of<float>(a_.to_alpha, m);
        const float* behind_of = take_behind(behind, m);
        e_.each("weights back", m,
                WeightsBack{a_.opaque.ray.get(), a_.seen_end.get(), a_.alpha.get(), a_.before.get(), to_weight,
                            behind_of, a_.left.get(), a_.to_left.get(), to_alpha});
        float* to_raw = room_of<float>(a_.to_raw, m);
        e_.each("opacity back", m,
                OpacityBack{a_.raw.get(), a_.alpha.get(), to_alpha, constants.shift, constants.opacity_length, to_raw});
        e_.each("density back", m, TrilinearDensityBack{grid.view, a_.opaque.position.get(), to_raw, density.sums()});
    }

    void rays_back() {
        const float* behind_of = nullptr;
        if (path_ == StepPath::fused_rendering) {
            const int64_t places = int64_t{rays()} * capacity;
            const Sums behind = behind_sums(places);
            e_.each("weights back, atomics", a_.kept.count,
                    AddBehindPlaces{a_.kept.ray.get(), a_.kept.place.get(), a_.to_kept_weight.get(),
                                    a_.kept_weight.get(), capacity, behind});
            behind_of = take_behind(behind, places);
        }
        e_.each("rendering back", rays(),
                RenderRayBack{grid.view, constants.opacity_length, a_.march.get(), a_.slots, a_.kept_end.get(),
                              a_.to_kept_weight.get(), a_.to_left.get(), behind_of, density.sums()});
    }

    void optimise(Parameters<E>& p, const char* name, float rate, bool masked) {
        const int64_t n = p.count();
        if (path_ >= StepPath::fused_adam) {
            e_.each(part_of("Adam", name), n,
                    FusedAdam{masked, p.gradient.get(), p.mean.get(), p.square.get(), p.value.get(), rate});
            return;
        }
        const uint8_t* mask = masked ? p.mask.get() : nullptr;
        if (masked) e_.each(part_of("Adam, mask", name), n, HasGradient{p.gradient.get(), p.mask.get()});
        e_.each(part_of("Adam, first moment", name), n, FirstMoment{mask, p.gradient.get(), p.mean.get()});
        e_.each(part_of("Adam, second moment", name), n, SecondMoment{mask, p.gradient.get(), p.square.get()});
        e_.each(part_of("Adam, update", name), n, UpdateValue{mask, p.mean.get(), p.square.get(), rate, p.value.get()});
    }
    static std::string part_of(const char* what, const char* name) { return std::string(what) + ": " + name; }

    E& e_;
    StepPath path_;
    bool deterministic_;
    StepArrays<E> a_;
};

}  // namespace stipple::radiance::reference
