#include "stipple/geometry/registration/consensus.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
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

// Eight numbers at a time where there is AVX2, and bits are counted by one instruction instead of a call of libgcc.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define STIPPLE_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define STIPPLE_WIDE
#endif

STIPPLE_WIDE int64_t common_bits(const uint64_t* a, const uint64_t* b, int64_t words) {
    int64_t count = 0;
    for (int64_t word = 0; word < words; ++word) count += std::popcount(a[word] & b[word]);
    return count;
}

/// The matches number by number, so that one is compared with sixteen in vectors. Padded to whole words of bits with
/// places that are compatible with none.
struct MatchColumns {
    enum Column { px, py, pz, qx, qy, qz, npx, npy, npz, nqx, nqy, nqz, kColumns };
    int64_t padded = 0;
    std::vector<float> numbers;

    explicit MatchColumns(const std::vector<MatchedPair>& pairs)
        : padded((static_cast<int64_t>(pairs.size()) + 63) / 64 * 64),
          numbers(static_cast<size_t>(kColumns * padded), std::numeric_limits<float>::quiet_NaN()) {
        // About the first match, so that places far away lose nothing.
        for (size_t i = 0; i < pairs.size(); ++i) {
            const Vector3 rows[4] = {minus(pairs[i].p, pairs[0].p), minus(pairs[i].q, pairs[0].q), pairs[i].np,
                                     pairs[i].nq};
            for (int c = 0; c < kColumns; ++c) numbers[c * padded + i] = static_cast<float>(rows[c / 3][c % 3]);
        }
    }
    const float* column(int c) const { return numbers.data() + c * padded; }
};

struct CompatibilityLimits {
    float tolerance, nearest, cosine;
};

/// Sixteen bits: which of the matches from j on are compatible with match i.
[[gnu::always_inline]] inline uint32_t compatible_bits(const MatchColumns& m, int64_t i, int64_t j,
                                                       const CompatibilityLimits& limits) {
    constexpr int kLanes = 16;
    const float* at[MatchColumns::kColumns];
    float own[MatchColumns::kColumns];
    for (int c = 0; c < MatchColumns::kColumns; ++c) {
        at[c] = m.column(c) + j;
        own[c] = m.column(c)[i];
    }
    using M = MatchColumns;
    int32_t is_compatible[kLanes];
    for (int k = 0; k < kLanes; ++k) {
        const float wx = at[M::px][k] - own[M::px], wy = at[M::py][k] - own[M::py], wz = at[M::pz][k] - own[M::pz];
        const float vx = at[M::qx][k] - own[M::qx], vy = at[M::qy][k] - own[M::qy], vz = at[M::qz][k] - own[M::qz];
        const float p = std::sqrt(wx * wx + wy * wy + wz * wz), q = std::sqrt(vx * vx + vy * vy + vz * vz);
        const float over_p = 1 / p, over_q = 1 / q;
        const float normals =
            (own[M::npx] * at[M::npx][k] + own[M::npy] * at[M::npy][k] + own[M::npz] * at[M::npz][k]) -
            (own[M::nqx] * at[M::nqx][k] + own[M::nqy] * at[M::nqy][k] + own[M::nqz] * at[M::nqz][k]);
        const float first = (own[M::npx] * wx + own[M::npy] * wy + own[M::npz] * wz) * over_p -
                            (own[M::nqx] * vx + own[M::nqy] * vy + own[M::nqz] * vz) * over_q;
        const float second = (at[M::npx][k] * wx + at[M::npy][k] * wy + at[M::npz][k] * wz) * over_p -
                             (at[M::nqx][k] * vx + at[M::nqy][k] * vy + at[M::nqz][k] * vz) * over_q;
        // Matches of neighbours agree whatever the pose: both lengths count from `nearest` on.
        const int agrees = (std::abs(p - q) <= limits.tolerance) & (p >= limits.nearest) & (q >= limits.nearest) &
                           (std::abs(normals) <= limits.cosine) & (std::abs(first) <= limits.cosine) &
                           (std::abs(second) <= limits.cosine);
        is_compatible[k] = agrees << k;
    }
    int32_t bits = 0;
    for (int k = 0; k < kLanes; ++k) bits |= is_compatible[k];
    return static_cast<uint32_t>(bits);
}

/// Row i of the graph from bit i + 1 on.
STIPPLE_WIDE void fill_row(const MatchColumns& matches, int64_t i, const CompatibilityLimits& limits, uint64_t* row) {
    const int64_t begin = (i + 1) / 64;
    for (int64_t word = begin; 64 * word < matches.padded; ++word) {
        uint64_t bits = 0;
        for (int part = 0; part < 4; ++part)
            bits |= uint64_t{compatible_bits(matches, i, 64 * word + 16 * part, limits)} << (16 * part);
        row[word] = bits;
    }
    if (64 * begin < matches.padded) row[begin] &= ~uint64_t{0} << ((i + 1) % 64);
}

/// Rows of bits: which matches are compatible.
class CompatibilityGraph {
public:
    CompatibilityGraph(const std::vector<MatchedPair>& pairs, const ConsensusOptions& options)
        : n_(static_cast<int64_t>(pairs.size())), words_((n_ + 63) / 64), bits_(static_cast<size_t>(n_ * words_), 0) {
        const MatchColumns matches(pairs);
        const CompatibilityLimits limits = {static_cast<float>(options.tolerance),
                                            static_cast<float>(3 * options.tolerance),
                                            static_cast<float>(options.angle_cosine)};
        parallel_for(n_, 16, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) fill_row(matches, i, limits, bits_.data() + i * words_);
        });
        for (int64_t i = 0; i < n_; ++i)
            for_compatible_from(i, i + 1, [&](int64_t j) { bits_[j * words_ + i / 64] |= uint64_t{1} << (i % 64); });
    }

    int64_t size() const { return n_; }
    bool has(int64_t i, int64_t j) const { return bits_[i * words_ + j / 64] >> (j % 64) & 1; }

    /// How many are compatible with both.
    int64_t common(int64_t i, int64_t j) const {
        return common_bits(bits_.data() + i * words_, bits_.data() + j * words_, words_);
    }

    /// Those from `first` on.
    template <class Call>
    void for_compatible_from(int64_t i, int64_t first, const Call& call) const {
        for (int64_t word = first / 64; word < words_; ++word) {
            uint64_t rest = bits_[i * words_ + word];
            if (word == first / 64) rest &= ~uint64_t{0} << (first % 64);
            for (; rest != 0; rest &= rest - 1) call(64 * word + std::countr_zero(rest));
        }
    }
    template <class Call>
    void for_compatible(int64_t i, const Call& call) const {
        for_compatible_from(i, 0, call);
    }

private:
    int64_t n_, words_;
    std::vector<uint64_t> bits_;
};

/// For each match the sum, over those that it is compatible with, of how many are compatible with both.
std::vector<int64_t> strengths_of(const CompatibilityGraph& graph) {
    std::vector<int64_t> strengths(static_cast<size_t>(graph.size()), 0);
    parallel_for(graph.size(), 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t own = 0;
            graph.for_compatible_from(i, i + 1, [&](int64_t j) {
                const int64_t common = graph.common(i, j);
                own += common;
                std::atomic_ref(strengths[j]).fetch_add(common, std::memory_order_relaxed);
            });
            std::atomic_ref(strengths[i]).fetch_add(own, std::memory_order_relaxed);  // whole numbers, in any order
        }
    });
    return strengths;
}

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
    const std::vector<int64_t> strength = strengths_of(graph);
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
