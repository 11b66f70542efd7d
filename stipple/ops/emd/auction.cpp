#include "stipple/ops/emd/auction.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "stipple/core/parallel.h"
#include "stipple/ops/emd/refine_cpu.h"
#include "stipple/ops/emd/scaled_points.h"

namespace stipple::ops::assignment {
namespace {

constexpr int32_t kHorizon = 12 * 64;  // units: the longest paths recorded at first

struct Bid {
    float amount;
    int32_t object;
};

/// An object of the search frontier, in a heap whose front has the lowest level.
struct FrontierEntry {
    int32_t level, object;
    bool operator<(const FrontierEntry& other) const { return level > other.level; }
};

/// The two best objects of a bidder.
struct BestTwo {
    int32_t best, second;
};

template <bool squared>
class Solver {
public:
    Solver(const Problem& problem, const Extent& box, int shift)
        : n_(problem.n),
          blocks_((problem.n + kBlock - 1) / kBlock),
          row_of_a_(curve_order(problem.a, problem.stride_a, problem.n, box, shift)),
          row_of_b_(curve_order(problem.b, problem.stride_b, problem.n, box, shift)),
          a_(problem.a, problem.stride_a, problem.n, shift, row_of_a_),
          b_(problem.b, problem.stride_b, problem.n, shift, row_of_b_),
          price_(blocks_ * kBlock, 0.0f),
          profit_(n_, 0.0f),
          partner_(n_, -1),
          owner_(n_, -1),
          last_best_(n_),
          factor_(std::ldexp(1.0f, sum_shift(n_))) {
        for (int64_t i = 0; i < n_; ++i)
            last_best_[i] = {static_cast<int32_t>(i), static_cast<int32_t>(i + 1 < n_ ? i + 1 : 0)};
        for (int64_t i = n_; i < blocks_ * kBlock; ++i) price_[i] = kInfinity;
        for (auto* side : {&center_x_, &center_y_, &center_z_, &half_x_, &half_y_, &half_z_}) side->resize(blocks_);
        for (int64_t block = 0; block < blocks_; ++block) {
            const int64_t first = block * kBlock, last = std::min(first + kBlock, n_);
            const auto measure = [&](const std::vector<float>& values, float& center, float& half) {
                const auto [low, high] = std::minmax_element(&values[first], &values[first] + (last - first));
                center = 0.5f * *low + 0.5f * *high;
                half = std::max(*high - center, center - *low) * kFilterFactor;  // above every rounding error
            };
            measure(b_.x, center_x_[block], half_x_[block]);
            measure(b_.y, center_y_[block], half_y_[block]);
            measure(b_.z, center_z_[block], half_z_[block]);
        }
        min_price_.assign(blocks_, 0.0f);
        max_limit_.resize(blocks_);
        selected_.resize(blocks_);
    }

    Solution run(const Problem& problem, int shift) {
        const double unit = std::ldexp(1.0, squared ? -2 * shift : -shift);
        Schedule schedule{problem.relative, problem.absolute / unit, 0.0f, 0.0, false};
        Solution solution;
        solution.shift = shift;
        update_profits();
        schedule.begin(per_point(total(profit_)));
        for (;;) {
            ++effort_.phases;
            const float eps = schedule.eps;
            std::vector<int32_t> unassigned = unassign_violators(eps);
            auction(unassigned, eps, tolerated_unassigned(n_, schedule.may_be_last()));
            update_profits();
            if (!unassigned.empty() &&
                (schedule.may_be_last() || static_cast<int64_t>(unassigned.size()) > tolerated_unassigned(n_, false))) {
                while (!unassigned.empty()) augment(unassigned, eps);
                if (!schedule.may_be_last()) update_profits();
            }
            if (schedule.may_be_last()) refine(schedule);
            solution.cost = unassigned.empty() ? per_point(matched_cost()) : std::numeric_limits<double>::infinity();
            schedule.advance(solution.cost, dual_bound());
            if (schedule.done) break;
            normalise_prices();
        }
        solution.cost *= unit;
        solution.bound = schedule.bound * unit;
        solution.effort = effort_;
        return solution;
    }

