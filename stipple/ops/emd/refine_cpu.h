#pragma once
// The end of emd on the CPU: see emd/refine.h.

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

/// Of n points and objects: partner and owner are each other's inverse; price has n values or more.
struct Matching {
    std::vector<float>&price, &profit;
    std::vector<int32_t>&partner, &owner;
};

/// Geometry knows cost(point, object), and scan(point, limit, hit) calls hit(object) for all objects of which cost +
/// price is at most limit, and some others. O(n) memory; a pass takes O(n) where few objects are near a point, O(n^2)
/// at worst.
template <class Geometry>
class Finish {
public:
    Finish(const Matching& matching, float eps, const Geometry& geometry)
        : matching_(matching),
          eps_(eps),
          geometry_(geometry),
          octave_(multiply_rounded(eps, kFirstOctave)),
          near_(matching.partner.size()),
          bound_(matching.partner.size(), -kFar),
          crowded_(matching.partner.size(), 0),
          slack_(matching.partner.size()) {}

    /// At the present prices.
    void find_profits() {
        const float window = std::max(kOctaves * octave_, kExchangeWindow * eps_) + kFilterMargin;
        for_points([&](int32_t i) {
            float least = kFar;
            for (const Near& one : near_[i]) least = std::min(least, value(one));
            if (!(least + window <= bound_[i] - dropped_)) least = list(i, std::max(window, kReach * eps_));
            matching_.profit[i] = least;
        });
    }

    /// After find_profits: divides the points, and moves prices to where that leads.
    void move_prices() {
        const float inverse = 1.0f / octave_;
        std::vector<uint64_t> got(near_.size(), 0);
        for_points([&](int32_t i) { divide(i, inverse, got); });
        for (const std::vector<Near>& near : near_)
            for (const Near& one : near) got[one.object] += one.share;
        for (size_t j = 0; j < near_.size(); ++j) matching_.price[j] = moved_price(matching_.price[j], got[j], octave_);
        dropped_ += most_drop(octave_) + kFilterMargin;
        octave_ = multiply_rounded(octave_, kOctaveFall);
    }

    /// After find_profits, a round; whether anybody has exchanged his partner.
    bool exchange() {
        for_points([&](int32_t i) { slack_[i] = value(own(i)) - matching_.profit[i]; });
        most_slack_ = *std::max_element(slack_.begin(), slack_.end());
        std::vector<int32_t> wish(near_.size());
        for_points([&](int32_t i) { wish[i] = best_exchange(i); });
        bool any = false;
        for (int32_t i = 0; i < static_cast<int32_t>(wish.size()); ++i) {
            const int32_t k = wish[i];
            if (k < i || wish[k] != i) continue;
            std::swap(matching_.partner[i], matching_.partner[k]);
            matching_.owner[matching_.partner[i]] = i;
            matching_.owner[matching_.partner[k]] = k;
            any = true;
        }
        return any;
    }

private:
    static constexpr float kFar = std::numeric_limits<float>::infinity();
    static constexpr float kReach = 3.0f;       // eps: what lists hold at first
    static constexpr size_t kMostListed = 512;  // objects near a point; where there are more, there is no list

    struct Near {
        int32_t object;
        float cost;
        uint32_t share;
    };

    template <class Do>
    void for_points(const Do& what) const {
        parallel_for(static_cast<int64_t>(near_.size()), 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) what(static_cast<int32_t>(i));
        });
    }
    float value(const Near& near) const { return add_rounded(near.cost, matching_.price[near.object]); }
    Near near(int32_t i, int64_t j) const {
        const auto object = static_cast<int32_t>(j);
        return {object, geometry_.cost(i, object), 0};
    }
    Near own(int32_t i) const { return near(i, matching_.partner[i]); }

    /// Calls to(near) for all objects within limit, and some others.
    template <class To>
    void visit(int32_t i, float limit, const To& to) const {
        if (limit <= bound_[i] - dropped_)
            for (const Near& one : near_[i]) to(one);
        else
            geometry_.scan(i, limit + kFilterMargin, [&](int64_t j) { to(near(i, j)); });
    }

    /// Lists what is near a point, if that is not too much; returns the least value.
    float list(int32_t i, float reach) {
        float least = value(own(i));
        const float limit = least + (crowded_[i] ? 0.0f : reach);
        std::vector<Near>& listed = near_[i];
        listed.clear();
        geometry_.scan(i, limit + kFilterMargin, [&](int64_t j) {
            const Near one = near(i, j);
            least = std::min(least, value(one));
            if (!crowded_[i]) listed.push_back(one);
            if (listed.size() > kMostListed) crowded_[i] = 1;
        });
        if (crowded_[i]) std::vector<Near>().swap(listed);  // its memory, too
        bound_[i] = crowded_[i] ? -kFar : limit + dropped_;
        return least;
    }

    /// Among the objects near it. Shares stay with a point's list, or are given to the objects at once.
    void divide(int32_t i, float inverse_octave, std::vector<uint64_t>& got) {
        const float profit = matching_.profit[i], limit = profit + kOctaves * octave_ + kFilterMargin;
        const auto weight = [&](const Near& one) {
            return weight_of(add_rounded(value(one), -profit), inverse_octave);
        };
        uint32_t sum = 0;
        visit(i, limit, [&](const Near& one) { sum += weight(one); });
        const uint32_t whole = inverse_of_weights(sum);
        for (Near& one : near_[i]) one.share = share_of(weight(one), whole);
        if (!near_[i].empty()) return;
        visit(i, limit, [&](const Near& one) {
            const uint32_t share = share_of(weight(one), whole);
            if (share > 0) std::atomic_ref(got[one.object]).fetch_add(share, std::memory_order_relaxed);
        });
    }

    /// With whom the point gains most by an exchange of partners, of equal ones the lowest; -1: with nobody.
    int32_t best_exchange(int32_t i) const {
        const auto& [price, profit, partner, owner] = matching_;
        const auto limit_of = [&](int32_t point) { return add_rounded(profit[point], kExchangeWindow * eps_); };
        const Near mine = own(i);
        const float limit = limit_of(i);
        if (!(value(mine) <= limit)) return -1;
        float most = multiply_rounded(eps_, kUnit);
        int32_t best = -1;
        const float useful = profit[i] + slack_[i] + most_slack_ - most + kFilterMargin;  // beyond, nobody gains
        visit(i, std::min(limit, useful), [&](const Near& one) {
            const int32_t k = owner[one.object];
            const float now = value(one);
            if (k == i || !(now <= limit)) return;
            if (slack_[i] + slack_[k] - (now - profit[i]) + kFilterMargin < most) return;  // it cannot gain more
            const Near theirs = own(k), theirs_then = near(k, mine.object);
            const float their_limit = limit_of(k);
            if (!(value(theirs) <= their_limit) || !(value(theirs_then) <= their_limit)) return;
            const float gain = gain_of(mine.cost, theirs.cost, one.cost, theirs_then.cost);
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
    float octave_;
    float dropped_ = 0.0f;  // prices, at most, since the lists were made
    std::vector<std::vector<Near>> near_;
    std::vector<float> bound_;   // of what a list holds, at dropped_ = 0; below all values: there is none
    std::vector<char> crowded_;  // too much is near
    std::vector<float> slack_;   // how much more than the best a point's partner is worth, in an exchange
    float most_slack_ = 0.0f;
};

}  // namespace stipple::ops::assignment
