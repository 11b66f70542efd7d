#pragma once
// Which pairs of many scans are worth a registration. Internal to register_scans().

#include <span>
#include <vector>

#include "stipple/geometry/global_registration.h"
#include "stipple/tasks/register.h"

namespace stipple::tasks {

/// Two scans by their places, and where the later one lies on the earlier one, if that is known.
struct ChosenPair {
    int32_t source = 0, target = 0;  // source > target
    std::optional<geometry::RigidTransform> start;
    double promise = 0;  // what the choice was by
};

class PairChooser {
public:
    /// Compares every two scans by a short search (geometry/search_promise.h), or for RegisterMethod::icp, which does
    /// not search, by what is near the other where both lie. `scans` must outlive the chooser. Deterministic for any
    /// number of threads.
    PairChooser(std::span<const geometry::SearchScan> scans, RegisterMethod method);

    /// The `most` most promising pairs of each scan for which `wanted`, with scans of another part, without those that
    /// were chosen before.
    std::vector<ChosenPair> best_of(const std::vector<uint8_t>& wanted, const std::vector<int32_t>& part, int most);

    /// Pairs of placed scans that were not chosen before and of which a share of `least` would overlap: the `most` of
    /// each scan that overlap most, with the start that the poses give.
    std::vector<ChosenPair> predicted(const std::vector<geometry::RigidTransform>& poses,
                                      const std::vector<uint8_t>& is_placed, double least, int most);

private:
    std::vector<ChosenPair> take_best(const std::vector<ChosenPair>& sorted, const std::vector<uint8_t>& wanted,
                                      const std::vector<int32_t>& part, int most);
    size_t place_of(const ChosenPair& pair) const {
        return static_cast<size_t>(pair.source) * static_cast<size_t>(pair.source - 1) / 2 +
               static_cast<size_t>(pair.target);
    }

    std::span<const geometry::SearchScan> scans_;
    std::vector<ChosenPair> promising_;  // all pairs, the best first
    std::vector<uint8_t> is_chosen_;     // by place_of()
};

}  // namespace stipple::tasks
