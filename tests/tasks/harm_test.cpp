// The default upsampler does no harm: on small scans that nothing was tuned on, thinned to a quarter, it is not worse
// than midpoints by the ruler. Where it falls short is listed below; what is not listed must hold.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stipple/data/upsampling_points.h"
#include "stipple/io/format.h"
#include "stipple/ops/knn.h"
#include "stipple/tasks/upsampling_study/ruler.h"
#include "stipple/tasks/weights.h"

namespace stipple::tasks::study {
namespace {

enum Column { stray, stray_99, invented, off, cover, cover_99, kColumns };

struct SmallScan {
    const char* file;              // below examples/data
    std::vector<Column> is_short;  // columns in which it may be worse, by one of the ways to thin it at least
};
const SmallScan kScans[] = {
    {"knot.ply", {}},
    {"chair_front.ply", {}},
    {"chair_side.ply", {cover_99}},
    {"scans/street.ply", {cover, cover_99}},
    {"scans/yard.ply", {stray_99, invented, off, cover, cover_99}},
};
// The sum over the scans may be worse in this: farthest points are spread evenly, and where the scan was denser
// nothing tells any more.
const std::vector<Column> kShortByFps = {cover_99};
constexpr int64_t kMost = 40000;
constexpr double kStrayAllowance = 1.1;     // midpoints are near the floor there
constexpr double kInventedAllowance = 0.1;  // percent of the points
constexpr double kFarthest = 5;             // mean spacings of the input

bool is_worse(Column column, double ours, double midpoints) {
    if (column == invented) return ours > midpoints + kInventedAllowance;
    return ours > (column <= stray_99 ? kStrayAllowance : 1) * midpoints;
}

double farthest_from(const PointCloud& input, const PointCloud& made) {
    Array<int32_t, 2> near({made.size(), 1});
    Array<float, 2> squares({made.size(), 1});
    ops::knn(ops::PointIndex(input.positions.view()), made.positions.view(), near.view(), squares.view());
    return std::sqrt(double{*std::max_element(squares.span().begin(), squares.span().end())});
}

class UpsampleHarm : public testing::TestWithParam<Thinning> {};

TEST_P(UpsampleHarm, TheDefaultIsNotWorseThanMidpoints) {
    const std::string root = STIPPLE_SOURCE_DIR;
    Upsampler ours(load_model_or_engine(root + "/weights/" + kUpsamplerWeights + ".safetensors"), {.device = "cpu"}),
        midpoints;
    double sums[2][kColumns] = {};
    for (const SmallScan& small : kScans) {
        io::Warnings warnings;
        const PointCloud scan =
            scan_to_judge_by(io::load_cloud(root + "/examples/data/" + small.file, {}, warnings), kMost);
        const PointCloud input = thin(scan, GetParam(), scan.size() / 4, 0);
        const PointCloud made[2] = {upsample(ours, input, {.ratio = 4}).cloud,
                                    upsample(midpoints, input, {.ratio = 4}).cloud};
        ASSERT_EQ(made[0].size(), made[1].size());
        const auto scores = columns_of(measure_by_ruler(made[0], scan)),
                   plain = columns_of(measure_by_ruler(made[1], scan));
        for (int c = 0; c < kColumns; ++c) {
            sums[0][c] += scores[static_cast<size_t>(c)], sums[1][c] += plain[static_cast<size_t>(c)];
            const auto column = static_cast<Column>(c);
            if (std::count(small.is_short.begin(), small.is_short.end(), column)) continue;
            EXPECT_FALSE(is_worse(column, scores[static_cast<size_t>(c)], plain[static_cast<size_t>(c)]))
                << small.file << ", " << kRulerColumns[c] << ": " << scores[static_cast<size_t>(c)] << ", midpoints "
                << plain[static_cast<size_t>(c)];
        }
        EXPECT_LE(farthest_from(input, made[0]), kFarthest * data::mean_spacing(input.positions.view())) << small.file;
    }
    for (int c = 0; c < kColumns; ++c) {
        const auto column = static_cast<Column>(c);
        if (GetParam() == Thinning::fps && std::count(kShortByFps.begin(), kShortByFps.end(), column)) continue;
        EXPECT_FALSE(is_worse(column, sums[0][c], sums[1][c]))
            << "sum over the scans, " << kRulerColumns[c] << ": " << sums[0][c] << ", midpoints " << sums[1][c];
    }
}

INSTANTIATE_TEST_SUITE_P(Thinned, UpsampleHarm, testing::Values(Thinning::fps, Thinning::random, Thinning::voxel),
                         [](const auto& instance) { return thinning_names()[static_cast<size_t>(instance.param)]; });

}  // namespace
}  // namespace stipple::tasks::study
