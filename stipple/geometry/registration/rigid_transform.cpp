#include "stipple/geometry/rigid_transform.h"

#include <cmath>

#include "stipple/core/box.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/affine_transform.h"
#include "stipple/geometry/registration/small_linear.h"
#include "stipple/io/text.h"
#include "stipple/ops/common/require.h"

namespace stipple::geometry {
namespace {

bool is_finite(const Vector3& v) {
    return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]);
}

[[noreturn]] void bad_text(const std::string& what) {
    throw Error(ErrorCode::bad_file, what,
                "four lines of four numbers: the rotation and the translation, then 0 0 0 1");
}

}  // namespace

RigidTransform operator*(const RigidTransform& a, const RigidTransform& b) {
    RigidTransform product;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            product.rotation[i][j] = 0;
            for (int k = 0; k < 3; ++k) product.rotation[i][j] += a.rotation[i][k] * b.rotation[k][j];
        }
    product.translation = a(b.translation);
    return product;
}

RigidTransform inverse(const RigidTransform& transform) {
    RigidTransform back;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) back.rotation[i][j] = transform.rotation[j][i];
    const Vector3 t = back.rotate(transform.translation);
    back.translation = {-t[0], -t[1], -t[2]};
    return back;
}

std::array<double, 4> to_quaternion(const RigidTransform& transform) {
    const auto [w, x, y, z] = quaternion_of(transform.rotation);
    const double sign = w < 0 ? -1 : 1;
    return {sign * w, sign * x, sign * y, sign * z};
}

double rotation_angle(const RigidTransform& transform) {
    const auto [w, x, y, z] = to_quaternion(transform);
    return 2 * std::atan2(std::sqrt(x * x + y * y + z * z), w);
}

RigidTransform from_quaternion(const std::array<double, 4>& wxyz, const Vector3& translation) {
    const double length = norm(wxyz);
    STIPPLE_REQUIRE(length > 0 && std::isfinite(length), "from_quaternion: a quaternion of length {}", length);
    STIPPLE_REQUIRE(is_finite(translation), "from_quaternion: the translation is not finite");
    return {rotation_of(wxyz), translation};
}

RigidTransform rotation_about(const Vector3& axis, double radians, const Vector3& center) {
    const double length = norm(axis);
    STIPPLE_REQUIRE(length > 0 && std::isfinite(length), "rotation_about: an axis of length {}", length);
    const double s = std::sin(radians / 2) / length;
    RigidTransform turn_about = from_quaternion({std::cos(radians / 2), s * axis[0], s * axis[1], s * axis[2]});
    const Vector3 moved = turn_about(center);
    for (int i = 0; i < 3; ++i) turn_about.translation[i] = center[i] - moved[i];
    return turn_about;
}

Matrix3 nearest_rotation(const Matrix3& matrix, double tolerance) {
    for (const Vector3& row : matrix) STIPPLE_REQUIRE(is_finite(row), "nearest_rotation: a number is not finite");
    const double error = orthogonality_error(matrix);
    STIPPLE_REQUIRE(error <= tolerance, "nearest_rotation: not a rotation, R R^T differs from 1 by {:.2g}", error);
    STIPPLE_REQUIRE(determinant(matrix) > 0, "nearest_rotation: a reflection, not a rotation");
    if (error <= 1e-15) return matrix;  // as near as float64 gets: text that we wrote reads back as it was
    return nearest_orthogonal(matrix);
}

PointCloud transformed(const PointCloud& cloud, const RigidTransform& transform) {
    PointCloud moved = cloud.clone();
    moved.facts.forget_place();
    const int64_t n = cloud.size();
    // Relative to the moved origin first: there the numbers are as small as they were.
    const Vector3 base = transform(cloud.origin);
    auto box = Box<double>::none();
    const auto place = [&](int64_t i) {
        const float* p = cloud.positions.data() + 3 * i;
        return transform.rotate({p[0], p[1], p[2]});
    };
    for (int64_t i = 0; i < n; ++i) {
        const Vector3 v = place(i);
        if (!is_finite(v)) continue;
        for (int axis = 0; axis < 3; ++axis) box.add(axis, base[axis] + v[axis]);
    }
    moved.origin = box.is_none() ? Vector3{} : choose_origin(std::to_array(box.low), std::to_array(box.high));
    const Vector3 shift = {base[0] - moved.origin[0], base[1] - moved.origin[1], base[2] - moved.origin[2]};
    constexpr int64_t kGrain = 16384;
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Vector3 v = place(i);
            for (int axis = 0; axis < 3; ++axis)
                moved.positions.data()[3 * i + axis] = static_cast<float>(v[axis] + shift[axis]);
        }
    });
    Attribute* normal = find(moved.attributes, "normal");
    if (!normal || normal->dtype() != DType::f32 || normal->components() != 3) return moved;
    const View<float, 2> normals = normal->as<float>();
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float* v = normals.data() + 3 * i;
            const Vector3 turned = transform.rotate({v[0], v[1], v[2]});
            for (int axis = 0; axis < 3; ++axis) v[axis] = static_cast<float>(turned[axis]);
        }
    });
    return moved;
}

