#include "stipple/geometry/pose_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "stipple/core/interrupt.h"

namespace stipple::geometry {
namespace {

using Numbers6 = std::array<double, 6>;
constexpr int32_t kMostNodes = 500;

/// The turn of a rotation as a vector: its axis times its angle.
Vector3 turn_of(const RigidTransform& motion) {
    const auto [w, x, y, z] = to_quaternion(motion);
    const double s = std::sqrt(x * x + y * y + z * z);
    const double scale = s > 1e-12 ? 2 * std::atan2(s, w) / s : 2;
    return {scale * x, scale * y, scale * z};
}

/// How far the poses are from what an edge says, as (turn, shift of the center).
Numbers6 offset_of(const PoseEdge& edge, const RigidTransform& from, const RigidTransform& to) {
    const RigidTransform off = inverse(to) * from * inverse(edge.transform);
    const Vector3 turn = turn_of(off), moved = off(edge.center);
    return {turn[0], turn[1], turn[2], moved[0] - edge.center[0], moved[1] - edge.center[1], moved[2] - edge.center[2]};
}

Numbers6 times(const std::array<Numbers6, 6>& matrix, const Numbers6& x) {
    Numbers6 product = {};
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j) product[i] += matrix[i][j] * x[j];
    return product;
}

double residual_sq(const PoseEdge& edge, const RigidTransform& from, const RigidTransform& to) {
    const Numbers6 x = offset_of(edge, from, to), y = times(edge.information, x);
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += x[i] * y[i];
    return std::max(sum, 0.0);
}

/// A symmetric positive definite system, by rows; solved in place by the Cholesky decomposition. False where it is
/// none.
bool solve_in_place(std::vector<double>& matrix, std::vector<double>& right) {
    const auto n = static_cast<int64_t>(right.size());
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j <= i; ++j) {
            double sum = matrix[i * n + j];
            for (int64_t k = 0; k < j; ++k) sum -= matrix[i * n + k] * matrix[j * n + k];
            if (i != j) {
                matrix[i * n + j] = sum / matrix[j * n + j];
            } else {
                if (!(sum > 0)) return false;
                matrix[i * n + i] = std::sqrt(sum);
            }
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = 0; k < i; ++k) right[i] -= matrix[i * n + k] * right[k];
        right[i] /= matrix[i * n + i];
    }
    for (int64_t i = n; i-- > 0;) {
        for (int64_t k = i + 1; k < n; ++k) right[i] -= matrix[k * n + i] * right[k];
        right[i] /= matrix[i * n + i];
    }
    return true;
}

/// The edges that hold, and the poses of the part that they connect.
class GraphSolver {
public:
    GraphSolver(int32_t nodes, std::span<const PoseEdge> edges, double tolerance)
        : nodes_(nodes), edges_(edges), tolerance_sq_(tolerance * tolerance), holds_(edges.size(), 1) {
        for (const PoseEdge& edge : edges) strongest_ = std::max(strongest_, edge.strength);
    }

