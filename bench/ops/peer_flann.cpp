#include <flann/flann.hpp>

#include "peer.h"

namespace peer {
namespace {

using Index = flann::KDTreeSingleIndex<flann::L2_Simple<float>>;

flann::Matrix<float> matrix(const float* points, int64_t n) {
    return {const_cast<float*>(points), static_cast<size_t>(n), 3};  // FLANN has no matrix of constants; it only reads
}

/// Shares of the queries, each asked in one call: FLANN's own threads cost more than they give at this size.
constexpr int64_t kShare = 1024;

Run knn(const Job& job) {
    return [job, indices = std::vector<int>(static_cast<size_t>(job.n * job.count)),
            distances = std::vector<float>(static_cast<size_t>(job.n * job.count))](int threads) mutable {
        Index index(matrix(job.a, job.n), flann::KDTreeSingleIndexParams(10));
        index.buildIndex();
        flann::SearchParams parameters(flann::FLANN_CHECKS_UNLIMITED);
        const auto k = static_cast<size_t>(job.count);
        double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(+ : sum)
        for (int64_t begin = 0; begin < job.n; begin += kShare) {
            const int64_t rows = std::min(kShare, job.n - begin);
            flann::Matrix<int> found(indices.data() + begin * job.count, static_cast<size_t>(rows), k);
            flann::Matrix<float> sq(distances.data() + begin * job.count, static_cast<size_t>(rows), k);
            index.knnSearch(matrix(job.a + 3 * begin, rows), found, sq, k, parameters);
            for (int64_t i = 0; i < rows; ++i) sum += sq[static_cast<size_t>(i)][k - 1];
        }
        return sum / static_cast<double>(job.n);
    };
}

Run radius(const Job& job) {
    return [job](int threads) {
        Index index(matrix(job.a, job.n), flann::KDTreeSingleIndexParams(10));
        index.buildIndex();
        flann::SearchParams parameters(flann::FLANN_CHECKS_UNLIMITED);
        int64_t found = 0;
#pragma omp parallel num_threads(threads)
        {
            std::vector<std::vector<int>> indices;
            std::vector<std::vector<float>> distances;
#pragma omp for schedule(dynamic) reduction(+ : found)
            for (int64_t begin = 0; begin < job.n; begin += kShare) {
                const int64_t rows = std::min(kShare, job.n - begin);
                found += index.radiusSearch(matrix(job.a + 3 * begin, rows), indices, distances,
                                            job.length * job.length, parameters);
            }
        }
        return static_cast<double>(found);
    };
}

}  // namespace

std::vector<Peer> flann_peers() {
    return {{"FLANN KDTreeSingle", "knn", true, knn}, {"FLANN KDTreeSingle", "radius", true, radius}};
}

}  // namespace peer
