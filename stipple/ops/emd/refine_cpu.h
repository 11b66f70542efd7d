#pragma once
// Refinement on the CPU: see refine.h. CUDA twin: refine.cuh.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "stipple/core/parallel.h"
#include "stipple/ops/emd/auction.h"
#include "stipple/ops/emd/refine.h"

namespace stipple::ops::assignment {

/// An assignment of n bidders to n objects: partner and owner are inverse to each other; price has n values or more.
struct Matching {
    std::vector<float>&price, &profit;
    std::vector<int32_t>&partner, &owner;
};

/// Geometry has cost(bidder, object), and scan(bidder, limit, hit), which calls hit(object) for all objects with cost +
/// price <= limit, and possibly others. O(n) memory; a pass takes O(n) where candidate lists are short, O(n^2) at
/// worst.
template <class Geometry>
class Refinement {
public:
    Refinement(const Matching& matching, float eps, const Geometry& geometry)
        : matching_(matching),
          eps_(eps),
          geometry_(geometry),
          temperature_(multiply_rounded(eps, kFirstTemperature)),
          candidates_(matching.partner.size()),
          bound_(matching.partner.size(), -kInfinite),
          crowded_(matching.partner.size(), 0),
          slack_(matching.partner.size()) {}

    /// Recomputes the profits at the present prices.
    void find_profits() {
        const float window = std::max(kCutoff * temperature_, kSwapWindow * eps_) + kFilterMargin;
        for_bidders([&](int32_t i) {
            float least = kInfinite;
            for (const Candidate& one : candidates_[i]) least = std::min(least, value(one));
            if (!(least + window <= bound_[i] - price_drop_))
                least = build_candidates(i, std::max(window, kListWindow * eps_));
            matching_.profit[i] = least;
        });
    }

    /// After find_profits: a soft assignment, and a step of the prices towards it.
    void update_prices() {
        const float inverse = 1.0f / temperature_;
        std::vector<uint64_t> mass(candidates_.size(), 0);
        for_bidders([&](int32_t i) { soft_assign(i, inverse, mass); });
        for (const std::vector<Candidate>& list : candidates_)
            for (const Candidate& one : list) mass[one.object] += one.share;
        for (size_t j = 0; j < candidates_.size(); ++j)
            matching_.price[j] = updated_price(matching_.price[j], mass[j], temperature_);
        price_drop_ += max_drop(temperature_) + kFilterMargin;
        temperature_ = multiply_rounded(temperature_, kCooling);
    }

    /// After find_profits: one round of swaps; whether there was any.
    bool swap_partners() {
        for_bidders([&](int32_t i) { slack_[i] = value(own_candidate(i)) - matching_.profit[i]; });
        most_slack_ = *std::max_element(slack_.begin(), slack_.end());
        std::vector<int32_t> swap(candidates_.size());
        for_bidders([&](int32_t i) { swap[i] = best_swap(i); });
        bool any = false;
        for (int32_t i = 0; i < static_cast<int32_t>(swap.size()); ++i) {
            const int32_t k = swap[i];
            if (k < i || swap[k] != i) continue;
            std::swap(matching_.partner[i], matching_.partner[k]);
            matching_.owner[matching_.partner[i]] = i;
            matching_.owner[matching_.partner[k]] = k;
            any = true;
        }
        return any;
    }

private:
    static constexpr float kInfinite = std::numeric_limits<float>::infinity();
    static constexpr float kListWindow = 3.0f;  // eps: how far beyond the best a new candidate list reaches
    static constexpr size_t kMaxListed = 512;   // candidates of a bidder; where there are more, it has no list

    struct Candidate {
        int32_t object;
        float cost;
        uint32_t share;
    };

