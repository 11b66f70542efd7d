#pragma once
// How an augmentation moves the points of a cloud. On CPU and CUDA with every product and sum rounded, so that the two
// differ only where sine, cosine and logarithm do.

#include "stipple/core/vec3.h"
#include "stipple/data/augmentation/item_random.h"

namespace stipple::data {

/// What AugmentOptions says about motion, in a form that kernels can read.
struct MotionOptions {
    bool mirror[3] = {false, false, false};
    double rotation_angle = 0;
    Vec3d rotation_axis;  // of unit length
    double tilt_sigma = 0, tilt_clip = 0;
    double scale_min = 1, scale_max = 1, axis_scale_min = 1, axis_scale_max = 1;
    Vec3d shift;
    double jitter_sigma = 0, jitter_clip = 0;
};
MotionOptions motion_options(const AugmentOptions& options);

STIPPLE_HD double dot_rounded(Vec3d a, Vec3d b) {
    return add_rounded(add_rounded(multiply_rounded(a.x, b.x), multiply_rounded(a.y, b.y)), multiply_rounded(a.z, b.z));
}
STIPPLE_HD Vec3d scaled_rounded(Vec3d factors, Vec3d v) {
    return {multiply_rounded(factors.x, v.x), multiply_rounded(factors.y, v.y), multiply_rounded(factors.z, v.z)};
}

STIPPLE_HD double clipped(double value, double clip) {
    return value < -clip ? -clip : clip < value ? clip : value;
}

/// A rotation matrix.
struct Turn {
    Vec3d row[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

    STIPPLE_HD Vec3d operator*(Vec3d v) const {
        return {dot_rounded(row[0], v), dot_rounded(row[1], v), dot_rounded(row[2], v)};
    }
    STIPPLE_HD Turn operator*(const Turn& other) const {
        Turn product;
        for (int i = 0; i < 3; ++i)
            for (int axis = 0; axis < 3; ++axis)
                product.row[i][axis] =
                    dot_rounded(row[i], {other.row[0][axis], other.row[1][axis], other.row[2][axis]});
        return product;
    }
};

/// About an axis of unit length.
STIPPLE_HD Turn turn_about(Vec3d a, double angle) {
    const double c = ::cos(angle), s = ::sin(angle), t = 1 - c;
    const Vec3d ta = {multiply_rounded(t, a.x), multiply_rounded(t, a.y), multiply_rounded(t, a.z)};
    const Vec3d sa = {multiply_rounded(s, a.x), multiply_rounded(s, a.y), multiply_rounded(s, a.z)};
    // ta.x a.x is (t a.x) a.x, and so on.
    const auto sum = [](double plain, double p, double q) { return add_rounded(plain, multiply_rounded(p, q)); };
    Turn turn;
    turn.row[0] = {sum(c, ta.x, a.x), sum(-sa.z, ta.x, a.y), sum(sa.y, ta.x, a.z)};
    turn.row[1] = {sum(sa.z, ta.y, a.x), sum(c, ta.y, a.y), sum(-sa.x, ta.y, a.z)};
    turn.row[2] = {sum(-sa.y, ta.z, a.x), sum(sa.x, ta.z, a.y), sum(c, ta.z, a.z)};
    return turn;
}

/// How all points of a cloud move.
struct Motion {
    bool mirrors = false, turns = false, scales = false, scales_axes = false, shifts = false, jitters = false;
    Vec3d sign = {1, 1, 1}, scale = {1, 1, 1}, shift;
    Turn turn;

    STIPPLE_HD bool moves_normals() const { return mirrors || turns || scales_axes; }
    STIPPLE_HD bool moves_points() const { return moves_normals() || scales || shifts || jitters; }

    STIPPLE_HD Vec3d turned(Vec3d v) const {
        if (mirrors) v = scaled_rounded(sign, v);
        return turns ? turn * v : v;
    }
    STIPPLE_HD Vec3d point(Vec3d v) const {
        v = turned(v);
        if (scales || scales_axes) v = scaled_rounded(scale, v);
        return shifts ? Vec3d{add_rounded(v.x, shift.x), add_rounded(v.y, shift.y), add_rounded(v.z, shift.z)} : v;
    }
};

/// min + (max - min) u
STIPPLE_HD double number_between(double min, double max, double u) {
    return add_rounded(min, multiply_rounded(max - min, u));
}

STIPPLE_HD Motion motion_of(const MotionOptions& options, const ItemRandom& random) {
    Motion motion;
    for (int axis = 0; axis < 3; ++axis)
        if (options.mirror[axis] && random.of(Draws::mirror).bits(axis) >> 31)
            motion.sign[axis] = -1, motion.mirrors = true;
    if (options.rotation_angle > 0) {
        const double angle =
            multiply_rounded(options.rotation_angle, add_rounded(2.0 * random.of(Draws::rotation).uniform(0), -1));
        motion.turn = turn_about(options.rotation_axis, angle);
        motion.turns = true;
    }
    if (options.tilt_sigma > 0) {
        for (int axis = 0; axis < 3; ++axis) {
            Vec3d unit_axis;
            unit_axis[axis] = 1;
            const double angle = clipped(
                multiply_rounded(options.tilt_sigma, double{random.of(Draws::tilt).normal(axis)}), options.tilt_clip);
            motion.turn = turn_about(unit_axis, angle) * motion.turn;
        }
        motion.turns = true;
    }
    if (options.scale_min != 1 || options.scale_max != 1) {
        const double scale = number_between(options.scale_min, options.scale_max, random.of(Draws::scale).uniform(0));
        motion.scale = {scale, scale, scale};
        motion.scales = true;
    }
    if (options.axis_scale_min != 1 || options.axis_scale_max != 1) {
        for (int axis = 0; axis < 3; ++axis) {
            const double u = random.of(Draws::axis_scale).uniform(axis);
            motion.scale[axis] =
                multiply_rounded(motion.scale[axis], number_between(options.axis_scale_min, options.axis_scale_max, u));
        }
        motion.scales_axes = true;
    }
    for (int axis = 0; axis < 3; ++axis) {
        if (!(options.shift[axis] > 0)) continue;
        motion.shift[axis] =
            multiply_rounded(options.shift[axis], add_rounded(2.0 * random.of(Draws::shift).uniform(axis), -1));
        motion.shifts = true;
    }
    motion.jitters = options.jitter_sigma > 0;
    return motion;
}

STIPPLE_HD bool is_finite_point(const float* p) {
    return p[0] - p[0] == 0 && p[1] - p[1] == 0 && p[2] - p[2] == 0;
}

/// In place, a finite point whose stored index is given; jitter is random.of(Draws::jitter).
STIPPLE_HD void move_point(const Motion& motion, const MotionOptions& options, const Rng& jitter, int32_t index,
                           float* p) {
    Vec3d moved = motion.point({p[0], p[1], p[2]});
    if (motion.jitters) {
        const uint64_t at = 3 * static_cast<uint64_t>(index);
        for (int axis = 0; axis < 3; ++axis)
            moved[axis] = add_rounded(
                moved[axis],
                clipped(multiply_rounded(options.jitter_sigma, double{jitter.normal(at + axis)}), options.jitter_clip));
    }
    p[0] = static_cast<float>(moved.x), p[1] = static_cast<float>(moved.y), p[2] = static_cast<float>(moved.z);
}

}  // namespace stipple::data
