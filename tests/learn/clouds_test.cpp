// Rows of a batch and their clouds, as torch sees them.

#include "stipple/learn/evaluate/clouds.h"

#include <gtest/gtest.h>

#include "tests/learn/gradients.h"

namespace stipple::learn {
namespace {

TEST(LearnClouds, NearestAmongChannelsOfAnyNumber) {
    const ops::Batch of_points = ops::Batch::ragged({0, 6, 15}), of_queries = ops::Batch::ragged({0, 3, 7});
    for (const int64_t channels : {3, 32, 33, 64}) {  // by ops::knn up to 32, above by all distances
        const torch::Tensor points = test::normal_tensor({15, channels}, 1);
        torch::Tensor queries = test::normal_tensor({7, channels}, 2);
        queries[0] = points[4];
        const torch::Tensor found = nearest(queries, of_queries, points, of_points, 4, false);
        for (int64_t cloud = 0; cloud < 2; ++cloud)
            for (int64_t i = of_queries.begin(cloud); i < of_queries.end(cloud); ++i) {
                std::vector<std::pair<double, int64_t>> all;
                for (int64_t j = 0; j < of_points.size(cloud); ++j)
                    all.emplace_back((queries[i] - points[of_points.begin(cloud) + j])
                                         .to(torch::kFloat64)
                                         .square()
                                         .sum()
                                         .item<double>(),
                                     j);
                std::sort(all.begin(), all.end());
                for (int64_t j = 0; j < 4; ++j)
                    EXPECT_EQ(found[i][j].item<int64_t>(), all[static_cast<size_t>(j)].second)
                        << channels << " channels, query " << i << ", neighbour " << j;
            }
        EXPECT_EQ(found[0][0].item<int64_t>(), 4);
    }
}

}  // namespace
}  // namespace stipple::learn