    /// Poses along a spanning tree of the edges that hold. The part with most nodes is placed; ties to the first node.
    void plant(const std::vector<int>& triangles) {
        std::vector<size_t> order(edges_.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
            return triangles[a] != triangles[b] ? triangles[a] > triangles[b] : edges_[a].strength > edges_[b].strength;
        });
        std::vector<int32_t> part(static_cast<size_t>(nodes_));
        std::iota(part.begin(), part.end(), 0);
        poses_.assign(static_cast<size_t>(nodes_), {});
        for (const size_t e : order) {
            const PoseEdge& edge = edges_[e];
            const int32_t keep = part[edge.to], move = part[edge.from];
            if (!holds_[e] || keep == move) continue;
            // The part of `from` goes where the edge lays it on the part of `to`.
            const RigidTransform shift = poses_[edge.to] * edge.transform * inverse(poses_[edge.from]);
            for (int32_t i = 0; i < nodes_; ++i)
                if (part[i] == move) {
                    poses_[i] = shift * poses_[i];
                    part[i] = keep;
                }
        }
        place(part);
    }

    /// Steps with the weights of `softness` (m of the header), or with equal weights for 0.
    void solve(double softness, int most, int& iterations) {
        double damping = 1e-6, cost = cost_of(poses_, softness);
        for (int i = 0; i < most; ++i) {
            check_interrupted();
            std::vector<RigidTransform> moved = poses_;
            if (!step(softness, damping, moved)) return;
            ++iterations;
            const double next = cost_of(moved, softness);
            if (!(next <= cost)) {
                damping *= 10;
                if (damping > 1e6) return;
                continue;
            }
            poses_ = std::move(moved);
            damping = std::max(damping / 10, 1e-12);
            const bool is_small = cost - next <= 1e-9 * cost;
            cost = next;
            if (is_small) return;
        }
    }

    double residual_sq_of(size_t e) const {
        return residual_sq(edges_[e], poses_[edges_[e].from], poses_[edges_[e].to]);
    }
    bool is_between_placed(size_t e) const { return placed_[edges_[e].from] && placed_[edges_[e].to]; }

    /// Drops what is beyond the tolerance; what that cuts off is not placed any more. True when anything was dropped.
    bool drop() {
        bool is_changed = false;
        for (size_t e = 0; e < edges_.size(); ++e)
            if (holds_[e] && is_between_placed(e) && residual_sq_of(e) > tolerance_sq_) {
                holds_[e] = 0;
                is_changed = true;
            }
        std::vector<int32_t> part(static_cast<size_t>(nodes_));
        std::iota(part.begin(), part.end(), 0);
        for (size_t e = 0; e < edges_.size(); ++e) {
            if (!holds_[e]) continue;
            const int32_t keep = part[edges_[e].to], move = part[edges_[e].from];
            for (int32_t& one : part)
                if (one == move) one = keep;
        }
        place(part);
        return is_changed;
    }

    const std::vector<RigidTransform>& poses() const { return poses_; }
    const std::vector<uint8_t>& placed() const { return placed_; }
    bool holds(size_t e) const { return holds_[e] && is_between_placed(e); }

