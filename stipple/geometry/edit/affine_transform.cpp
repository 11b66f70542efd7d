#include "stipple/geometry/affine_transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stipple/core/box.h"
#include "stipple/core/parallel.h"
#include "stipple/core/quoted.h"
#include "stipple/io/text.h"

namespace stipple::geometry {
namespace {

constexpr int64_t kTransformGrain = 16384;

[[noreturn]] void bad_matrix(const std::string& what) {
    throw Error(ErrorCode::bad_file, what,
                "four lines of four numbers: the rotation and the translation, then 0 0 0 1");
}

Vector3 times(const Matrix3& m, const Vector3& v) {
    return {m[0][0] * v[0] + m[0][1] * v[1] + m[0][2] * v[2], m[1][0] * v[0] + m[1][1] * v[1] + m[1][2] * v[2],
            m[2][0] * v[0] + m[2][1] * v[1] + m[2][2] * v[2]};
}

double norm(const Vector3& v) {
    return std::hypot(v[0], v[1], v[2]);
}

/// The matrix of cofactors: the inverse transpose times the determinant.
Matrix3 cofactors(const Matrix3& m) {
    Matrix3 c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const int a = (i + 1) % 3, b = (i + 2) % 3, d = (j + 1) % 3, e = (j + 2) % 3;
            c[i][j] = m[a][d] * m[b][e] - m[a][e] * m[b][d];
        }
    return c;
}

template <class T>
void turn_rows(Attribute& attribute, const Matrix3& matrix, const Vector3& shift, bool keep_length) {
    T* rows = attribute.as<T>().data();
    parallel_for(attribute.rows(), kTransformGrain, [&](int64_t begin, int64_t end) {
        for (T* v = rows + 3 * begin; v < rows + 3 * end; v += 3) {
            const Vector3 before = {double{v[0]}, double{v[1]}, double{v[2]}};
            Vector3 after = times(matrix, before);
            const double scale = keep_length && norm(after) > 0 ? norm(before) / norm(after) : 1;
            for (int axis = 0; axis < 3; ++axis) v[axis] = static_cast<T>(after[axis] * scale + shift[axis]);
        }
    });
}

void turn_attribute(Attribute& attribute, const AffineTransform& transform) {
    if (attribute.components() != 3 || (attribute.dtype() != DType::f32 && attribute.dtype() != DType::f64)) return;
    const std::string& name = attribute.name();
    Matrix3 matrix = transform.linear;
    Vector3 shift = {};
    if (name == "normal") {
        matrix = cofactors(transform.linear);
        if (determinant(transform) < 0)
            for (auto& row : matrix)
                for (double& x : row) x = -x;
    } else if (name == "viewpoint") {
        shift = transform.translation;
    } else if (name != "direction" && name != "tangent" && name != "velocity") {
        return;
    }
    const bool keep_length = name != "velocity" && name != "viewpoint";
    if (attribute.dtype() == DType::f32)
        turn_rows<float>(attribute, matrix, shift, keep_length);
    else
        turn_rows<double>(attribute, matrix, shift, keep_length);
}

/// Where the sensor stood, if the matrix is a turn with one scale.
void move_viewpoint(FileFacts& facts, const AffineTransform& transform) {
    const std::optional<std::array<double, 7>> viewpoint = facts.viewpoint;
    facts.forget_place();
    const double scale = std::cbrt(determinant(transform));
    if (!viewpoint || !(scale > 0)) return;
    Matrix3 turn = transform.linear;
    for (auto& row : turn)
        for (double& x : row) x /= scale;
    try {
        const RigidTransform motion = {nearest_rotation(turn), {}};
        const auto& v = *viewpoint;
        const RigidTransform sensor = from_quaternion({v[3], v[4], v[5], v[6]});
        const auto turned = to_quaternion(motion * sensor);
        const Vector3 at = transform({v[0], v[1], v[2]});
        facts.viewpoint = {at[0], at[1], at[2], turned[0], turned[1], turned[2], turned[3]};
    } catch (const Error&) {  // it shears or stretches, or the file's own rotation is none: there is no such place
    }
}

}  // namespace

Vector3 AffineTransform::turn(const Vector3& v) const {
    return times(linear, v);
}

Vector3 AffineTransform::operator()(const Vector3& point) const {
    const Vector3 v = times(linear, point);
    return {v[0] + translation[0], v[1] + translation[1], v[2] + translation[2]};
}

AffineTransform to_affine(const RigidTransform& transform) {
    return {transform.rotation, transform.translation};
}

AffineTransform operator*(const AffineTransform& a, const AffineTransform& b) {
    AffineTransform product;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            product.linear[i][j] = 0;
            for (int k = 0; k < 3; ++k) product.linear[i][j] += a.linear[i][k] * b.linear[k][j];
        }
    product.translation = a(b.translation);
    return product;
}

double determinant(const AffineTransform& transform) {
    const Matrix3& m = transform.linear;
    const Matrix3 c = cofactors(m);
    return m[0][0] * c[0][0] + m[0][1] * c[0][1] + m[0][2] * c[0][2];
}

