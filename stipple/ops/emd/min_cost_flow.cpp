#include "stipple/ops/emd/min_cost_flow.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "stipple/core/parallel.h"
#include "stipple/ops/emd/auction.h"

namespace stipple::ops::flow {
namespace {

constexpr int kBlock = 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kInfinityF = std::numeric_limits<float>::infinity();
constexpr double kWarmGap =
    2e-3;  // of the auction that starts it: 1e-2 leaves more paths, 5e-4 costs more than it saves

struct Points {
    std::vector<float> x, y, z;  // scaled by a power of two, padded to whole blocks

    Points(View<const float, 2> rows, int shift) {
        const int64_t n = rows.size(0), padded = (n + kBlock - 1) / kBlock * kBlock;
        const float scale = std::ldexp(1.0f, shift);
        x.assign(padded, kInfinityF);
        y.assign(padded, kInfinityF);
        z.assign(padded, kInfinityF);
        for (int64_t i = 0; i < n; ++i) {
            x[i] = rows(i, 0) * scale;
            y[i] = rows(i, 1) * scale;
            z[i] = rows(i, 2) * scale;
        }
    }
};

int shift_of(const Problem& problem) {
    assignment::Extent box;
    for (int axis = 0; axis < 3; ++axis) {
        box.low[axis] = kInfinityF;
        box.high[axis] = -kInfinityF;
        for (const auto& rows : {problem.a, problem.b}) {
            for (int64_t i = 0; i < rows.size(0); ++i) {
                box.low[axis] = std::min(box.low[axis], rows(i, axis));
                box.high[axis] = std::max(box.high[axis], rows(i, axis));
            }
        }
    }
    return assignment::scale_shift(box);
}

struct Inflow {
    int32_t from;
    int64_t units;
};

// Sorts are outside of the template, so that they are compiled once.

void sort_arcs(std::vector<Arc>& arcs) {
    std::sort(arcs.begin(), arcs.end(),
              [](const Arc& p, const Arc& q) { return p.from != q.from ? p.from < q.from : p.to < q.to; });
}

/// The group of every point, and the number of groups: points at the same place form one.
std::pair<std::vector<int32_t>, int32_t> group_duplicates(const Points& points, int64_t n) {
    std::vector<int32_t> order(n), groups(n);
    std::iota(order.begin(), order.end(), 0);
    const auto place = [&](int32_t i) { return std::tuple(points.x[i], points.y[i], points.z[i]); };
    std::sort(order.begin(), order.end(), [&](int32_t i, int32_t j) { return place(i) < place(j); });
    int32_t group = 0;
    for (int64_t k = 0; k < n; ++k) {
        if (k > 0 && place(order[k - 1]) != place(order[k])) ++group;
        groups[order[k]] = group;
    }
    return {std::move(groups), group + 1};
}

template <bool squared>
class Solver {
public:
    Solver(const Problem& problem, int shift)
        : n_(problem.a.size(0)),
          m_(problem.b.size(0)),
          blocks_((m_ + kBlock - 1) / kBlock),
          a_(problem.a, shift),
          b_(problem.b, shift),
          price_(m_, 0.0),
          profit_(n_, 0.0),
          nearest_(n_, 0),
          supply_left_(n_, problem.supply),
          demand_left_(m_, problem.demand),
          flows_(m_),
          distance_(m_, kInfinity),
          predecessor_(m_, -1),
          settled_(m_, 0),
          entered_from_(n_, -1),
          bidder_distance_(n_, 0.0),
          is_reached_(n_, 0),
          price_f_(blocks_ * kBlock, kInfinityF),
          limit_(blocks_ * kBlock, -kInfinityF) {
        std::fill_n(limit_.begin(), m_, kInfinityF);
        auto [groups, count] = group_duplicates(a_, n_);
        group_ = std::move(groups);
        duplicate_base_.assign(count, -kInfinity);
    }

