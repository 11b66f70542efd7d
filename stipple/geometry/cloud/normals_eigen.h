#pragma once
// The direction in which points around one vary least: their covariance and its smallest eigenvector, in float64 that
// rounds alike on CPU and CUDA. Hence normals, and their signs, are the same bits on both.

#include <cmath>
#include <cstdint>

#include "stipple/core/numeric.h"

namespace stipple::geometry {

/// A float64 whose sums and products are never fused. Quotients and roots are correctly rounded everywhere.
struct Rounded {
    double value = 0;

    Rounded() = default;
    STIPPLE_HD Rounded(double number) : value(number) {}  // NOLINT(google-explicit-constructor)
};
STIPPLE_HD Rounded operator+(Rounded a, Rounded b) {
    return add_rounded(a.value, b.value);
}
STIPPLE_HD Rounded operator-(Rounded a, Rounded b) {
    return add_rounded(a.value, -b.value);
}
STIPPLE_HD Rounded operator-(Rounded a) {
    return -a.value;
}
STIPPLE_HD Rounded operator*(Rounded a, Rounded b) {
    return multiply_rounded(a.value, b.value);
}
STIPPLE_HD Rounded operator/(Rounded a, Rounded b) {
    return a.value / b.value;
}
STIPPLE_HD Rounded root(Rounded a) {
    return ::sqrt(a.value);
}
STIPPLE_HD Rounded magnitude(Rounded a) {
    return ::fabs(a.value);
}
STIPPLE_HD bool operator<(Rounded a, Rounded b) {
    return a.value < b.value;
}
STIPPLE_HD bool operator>(Rounded a, Rounded b) {
    return a.value > b.value;
}

struct Symmetric3 {
    Rounded xx, xy, xz, yy, yz, zz;
};

struct LeastDirection {
    double x = 0, y = 0, z = 0;  // of unit length, the largest component positive (of equal ones the first)
    double share = 0;            // of the smallest eigenvalue in the sum of all, 0 to 1/3
    bool exists = false;         // false: the points do not span a plane
};

/// Eigenvalues below this share of the largest are rounding of float32 coordinates: lengths below 1e-6.
constexpr double kNoSpread = 1e-12;

namespace detail {

/// Of unit length and of fixed sign.
STIPPLE_HD LeastDirection direction(Rounded x, Rounded y, Rounded z, Rounded least, Rounded sum) {
    const Rounded ax = magnitude(x), ay = magnitude(y), az = magnitude(z);
    const Rounded largest = ax < ay ? (ay < az ? z : y) : (ax < az ? z : x);
    const Rounded length = root(x * x + y * y + z * z);
    const Rounded scale = (largest < 0.0 ? Rounded(-1.0) : Rounded(1.0)) / length;
    const Rounded share = least > 0.0 ? least / sum : Rounded(0.0);
    return {(x * scale).value, (y * scale).value, (z * scale).value, share.value, true};
}

/// Turns rows and columns p and q of a so that a[p][q] is 0, and the columns of v along [Golub and Van Loan, 8.5.2].
STIPPLE_HD void jacobi_turn(Rounded (&a)[3][3], Rounded (&v)[3][3], int p, int q) {
    const Rounded twice = Rounded(2.0) * a[p][q];
    const Rounded theta = (a[q][q] - a[p][p]) / twice;
    const Rounded reach = magnitude(theta) + root(theta * theta + 1.0);
    const Rounded t = (theta < 0.0 ? Rounded(-1.0) : Rounded(1.0)) / reach;
    const Rounded c = Rounded(1.0) / root(t * t + 1.0), s = t * c;
    for (int i = 0; i < 3; ++i) {
        const Rounded ip = a[i][p], iq = a[i][q];
        a[i][p] = c * ip - s * iq;
        a[i][q] = s * ip + c * iq;
    }
    for (int i = 0; i < 3; ++i) {
        const Rounded pi = a[p][i], qi = a[q][i], vp = v[i][p], vq = v[i][q];
        a[p][i] = c * pi - s * qi;
        a[q][i] = s * pi + c * qi;
        v[i][p] = c * vp - s * vq;
        v[i][q] = s * vp + c * vq;
    }
    a[p][q] = a[q][p] = 0.0;
}

/// By Jacobi's rotations: slower, and accurate where two eigenvalues meet. Entries of m are at most 1.
STIPPLE_HD LeastDirection least_by_rotations(const Symmetric3& m) {
    constexpr double kNothing = 0x1p-56;
    Rounded a[3][3] = {{m.xx, m.xy, m.xz}, {m.xy, m.yy, m.yz}, {m.xz, m.yz, m.zz}};
    Rounded v[3][3] = {{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}};
    for (int sweep = 0; sweep < 12; ++sweep) {  // convergence is quadratic: five or six are made
        bool turned = false;
        for (int p = 0; p < 2; ++p) {
            for (int q = p + 1; q < 3; ++q) {
                if (!(magnitude(a[p][q]) > kNothing)) continue;
                jacobi_turn(a, v, p, q);
                turned = true;
            }
        }
        if (!turned) break;
    }
    int least = 0, most = 0;
    for (int i = 1; i < 3; ++i) {
        if (a[i][i] < a[least][least]) least = i;
        if (!(a[i][i] < a[most][most])) most = i;
    }
    const int middle = 3 - least - most;
    const Rounded sum = a[0][0] + a[1][1] + a[2][2];
    if (!(a[middle][middle] > Rounded(kNoSpread) * a[most][most])) return {};
    return direction(v[0][least], v[1][least], v[2][least], a[least][least], sum);
}

}  // namespace detail

/// The eigenvector of the smallest eigenvalue of a positive semidefinite matrix. Closed form: the characteristic
/// polynomial of the matrix without its mean eigenvalue and scale is x^3 - 3 x - 2 r with -1 <= r <= 1; its smallest
/// root is single and well determined unless r is near 1, that is, unless the two smaller eigenvalues are close.
STIPPLE_HD LeastDirection least_direction(const Symmetric3& of) {
    Rounded largest = of.xx;
    if (largest < of.yy) largest = of.yy;
    if (largest < of.zz) largest = of.zz;
    if (!(largest > 0.0)) return {};
    const Rounded unit = Rounded(1.0) / largest;
    const Symmetric3 m = {of.xx * unit, of.xy * unit, of.xz * unit, of.yy * unit, of.yz * unit, of.zz * unit};
    const Rounded sum = m.xx + m.yy + m.zz, mean = sum / 3.0;
    const Rounded x = m.xx - mean, y = m.yy - mean, z = m.zz - mean;
    const Rounded squares = x * x + y * y + z * z + Rounded(2.0) * (m.xy * m.xy + m.xz * m.xz + m.yz * m.yz);
    if (!(squares > 1e-12)) return detail::least_by_rotations(m);  // nearly equal in all directions
    const Rounded scale = root(squares / 6.0);
    const Rounded determinant =
        x * (y * z - m.yz * m.yz) - m.xy * (m.xy * z - m.yz * m.xz) + m.xz * (m.xy * m.yz - y * m.xz);
    const Rounded r = determinant / (Rounded(2.0) * scale * scale * scale);
    if (r > 0.9) return detail::least_by_rotations(m);
    // A polynomial within 0.006 of the root for -1 <= r <= 0.9, then Newton's steps: three reach the last bits.
    const Rounded s = r + 1.0;
    Rounded lambda =
        (((Rounded(0.08314548) * s - 0.21699856) * s + 0.22803046) * s + 0.17406417) * s - Rounded(1.99926582);
    for (int step = 0; step < 3; ++step) {
        const Rounded square = lambda * lambda;
        lambda = Rounded(2.0) * (square * lambda + r) / (Rounded(3.0) * square - 3.0);
    }
    // The eigenvector is orthogonal to the rows of m - lambda: the longest of their cross products.
    const Rounded shift = lambda * scale, xx = x - shift, yy = y - shift, zz = z - shift;
    const Rounded products[3][3] = {{m.xy * m.yz - m.xz * yy, m.xz * m.xy - xx * m.yz, xx * yy - m.xy * m.xy},
                                    {m.xy * zz - m.xz * m.yz, m.xz * m.xz - xx * zz, xx * m.yz - m.xy * m.xz},
                                    {yy * zz - m.yz * m.yz, m.yz * m.xz - m.xy * zz, m.xy * m.yz - yy * m.xz}};
    int best = 0;
    Rounded best_length = -1.0;
    for (int i = 0; i < 3; ++i) {
        const Rounded* c = products[i];
        const Rounded length = c[0] * c[0] + c[1] * c[1] + c[2] * c[2];
        if (length > best_length) {
            best = i;
            best_length = length;
        }
    }
    return detail::direction(products[best][0], products[best][1], products[best][2], mean + shift, sum);
}

/// The normal of the point at `at` from its neighbours: `count` rows of points, of which negative ones and those
/// farther than the radius (its square given) are none. Differences of float32 are exact in float64, wherever the
/// origin is.
STIPPLE_HD LeastDirection normal_of(const float* points, int64_t stride, const float* at, const int32_t* neighbours,
                                    int count, float radius_sq) {
    Rounded x, y, z, found = 0.0;
    Symmetric3 sum;
    for (int i = 0; i < count; ++i) {
        if (neighbours[i] < 0) break;
        const float* to = points + neighbours[i] * stride;
        if (!(distance_sq(to, at) <= radius_sq)) break;  // nearest come first
        const Rounded dx = Rounded(to[0]) - at[0], dy = Rounded(to[1]) - at[1], dz = Rounded(to[2]) - at[2];
        found = found + 1.0;
        x = x + dx;
        y = y + dy;
        z = z + dz;
        sum.xx = sum.xx + dx * dx;
        sum.xy = sum.xy + dx * dy;
        sum.xz = sum.xz + dx * dz;
        sum.yy = sum.yy + dy * dy;
        sum.yz = sum.yz + dy * dz;
        sum.zz = sum.zz + dz * dz;
    }
    if (found < 3.0) return {};
    const Rounded share = Rounded(1.0) / found;
    const Rounded mx = x * share, my = y * share, mz = z * share;
    return least_direction(
        {sum.xx - mx * x, sum.xy - mx * y, sum.xz - mx * z, sum.yy - my * y, sum.yz - my * z, sum.zz - mz * z});
}

}  // namespace stipple::geometry