    template <class Do>
    void for_bidders(const Do& body) const {
        parallel_for(static_cast<int64_t>(candidates_.size()), 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) body(static_cast<int32_t>(i));
        });
    }
    float value(const Candidate& candidate) const {
        return add_rounded(candidate.cost, matching_.price[candidate.object]);
    }
    Candidate candidate(int32_t i, int64_t j) const {
        const auto object = static_cast<int32_t>(j);
        return {object, geometry_.cost(i, object), 0};
    }
    Candidate own_candidate(int32_t i) const { return candidate(i, matching_.partner[i]); }

    /// Calls to(candidate) for all objects within limit, and possibly others.
    template <class To>
    void visit(int32_t i, float limit, const To& to) const {
        if (limit <= bound_[i] - price_drop_)
            for (const Candidate& one : candidates_[i]) to(one);
        else
            geometry_.scan(i, limit + kFilterMargin, [&](int64_t j) { to(candidate(i, j)); });
    }

    /// Builds the candidate list of a bidder, if it is not too long; returns the least value (the profit).
    float build_candidates(int32_t i, float reach) {
        float least = value(own_candidate(i));
        const float limit = least + (crowded_[i] ? 0.0f : reach);
        std::vector<Candidate>& listed = candidates_[i];
        listed.clear();
        geometry_.scan(i, limit + kFilterMargin, [&](int64_t j) {
            const Candidate one = candidate(i, j);
            least = std::min(least, value(one));
            if (!crowded_[i]) listed.push_back(one);
            if (listed.size() > kMaxListed) crowded_[i] = 1;
        });
        if (crowded_[i]) std::vector<Candidate>().swap(listed);  // frees the memory
        bound_[i] = crowded_[i] ? -kInfinite : limit + price_drop_;
        return least;
    }

    /// Splits a bidder's mass among its candidates. Shares stay in its list, or go to the objects at once.
    void soft_assign(int32_t i, float inverse_temperature, std::vector<uint64_t>& mass) {
        const float profit = matching_.profit[i], limit = profit + kCutoff * temperature_ + kFilterMargin;
        const auto weight = [&](const Candidate& one) {
            return weight_of(add_rounded(value(one), -profit), inverse_temperature);
        };
        uint32_t sum = 0;
        visit(i, limit, [&](const Candidate& one) { sum += weight(one); });
        const uint32_t inverse = inverse_of_weights(sum);
        for (Candidate& one : candidates_[i]) one.share = share_of(weight(one), inverse);
        if (!candidates_[i].empty()) return;
        visit(i, limit, [&](const Candidate& one) {
            const uint32_t share = share_of(weight(one), inverse);
            if (share > 0) std::atomic_ref(mass[one.object]).fetch_add(share, std::memory_order_relaxed);
        });
    }

    /// The bidder to swap with for the greatest gain, of equal ones the lowest; -1: none.
    int32_t best_swap(int32_t i) const {
        const std::vector<float>& profit = matching_.profit;
        const auto limit_of = [&](int32_t bidder) { return add_rounded(profit[bidder], kSwapWindow * eps_); };
        const Candidate mine = own_candidate(i);
        const float limit = limit_of(i);
        if (!(value(mine) <= limit)) return -1;
        float most = multiply_rounded(eps_, kUnit);
        int32_t best = -1;
        const float useful = profit[i] + slack_[i] + most_slack_ - most + kFilterMargin;  // beyond this no swap gains
        visit(i, std::min(limit, useful), [&](const Candidate& one) {
            const int32_t k = matching_.owner[one.object];
            const float now = value(one);
            if (k == i || !(now <= limit)) return;
            if (slack_[i] + slack_[k] - (now - profit[i]) + kFilterMargin < most) return;  // an upper bound of the gain
            const Candidate theirs = own_candidate(k), theirs_then = candidate(k, mine.object);
            const float their_limit = limit_of(k);
            if (!(value(theirs) <= their_limit) || !(value(theirs_then) <= their_limit)) return;
            const float gain = swap_gain(mine.cost, theirs.cost, one.cost, theirs_then.cost);
            if (gain > most || (gain == most && best >= 0 && k < best)) {
                most = gain;
                best = k;
            }
        });
        return best;
    }

    const Matching matching_;
    const float eps_;
    const Geometry& geometry_;
    float temperature_;
    float price_drop_ = 0.0f;  // by how much prices may have fallen since the lists were built
    std::vector<std::vector<Candidate>> candidates_;
    std::vector<float> bound_;   // what a list covers, at price_drop_ = 0; -infinity: there is no list
    std::vector<char> crowded_;  // too many candidates for a list
    std::vector<float> slack_;   // cost + price of a bidder's object, above its profit
    float most_slack_ = 0.0f;
};

}  // namespace stipple::ops::assignment
