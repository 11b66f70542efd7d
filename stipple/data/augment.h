#pragma once
// Augmentation of one cloud, in place: what a training set shows a network instead of the stored points.
//
//   AugmentOptions how;                       // everything is off
//   how.scale_min = 0.8, how.scale_max = 1.25, how.shift = {0.1, 0.1, 0.1}, how.dropout_ratio = 0.875;
//   const int64_t n = augment({points, normals, labels}, how, seed, epoch, item, scratch);
//
// The result is a pure function of cloud, options and (seed, epoch, item): the same on any number of threads, in any
// order, and after a restart. Operations are applied in this order, whichever of them are on:
//
//   choose, shuffle, dropout, thin   which rows there are
//   mirror, rotation, tilt           turn points and normals
//   scale, scale of each axis, shift, jitter
//
// Random numbers. Operation k draws from Rng(key, 16 * item + k), where key is the first two words (the first one low)
// of Rng(seed, 0x4155474D << 32).block(epoch). The numbers of an operation are its own: to switch one on, or to change
// it, changes no number of another. Numbers of a point are found by its stored index s (its row before the call),
// not by the row it ends in. u(i) is Rng::uniform(i), in [0, 1); z(i) is Rng::normal(i).
//
//   k  operation       positions
//   0  choose          64 bits for each point: words 2 (s % 2) and the next one, the high one first, of block(s / 2)
//   1  shuffle         the same
//   2  dropout         u(0): is this cloud concerned; u(1): ratio; u(4 + s): the point
//   3  mirror          bits(axis), of which the highest counts
//   4  rotation        u(0)
//   5  tilt            z(axis)
//   6  scale           u(0)
//   7  scale per axis  u(axis)
//   8  shift           u(axis)
//   9  jitter          z(3 s + axis)
//   10 thin            u(0): is this cloud concerned; u(1): how many; u(2): the first or any; u(4 + s): the point
//
// Arithmetic is in double, from the stored float to one rounding at the end. With rotation, tilt and jitter off the
// bits are the same on every machine; those three use sine, cosine and logarithm, which may differ in the last bit of a
// double between C libraries, so that a coordinate may be rounded to the float beside it. thin uses a power: how many
// are kept may differ by one.

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "stipple/core/fields.h"
#include "stipple/core/view.h"

namespace stipple::data {

inline constexpr double kHalfTurn = 3.14159265358979323846;  // radians

enum class DropoutForm {
    replace,  // a dropped point becomes a copy of the first kept row: as many rows as before
    remove,   // fewer rows, at least one: for networks that take clouds of any size
    repeat,   // the kept rows again and again, in their order, up to as many rows as before: all of them count alike
};
inline constexpr const char* kDropoutFormWords[] = {"replace", "remove", "repeat"};

/// All numbers of an augmentation. The defaults do nothing.
struct AugmentOptions {
    /// Keeps this many of the stored points, those with the smallest bits (ties: the lowest index), in stored order: a
    /// uniform choice without replacement, and that of a smaller number is part of it. 0: all.
    int64_t choose = 0;
    /// Orders the rows by their bits (ties: the lowest index): every order is equally likely.
    bool shuffle = false;

    /// r = dropout_ratio * u(1); a point is dropped when u(4 + s) < r, so that a share of r is lost on average, r
    /// uniform in [0, dropout_ratio). Where all would be dropped, the first row is kept. 0 to 1.
    double dropout_ratio = 0;
    DropoutForm dropout_form = DropoutForm::replace;
    /// The share of clouds that lose points: those with u(0) < dropout_share. 0 to 1.
    double dropout_share = 1;

    /// Keeps n of the rows that are there, n log-uniform: floor(thin_min (most / thin_min)^u(1)), where most is
    /// thin_max, or all rows where that is 0 or more than there are. Small clouds are as frequent as large ones. With
    /// the probability thin_first they are the first n rows, which for a set in farthest point order are a farthest
    /// point sample, else those with the smallest u(4 + s) (ties: the lowest row). The form is dropout's.
    int64_t thin_min = 1, thin_max = 0;
    double thin_first = 0;
    /// The share of clouds that are thinned: those with u(0) < thin_share. 0 to 1.
    double thin_share = 0;

    /// Axes (x, y, z) that are mirrored, each with probability 1/2: a coordinate becomes its negative.
    std::array<bool, 3> mirror = {false, false, false};

    /// Turns about `rotation_axis` by the angle rotation_angle * (2 u(0) - 1), counterclockwise for one who looks
    /// against the axis [Rodrigues]. Radians, 0 to kHalfTurn, which is a full turn: any angle. The axis has any length.
    double rotation_angle = 0;
    std::array<double, 3> rotation_axis = {0, 1, 0};

    /// Turns by small angles a = clamp(tilt_sigma * z(axis), -tilt_clip, tilt_clip) about x, then y, then z. Radians.
    double tilt_sigma = 0;
    double tilt_clip = std::numeric_limits<double>::infinity();

    /// Multiplies all coordinates by scale_min + (scale_max - scale_min) * u(0). Above 0.
    double scale_min = 1, scale_max = 1;
    /// Multiplies the coordinate of each axis by axis_scale_min + (axis_scale_max - axis_scale_min) * u(axis). Above 0.
    double axis_scale_min = 1, axis_scale_max = 1;

    /// Adds shift[axis] * (2 u(axis) - 1), the same to all points.
    std::array<double, 3> shift = {0, 0, 0};

    /// Adds clamp(jitter_sigma * z(3 s + axis), -jitter_clip, jitter_clip) to each coordinate. Copies of a point that
    /// dropout made stay copies.
    double jitter_sigma = 0;
    double jitter_clip = std::numeric_limits<double>::infinity();
};
const Fields& augment_fields();

/// Throws Error{bad_argument} that names the first number outside its range. What is infinite where it may not be, and
/// NaN, is outside.
void validate(const AugmentOptions& options);

/// A cloud in host memory. The numbers of a row are adjacent, rows any distance apart.
struct AugmentCloud {
    View<float, 2> points;         // [n, 3], n < 2^31
    View<float, 2> normals = {};   // [n, 3], or without rows
    View<int32_t, 1> labels = {};  // [n], or none
};

/// Memory that calls share, one for each thread: with it a call allocates nothing, but where a cloud is larger than
/// those before.
struct AugmentScratch {
    struct Key {
        uint64_t bits;
        int32_t index;
    };
    std::vector<int32_t> source;  // after a call: of each row that is left, its stored index. For other attributes
    std::vector<Key> keys;
    std::vector<uint8_t> dropped;
    std::vector<float> rows;
    std::vector<int32_t> labels;
};

/// Returns m, how many points are left: the first m rows of points, normals and labels. Rows behind them are as they
/// were.
///
/// Normals are mirrored and turned along. Where axes are scaled differently they are divided by those scales and keep
/// their length, so that they stay normal to the surface. Labels follow their points.
/// A point with a coordinate that is not finite can be chosen, moved to another row and dropped as any other, but its
/// numbers and its normal stay as they are. What is off does not touch a bit.
///
/// Throws Error{bad_argument} as validate does, for wrong shapes, a device that is not the CPU, fewer points than
/// `choose`, and a negative epoch or item or an item of 2^59 or more. The cloud is then as it was.
/// O(n), with `shuffle` O(n log n); one thread.
int64_t augment(const AugmentCloud& cloud, const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t item,
                AugmentScratch& scratch);

}  // namespace stipple::data