    void set_prices(const std::vector<double>& price) { price_ = price; }

    void run() {
        for (int64_t j = 0; j < m_; ++j) price_f_[j] = static_cast<float>(price_[j]);
        parallel_for(n_, 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) find_profit(i);
        });
        for (int64_t i = 0; i < n_; ++i) {
            const int32_t j = nearest_[i];
            const int64_t units = std::min(supply_left_[i], demand_left_[j]);
            if (units == 0) continue;
            flows_[j].push_back({static_cast<int32_t>(i), units});
            supply_left_[i] -= units;
            demand_left_[j] -= units;
        }
        for (int64_t i = 0; i < n_; ++i)
            while (supply_left_[i] > 0) augment(static_cast<int32_t>(i));
    }

    Solution solution(double unit) {
        Solution result;
        double total = 0;
        int64_t units = 0;
        for (int64_t j = 0; j < m_; ++j)
            for (const Inflow& inflow : flows_[j])
                result.arcs.push_back({inflow.from, static_cast<int32_t>(j), inflow.units});
        sort_arcs(result.arcs);
        for (const Arc& arc : result.arcs) {
            total += cost(arc.from, arc.to) * static_cast<double>(arc.units);
            units += arc.units;
        }
        result.cost = total / static_cast<double>(units) * unit;
        result.dual_a.resize(n_);
        result.dual_b.resize(m_);
        for (int64_t i = 0; i < n_; ++i) result.dual_a[i] = profit_[i] * unit;
        for (int64_t j = 0; j < m_; ++j) result.dual_b[j] = -price_[j] * unit;
        result.paths = paths_;
        result.scans = scans_;
        return result;
    }

private:
    double cost(int64_t i, int64_t j) const {
        const double dx = static_cast<double>(a_.x[i]) - b_.x[j], dy = static_cast<double>(a_.y[i]) - b_.y[j],
                     dz = static_cast<double>(a_.z[i]) - b_.z[j], sq = (dx * dx + dy * dy) + dz * dz;
        return squared ? sq : std::sqrt(sq);
    }

    void find_profit(int64_t i) {
        const float x = a_.x[i], y = a_.y[i], z = a_.z[i];
        double best = kInfinity;
        int64_t nearest = 0;
        for (int64_t first = 0; first < m_; first += kBlock) {
            const float most = static_cast<float>(best) + assignment::kFilterMargin;
            int32_t passes[kBlock], any = 0;
            for (int k = 0; k < kBlock; ++k) {
                const float sq = distance_sq(x - b_.x[first + k], y - b_.y[first + k], z - b_.z[first + k]);
                passes[k] = assignment::may_cost<squared>(sq, most - price_f_[first + k]) ? -1 : 0;
                any |= passes[k];
            }
            if (any == 0) continue;
            for (int64_t j = first; j < std::min(first + kBlock, m_); ++j) {
                if (passes[j - first] == 0) continue;
                const double value = cost(i, j) + price_[j];
                if (value < best) {
                    best = value;
                    nearest = j;
                }
            }
        }
        profit_[i] = best;
        nearest_[i] = static_cast<int32_t>(nearest);
    }