    void store(int32_t* partner, float* price) const {
        for (int64_t i = 0; i < n_; ++i) partner[row_of_a_[i]] = row_of_b_[partner_[i]];
        for (int64_t j = 0; j < n_ && price != nullptr; ++j) price[row_of_b_[j]] = price_[j];
    }

private:
    friend class Refinement<Solver>;

    float cost(int64_t i, int64_t j) const {
        return pair_cost<squared>(a_.x[i] - b_.x[j], a_.y[i] - b_.y[j], a_.z[i] - b_.z[j]);
    }

    int32_t rank(int32_t index, int32_t chooser) const { return rank_of(index, chooser, static_cast<int32_t>(n_)); }

    double per_point(int64_t sum) const {
        return static_cast<double>(sum) / static_cast<double>(factor_) / static_cast<double>(n_);
    }
    int64_t matched_cost() const {
        int64_t sum = 0;
        for (int64_t i = 0; i < n_; ++i) sum += to_fixed_point(cost(i, partner_[i]), factor_);
        return sum;
    }
    double dual_bound() const { return per_point(total(profit_) - total(price_)); }
    int64_t total(const std::vector<float>& values) const {
        int64_t sum = 0;
        for (int64_t i = 0; i < n_; ++i) sum += to_fixed_point(values[i], factor_);
        return sum;
    }

    /// Sets pass[block - begin] where the box of a block in [begin, end) may hold an object with cost(i, j) <= base +
    /// sign * values[block].
    void select_blocks(int64_t i, float base, float sign, const std::vector<float>& values, int64_t begin, int64_t end,
                       int32_t* pass) const {
        const float x = a_.x[i], y = a_.y[i], z = a_.z[i];
        const float *cx = &center_x_[begin], *cy = &center_y_[begin], *cz = &center_z_[begin], *value = &values[begin];
        const float *hx = &half_x_[begin], *hy = &half_y_[begin], *hz = &half_z_[begin];
        const auto outside = [](float distance, float half) {  // twice max(distance - half, 0), without a branch
            const float over = std::fabs(distance) - half;
            return over + std::fabs(over);
        };
#pragma GCC ivdep
        for (int64_t block = 0; block < end - begin; ++block) {
            const float sq = distance_sq(outside(x - cx[block], hx[block]), outside(y - cy[block], hy[block]),
                                         outside(z - cz[block], hz[block]));
            pass[block] = may_cost<squared>(0.25f * sq, base + sign * value[block]) ? -1 : 0;
        }
    }

    /// Calls hit(j) for all objects with cost(i, j) <= limit() - price_[j], and possibly others; limit() may fall.
    template <class Limit, class Hit>
    void scan(int64_t i, const Limit& limit, const Hit& hit) const {
        constexpr int64_t kBlocksAtOnce = 1024;
        int32_t
            selected[kBlocksAtOnce];  // not of a thread's own memory: what a thread keeps would be alive after the call
        const float x = a_.x[i], y = a_.y[i], z = a_.z[i];
        for (int64_t begin = 0; begin < blocks_; begin += kBlocksAtOnce) {
            const int64_t end = std::min(begin + kBlocksAtOnce, blocks_);
            select_blocks(i, limit(), -1.0f, min_price_, begin, end, selected);
            for (int64_t block = begin; block < end; ++block) {
                if (selected[block - begin] == 0) continue;
                const int64_t first = block * kBlock;
                const float *bx = &b_.x[first], *by = &b_.y[first], *bz = &b_.z[first], *price = &price_[first];
                const float most = limit();
                int32_t passes[kBlock];
                int32_t any = 0;
                for (int j = 0; j < kBlock; ++j) {
                    const float sq = distance_sq(x - bx[j], y - by[j], z - bz[j]);
                    passes[j] = may_cost<squared>(sq, most - price[j]) ? -1 : 0;
                    any |= passes[j];
                }
                if (any == 0) continue;
                for (int j = 0; j < kBlock; ++j)
                    if (passes[j] != 0) hit(first + j);
            }
        }
    }

    template <class Hit>
    void scan(int64_t i, float limit, const Hit& hit) const {
        scan(
            i, [&] { return limit; }, hit);
    }

