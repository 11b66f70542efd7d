#pragma once
// Three float64 numbers, for the insides of geometry on CPU and CUDA.

#include "stipple/core/numeric.h"

namespace stipple::geometry {

struct Vec3 {
    double x = 0, y = 0, z = 0;
};

STIPPLE_HD Vec3 operator+(Vec3 a, Vec3 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
STIPPLE_HD Vec3 operator-(Vec3 a, Vec3 b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
STIPPLE_HD Vec3 operator*(double s, Vec3 a) {
    return {s * a.x, s * a.y, s * a.z};
}
STIPPLE_HD double dot(Vec3 a, Vec3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
STIPPLE_HD Vec3 cross(Vec3 a, Vec3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

}  // namespace stipple::geometry
