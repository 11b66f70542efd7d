#include "stipple/ops/gather.h"

#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

class Gather : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Gather);

TEST_P(Gather, PicksRowsOfEveryCloud) {
    for (const Layout& layout : layouts()) {
        for (int64_t c : kWidths) {
            const int64_t m = layout.batch.rows();
            const auto rows = make_features(layout.rows.rows(), c);
            const auto indices = make_indices(layout.batch, 1, layout.rows);
            const auto rows_there = upload(rows);
            const auto indices_there = upload(indices);
            Guarded<float, 2> out({m, c}, device());
            ops::gather(Clouds(rows_there.view(), layout.rows), Neighbours(indices_there.view(), layout.batch),
                        out.view());
            const auto found = out.get();
            for (int64_t i = 0; i < m; ++i) {
                const int64_t row = named_row(indices, layout.batch, layout.rows, i);
                for (int64_t l = 0; l < c; ++l)
                    ASSERT_EQ(found.data()[i * c + l], row < 0 ? 0 : rows.data()[row * c + l]);
            }
        }
    }
}

TEST(GatherCpu, SaysWhatIsWrong) {
    const auto rows = make_features(5, 3);
    Array<int32_t, 2> indices({4, 2});
    Array<float, 3> out({4, 2, 3});
    const Neighbours neighbours(indices.view());
    EXPECT_EQ(bad_argument_of([&] {
                  ops::gather(rows.view(), neighbours, View<float, 2>(out.data(), {4, 3}));
              }),
              "gather: indices must be [m], got [m, 2]");
    Array<int32_t, 1> one({4});
    EXPECT_EQ(bad_argument_of([&] {
                  ops::gather(rows.view(), one.view(), View<float, 2>(out.data(), {3, 3}));
              }),
              "gather: out must be [4, 3], got [3, 3]");
}

TEST(GatherCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const auto features = make_features(3, 4);
    Array<int32_t, 1> indices({2});
    indices.data()[0] = 2, indices.data()[1] = -1;
    const Neighbours neighbours(indices.view());
    const Clouds clouds(features.view());
    Array<float, 2> out({2, 4});
    const auto run = [&] { ops::gather(clouds, neighbours, out.view()); };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
