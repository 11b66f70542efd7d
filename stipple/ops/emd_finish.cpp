#include "stipple/ops/emd_finish.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "stipple/core/parallel.h"
#include "stipple/ops/emd_auction.h"

namespace stipple::ops::assignment {
namespace {

constexpr float kReach = 3.0f;  // eps: what lists hold at first
constexpr int64_t kGrain = 64;

}  // namespace

Finish::Finish(const Matching& matching, float eps, Gather gather)
    : matching_(matching),
      eps_(eps),
      gather_(std::move(gather)),
      octave_(multiply_rounded(eps, kFirstOctave)),
      near_(matching.partner.size()),
      bound_(matching.partner.size(), -std::numeric_limits<float>::infinity()) {}

float Finish::least_value(const std::vector<Near>& near) const {
    float least = std::numeric_limits<float>::infinity();
    for (const Near& one : near) least = std::min(least, add_rounded(one.cost, matching_.price[one.object]));
    return least;
}

void Finish::spread() {
    const float inverse = 1.0f / octave_;
    const float window = std::max(kOctaves * octave_, kExchangeWindow * eps_) + kFilterMargin;
    parallel_for(static_cast<int64_t>(near_.size()), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::vector<Near>& near = near_[i];
            float least = least_value(near);
            if (!(least + window <= bound_[i] - dropped_)) {
                bound_[i] = gather_(static_cast<int32_t>(i), std::max(window, kReach * eps_), near) + dropped_;
                least = least_value(near);
            }
            matching_.profit[i] = least;
            uint32_t sum = 0;
            for (Near& one : near) {
                one.share = weight_of(add_rounded(add_rounded(one.cost, matching_.price[one.object]), -least), inverse);
                sum += one.share;
            }
            const uint32_t whole = inverse_of_weights(sum);
            for (Near& one : near) one.share = share_of(one.share, whole);
        }
    });
}

void Finish::move_prices() {
    const size_t n = near_.size();
    std::vector<uint64_t> got(n, 0);
    for (const std::vector<Near>& near : near_)
        for (const Near& one : near) got[one.object] += one.share;
    for (size_t j = 0; j < n; ++j) matching_.price[j] = moved_price(matching_.price[j], got[j], octave_);
    dropped_ += most_drop(octave_) + kFilterMargin;
    octave_ = multiply_rounded(octave_, kOctaveFall);
}

/// With whom the point gains most by an exchange of partners, of equal ones the lowest; -1: with nobody.
int32_t Finish::best_exchange(int32_t i) const {
    const auto& [price, profit, partner, owner] = matching_;
    const auto cost_in = [](const std::vector<Near>& near, int32_t object) {
        for (const Near& one : near)
            if (one.object == object) return one.cost;
        return std::numeric_limits<float>::infinity();
    };
    const auto window = [&](int32_t point) { return add_rounded(profit[point], kExchangeWindow * eps_); };
    const int32_t mine = partner[i];
    const float cost = cost_in(near_[i], mine);
    if (!(add_rounded(cost, price[mine]) <= window(i))) return -1;
    float most = multiply_rounded(eps_, kUnit);
    int32_t best = -1;
    for (const Near& one : near_[i]) {
        const int32_t k = owner[one.object];
        if (k == i || !(add_rounded(one.cost, price[one.object]) <= window(i))) continue;
        const float theirs = cost_in(near_[k], one.object), theirs_then = cost_in(near_[k], mine);
        if (!(add_rounded(theirs, price[one.object]) <= window(k))) continue;
        if (!(add_rounded(theirs_then, price[mine]) <= window(k))) continue;
        const float gain = gain_of(cost, theirs, one.cost, theirs_then);
        if (gain > most || (gain == most && best >= 0 && k < best)) {
            most = gain;
            best = k;
        }
    }
    return best;
}

bool Finish::exchange() {
    const auto n = static_cast<int64_t>(near_.size());
    std::vector<int32_t> wish(n);
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) wish[i] = best_exchange(static_cast<int32_t>(i));
    });
    bool any = false;
    for (int64_t i = 0; i < n; ++i) {
        const int32_t k = wish[i];
        if (k < i || wish[k] != i) continue;
        std::swap(matching_.partner[i], matching_.partner[k]);
        matching_.owner[matching_.partner[i]] = static_cast<int32_t>(i);
        matching_.owner[matching_.partner[k]] = k;
        any = true;
    }
    return any;
}

}  // namespace stipple::ops::assignment