    void update_min_price(int64_t block) {
        min_price_[block] = *std::min_element(&price_[block * kBlock], &price_[block * kBlock] + kBlock);
    }
    void update_min_prices() {
        for (int64_t block = 0; block < blocks_; ++block) update_min_price(block);
    }

    float nearest_value(int64_t i, float start) const {
        float best = start;
        scan(
            i, [&] { return best * kFilterFactor; }, [&](int64_t j) { best = std::min(best, cost(i, j) + price_[j]); });
        return best;
    }

    /// profit = min over objects of cost + price.
    void update_profits() {
        parallel_for(n_, 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t start = partner_[i] >= 0 ? partner_[i] : i;
                profit_[i] = nearest_value(i, cost(i, start) + price_[start]);
            }
        });
    }

    /// Unassigns the bidders that violate complementary slackness for the next eps; returns all that are unassigned.
    std::vector<int32_t> unassign_violators(float eps) {
        std::vector<int32_t> unassigned;
        for (int64_t i = 0; i < n_; ++i) {
            const int32_t j = partner_[i];
            if (j >= 0 && (cost(i, j) + price_[j]) - profit_[i] <= eps) continue;
            if (j >= 0) owner_[j] = -1;
            partner_[i] = -1;
            unassigned.push_back(static_cast<int32_t>(i));
        }
        return unassigned;
    }

    /// Shifts prices so that the lowest is 0: they would grow from phase to phase.
    void normalise_prices() {
        const float lowest = *std::min_element(price_.begin(), price_.begin() + n_);
        for (int64_t j = 0; j < n_; ++j) price_[j] -= lowest;
        update_min_prices();
        for (int64_t i = 0; i < n_; ++i) profit_[i] -= lowest;
    }

    Bid bid(int32_t i, float eps) {
        // The two best of the last bid bound the second best of this one from above: most blocks are skipped.
        BestTwo& last = last_best_[i];
        const float bound =
            std::max(cost(i, last.best) + price_[last.best], cost(i, last.second) + price_[last.second]);
        float best = kInfinity, second = kInfinity;
        BestTwo now = {-1, -1};
        scan(
            i, [&] { return std::min(second, bound) * kFilterFactor; },
            [&](int64_t at) {
                const auto j = static_cast<int32_t>(at);
                const float value = cost(i, j) + price_[j];
                if (value < best || (value == best && rank(j, i) < rank(now.best, i))) {
                    second = best;
                    best = value;
                    now = {j, now.best};
                } else if (value < second) {
                    second = value;
                    now.second = j;
                }
            });
        last = now;
        return {bid_of(price_[now.best], best, second, eps), now.best};
    }

