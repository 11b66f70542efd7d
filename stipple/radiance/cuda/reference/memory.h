#pragma once
// The arrays of the step-by-step reference. E is an executor:
//
//   E::Array<T>                          move-only, with get() and count()
//   make<T>(n), upload(vector), download(array)
//   each(part, n, body)                  body(i) for i in [0, n), in any order, side by side
//   clear(part, array, n)                the first n elements become 0
//   choose(part, flags, n, list)         places of flags that are not 0, ascending; returns how many
//   sum_before(part, counts, n, sums)    of the counts before each; returns the sum of all
//   multiply(part, product)              see Product
//   add_all(part, values, n, to)         adds the sum of n floats to a double, in an order of its own, always the same
//   wait(), bytes(), peak_bytes(), begin_profile(), end_profile()
//
// choose and sum_before wait for their count: the arrays of what follows are made of that size, so the host must know
// it. The published training waits likewise, at every selection by a mask. All others only queue work.

#include "stipple/radiance/cuda/reference/rendering.h"

namespace stipple::radiance::reference {

/// c[slice] = a b over the slice-th part of the inner numbers, c [slices, rows, columns]. Numbers of a and b are
/// reached by strides, so that either may be transposed.
struct Product {
    const float* a;
    int64_t a_row, a_inner;
    const float* b;
    int64_t b_inner, b_column;
    float* c;
    int64_t rows, columns, inner;
    int slices = 1;
};

/// Values with their moments, the gradient and which elements have one.
template <class E>
struct Parameters {
    typename E::template Array<float> value, mean, square, gradient;
    typename E::template Array<int64_t> fixed;  // deterministic training alone
    typename E::template Array<uint8_t> mask;

    void make(E& executor, int64_t count, bool deterministic) {
        mean = executor.template make<float>(count);
        square = executor.template make<float>(count);
        gradient = executor.template make<float>(count);
        mask = executor.template make<uint8_t>(count);
        if (deterministic) fixed = executor.template make<int64_t>(count);
        executor.clear("moments", mean, count);
        executor.clear("moments", square, count);
    }
    int64_t count() const { return value.count(); }
    Sums sums() const { return {gradient.get(), fixed.get()}; }
};

/// Makes an array larger where n elements do not fit; what it held is lost.
template <class E, class T>
T* room(E& executor, typename E::template Array<T>& array, int64_t n) {
    if (array.count() < n || !array.get()) {
        if (array.get()) executor.wait();  // what is queued may still use it
        array = {};
        array = executor.template make<T>(n + n / 4 + 1);
    }
    return array.get();
}

/// A list of samples with its numbers; each operation has an array of its own.
template <class E>
struct ListArrays {
    typename E::template Array<int32_t> ray, place;  // place: in the list before, of which this is a part
    typename E::template Array<Vec3f> position;
    typename E::template Array<uint8_t> flag;
    int64_t count = 0;

    SampleList make(E& executor, int64_t n) {
        count = n;
        return {room<E, int32_t>(executor, ray, n), room<E, Vec3f>(executor, position, n)};
    }
    SampleList view() const { return {ray.get(), position.get()}; }
};

/// Arrays of numbers by what they hold, as large as the largest step so far.
template <class E>
struct StepArrays {
    template <class T>
    using Array = typename E::template Array<T>;

    // Of rays.
    Array<March> march;
    Array<int32_t> samples, first, opaque_begin, opaque_end, seen_end, kept_begin, kept_end;
    Array<Vec3f> direction;
    Array<float> colour, background, left, code, pixel, error, to_pixel, to_left;

    // Of samples.
    ListArrays<E> all, in_box, in_mask, opaque, kept;
    Array<float> mask_raw, mask_alpha;                                             // of in_mask
    Array<float> raw, alpha, weight, before, to_weight, behind, to_alpha, to_raw;  // of opaque
    Array<int64_t> behind_fixed;
    Array<float> kept_weight, to_kept_weight;

    // Of the colour network.
    Array<float> features, inputs, product1, hidden1, product2, hidden2, outputs, rgb;
    Array<float> to_rgb, to_outputs, to_hidden2, to_hidden1, to_inputs, partial;

    // Of fused rendering, [rays, capacity] and [rays].
    Array<uint16_t> slot_index;
    Array<float> slot_alpha, slot_weight;
    Array<int32_t> slot_samples, slot_kept, slot_in_box, slot_in_mask;
    RaySamples slots;
};

}  // namespace stipple::radiance::reference
