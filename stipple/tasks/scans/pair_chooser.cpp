#include "stipple/tasks/scans/pair_chooser.h"

#include <algorithm>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"
#include "stipple/geometry/search_promise.h"

namespace stipple::tasks {
namespace {

using geometry::RigidTransform;
using geometry::SearchScan;

/// The share of the smaller scan that lies near the other.
double share_around(const SearchScan& source, const SearchScan& target, const RigidTransform& pose) {
    const bool is_smaller = source.matched.size() <= target.matched.size();
    const geometry::PoseSupport support =
        is_smaller ? geometry::support_of(source.matched, target.matched, pose)
                   : geometry::support_of(target.matched, source.matched, geometry::inverse(pose));
    return support.points > 0 ? static_cast<double>(support.around) / static_cast<double>(support.points) : 0;
}

std::vector<ChosenPair> all_pairs(size_t scans) {
    std::vector<ChosenPair> pairs;
    for (size_t i = 1; i < scans; ++i)
        for (size_t j = 0; j < i; ++j) pairs.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j), {}, 0});
    return pairs;
}

void sort_by_promise(std::vector<ChosenPair>& pairs) {
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const ChosenPair& a, const ChosenPair& b) { return a.promise > b.promise; });
}

}  // namespace

PairChooser::PairChooser(std::span<const SearchScan> scans, RegisterMethod method)
    : scans_(scans), promising_(all_pairs(scans.size())), is_chosen_(promising_.size(), 0) {
    parallel_for(static_cast<int64_t>(promising_.size()), 4, [&](int64_t begin, int64_t end) {
        check_interrupted();
        for (int64_t i = begin; i < end; ++i) {
            ChosenPair& pair = promising_[i];
            const SearchScan &source = scans_[pair.source], &target = scans_[pair.target];
            pair.promise = method == RegisterMethod::icp
                               ? share_around(source, target, {})
                               : static_cast<double>(geometry::search_promise(source, target).inliers);
        }
    });
    sort_by_promise(promising_);
}

std::vector<ChosenPair> PairChooser::best_of(const std::vector<uint8_t>& wanted, const std::vector<int32_t>& part,
                                             int most) {
    return take_best(promising_, wanted, part, most);
}

std::vector<ChosenPair> PairChooser::predicted(const std::vector<RigidTransform>& poses,
                                               const std::vector<uint8_t>& is_placed, double least, int most) {
    std::vector<ChosenPair> pairs = all_pairs(scans_.size());
    std::erase_if(pairs, [&](const ChosenPair& pair) {
        return is_chosen_[place_of(pair)] || !is_placed[pair.source] || !is_placed[pair.target];
    });
    parallel_for(static_cast<int64_t>(pairs.size()), 8, [&](int64_t begin, int64_t end) {
        check_interrupted();
        for (int64_t i = begin; i < end; ++i) {
            ChosenPair& pair = pairs[i];
            pair.start = geometry::inverse(poses[pair.target]) * poses[pair.source];
            pair.promise = share_around(scans_[pair.source], scans_[pair.target], *pair.start);
        }
    });
    std::erase_if(pairs, [&](const ChosenPair& pair) { return pair.promise < least; });
    sort_by_promise(pairs);
    return take_best(pairs, is_placed, {}, most);
}

std::vector<ChosenPair> PairChooser::take_best(const std::vector<ChosenPair>& sorted,
                                               const std::vector<uint8_t>& wanted, const std::vector<int32_t>& part,
                                               int most) {
    std::vector<int> taken(scans_.size(), 0);
    std::vector<ChosenPair> chosen;
    for (const ChosenPair& pair : sorted) {
        uint8_t& is_chosen = is_chosen_[place_of(pair)];
        if (is_chosen || pair.promise <= 0) continue;
        if (!part.empty() && part[pair.source] == part[pair.target]) continue;
        const auto asks = [&](int32_t scan) { return wanted[scan] && taken[scan] < most; };
        if (!asks(pair.source) && !asks(pair.target)) continue;
        ++taken[pair.source];
        ++taken[pair.target];
        is_chosen = 1;
        chosen.push_back(pair);
    }
    return chosen;
}

}  // namespace stipple::tasks
