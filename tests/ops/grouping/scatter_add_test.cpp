#include "stipple/ops/scatter_add.h"

#include "stipple/ops/group.h"
#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

class ScatterAdd : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(ScatterAdd);

TEST_P(ScatterAdd, SumsInOrder) {
    for (const Layout& layout : layouts()) {
        for (int64_t c : kWidths) {
            for (int64_t k : {0, 1, 9}) {
                const int64_t entries = layout.batch.rows() * k, n = layout.rows.rows();
                const auto indices = make_indices(layout.batch, k, layout.rows);
                const auto values = random_array<float, 2>({entries, c}, 5);
                std::vector<double> sums(n * c);
                for (int64_t e = 0; e < entries; ++e) {
                    const int64_t row = named_row(indices, layout.batch, layout.rows, e);
                    for (int64_t l = 0; l < c && row >= 0; ++l) sums[row * c + l] += values.data()[e * c + l];
                }
                const auto indices_there = upload(indices);
                const auto values_there = upload(values);
                const Inverse inverse(Neighbours(indices_there.view(), layout.batch), layout.rows);
                Guarded<float, 2> out({n, c}, device());
                ops::scatter_add(values_there.view(), inverse.view(), out.view());
                const auto found = out.get();
                for (int64_t i = 0; i < n * c; ++i) ASSERT_EQ(found.data()[i], static_cast<float>(sums[i])) << i;
            }
        }
    }
}

/// <group(rows) - centres, g> = <rows, scatter_add(g)> + <centres, backward(g)>: the definition of a transpose.
TEST_P(ScatterAdd, IsTheTransposeOfGroup) {
    const Layout layout = layouts().back();
    const int64_t m = layout.batch.rows(), k = 4, c = 5, n = layout.rows.rows();
    const auto rows = make_features(n, c), centres = make_features(m, c, 2);
    const auto indices = make_indices(layout.batch, k, layout.rows);
    const auto gradient = random_array<float, 3>({m, k, c}, 6);
    const auto rows_there = upload(rows), centres_there = upload(centres);
    const auto indices_there = upload(indices);
    const auto gradient_there = upload(gradient);
    const Neighbours neighbours(indices_there.view(), layout.batch);
    Array<float, 3> out({m, k, c}, device());
    ops::group(Clouds(rows_there.view(), layout.rows), neighbours, centres_there.view(), out.view());
    const Inverse inverse(neighbours, layout.rows);
    Array<float, 2> dL_drows({n, c}, device()), dL_dcentres({m, c}, device());
    ops::scatter_add(View<const float, 2>(gradient_there.data(), {m * k, c}, device()), inverse.view(),
                     dL_drows.view());
    ops::group_backward_centres(neighbours, layout.rows, gradient_there.view(), dL_dcentres.view());
    const auto dot = [](const auto& a, const auto& b) {
        double sum = 0;
        for (int64_t i = 0; i < a.elements(); ++i) sum += static_cast<double>(a.data()[i]) * b.data()[i];
        return sum;
    };
    EXPECT_NEAR(dot(download(out), gradient), dot(rows, download(dL_drows)) + dot(centres, download(dL_dcentres)),
                1e-5);
}

TEST(ScatterAddCpu, SaysWhatIsWrong) {
    Array<float, 3> out({4, 2, 3});
    const Array<int32_t, 2> ranges({5, 2});
    const Array<int32_t, 1> positions({8});
    const View<const float, 2> values(out.data(), {8, 3});
    EXPECT_EQ(bad_argument_of([&] {
                  ops::scatter_add(values, {ranges.view(), positions.view()}, View<float, 2>(nullptr, {6, 3}));
              }),
              "scatter_add: ranges must be [6, 2], got [5, 2]");
    EXPECT_EQ(
        bad_argument_of([&] {
            ops::scatter_add(values, {ranges.view(), positions.view().slice(0, 7)}, View<float, 2>(nullptr, {5, 3}));
        }),
        "scatter_add: positions must be [8], got [7]");
    EXPECT_EQ(
        bad_argument_of([&] {
            ops::scatter_add(values, {ranges.view(), positions.view()}, View<float, 2>(nullptr, {5, 3}, kFakeCuda));
        }),
        "scatter_add: points on cpu, out on cuda:0");
}

TEST(ScatterAddCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const auto values = make_features(8, 4);
    const auto indices = make_indices(Batch::single(4), 2, Batch::single(3));
    const Inverse inverse(indices.view(), Batch::single(3));
    Array<float, 2> sums({3, 4});
    const auto run = [&] { ops::scatter_add(values.view(), inverse.view(), sums.view()); };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
