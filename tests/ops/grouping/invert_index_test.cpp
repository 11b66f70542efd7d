#include "stipple/ops/invert_index.h"

#include <algorithm>

#include "stipple/core/parallel.h"
#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Neighbours;

class InvertIndex : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(InvertIndex);

/// Sorts (cloud, row or missing, entry) with the standard library.
void expect_inverse(const Array<int32_t, 2>& indices, const Batch& batch, const Batch& rows, Device device) {
    const int64_t k = indices.size(1), entries = indices.elements();
    std::vector<std::array<int64_t, 3>> order;
    for (int64_t cloud = 0; cloud < batch.clouds(); ++cloud) {
        for (int64_t e = batch.begin(cloud) * k; e < batch.end(cloud) * k; ++e) {
            const int64_t row = named_row(indices, batch, rows, e);
            order.push_back({cloud, row < 0 ? INT64_MAX : row, e});
        }
    }
    std::sort(order.begin(), order.end());

    const Array<int32_t, 2> there = indices.to(device);
    Guarded<int32_t, 2> ranges({rows.rows(), 2}, device);
    Guarded<int32_t, 1> positions({entries}, device);
    ops::invert_index(Neighbours(there.view(), batch), rows, ranges.view(), positions.view());
    const auto found = positions.get();
    const auto found_ranges = ranges.get();
    for (int64_t i = 0; i < entries; ++i) ASSERT_EQ(found.data()[i], order[i][2]) << "position " << i;
    std::vector<int64_t> count(rows.rows());
    for (const auto& o : order)
        if (o[1] != INT64_MAX) ++count[o[1]];
    for (int64_t cloud = 0; cloud < rows.clouds(); ++cloud) {
        int64_t begin = batch.begin(cloud) * k;
        for (int64_t row = rows.begin(cloud); row < rows.end(cloud); ++row) {
            ASSERT_EQ(found_ranges.data()[2 * row], begin) << "row " << row;
            begin += count[row];
            ASSERT_EQ(found_ranges.data()[2 * row + 1], begin) << "row " << row;
        }
    }
}

TEST_P(InvertIndex, SortsEntriesByRowAndKeepsTheirOrder) {
    for (const Layout& layout : layouts()) {
        for (int64_t k : {0, 1, 3, 16})
            expect_inverse(make_indices(layout.batch, k, layout.rows), layout.batch, layout.rows, device());
    }
}

