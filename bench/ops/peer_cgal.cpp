// CGAL's Spatial_searching is under the GPL: it is linked into this benchmark, which is not installed, and never into
// the library.

#include <CGAL/Orthogonal_k_neighbor_search.h>
#include <CGAL/Search_traits_3.h>
#include <CGAL/Simple_cartesian.h>

#include "peer.h"

namespace peer {
namespace {

using Kernel = CGAL::Simple_cartesian<double>;
using Traits = CGAL::Search_traits_3<Kernel>;
using Search = CGAL::Orthogonal_k_neighbor_search<Traits>;

Run knn(const Job& job) {
    std::vector<Kernel::Point_3> points;
    points.reserve(static_cast<size_t>(job.n));
    for (int64_t i = 0; i < job.n; ++i) points.emplace_back(job.a[3 * i], job.a[3 * i + 1], job.a[3 * i + 2]);
    return [job, points = std::move(points)](int threads) {
        Search::Tree tree(points.begin(), points.end());
        tree.build();
        double sum = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256) reduction(+ : sum)
        for (int64_t i = 0; i < job.n; ++i) {
            const Search search(tree, points[static_cast<size_t>(i)], static_cast<unsigned>(job.count));
            double last = 0;
            for (const auto& neighbour : search) last = neighbour.second;
            sum += last;
        }
        return sum / static_cast<double>(job.n);
    };
}

}  // namespace

std::vector<Peer> cgal_peers() {
    return {{"CGAL Orthogonal_k", "knn", true, knn}};
}

}  // namespace peer