    /// Pushes what fits along one shortest path from `root` to the nearest object with demand left.
    void augment(int32_t root) {
        ++paths_;
        using Entry = std::pair<double, int32_t>;
        heap_.clear();
        touched_.clear();
        frontier_.clear();
        order_.clear();
        double best = kInfinity;  // distance of the nearest object with demand left
        int32_t sink = -1;
        frontier_.push_back(root);
        is_reached_[root] = 1;
        bidder_distance_[root] = 0.0;
        entered_from_[root] = -1;
        order_.push_back(root);
        double length = 0.0;
        for (;;) {
            for (const int32_t i : frontier_) relax(i, best, sink);
            frontier_.clear();
            while (!heap_.empty() &&
                   (settled_[heap_.front().second] || heap_.front().first > distance_[heap_.front().second])) {
                std::pop_heap(heap_.begin(), heap_.end(), std::greater<Entry>());
                heap_.pop_back();
            }
            if (heap_.empty() || heap_.front().first >= best) {
                length = best;
                break;
            }
            const int32_t j = heap_.front().second;
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<Entry>());
            heap_.pop_back();
            settled_[j] = 1;
            limit_[j] = -kInfinityF;
            for (const Inflow& inflow : flows_[j]) {
                if (is_reached_[inflow.from]) continue;
                is_reached_[inflow.from] = 1;
                bidder_distance_[inflow.from] = distance_[j];
                entered_from_[inflow.from] = j;
                frontier_.push_back(inflow.from);
                order_.push_back(inflow.from);
            }
        }
        for (const int32_t i : order_) {
            profit_[i] += length - bidder_distance_[i];
            is_reached_[i] = 0;
            duplicate_base_[group_[i]] = -kInfinity;
        }
        for (const int32_t j : touched_) {
            if (settled_[j]) {
                price_[j] += length - distance_[j];
                price_f_[j] = static_cast<float>(price_[j]);
            }
        }
        push_flow(root, sink);
        for (const int32_t j : touched_) {
            settled_[j] = 0;
            distance_[j] = kInfinity;
            limit_[j] = kInfinityF;
        }
    }

    void relax(int32_t i, double& best, int32_t& sink) {
        const double base = profit_[i] - bidder_distance_[i];
        double& duplicate_base = duplicate_base_[group_[i]];
        if (base <= duplicate_base) return;
        duplicate_base = base;
        ++scans_;
        const float x = a_.x[i], y = a_.y[i], z = a_.z[i];
        const float base_f = static_cast<float>(base) + assignment::kFilterMargin;
        for (int64_t first = 0; first < m_; first += kBlock) {
            const float most = static_cast<float>(best);
            int32_t passes[kBlock], any = 0;
            for (int k = 0; k < kBlock; ++k) {
                const float sq = distance_sq(x - b_.x[first + k], y - b_.y[first + k], z - b_.z[first + k]);
                const float limit = std::min(limit_[first + k], most) - price_f_[first + k];
                passes[k] = assignment::may_cost<squared>(sq, limit + base_f) ? -1 : 0;
                any |= passes[k];
            }
            if (any == 0) continue;
            for (int64_t j = first; j < std::min(first + kBlock, m_); ++j) {
                if (passes[j - first] == 0) continue;
                // Reduced costs are negative by rounding only; a path must not get shorter.
                const double through = std::max(cost(i, j) + price_[j] - base, bidder_distance_[i]);
                if (through >= distance_[j] || through >= best) continue;
                if (distance_[j] == kInfinity) touched_.push_back(static_cast<int32_t>(j));
                distance_[j] = through;
                predecessor_[j] = i;
                limit_[j] = static_cast<float>(through);
                if (demand_left_[j] > 0) {
                    best = through;
                    sink = static_cast<int32_t>(j);
                } else {
                    heap_.emplace_back(through, static_cast<int32_t>(j));
                    std::push_heap(heap_.begin(), heap_.end(), std::greater<std::pair<double, int32_t>>());
                }
            }
        }
    }

    void push_flow(int32_t root, int32_t sink) {
        int64_t units = std::min(supply_left_[root], demand_left_[sink]);
        for (int32_t j = sink;;) {
            const int32_t i = predecessor_[j];
            if (i == root) break;
            j = entered_from_[i];
            units = std::min(units, flow_of(j, i).units);
        }
        supply_left_[root] -= units;
        demand_left_[sink] -= units;
        for (int32_t j = sink;;) {
            const int32_t i = predecessor_[j];
            add_flow(j, i, units);
            if (i == root) break;
            j = entered_from_[i];
            add_flow(j, i, -units);
        }
    }

    Inflow& flow_of(int32_t j, int32_t i) {
        auto& inflows = flows_[j];
        return *std::find_if(inflows.begin(), inflows.end(), [&](const Inflow& inflow) { return inflow.from == i; });
    }

    void add_flow(int32_t j, int32_t i, int64_t units) {
        auto& inflows = flows_[j];
        const auto at = std::find_if(inflows.begin(), inflows.end(), [&](const Inflow& s) { return s.from == i; });
        if (at == inflows.end()) {
            inflows.push_back({i, units});
        } else if ((at->units += units) == 0) {
            *at = inflows.back();
            inflows.pop_back();
        }
    }

    const int64_t n_, m_, blocks_;
    const Points a_, b_;
    std::vector<double> price_, profit_;
    std::vector<int32_t> nearest_;
    std::vector<int64_t> supply_left_, demand_left_;
    std::vector<std::vector<Inflow>> flows_;
    // State of one search; what it touched is reset after it.
    std::vector<double> distance_;
    std::vector<int32_t> predecessor_;
    std::vector<uint8_t> settled_;
    std::vector<int32_t> entered_from_;
    std::vector<double> bidder_distance_;
    std::vector<uint8_t> is_reached_;
    std::vector<float> price_f_, limit_;
    std::vector<int32_t> group_;          // bidders at the same place: one scan of a row serves them all
    std::vector<double> duplicate_base_;  // of groups
    std::vector<std::pair<double, int32_t>> heap_;
    std::vector<int32_t> touched_, frontier_, order_;
    int64_t paths_ = 0, scans_ = 0;
};

