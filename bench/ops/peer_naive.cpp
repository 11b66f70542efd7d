// What one writes in an afternoon: plain loops that the compiler vectorises. The baseline that an algorithm must beat.

#include <omp.h>

#include <algorithm>
#include <limits>

#include "naive.h"
#include "peer.h"

namespace peer {
namespace {

/// x, y and z in arrays of their own.
struct Columns {
    std::vector<float> x, y, z;
    Columns(const float* points, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
            x.push_back(points[3 * i]);
            y.push_back(points[3 * i + 1]);
            z.push_back(points[3 * i + 2]);
        }
    }
    int64_t size() const { return static_cast<int64_t>(x.size()); }
};

struct Farthest {
    float sq = -1;
    int64_t index = 0;
};

/// Lowers the distances of [begin, end) by the new sample and returns the farthest point, the lowest of equals. By
/// blocks: the maximum of a block is a vector loop, and only a block that raises it is searched for the index.
Farthest update(const Columns& p, float* sq, int64_t begin, int64_t end, int64_t sample) {
    constexpr int64_t kBlock = 512;
    const float *x = p.x.data(), *y = p.y.data(), *z = p.z.data();
    const float px = x[sample], py = y[sample], pz = z[sample];
    Farthest farthest;
    for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t stop = std::min(at + kBlock, end);
        float block = -1;
        for (int64_t i = at; i < stop; ++i) {
            const float dx = x[i] - px, dy = y[i] - py, dz = z[i] - pz;
            const float d = (dx * dx + dy * dy) + dz * dz;
            sq[i] = d < sq[i] ? d : sq[i];
            block = sq[i] > block ? sq[i] : block;
        }
        if (block > farthest.sq) farthest = {block, std::find(sq + at, sq + stop, block) - sq};
    }
    return farthest;
}

double sum_nearest(const Columns& queries, const Columns& targets, int threads) {
    const int64_t n = queries.size(), m = targets.size();
    const float *x = targets.x.data(), *y = targets.y.data(), *z = targets.z.data();
    double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64) reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) {
        const float px = queries.x[i], py = queries.y[i], pz = queries.z[i];
        float nearest = std::numeric_limits<float>::infinity();
        for (int64_t j = 0; j < m; ++j) {
            const float dx = x[j] - px, dy = y[j] - py, dz = z[j] - pz;
            const float d = (dx * dx + dy * dy) + dz * dz;
            nearest = d < nearest ? d : nearest;
        }
        sum += nearest;
    }
    return sum;
}

Run chamfer(const Job& job) {
    return [a = Columns(job.a, job.n), b = Columns(job.b, job.m)](int threads) {
        return sum_nearest(a, b, threads) / static_cast<double>(a.size()) +
               sum_nearest(b, a, threads) / static_cast<double>(b.size());
    };
}

Run fps(const Job& job) {
    return [job](int threads) { return static_cast<double>(naive_fps(job.a, job.n, job.count, threads).size()); };
}

}  // namespace

std::vector<int32_t> naive_fps(const float* points, int64_t n, int64_t count, int threads) {
    const Columns p(points, n);
    std::vector<float> sq(static_cast<size_t>(n), std::numeric_limits<float>::max());
    std::vector<int32_t> kept(static_cast<size_t>(count));
    std::vector<Farthest> farthest(static_cast<size_t>(threads));
#pragma omp parallel num_threads(threads)
    {
        const int64_t me = omp_get_thread_num(), team = omp_get_num_threads();
        for (int64_t s = 1; s < count; ++s) {
            farthest[me] = update(p, sq.data(), n * me / team, n * (me + 1) / team, kept[s - 1]);
#pragma omp barrier
#pragma omp single
            {
                Farthest best;
                for (const Farthest& part : farthest)
                    if (part.sq > best.sq) best = part;
                kept[s] = static_cast<int32_t>(best.index);
            }
        }
    }
    return kept;
}

std::vector<Peer> naive_peers() {
    return {{"plain loop", "fps", true, fps}, {"plain loop", "chamfer", true, chamfer}};
}

}  // namespace peer