RigidTransform between_origins(const RigidTransform& world, const Vector3& from, const Vector3& to) {
    RigidTransform local = world;
    const Vector3 moved = world(from);
    for (int axis = 0; axis < 3; ++axis) local.translation[axis] = moved[axis] - to[axis];
    return local;
}

RigidTransform in_world(const RigidTransform& local, const Vector3& from, const Vector3& to) {
    RigidTransform world = local;
    const Vector3 turned = local.rotate(from);
    for (int axis = 0; axis < 3; ++axis) world.translation[axis] = local.translation[axis] + to[axis] - turned[axis];
    return world;
}

std::string to_text(const RigidTransform& transform) {
    std::string text;
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 3; ++column) {
            io::append_number(text, transform.rotation[row][column]);
            text += ' ';
        }
        io::append_number(text, transform.translation[row]);
        text += '\n';
    }
    return text + "0 0 0 1\n";
}

RigidTransform parse_transform(std::string_view text) {
    const AffineTransform read = parse_affine(text);
    RigidTransform transform{read.linear, read.translation};
    try {
        transform.rotation = nearest_rotation(transform.rotation);
    } catch (const Error& error) {
        bad_text(fmt::format("not a rigid transform: {}", error.message().substr(error.message().find(": ") + 2)));
    }
    return transform;
}

void RigidMoments::add(const RigidMoments& other) {
    weight += other.weight;
    for (int i = 0; i < 3; ++i) {
        from[i] += other.from[i];
        to[i] += other.to[i];
        for (int j = 0; j < 3; ++j) cross[i][j] += other.cross[i][j];
    }
}

RigidTransform best_fit(const RigidMoments& moments) {
    return moments.weight > 0 ? fit_moments(moments) : RigidTransform{};
}

RigidTransform best_fit(View<const float, 2> from, View<const float, 2> to, std::span<const double> weights) {
    ops::require_clouds("best_fit", "from", from);
    ops::require_clouds("best_fit", "to", to);
    const int64_t n = from.size(0);
    STIPPLE_REQUIRE(to.size(0) == n, "best_fit: {} points against {}", n, to.size(0));
    STIPPLE_REQUIRE(weights.empty() || static_cast<int64_t>(weights.size()) == n, "best_fit: {} weights for {} pairs",
                    weights.size(), n);
    STIPPLE_REQUIRE(from.device() == Device{} && to.device() == Device{}, "best_fit: the points must be on the CPU");
    const auto row = [](View<const float, 2> points, int64_t i) -> Vector3 {
        return {points(i, 0), points(i, 1), points(i, 2)};
    };
    // About the first pair: sums of products about a far origin would lose what tells the rotation.
    Vector3 pivot_from = {}, pivot_to = {};
    bool has_pivot = false;
    RigidMoments moments;
    for (int64_t i = 0; i < n; ++i) {
        const double weight = weights.empty() ? 1 : weights[i];
        STIPPLE_REQUIRE(weight >= 0 && std::isfinite(weight), "best_fit: weight {} is {}", i, weight);
        Vector3 a = row(from, i), b = row(to, i);
        if (weight == 0 || !is_finite(a) || !is_finite(b)) continue;
        if (!has_pivot) pivot_from = a, pivot_to = b;
        has_pivot = true;
        for (int axis = 0; axis < 3; ++axis) {
            a[axis] -= pivot_from[axis];
            b[axis] -= pivot_to[axis];
        }
        moments.add(a, b, weight);
    }
    const RigidTransform fit = best_fit(moments);
    return in_world(fit, pivot_from, pivot_to);
}

}  // namespace stipple::geometry