private:
    void place(const std::vector<int32_t>& part) {
        int32_t best = -1, most = 0;
        for (int32_t i = 0; i < nodes_; ++i) {
            const auto count = static_cast<int32_t>(std::count(part.begin(), part.end(), part[i]));
            if (count > most) most = count, best = part[i];
        }
        placed_.assign(static_cast<size_t>(nodes_), 0);
        root_ = -1;
        for (int32_t i = 0; i < nodes_; ++i) {
            if (part[i] != best) continue;
            placed_[i] = 1;
            if (root_ < 0) root_ = i;
        }
        const RigidTransform back = root_ < 0 ? RigidTransform{} : inverse(poses_[root_]);
        for (int32_t i = 0; i < nodes_; ++i) poses_[i] = placed_[i] && i != root_ ? back * poses_[i] : RigidTransform{};
    }

    /// Of an edge in the sums: those that rest on more surface count more, once it is known which hold.
    double share_of(size_t e, double softness) const { return softness > 0 ? 1 : edges_[e].strength / strongest_; }

    static double weight_of(double square, double softness) {
        const double line = softness / (softness + square);
        return softness > 0 ? line * line : 1;
    }

    double cost_of(const std::vector<RigidTransform>& poses, double softness) const {
        double cost = 0;
        for (size_t e = 0; e < edges_.size(); ++e) {
            if (!holds(e)) continue;
            const double square = residual_sq(edges_[e], poses[edges_[e].from], poses[edges_[e].to]);
            cost += share_of(e, softness) * (softness > 0 ? softness * square / (softness + square) : square);
        }
        return cost;
    }

    /// One damped step of all placed nodes but the root: small motions in the world, turns about the node's own center.
    bool step(double softness, double damping, std::vector<RigidTransform>& poses) const {
        std::vector<int32_t> column(static_cast<size_t>(nodes_), -1);
        int32_t free = 0;
        for (int32_t i = 0; i < nodes_; ++i)
            if (placed_[i] && i != root_) column[i] = free++;
        if (free == 0) return false;
        const int64_t n = 6 * int64_t{free};
        std::vector<double> matrix(static_cast<size_t>(n * n), 0), right(static_cast<size_t>(n), 0);
        for (size_t e = 0; e < edges_.size(); ++e) {
            if (!holds(e)) continue;
            const PoseEdge& edge = edges_[e];
            const Numbers6 x = offset_of(edge, poses[edge.from], poses[edge.to]);
            const Numbers6 pull = times(edge.information, x);
            double square = 0;
            for (int i = 0; i < 6; ++i) square += x[i] * pull[i];
            const double weight = share_of(e, softness) * weight_of(std::max(square, 0.0), softness);
            // A motion (turn about the origin, shift) of `from` in the world changes x by this; of `to` by its
            // negative.
            const Vector3 at = poses[edge.to]({edge.center[0] + x[3], edge.center[1] + x[4], edge.center[2] + x[5]});
            std::array<Numbers6, 6> jacobian = {};
            const Matrix3& r = poses[edge.to].rotation;
            for (int i = 0; i < 3; ++i)
                for (int k = 0; k < 3; ++k) {
                    jacobian[i][k] = r[k][i];
                    jacobian[3 + i][3 + k] = r[k][i];
                    const int a = (k + 1) % 3, b = (k + 2) % 3;  // the turn about axis k moves `at` by e_k x at
                    jacobian[3 + i][k] = r[b][i] * at[a] - r[a][i] * at[b];
                }
            std::array<Numbers6, 6> product = {}, normal = {};
            for (int i = 0; i < 6; ++i)
                for (int j = 0; j < 6; ++j)
                    for (int k = 0; k < 6; ++k) product[i][j] += edge.information[i][k] * jacobian[k][j];
            Numbers6 force = {};
            for (int i = 0; i < 6; ++i)
                for (int k = 0; k < 6; ++k) {
                    force[i] += jacobian[k][i] * pull[k];
                    for (int j = 0; j < 6; ++j) normal[i][j] += jacobian[k][i] * product[k][j];
                }
            const int32_t columns[2] = {column[edge.from], column[edge.to]};
            for (int a = 0; a < 2; ++a) {
                if (columns[a] < 0) continue;
                for (int i = 0; i < 6; ++i) right[6 * columns[a] + i] -= (a == 0 ? 1 : -1) * weight * force[i];
                for (int b = 0; b < 2; ++b) {
                    if (columns[b] < 0) continue;
                    for (int i = 0; i < 6; ++i)
                        for (int j = 0; j < 6; ++j)
                            matrix[(6 * columns[a] + i) * n + 6 * columns[b] + j] +=
                                (a == b ? 1 : -1) * weight * normal[i][j];
                }
            }
        }
        for (int64_t i = 0; i < n; ++i) matrix[i * n + i] += damping * matrix[i * n + i] + 1e-300;
        if (!solve_in_place(matrix, right)) return false;
        for (int32_t i = 0; i < nodes_; ++i) {
            if (column[i] < 0) continue;
            const double* x = right.data() + 6 * int64_t{column[i]};
            const double angle = std::hypot(x[0], x[1], x[2]);
            RigidTransform motion = angle > 0 ? rotation_about({x[0], x[1], x[2]}, angle) : RigidTransform{};
            motion.translation = {x[3], x[4], x[5]};
            poses[i] = motion * poses[i];
            poses[i].rotation = nearest_rotation(poses[i].rotation);
        }
        return true;
    }

    int32_t nodes_, root_ = -1;
    std::span<const PoseEdge> edges_;
    double tolerance_sq_, strongest_ = 0;
    std::vector<uint8_t> holds_, placed_;
    std::vector<RigidTransform> poses_;
};

