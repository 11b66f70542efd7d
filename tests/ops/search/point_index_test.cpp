#include "stipple/ops/point_index.h"

#include <gtest/gtest.h>

#include <set>

#include "stipple/core/parallel.h"
#include "stipple/ops/search/point_tree.h"
#include "tests/ops/neighbours.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::PointIndex;
namespace cpu = ops::cpu;

class PointIndexOf : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(PointIndexOf);

TEST_P(PointIndexOf, KnowsWhatItWasBuiltFrom) {
    const RaggedSample sample({7, 0, 40});
    const Uploaded at(sample.rows, sample.batch, device());
    const PointIndex index(at.clouds);
    EXPECT_EQ(index.batch().clouds(), 3);
    EXPECT_EQ(index.batch().end(2), 47);
    EXPECT_EQ(index.dimension(), 3);
    EXPECT_EQ(index.device(), device());
}

TEST_P(PointIndexOf, RejectsBadArguments) {
    const auto message = [&](const Clouds& points) { return bad_argument_of([&] { PointIndex index(points); }); };
    EXPECT_EQ(message(View<const float, 2>(nullptr, {5, 0}, device())),
              "PointIndex: points of 1 to 32 dimensions, got 0");
    EXPECT_EQ(message(View<const float, 2>(nullptr, {5, 33}, device())),
              "PointIndex: points of 1 to 32 dimensions, got 33");
    const int64_t many = int64_t{1} << 31;
    EXPECT_EQ(message(View<const float, 2>(nullptr, {many, 3}, {0, 1}, device())),
              "PointIndex: a cloud of 2147483648 points; the most is 2147483647");
    EXPECT_EQ(message(View<const float, 3>(nullptr, {2, many, 3}, device())),
              "PointIndex: a cloud of 2147483648 points; the most is 2147483647");
}

TEST(PointIndexCuda, NeedsACudaBuild) {
#ifndef STIPPLE_WITH_CUDA
    try {
        PointIndex index(View<const float, 2>(nullptr, {5, 3}, Device{DeviceType::cuda, 0}));
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::no_device) << error.what();
    }
#endif
}

// Every finite point is in one leaf, every box is tight, and a box holds all boxes below it.
void expect_sound(const cpu::CloudTree& tree, const Array<float, 2>& rows) {
    const cpu::Leaves& leaves = tree.leaves;
    const int64_t c = rows.size(1);
    int64_t finite = 0;
    for (int64_t i = 0; i < rows.size(0); ++i)
        finite += std::all_of(rows.data() + i * c, rows.data() + (i + 1) * c, [](float x) { return std::isfinite(x); });
    ASSERT_EQ(leaves.size, finite);
    std::set<int32_t> seen;
    for (int64_t leaf = 0; leaf < leaves.count(); ++leaf) {
        for (int lane = 0; lane < leaves.lanes(leaf); ++lane) {
            const int32_t index = leaves.indices_at(leaf)[lane];
            ASSERT_TRUE(seen.insert(index).second);
            for (int64_t axis = 0; axis < c; ++axis)
                ASSERT_EQ(leaves.at(leaf)[axis * cpu::kLeaf + lane], rows.view()(index, axis));
        }
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), finite);
    int64_t below = leaves.count();
    for (size_t level = 0; level < tree.levels.size(); ++level) {
        const int64_t nodes = (below + cpu::kFan - 1) / cpu::kFan;
        for (int64_t child = 0; child < nodes * cpu::kFan; ++child) {
            for (int64_t axis = 0; axis < c; ++axis) {
                const float* box = tree.box(static_cast<int>(level), child / cpu::kFan) + 2 * axis * cpu::kFan;
                float low = kInfinity, high = -kInfinity;
                if (child < below && level == 0) {
                    const float* x = leaves.at(child) + axis * cpu::kLeaf;
                    low = *std::min_element(x, x + leaves.lanes(child));
                    high = *std::max_element(x, x + leaves.lanes(child));
                } else if (child < below) {
                    const float* x = tree.box(static_cast<int>(level) - 1, child) + 2 * axis * cpu::kFan;
                    low = *std::min_element(x, x + cpu::kFan);
                    high = *std::max_element(x + cpu::kFan, x + 2 * cpu::kFan);
                }
                ASSERT_EQ(box[child % cpu::kFan], low);
                ASSERT_EQ(box[child % cpu::kFan + cpu::kFan], high);
            }
        }
        below = nodes;
    }
    ASSERT_EQ(tree.levels.empty(), finite == 0);
    ASSERT_EQ(below, finite == 0 ? 0 : 1);
}

TEST(PointTree, IsSound) {
    for (const Kind kind : all_kinds()) {
        for (const int64_t n : {0, 1, 15, 16, 17, 128, 129, 1025, 20011}) {
            SCOPED_TRACE(fmt::format("{}, n {}", to_string(kind), n));
            const Array<float, 2> rows = make_cloud(kind, n);
            expect_sound(cpu::build(rows.view())->clouds[0], rows);
        }
    }
    for (const int64_t c : {1, 2, 5, 32}) {
        const Array<float, 2> rows = make_features(9000, c);
        expect_sound(cpu::build(rows.view())->clouds[0], rows);
    }
}

// The halves of a split do not overlap along its axis: leaves of a uniform cloud are small.
TEST(PointTree, LeavesAreCompact) {
    const Array<float, 2> rows = make_cloud(Kind::uniform, 1 << 15);
    const auto tree = cpu::build(rows.view());
    double volume = 0;
    for (int64_t leaf = 0; leaf < tree->clouds[0].leaves.count(); ++leaf) {
        double product = 1;
        for (int axis = 0; axis < 3; ++axis) {
            const float* x = tree->clouds[0].leaves.at(leaf) + axis * cpu::kLeaf;
            product *= *std::max_element(x, x + cpu::kLeaf) - *std::min_element(x, x + cpu::kLeaf);
        }
        volume += product;
    }
    EXPECT_LT(volume, 1);  // disjoint boxes in a cube of 1; tight ones leave gaps
    EXPECT_GT(volume, 0.2);
}

TEST(PointTree, DoesNotDependOnTheThreads) {
    const Array<float, 2> rows = make_cloud(Kind::lattice, 60000);
    expect_same_on_threads([&] {
        const auto tree = cpu::build(rows.view());
        const cpu::Leaves& leaves = tree->clouds[0].leaves;
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{leaves.count(), leaves.block_bytes() / 4});
        std::memcpy(results[0].data(), leaves.blocks.data(), static_cast<size_t>(leaves.blocks.bytes()));
        return results;
    });
}

TEST(PointTree, SurvivesFailedAllocationsAndStaysFlat) {
    const RaggedSample sample({40, 100, 0, 70});
    const auto once = [&] { PointIndex index(Clouds(sample.rows.view(), sample.batch)); };
    EXPECT_GT(for_each_allocation_failure(once), can_fail_allocations() ? 5 : -1);
    const int64_t before = live_allocations();
    for (int i = 0; i < 2000; ++i) once();
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace stipple::test
