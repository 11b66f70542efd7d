#pragma once
// Three numbers, on CPU and CUDA: the one vector of the library's insides. Rows of arrays are read by to_vec3.

#include <array>
#include <cmath>
#include <type_traits>

#include "stipple/core/numeric.h"

namespace stipple {

template <class T>
struct Vec3 {
    T x = 0, y = 0, z = 0;

    /// For loops over axes, 0 to 2. Named members are quicker where an axis is not known when it is compiled.
    STIPPLE_HD T& operator[](int axis) { return axis == 0 ? x : axis == 1 ? y : z; }
    STIPPLE_HD const T& operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};
using Vec3d = Vec3<double>;
using Vec3f = Vec3<float>;

template <class T>
STIPPLE_HD Vec3<T> operator+(Vec3<T> a, Vec3<T> b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class T>
STIPPLE_HD Vec3<T> operator-(Vec3<T> a, Vec3<T> b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class T>
STIPPLE_HD Vec3<T> operator-(Vec3<T> a) {
    return {-a.x, -a.y, -a.z};
}
template <class T>
STIPPLE_HD Vec3<T> operator*(Vec3<T> a, std::type_identity_t<T> s) {
    return {a.x * s, a.y * s, a.z * s};
}
template <class T>
STIPPLE_HD Vec3<T> operator*(std::type_identity_t<T> s, Vec3<T> a) {
    return {s * a.x, s * a.y, s * a.z};
}
template <class T>
STIPPLE_HD T dot(Vec3<T> a, Vec3<T> b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class T>
STIPPLE_HD Vec3<T> cross(Vec3<T> a, Vec3<T> b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

template <class T>
STIPPLE_HD T length(Vec3<T> a) {
    return std::sqrt(dot(a, a));
}
/// Of unit length; the zero vector stays.
template <class T>
Vec3<T> unit(Vec3<T> a) {
    const T l = length(a);
    return l > 0 ? (1 / l) * a : Vec3<T>{};
}

inline Vec3d to_vec3(const float* p) {
    return {p[0], p[1], p[2]};
}
inline Vec3d to_vec3(const std::array<double, 3>& a) {
    return {a[0], a[1], a[2]};
}
inline void store(Vec3d a, float* p) {
    p[0] = static_cast<float>(a.x), p[1] = static_cast<float>(a.y), p[2] = static_cast<float>(a.z);
}

}  // namespace stipple
