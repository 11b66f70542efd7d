#include <nanoflann.hpp>

#include "peer.h"

namespace peer {
namespace {

struct Points {
    const float* xyz;
    int64_t n;
    size_t kdtree_get_point_count() const { return static_cast<size_t>(n); }
    float kdtree_get_pt(size_t i, size_t axis) const { return xyz[3 * i + axis]; }
    template <class Box>
    bool kdtree_get_bbox(Box&) const {
        return false;
    }
};

using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, Points>, Points, 3, uint32_t>;

double sum_nearest(const Tree& tree, const float* queries, int64_t n, int threads) {
    double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256) reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) {
        uint32_t index = 0;
        float sq = 0;
        tree.knnSearch(queries + 3 * i, 1, &index, &sq);
        sum += sq;
    }
    return sum;
}

Run knn(const Job& job) {
    return [job, indices = std::vector<uint32_t>(static_cast<size_t>(job.n * job.count)),
            distances = std::vector<float>(static_cast<size_t>(job.n * job.count))](int threads) mutable {
        const Points points{job.a, job.n};
        const Tree tree(3, points);
        double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256) reduction(+ : sum)
        for (int64_t i = 0; i < job.n; ++i) {
            float* sq = distances.data() + i * job.count;
            tree.knnSearch(job.a + 3 * i, static_cast<size_t>(job.count), indices.data() + i * job.count, sq);
            sum += sq[job.count - 1];
        }
        return sum / static_cast<double>(job.n);
    };
}

Run radius(const Job& job) {
    return [job](int threads) {
        const Points points{job.a, job.n};
        const Tree tree(3, points);
        nanoflann::SearchParams parameters;
        parameters.sorted = true;
        int64_t found = 0;
#pragma omp parallel num_threads(threads)
        {
            std::vector<std::pair<uint32_t, float>> neighbours;
#pragma omp for schedule(dynamic, 256) reduction(+ : found)
            for (int64_t i = 0; i < job.n; ++i) {
                neighbours.clear();
                found += static_cast<int64_t>(
                    tree.radiusSearch(job.a + 3 * i, job.length * job.length, neighbours, parameters));
            }
        }
        return static_cast<double>(found);
    };
}

Run chamfer(const Job& job) {
    return [job](int threads) {
        const Points a{job.a, job.n}, b{job.b, job.m};
        const Tree tree_a(3, a), tree_b(3, b);
        return sum_nearest(tree_b, job.a, job.n, threads) / static_cast<double>(job.n) +
               sum_nearest(tree_a, job.b, job.m, threads) / static_cast<double>(job.m);
    };
}

}  // namespace

std::vector<Peer> nanoflann_peers() {
    return {{"nanoflann", "knn", true, knn},
            {"nanoflann", "radius", true, radius},
            {"nanoflann", "chamfer", true, chamfer}};
}

}  // namespace peer