    /// Bidding rounds until no more than `enough` bidders are unassigned, or for too long.
    void auction(std::vector<int32_t>& unassigned, float eps, int64_t enough) {
        std::vector<Bid> bids(unassigned.size());
        std::vector<float> highest(n_, -1.0f);
        std::vector<int32_t> bidder(n_), contested, next;
        int64_t made = 0;
        for (int round = 0; round < kMaxRounds && made < kMaxBids * n_; ++round) {
            if (static_cast<int64_t>(unassigned.size()) <= enough) break;
            ++effort_.auction_rounds;
            made += static_cast<int64_t>(unassigned.size());
            parallel_for(static_cast<int64_t>(unassigned.size()), 64, [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) bids[k] = bid(unassigned[k], eps);
            });
            contested.clear();
            next.clear();
            for (size_t k = 0; k < unassigned.size(); ++k) {  // ascending: ties go to the lowest bidder
                const auto [amount, j] = bids[k];
                if (highest[j] < 0.0f) contested.push_back(j);
                if (amount > highest[j]) {
                    if (highest[j] >= 0.0f) next.push_back(bidder[j]);
                    highest[j] = amount;
                    bidder[j] = unassigned[k];
                } else {
                    next.push_back(unassigned[k]);
                }
            }
            for (const int32_t j : contested) {
                if (owner_[j] >= 0) {
                    partner_[owner_[j]] = -1;
                    next.push_back(owner_[j]);
                }
                owner_[j] = bidder[j];
                partner_[bidder[j]] = j;
                price_[j] = highest[j];
                highest[j] = -1.0f;
            }
            for (const int32_t j : contested) update_min_price(j / kBlock);
            std::sort(next.begin(), next.end());
            unassigned.swap(next);
        }
        effort_.bids += made;
    }

    /// One search forest from all unassigned bidders; one augmenting path in every tree that reached a free object.
    void augment(std::vector<int32_t>& unassigned, float eps) {
        ++effort_.searches;
        const float unit = eps * kUnit;
        level_.assign(n_, kUnreached);
        parent_.assign(n_, -1);
        limit_.assign(blocks_ * kBlock, -kInfinity);
        root_.assign(n_, -1);
        free_object_.assign(n_, -1);
        settled_.clear();
        frontier_.clear();
        for (const int32_t i : unassigned) root_[i] = i;
        extend_horizon(kHorizon, unassigned, unit);
        const int32_t top = grow_forest(unassigned, unit);
        for (const int32_t j : settled_) {
            const float raise = static_cast<float>(top - level_[j]) * unit;
            price_[j] += raise;
            if (owner_[j] >= 0) profit_[owner_[j]] += raise;
        }
        update_min_prices();
        for (const int32_t i : unassigned) profit_[i] += static_cast<float>(top) * unit;
        std::vector<int32_t> next;
        for (const int32_t root : unassigned) {
            int32_t j = free_object_[root];
            if (j < 0) {
                next.push_back(root);
                continue;
            }
            while (j >= 0) {
                const int32_t i = parent_[j], before = partner_[i];
                partner_[i] = j;
                owner_[j] = i;
                j = before;
            }
        }
        unassigned.swap(next);
    }

    /// When all bidders are assigned: see refine.h. Ends when the gap is proven to be small enough, or after
    /// kMaxPriceUpdates steps.
    void refine(Schedule& schedule) {
        Refinement refine(Matching{price_, profit_, partner_, owner_}, schedule.eps, *this);
        refine.find_profits();
        for (int round = 0; round < kMaxSwapRounds && refine.swap_partners(); ++round) continue;
        const double cost = per_point(matched_cost());
        for (int step = 0; step < kMaxPriceUpdates && !schedule.proves(cost, dual_bound()); ++step) {
            ++effort_.price_updates;
            refine.update_prices();
            update_min_prices();
            refine.find_profits();
        }
    }

    /// Paths up to this length are recorded from now on; the whole forest is relaxed again.
    void extend_horizon(int32_t horizon, const std::vector<int32_t>& unassigned, float unit) {
        horizon_ = horizon;
        for (int64_t j = 0; j < n_; ++j)
            if (parent_[j] < 0) limit_[j] = static_cast<float>(horizon) * unit - price_[j];
        for (int64_t block = 0; block < blocks_; ++block) update_max_limit(block);
        for (const int32_t i : unassigned) relax(i, 0, unit);
        for (const int32_t j : settled_)
            if (owner_[j] >= 0) relax(owner_[j], level_[j], unit);
    }

    /// Dijkstra: settles objects by level, stride by stride; returns the level up to which all are settled.
    int32_t grow_forest(const std::vector<int32_t>& unassigned, float unit) {
        const size_t enough = enough_free_objects(unassigned.size());
        size_t free = 0;
        for (int32_t top = kStride;;) {
            while (!frontier_.empty() && frontier_.front().level <= top) {
                std::pop_heap(frontier_.begin(), frontier_.end());
                const auto [level, j] = frontier_.back();
                frontier_.pop_back();
                if (limit_[j] == -kInfinity) continue;  // already settled, by a shorter path
                settled_.push_back(j);
                limit_[j] = -kInfinity;
                update_max_limit(j / kBlock);
                const int32_t root = root_[parent_[j]], i = owner_[j];
                if (i >= 0) {
                    root_[i] = root;
                    relax(i, level, unit);
                } else {
                    ++free;
                    int32_t& found = free_object_[root];
                    if (found < 0 || level < level_[found] || (level == level_[found] && j < found)) found = j;
                }
            }
            if (free >= enough) return top;
            int32_t next = after_next_stride();
            for (; next > horizon_; next = after_next_stride())
                extend_horizon(std::min(2 * horizon_, kMaxLevel), unassigned, unit);
            if (frontier_.empty())
                return free > 0 ? top : kMaxLevel;  // prices rise, so that the next search reaches farther
            top = next;
        }
    }

    /// The last level of the stride that begins with the lowest level not yet settled.
    int32_t after_next_stride() {
        while (!frontier_.empty() && limit_[frontier_.front().object] == -kInfinity) {
            std::pop_heap(frontier_.begin(), frontier_.end());
            frontier_.pop_back();
        }
        return frontier_.empty() ? kMaxLevel : std::min(frontier_.front().level + kStride - 1, kMaxLevel);
    }

    /// Relaxes the edges from bidder i to all objects not yet settled.
    void relax(int32_t i, int32_t level, float unit) {
        ++effort_.search_scans;
        const float x = a_.x[i], y = a_.y[i], z = a_.z[i], profit = profit_[i], inverse_unit = 1.0f / unit;
        const float base = (profit - static_cast<float>(level) * unit) + kFilterMargin;
        select_blocks(i, base, 1.0f, max_limit_, 0, blocks_, selected_.data());
        for (int64_t block = 0; block < blocks_; ++block) {
            if (selected_[block] == 0) continue;
            const int64_t first = block * kBlock;
            const float *bx = &b_.x[first], *by = &b_.y[first], *bz = &b_.z[first], *limit = &limit_[first];
            int32_t passes[kBlock];
            int32_t any = 0;
            for (int j = 0; j < kBlock; ++j) {
                const float sq = distance_sq(x - bx[j], y - by[j], z - bz[j]);
                passes[j] = may_cost<squared>(sq, base + limit[j]) ? -1 : 0;
                any |= passes[j];
            }
            if (any == 0) continue;
            for (int64_t at = first; at < first + kBlock; ++at) {
                if (passes[at - first] == 0) continue;
                const auto j = static_cast<int32_t>(at);
                const int32_t reached = level + edge_length(cost(i, j), price_[j], profit, inverse_unit);
                if (reached > horizon_ || reached > level_[j]) continue;
                if (reached == level_[j] && rank(i, j) > rank(parent_[j], j)) continue;
                parent_[j] = i;
                if (reached == level_[j]) continue;
                level_[j] = reached;
                limit_[j] = static_cast<float>(reached) * unit - price_[j];
                frontier_.push_back({reached, j});
                std::push_heap(frontier_.begin(), frontier_.end());
            }
            update_max_limit(block);
        }
    }

    void update_max_limit(int64_t block) {
        const float* limit = &limit_[block * kBlock];
        float most = limit[0];
        for (int k = 1; k < kBlock; ++k) most = std::max(most, limit[k]);
        max_limit_[block] = most;
    }

    const int64_t n_, blocks_;
    const std::vector<int32_t> row_of_a_, row_of_b_;  // rows of the sorted points
    const Points a_, b_;
    std::vector<float> center_x_, center_y_, center_z_, half_x_, half_y_, half_z_;  // boxes of the blocks
    std::vector<float> min_price_, max_limit_;                                      // of a block's objects
    std::vector<int32_t> selected_;
    int32_t horizon_ = 0;
    std::vector<float> price_, profit_, limit_;
    std::vector<int32_t> partner_, owner_, level_, parent_, root_, free_object_, settled_;
    std::vector<FrontierEntry> frontier_;
    std::vector<BestTwo> last_best_;
    const float factor_;
    Effort effort_;
};

template <bool squared>
Solution solve_as(const Problem& problem, int32_t* partner, float* price) {
    const Extent box = extent_of(problem);
    const int shift = scale_shift(box);
    Solver<squared> solver(problem, box, shift);
    const Solution solution = solver.run(problem, shift);
    solver.store(partner, price);
    return solution;
}

}  // namespace

Solution solve(const Problem& problem, int32_t* partner, float* price) {
    return problem.squared ? solve_as<true>(problem, partner, price) : solve_as<false>(problem, partner, price);
}

}  // namespace stipple::ops::assignment