/// For each edge, with how many other nodes it closes a triangle to within the tolerance.
std::vector<int> agreeing_triangles(int32_t nodes, std::span<const PoseEdge> edges, double tolerance_sq) {
    std::map<std::pair<int32_t, int32_t>, RigidTransform> motions;  // first edge between two nodes, both ways
    for (const PoseEdge& edge : edges) {
        motions.try_emplace({edge.from, edge.to}, edge.transform);
        motions.try_emplace({edge.to, edge.from}, inverse(edge.transform));
    }
    std::vector<int> triangles(edges.size(), 0);
    for (size_t e = 0; e < edges.size(); ++e)
        for (int32_t third = 0; third < nodes; ++third) {
            const auto up = motions.find({edges[e].from, third}), down = motions.find({third, edges[e].to});
            if (third == edges[e].from || third == edges[e].to || up == motions.end() || down == motions.end())
                continue;
            triangles[e] += residual_sq(edges[e], down->second * up->second, {}) <= 4 * tolerance_sq;
        }
    return triangles;
}

}  // namespace

PoseEdge edge_of(int32_t from, int32_t to, const IcpResult& found, double radius, double strength) {
    PoseEdge edge{from, to, found.transform, found.information, found.center, strength};
    // The trace of the shifts is the sum of the weights: unit normals.
    const double sum = found.information[3][3] + found.information[4][4] + found.information[5][5];
    constexpr double kAlong = 1e-3;
    for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 6; ++j) edge.information[i][j] = sum > 0 ? edge.information[i][j] / sum : 0;
        edge.information[i][i] += kAlong * (i < 3 ? radius * radius : 1);
    }
    return edge;
}

PoseGraphResult optimise_poses(int32_t nodes, std::span<const PoseEdge> edges, const PoseGraphOptions& options) {
    STIPPLE_REQUIRE(nodes >= 0 && nodes <= kMostNodes, "optimise_poses: {} nodes, {} are possible", nodes, kMostNodes);
    STIPPLE_REQUIRE(options.tolerance > 0 && std::isfinite(options.tolerance),
                    "optimise_poses: the tolerance must be above 0, got {}", options.tolerance);
    for (const PoseEdge& edge : edges) {
        STIPPLE_REQUIRE(edge.from >= 0 && edge.from < nodes && edge.to >= 0 && edge.to < nodes && edge.from != edge.to,
                        "optimise_poses: an edge from {} to {} of {} nodes", edge.from, edge.to, nodes);
        STIPPLE_REQUIRE(edge.strength > 0, "optimise_poses: an edge of strength {}", edge.strength);
    }
    const double tolerance_sq = options.tolerance * options.tolerance;
    GraphSolver solver(nodes, edges, options.tolerance);
    solver.plant(agreeing_triangles(nodes, edges, tolerance_sq));
    PoseGraphResult result;
    double worst = tolerance_sq;
    for (size_t e = 0; e < edges.size(); ++e)
        if (solver.holds(e)) worst = std::max(worst, solver.residual_sq_of(e));
    for (double softness = worst;; softness = std::max(softness / 4, tolerance_sq)) {
        solver.solve(softness, options.iterations, result.iterations);
        if (softness == tolerance_sq) break;
    }
    for (int round = 0; round < 4; ++round) {
        const bool is_changed = solver.drop();
        if (!is_changed && round > 0) break;
        solver.solve(0, options.iterations, result.iterations);
    }
    result.poses = solver.poses();
    result.is_placed = solver.placed();
    double sum = 0;
    int64_t holding = 0;
    for (size_t e = 0; e < edges.size(); ++e) {
        const double square = solver.is_between_placed(e) ? solver.residual_sq_of(e) : 0;
        result.edges.push_back({std::sqrt(square), !solver.holds(e)});
        if (!solver.holds(e)) continue;
        sum += square;
        ++holding;
    }
    result.rms = holding > 0 ? std::sqrt(sum / static_cast<double>(holding)) : 0;
    return result;
}

}  // namespace stipple::geometry