AffineTransform inverse(const AffineTransform& transform) {
    const double det = determinant(transform);
    STIPPLE_REQUIRE(det != 0 && std::isfinite(1 / det), "the matrix has no inverse: its determinant is {}", det);
    const Matrix3 c = cofactors(transform.linear);
    AffineTransform result;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) result.linear[i][j] = c[j][i] / det;
    const Vector3 back = result.turn(transform.translation);
    for (int axis = 0; axis < 3; ++axis) result.translation[axis] = -back[axis];
    return result;
}

AffineTransform about(const AffineTransform& transform, const Vector3& point) {
    AffineTransform result = transform;
    const Vector3 moved = transform.turn(point);
    for (int axis = 0; axis < 3; ++axis) result.translation[axis] += point[axis] - moved[axis];
    return result;
}

AffineTransform axis_swap(std::string_view text) {
    AffineTransform swap;
    swap.linear = {};
    int row = 0;
    double sign = 1;
    bool is_taken[3] = {}, is_good = true;
    for (const char c : text) {
        if (c == ',' || c == ' ') continue;
        if (c == '+' || c == '-') {
            sign = c == '-' ? -1 : 1;
            continue;
        }
        const int axis = (c | 0x20) - 'x';
        is_good = is_good && row < 3 && axis >= 0 && axis < 3 && !is_taken[axis];
        if (!is_good) break;
        is_taken[axis] = true;
        swap.linear[row++][axis] = sign;
        sign = 1;
    }
    STIPPLE_REQUIRE(is_good && row == 3, "axes must be x, y and z once each, with signs: xzy, x-zy; got \"{}\"", text);
    return swap;
}

std::string to_text(const AffineTransform& transform) {
    return to_text(RigidTransform{transform.linear, transform.translation});  // numbers as they are
}

AffineTransform affine_from_numbers(std::span<const double> numbers) {
    if (numbers.size() != 16 && numbers.size() != 12)
        bad_matrix(fmt::format("a transform has 16 numbers (or 12), found {}", numbers.size()));
    AffineTransform transform;
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 3; ++column) transform.linear[row][column] = numbers[4 * row + column];
        transform.translation[row] = numbers[4 * row + 3];
    }
    for (int row = 0; row < 3; ++row)
        if (!std::isfinite(transform.translation[row])) bad_matrix("the translation of a transform is not finite");
    for (const auto& row : transform.linear)
        for (const double x : row)
            if (!std::isfinite(x)) bad_matrix("a number of a transform is not finite");
    if (numbers.size() == 16)
        for (int i = 0; i < 4; ++i)
            if (numbers[12 + i] != (i == 3 ? 1 : 0)) bad_matrix("the last row of a transform must be 0 0 0 1");
    return transform;
}

AffineTransform parse_affine(std::string_view text) {
    std::vector<double> numbers;
    io::for_each_word(text, [&](std::string_view word, int64_t) {
        double value = 0;
        if (!io::parse_number(word, value))
            bad_matrix(fmt::format("expected a number of a transform, found {}", in_quotes(word)));
        numbers.push_back(value);
        if (numbers.size() > 16) bad_matrix("a transform has 16 numbers (or 12), found more");
    });
    return affine_from_numbers(numbers);
}

Mesh transformed(const Mesh& mesh, const AffineTransform& transform) {
    const double det = determinant(transform);
    STIPPLE_REQUIRE(std::isfinite(det) && det != 0, "a matrix of determinant {} flattens the points", det);
    Mesh moved = mesh.clone();
    PointCloud& cloud = moved.vertices;
    const int64_t n = cloud.size();
    // Relative to the moved origin first: there the numbers are as small as they were.
    const Vector3 base = transform(cloud.origin);
    const auto place = [&](int64_t i) {
        const float* p = mesh.vertices.positions.data() + 3 * i;
        return times(transform.linear, {p[0], p[1], p[2]});
    };
    auto box = Box<double>::none();
    for (int64_t i = 0; i < n; ++i) {
        const Vector3 v = place(i);
        if (!std::isfinite(v[0]) || !std::isfinite(v[1]) || !std::isfinite(v[2])) continue;
        for (int axis = 0; axis < 3; ++axis) box.add(axis, base[axis] + v[axis]);
    }
    cloud.origin = box.is_none() ? Vector3{} : choose_origin(std::to_array(box.low), std::to_array(box.high));
    parallel_for(n, kTransformGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Vector3 v = place(i);
            for (int axis = 0; axis < 3; ++axis)
                cloud.positions.data()[3 * i + axis] = static_cast<float>(v[axis] + (base[axis] - cloud.origin[axis]));
        }
    });
    for (Attribute& attribute : cloud.attributes) turn_attribute(attribute, transform);
    for (Attribute& attribute : moved.face_attributes) turn_attribute(attribute, transform);
    if (det < 0)
        for (int64_t i = 0; i < moved.faces(); ++i)
            std::swap(moved.triangles.data()[3 * i + 1], moved.triangles.data()[3 * i + 2]);
    move_viewpoint(cloud.facts, transform);
    return moved;
}

}  // namespace stipple::geometry
