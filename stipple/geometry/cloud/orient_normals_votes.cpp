#include "stipple/geometry/cloud/orient_normals_votes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

/// Union-find in which a node knows its sign relative to its root.
class SignedForest {
public:
    explicit SignedForest(int32_t nodes) : parent_(nodes), differs_(nodes, 0) {
        std::iota(parent_.begin(), parent_.end(), 0);
    }

    struct Root {
        int32_t node;
        uint8_t differs;  // 1 where the sign is the opposite of the root's
    };

    Root find(int32_t node) {
        Root root{node, 0};
        while (parent_[root.node] != root.node) {
            root.differs ^= differs_[root.node];
            root.node = parent_[root.node];
        }
        for (uint8_t differs = root.differs; parent_[node] != node;) {
            const int32_t next = parent_[node];
            const uint8_t here = differs_[node];
            parent_[node] = root.node;
            differs_[node] = differs;
            differs ^= here;
            node = next;
        }
        return root;
    }

    void join(int32_t a, int32_t b, bool differ) {
        const Root at = find(a), bt = find(b);
        if (at.node == bt.node) return;
        parent_[bt.node] = at.node;
        differs_[bt.node] = at.differs ^ bt.differs ^ static_cast<uint8_t>(differ);
    }

private:
    std::vector<int32_t> parent_;
    std::vector<uint8_t> differs_;
};

/// Adds up the votes of equal pairs; the result is sorted by pair.
void add_up(int32_t nodes, std::vector<Vote>& votes) {
    std::vector<int64_t> begin(static_cast<size_t>(nodes) + 1, 0);
    for (const Vote& vote : votes) ++begin[vote.a + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<Vote> sorted(votes.size());
    std::vector<int64_t> at(begin.begin(), begin.end() - 1), left(nodes);
    for (const Vote& vote : votes) sorted[at[vote.a]++] = vote;
    parallel_for(nodes, 1024, [&](int64_t first, int64_t last) {
        for (int64_t node = first; node < last; ++node) {
            const auto from = sorted.begin() + begin[node], to = sorted.begin() + begin[node + 1];
            // By weight too: the order of a sum is then that of its terms, not of the input.
            std::sort(from, to,
                      [](const Vote& x, const Vote& y) { return x.b != y.b ? x.b < y.b : x.weight < y.weight; });
            auto out = from;
            for (auto it = from; it != to; ++out) {
                Vote vote = *it;
                double sum = 0;
                for (; it != to && it->b == vote.b; ++it) sum += it->weight;
                vote.weight = static_cast<float>(sum);
                *out = vote;
            }
            left[node] = out - from;
        }
    });
    votes.clear();
    for (int32_t node = 0; node < nodes; ++node)
        votes.insert(votes.end(), sorted.begin() + begin[node], sorted.begin() + begin[node] + left[node]);
}

/// For each node the vote with the largest weight, the first of equal ones; -1 without votes.
std::vector<int64_t> strongest(int32_t nodes, const std::vector<Vote>& votes) {
    std::vector<int64_t> best(nodes, -1);
    const auto offer = [&](int32_t node, int64_t vote) {
        if (best[node] < 0 || std::fabs(votes[vote].weight) > std::fabs(votes[best[node]].weight)) best[node] = vote;
    };
    for (size_t i = 0; i < votes.size(); ++i) {
        offer(votes[i].a, static_cast<int64_t>(i));
        offer(votes[i].b, static_cast<int64_t>(i));
    }
    return best;
}

/// Nodes turn as the sum of their neighbours' votes asks, in order, until none wants to or for some rounds: a turn
/// never lowers the weight that is kept, so that it ends.
void refine(const std::vector<Vote>& votes, std::vector<int8_t>& sign) {
    constexpr int kRounds = 20;
    struct Neighbour {
        int32_t node;
        float weight;
    };
    std::vector<int64_t> begin(sign.size() + 1, 0);
    for (const Vote& vote : votes) {
        ++begin[vote.a + 1];
        ++begin[vote.b + 1];
    }
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<Neighbour> neighbours(2 * votes.size());
    std::vector<int64_t> at(begin.begin(), begin.end() - 1);
    for (const Vote& vote : votes) {
        neighbours[at[vote.a]++] = {vote.b, vote.weight};
        neighbours[at[vote.b]++] = {vote.a, vote.weight};
    }
    std::vector<uint8_t> asked(sign.size(), 1);  // something near has turned since
    for (int round = 0; round < kRounds; ++round) {
        bool turned = false;
        for (size_t node = 0; node < sign.size(); ++node) {
            if (!asked[node]) continue;
            asked[node] = 0;
            double sum = 0;
            for (int64_t i = begin[node]; i < begin[node + 1]; ++i)
                sum += static_cast<double>(neighbours[i].weight) * sign[neighbours[i].node];
            if (sum * sign[node] >= 0) continue;
            sign[node] = static_cast<int8_t>(-sign[node]);
            turned = true;
            for (int64_t i = begin[node]; i < begin[node + 1]; ++i) asked[neighbours[i].node] = 1;
        }
        if (!turned) return;
    }
}

}  // namespace

Signs settle(int32_t nodes, const std::vector<Vote>& votes) {
    Signs signs{std::vector<int8_t>(nodes, 1), std::vector<int32_t>(nodes), nodes};
    std::iota(signs.part.begin(), signs.part.end(), 0);
    std::vector<Vote> open = votes;
    while (!open.empty()) {
        SignedForest forest(signs.parts);
        for (const int64_t vote : strongest(signs.parts, open))
            if (vote >= 0) forest.join(open[vote].a, open[vote].b, open[vote].weight < 0);
        std::vector<int32_t> name(signs.parts, -1);
        std::vector<SignedForest::Root> roots(signs.parts);
        int32_t clusters = 0;
        for (int32_t i = 0; i < signs.parts; ++i) {
            roots[i] = forest.find(i);
            int32_t& cluster = name[roots[i].node];
            if (cluster < 0) cluster = clusters++;
        }
        for (int32_t node = 0; node < nodes; ++node) {
            const SignedForest::Root root = roots[signs.part[node]];
            if (root.differs) signs.sign[node] = static_cast<int8_t>(-signs.sign[node]);
            signs.part[node] = name[root.node];
        }
        size_t kept = 0;
        for (const Vote& vote : open) {
            const SignedForest::Root a = roots[vote.a], b = roots[vote.b];
            if (a.node == b.node) continue;
            const int32_t x = name[a.node], y = name[b.node];
            open[kept++] = {std::min(x, y), std::max(x, y), a.differs == b.differs ? vote.weight : -vote.weight};
        }
        open.resize(kept);
        signs.parts = clusters;
        add_up(clusters, open);
    }
    refine(votes, signs.sign);
    return signs;
}

}  // namespace stipple::geometry
