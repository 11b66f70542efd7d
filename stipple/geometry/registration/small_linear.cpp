#include "stipple/geometry/registration/small_linear.h"

#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>
#include <Eigen/SVD>

namespace stipple::geometry {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using Matrix6d = Eigen::Matrix<double, 6, 6>;
using Vector6d = Eigen::Matrix<double, 6, 1>;
using Svd = Eigen::JacobiSVD<Matrix3d>;

Matrix3d to_eigen(const Matrix3& m) {
    Matrix3d e;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) e(i, j) = m[i][j];
    return e;
}

Matrix3 from_eigen(const Matrix3d& e) {
    Matrix3 m;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) m[i][j] = e(i, j);
    return m;
}

Vector3d to_eigen(const Vector3& v) {
    return {v[0], v[1], v[2]};
}

Svd svd_of(const Matrix3d& matrix) {
    return Svd(matrix, Eigen::ComputeFullU | Eigen::ComputeFullV);
}

/// The shortest turn of direction a into direction b. As Eigen's FromTwoVectors, but that opposite directions turn
/// about an axis found without a decomposition of its own, whose templates would take as long as all others here.
Matrix3d turn(const Vector3d& a, const Vector3d& b) {
    const Vector3d from = a.normalized(), to = b.normalized();
    const double cosine = to.dot(from);
    Eigen::Quaterniond quaternion;
    if (cosine < -1 + Eigen::NumTraits<double>::dummy_precision()) {
        Eigen::Index smallest = 0;
        from.cwiseAbs().minCoeff(&smallest);
        quaternion.w() = 0;
        quaternion.vec() = from.cross(Vector3d::Unit(smallest)).normalized();
        return quaternion.toRotationMatrix();
    }
    const double s = std::sqrt((1 + cosine) * 2);
    quaternion.vec() = from.cross(to) * (1 / s);
    quaternion.w() = s * 0.5;
    return quaternion.toRotationMatrix();
}

}  // namespace

double norm(const Vector3& v) {
    return to_eigen(v).norm();
}

double norm(const std::array<double, 4>& v) {
    return Eigen::Quaterniond(v[0], v[1], v[2], v[3]).norm();
}

double determinant(const Matrix3& matrix) {
    return to_eigen(matrix).determinant();
}

double orthogonality_error(const Matrix3& matrix) {
    const Matrix3d m = to_eigen(matrix);
    return (m * m.transpose() - Matrix3d::Identity()).cwiseAbs().maxCoeff();
}

Matrix3 nearest_orthogonal(const Matrix3& matrix) {
    const Svd svd = svd_of(to_eigen(matrix));
    return from_eigen(svd.matrixU() * svd.matrixV().transpose());
}

Matrix3 principal_axes(const Matrix3& symmetric) {
    return from_eigen(svd_of(to_eigen(symmetric)).matrixU().transpose());
}

std::array<double, 4> quaternion_of(const Matrix3& rotation) {
    Eigen::Quaterniond q(to_eigen(rotation));
    q.normalize();
    return {q.w(), q.x(), q.y(), q.z()};
}

Matrix3 rotation_of(const std::array<double, 4>& wxyz) {
    Eigen::Quaterniond q(wxyz[0], wxyz[1], wxyz[2], wxyz[3]);
    q.normalize();
    return from_eigen(q.toRotationMatrix());
}

RigidTransform fit_moments(const RigidMoments& moments) {
    const Vector3d from = to_eigen(moments.from) / moments.weight, to = to_eigen(moments.to) / moments.weight;
    const Matrix3d covariance = to_eigen(moments.cross) - moments.weight * from * to.transpose();
    const Svd svd = svd_of(covariance);
    const Vector3d values = svd.singularValues();
    // What is below the rounding of the sums is none: it would turn the points any way.
    constexpr double kRounding = 1e-13;
    const double none = kRounding * to_eigen(moments.cross).norm();
    Matrix3d rotation = Matrix3d::Identity();
    if (values[0] > none && values[1] <= std::max(none, 1e-9 * values[0])) {
        rotation = turn(svd.matrixU().col(0), svd.matrixV().col(0));
    } else if (values[0] > none) {
        const Matrix3d v = svd.matrixV(), u = svd.matrixU();
        const double mirrored = (v * u.transpose()).determinant() < 0 ? -1 : 1;
        rotation = v * Vector3d(1, 1, mirrored).asDiagonal() * u.transpose();
    }
    const Vector3d translation = to - rotation * from;
    return {from_eigen(rotation), {translation[0], translation[1], translation[2]}};
}

double least_eigenvalue(const Matrix6& symmetric) {
    Matrix6d m;
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j) m(i, j) = symmetric[i][j];
    return Eigen::SelfAdjointEigenSolver<Matrix6d>(m, Eigen::EigenvaluesOnly).eigenvalues()[0];
}

LeastMotion solve_least_motion(const Matrix6& matrix, const Vector6& right, double radius) {
    Matrix6d m;
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j) m(i, j) = matrix[i][j];
    Vector6d unit, scaled_right;
    unit << Vector3d::Constant(1 / radius), Vector3d::Ones();
    for (int i = 0; i < 6; ++i) scaled_right[i] = right[i] / (i < 3 ? radius : 1);
    const Eigen::SelfAdjointEigenSolver<Matrix6d> scaled(unit.asDiagonal() * m * unit.asDiagonal());
    constexpr double kDetermined = 1e-6;
    const double least = kDetermined * scaled.eigenvalues()[5];
    LeastMotion solved;
    Vector6d x = Vector6d::Zero();
    for (int i = 0; i < 6; ++i) {
        const double value = scaled.eigenvalues()[i];
        solved.undetermined += value <= least;
        if (value > least) x += scaled.eigenvectors().col(i) * (scaled.eigenvectors().col(i).dot(scaled_right) / value);
    }
    for (int i = 0; i < 6; ++i) solved.x[i] = i < 3 ? x[i] / radius : x[i];
    return solved;
}

}  // namespace stipple::geometry
