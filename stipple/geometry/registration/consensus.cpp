#include "stipple/geometry/registration/consensus.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"

namespace stipple::geometry {
namespace {

double dot_of(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vector3 minus(const Vector3& a, const Vector3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

// Counting bits is one instruction where there is AVX2, and a call of libgcc where there is not.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define STIPPLE_COUNTS_BITS __attribute__((target_clones("avx2", "default")))
#else
#define STIPPLE_COUNTS_BITS
#endif

STIPPLE_COUNTS_BITS int64_t common_bits(const uint64_t* a, const uint64_t* b, int64_t words) {
    int64_t count = 0;
    for (int64_t word = 0; word < words; ++word) count += std::popcount(a[word] & b[word]);
    return count;
}

/// Rows of bits: which matches are compatible.
class CompatibilityGraph {
public:
    CompatibilityGraph(const std::vector<MatchedPair>& pairs, const ConsensusOptions& options)
        : n_(static_cast<int64_t>(pairs.size())), words_((n_ + 63) / 64), bits_(static_cast<size_t>(n_ * words_), 0) {
        parallel_for(n_, 16, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                for (int64_t j = i + 1; j < n_; ++j)
                    if (is_compatible(pairs[i], pairs[j], options))
                        bits_[i * words_ + j / 64] |= uint64_t{1} << (j % 64);
        });
        for (int64_t i = 0; i < n_; ++i)
            for_compatible(i, [&](int64_t j) { bits_[j * words_ + i / 64] |= uint64_t{1} << (i % 64); });
    }

    int64_t size() const { return n_; }
    bool has(int64_t i, int64_t j) const { return bits_[i * words_ + j / 64] >> (j % 64) & 1; }

    /// How many are compatible with both.
    int64_t common(int64_t i, int64_t j) const {
        return common_bits(bits_.data() + i * words_, bits_.data() + j * words_, words_);
    }

    template <class Call>
    void for_compatible(int64_t i, const Call& call) const {
        for (int64_t word = 0; word < words_; ++word)
            for (uint64_t rest = bits_[i * words_ + word]; rest != 0; rest &= rest - 1)
                call(64 * word + std::countr_zero(rest));
    }

private:
    static bool is_compatible(const MatchedPair& a, const MatchedPair& b, const ConsensusOptions& options) {
        const Vector3 way_p = minus(b.p, a.p), way_q = minus(b.q, a.q);
        const double p = std::sqrt(dot_of(way_p, way_p)), q = std::sqrt(dot_of(way_q, way_q));
        if (std::abs(p - q) > options.tolerance) return false;
        // Matches of neighbours agree whatever the pose.
        if (p < 3 * options.tolerance || q < 3 * options.tolerance) return false;
        return std::abs(dot_of(a.np, b.np) - dot_of(a.nq, b.nq)) <= options.angle_cosine &&
               std::abs(dot_of(a.np, way_p) / p - dot_of(a.nq, way_q) / q) <= options.angle_cosine &&
               std::abs(dot_of(b.np, way_p) / p - dot_of(b.nq, way_q) / q) <= options.angle_cosine;
    }

    int64_t n_, words_;
    std::vector<uint64_t> bits_;
};

struct Weighted {
    int64_t match;
    double weight;
};

/// The pose that fits these matches best, about the first of them.
RigidTransform fit_matches(const std::vector<MatchedPair>& pairs, const std::vector<Weighted>& chosen) {
    const MatchedPair& pivot = pairs[chosen.front().match];
    RigidMoments moments;
    for (const Weighted& one : chosen)
        moments.add(minus(pairs[one.match].p, pivot.p), minus(pairs[one.match].q, pivot.q), one.weight);
    return in_world(best_fit(moments), pivot.p, pivot.q);
}

/// The matches that a pose explains, weighted by how well.
std::vector<Weighted> inliers_of(const std::vector<MatchedPair>& pairs, const RigidTransform& pose, double tolerance) {
    constexpr double kCosine = 0.5;
    std::vector<Weighted> inliers;
    for (size_t i = 0; i < pairs.size(); ++i) {
        const Vector3 gap = minus(pose(pairs[i].p), pairs[i].q);
        const double ratio_sq = dot_of(gap, gap) / (tolerance * tolerance);
        if (!(ratio_sq <= 1) || dot_of(pose.rotate(pairs[i].np), pairs[i].nq) < kCosine) continue;
        inliers.push_back({static_cast<int64_t>(i), (1 - 0.9 * ratio_sq) * (1 - 0.9 * ratio_sq)});
    }
    return inliers;
}

/// The matches around a seed that agree most with it and with each other.
std::vector<Weighted> grow(const CompatibilityGraph& graph, int64_t seed, int count) {
    std::vector<Weighted> around;
    graph.for_compatible(seed, [&](int64_t j) { around.push_back({j, static_cast<double>(graph.common(seed, j))}); });
    const auto by_weight = [](const Weighted& a, const Weighted& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.match < b.match;
    };
    std::sort(around.begin(), around.end(), by_weight);
    if (around.size() > static_cast<size_t>(2 * count)) around.resize(static_cast<size_t>(2 * count));
    // Second stage: by how many of these they are compatible with.
    for (Weighted& one : around) {
        double agreeing = 0;
        for (const Weighted& other : around) agreeing += graph.has(one.match, other.match) ? 1 : 0;
        one.weight = agreeing;
    }
    std::sort(around.begin(), around.end(), by_weight);
    if (around.size() > static_cast<size_t>(count)) around.resize(static_cast<size_t>(count));
    const double most = around.empty() ? 0 : around.front().weight;
    around.insert(around.begin(), {seed, most + 1});
    for (Weighted& one : around) one.weight += 1;
    return around;
}

}  // namespace

int64_t explained_matches(const std::vector<MatchedPair>& pairs, const RigidTransform& pose, double tolerance) {
    return static_cast<int64_t>(inliers_of(pairs, pose, tolerance).size());
}

std::vector<ConsensusPose> consensus_poses(const std::vector<MatchedPair>& pairs, const ConsensusOptions& options) {
    std::vector<ConsensusPose> poses;
    const auto n = static_cast<int64_t>(pairs.size());
    if (n < 3) return poses;
    const CompatibilityGraph graph(pairs, options);
    std::vector<int64_t> strength(static_cast<size_t>(n), 0);
    parallel_for(n, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            graph.for_compatible(i, [&](int64_t j) { strength[i] += graph.common(i, j); });
    });
    check_interrupted();
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strength[a] > strength[b]; });
    std::vector<uint8_t> is_explained(static_cast<size_t>(n), 0);
    int seeds = 0;
    for (const int64_t seed : order) {
        if (seeds == options.seeds || strength[seed] == 0) break;
        if (is_explained[seed]) continue;
        ++seeds;
        std::vector<Weighted> chosen = grow(graph, seed, options.grown);
        is_explained[seed] = 1;
        if (chosen.size() < 3) continue;
        ConsensusPose pose{fit_matches(pairs, chosen), 0};
        for (int round = 0; round < 4; ++round) {
            chosen = inliers_of(pairs, pose.transform, options.tolerance);
            if (chosen.size() < 3) break;
            pose.transform = fit_matches(pairs, chosen);
            pose.inliers = static_cast<int64_t>(chosen.size());
        }
        if (chosen.size() < 3) continue;
        for (const Weighted& one : chosen) is_explained[one.match] = 1;
        poses.push_back(pose);
    }
    std::stable_sort(poses.begin(), poses.end(),
                     [](const ConsensusPose& a, const ConsensusPose& b) { return a.inliers > b.inliers; });
    return poses;
}

}  // namespace stipple::geometry
