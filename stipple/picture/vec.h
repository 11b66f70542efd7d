#pragma once
// Three numbers. Geometry before projection is double, so that coordinates of any size are framed exactly; per-pixel
// shading is float.

#include <array>
#include <cmath>

namespace stipple::picture {

template <class T>
struct Vec3 {
    T x = 0, y = 0, z = 0;

    Vec3 operator+(Vec3 o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec3 operator-(Vec3 o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec3 operator-() const { return {-x, -y, -z}; }
    Vec3 operator*(T s) const { return {x * s, y * s, z * s}; }
};

using Vec3d = Vec3<double>;
using Vec3f = Vec3<float>;

template <class T>
T dot(Vec3<T> a, Vec3<T> b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

template <class T>
Vec3<T> cross(Vec3<T> a, Vec3<T> b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

template <class T>
T length(Vec3<T> a) {
    return std::sqrt(dot(a, a));
}

/// Unit length; the zero vector (and one that overflows) becomes `fallback`.
template <class T>
Vec3<T> normalized(Vec3<T> a, Vec3<T> fallback = {0, 0, 0}) {
    const T l = length(a);
    return l > 0 && std::isfinite(l) ? a * (1 / l) : fallback;
}

template <class T>
Vec3<T> mix(Vec3<T> a, Vec3<T> b, T t) {
    return a + (b - a) * t;
}

inline Vec3d to_vec(const std::array<double, 3>& a) {
    return {a[0], a[1], a[2]};
}

/// 0 below `low`, 1 above `high`, smooth between.
inline float smooth_step(float low, float high, float value) {
    const float t = std::fmin(std::fmax((value - low) / (high - low), 0.f), 1.f);
    return t * t * (3 - 2 * t);
}

}  // namespace stipple::picture