/// Prices of a nearly optimal matching of a with b, whose points are repeated until there are as many.
std::vector<double> auction_prices(const Problem& problem) {
    const int64_t n = problem.a.size(0), m = problem.b.size(0);
    std::vector<float> repeated;
    const float* b = problem.b.data();
    int64_t stride = problem.b.stride(0);
    if (m != n) {
        repeated.resize(3 * n);
        for (int64_t k = 0; k < n; ++k)
            for (int axis = 0; axis < 3; ++axis) repeated[3 * k + axis] = problem.b(k * m / n, axis);
        b = repeated.data();
        stride = 3;
    }
    const assignment::Problem near = {problem.a.data(), b,  problem.a.stride(0), stride, n, problem.squared,
                                      kWarmGap,         0.0};
    std::vector<int32_t> partner(n);
    std::vector<float> price(n);
    assignment::solve(near, partner.data(), price.data());
    std::vector<double> least(m, kInfinity);
    for (int64_t k = 0; k < n; ++k) least[k * m / n] = std::min(least[k * m / n], static_cast<double>(price[k]));
    return least;
}

template <bool squared>
Solution solve_as(const Problem& problem) {
    const int shift = shift_of(problem);
    Solver<squared> solver(problem, shift);
    solver.set_prices(auction_prices(problem));
    solver.run();
    return solver.solution(std::ldexp(1.0, squared ? -2 * shift : -shift));
}

}  // namespace

bool all_finite(View<const float, 2> points) {
    for (int64_t i = 0; i < points.size(0); ++i)
        for (int64_t axis = 0; axis < points.size(1); ++axis)
            if (!std::isfinite(points(i, axis))) return false;
    return true;
}

Solution solve(const Problem& problem) {
    if (problem.a.size(0) < problem.b.size(0)) {  // the auction's bidders are the larger cloud
        Problem turned = problem;
        std::swap(turned.a, turned.b);
        std::swap(turned.supply, turned.demand);
        Solution solution = solve(turned);
        std::swap(solution.dual_a, solution.dual_b);
        for (Arc& arc : solution.arcs) std::swap(arc.from, arc.to);
        sort_arcs(solution.arcs);
        return solution;
    }
    return problem.squared ? solve_as<true>(problem) : solve_as<false>(problem);
}

}  // namespace stipple::ops::flow