TEST_P(InvertIndex, EverySizeOfBlockAndTheSortBeyond) {
    // Around the limits of one block (1024, 2048, 4096, 8192 entries) and of its rows (2^19 - 2).
    for (int64_t m : {1023, 1024, 1025, 2048, 2049, 4097, 8192, 8193, 200'000}) {
        const Batch batch = Batch::single(m), rows = Batch::single(m / 3 + 1);
        expect_inverse(make_indices(batch, 1, rows), batch, rows, device());
    }
    for (int64_t n : {(1 << 19) - 3, (1 << 19) - 2, (1 << 19) - 1, 1 << 20}) {
        const Batch batch = Batch::single(100), rows = Batch::single(n);
        expect_inverse(make_indices(batch, 1, rows), batch, rows, device());
    }
    const Batch batch = Batch::ragged({0, 9000, 9000, 9010}), rows = Batch::ragged({0, 30, 60, 70});
    expect_inverse(make_indices(batch, 2, rows), batch, rows, device());
}

TEST_P(InvertIndex, AllEntriesNameOneRowOrNone) {
    for (int32_t index : {0, 4, -1, 5}) {
        for (int64_t m : {7, 3000, 20'000}) {
            Array<int32_t, 2> indices({m, 1});
            std::fill_n(indices.data(), m, index);
            expect_inverse(indices, Batch::single(m), Batch::single(5), device());
        }
    }
}

TEST_P(InvertIndex, TakesAVectorOfIndices) {
    Array<int32_t, 1> indices({3});
    indices.data()[0] = 1, indices.data()[1] = 0, indices.data()[2] = 1;
    const Array<int32_t, 1> there = indices.to(device());
    const Inverse inverse(Neighbours(there.view()), Batch::single(2));
    const auto positions = download(inverse.positions);
    EXPECT_EQ(std::vector<int32_t>(positions.span().begin(), positions.span().end()), (std::vector<int32_t>{1, 0, 2}));
}

TEST_P(InvertIndex, TakesADenseBatch) {
    const Batch batch = Batch::dense(3, 4), rows = Batch::dense(3, 5);
    const auto indices = make_indices(batch, 2, rows);
    const auto there = upload(indices);
    const Inverse flat(Neighbours(there.view(), batch), rows);
    const Inverse cube(View<const int32_t, 3>(there.data(), {3, 4, 2}, device()), rows);
    expect_same_bits(download(flat.positions), download(cube.positions), "positions");
    expect_same_bits(download(flat.ranges), download(cube.ranges), "ranges");
}

TEST(InvertIndexCpu, SameOnAnyNumberOfThreads) {
    const Batch batch = Batch::single(150'000), rows = Batch::single(999);
    const auto indices = make_indices(batch, 2, rows);
    const int before = threads();
    set_threads(1);
    const Inverse one(Neighbours(indices.view(), batch), rows);
    set_threads(3);
    const Inverse three(Neighbours(indices.view(), batch), rows);
    set_threads(before);
    expect_same_bits(one.ranges, three.ranges, "ranges");
    expect_same_bits(one.positions, three.positions, "positions");
}

TEST(InvertIndexCpu, SaysWhatIsWrong) {
    Array<int32_t, 2> indices({4, 2}), ranges({3, 2});
    Array<int32_t, 1> positions({8});
    const auto message = [&](const Neighbours& neighbours, const Batch& rows, View<int32_t, 2> r, View<int32_t, 1> p) {
        return bad_argument_of([&] { ops::invert_index(neighbours, rows, r, p); });
    };
    EXPECT_EQ(message(indices.view(), Batch::dense(2, 3), ranges.view(), positions.view()),
              "invert_index: 1 clouds against 2");
    EXPECT_EQ(message(indices.view(), Batch::single(4), ranges.view(), positions.view()),
              "invert_index: ranges must be [4, 2], got [3, 2]");
    EXPECT_EQ(message(indices.view(), Batch::single(3), ranges.view(), positions.view().slice(0, 7)),
              "invert_index: positions must be [8], got [7]");
    EXPECT_EQ(message(indices.view(), Batch::single(3), ranges.view(), View<int32_t, 1>(nullptr, {8}, kFakeCuda)),
              "invert_index: points on cpu, positions on cuda:0");
    const View<const int32_t, 2> huge(nullptr, {int64_t{1} << 31, 1});
    EXPECT_NE(message(Neighbours(huge), Batch::single(3), ranges.view(), positions.view()).find("2147483648 entries"),
              std::string::npos);
    EXPECT_NE(message(indices.view(), Batch::single(int64_t{1} << 31), ranges.view(), positions.view())
                  .find("a cloud of 2147483648 points"),
              std::string::npos);
    EXPECT_NE(bad_argument_of([&] { Neighbours(indices.view(), Batch::single(5)); }).find("4 rows of indices"),
              std::string::npos);
    EXPECT_NE(bad_argument_of([&] {
                  Neighbours(View<const int32_t, 2>(indices.data(), {2, 2}, {4, 1}));
              }).find("contiguous"),
              std::string::npos);
}

TEST(InvertIndexCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const Batch batch = Batch::dense(2, 4), rows = Batch::dense(2, 3);
    const auto indices = make_indices(batch, 2, rows);
    const Neighbours neighbours(indices.view(), batch);
    Array<int32_t, 2> ranges({6, 2});
    Array<int32_t, 1> positions({16});
    const auto run = [&] { ops::invert_index(neighbours, rows, ranges.view(), positions.view()); };
    EXPECT_GT(for_each_allocation_failure(run), can_fail_allocations() ? 0 : -1);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
