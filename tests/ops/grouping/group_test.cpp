#include "stipple/ops/group.h"

#include "stipple/ops/gather.h"
#include "stipple/ops/scatter_add.h"
#include "tests/ops/grouping.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

using ops::Batch;
using ops::Clouds;
using ops::Neighbours;

class Group : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Group);

TEST_P(Group, CopiesTheNamedRows) {
    for (const Layout& layout : layouts()) {
        for (int64_t c : kWidths) {
            for (int64_t k : {0, 1, 5}) {
                for (bool local : {false, true}) {
                    const int64_t m = layout.batch.rows();
                    const auto rows = make_features(layout.rows.rows(), c), centres = make_features(m, c, 2);
                    const auto indices = make_indices(layout.batch, k, layout.rows);
                    const auto rows_there = upload(rows), centres_there = upload(centres);
                    const auto indices_there = upload(indices);
                    Guarded<float, 3> out({m, k, c}, device());
                    const Clouds clouds(rows_there.view(), layout.rows);
                    const Neighbours neighbours(indices_there.view(), layout.batch);
                    if (local) {
                        ops::group(clouds, neighbours, centres_there.view(), out.view());
                    } else {
                        ops::group(clouds, neighbours, out.view());
                    }
                    const auto found = out.get();
                    for (int64_t e = 0; e < m * k; ++e) {
                        const int64_t row = named_row(indices, layout.batch, layout.rows, e);
                        for (int64_t l = 0; l < c; ++l) {
                            const float centre = local ? centres.data()[e / k * c + l] : 0;
                            const float wanted = row < 0 ? 0 : rows.data()[row * c + l] - centre;
                            ASSERT_EQ(found.data()[e * c + l], wanted) << "entry " << e << " column " << l;
                        }
                    }
                }
            }
        }
    }
}

TEST_P(Group, RowsMayLieApartAndUnaligned) {
    // Rows of 4 in an array of 7 columns, beginning at its second: no 16-byte address anywhere.
    const auto wide = make_features(9, 7);
    const auto wide_there = upload(wide);
    const View<const float, 2> rows(wide_there.data() + 1, {9, 4}, {7, 1}, device());
    const auto indices = make_indices(Batch::single(6), 2, Batch::single(9));
    const auto indices_there = upload(indices);
    Guarded<float, 3> out({6, 2, 4}, device());
    ops::group(rows, Neighbours(indices_there.view()), out.view());
    const auto found = out.get();
    for (int64_t e = 0; e < 12; ++e) {
        const int64_t row = named_row(indices, Batch::single(6), Batch::single(9), e);
        for (int64_t l = 0; l < 4; ++l) ASSERT_EQ(found.data()[e * 4 + l], row < 0 ? 0 : wide.data()[row * 7 + 1 + l]);
    }
}

TEST_P(Group, NonFiniteRowsAreCopied) {
    const auto points = make_cloud(Kind::nonfinite, 20);
    const auto points_there = upload(points);
    Array<int32_t, 1> indices({20});
    for (int32_t i = 0; i < 20; ++i) indices.data()[i] = 19 - i;
    const auto indices_there = upload(indices);
    Guarded<float, 2> out({20, 3}, device());
    ops::gather(points_there.view(), Neighbours(indices_there.view()), out.view());
    const auto found = out.get();
    for (int64_t i = 0; i < 20; ++i)
        EXPECT_EQ(0, std::memcmp(found.data() + 3 * i, points.data() + 3 * (19 - i), 3 * sizeof(float))) << i;
}

TEST_P(Group, GradientOfTheCentres) {
    for (const Layout& layout : layouts()) {
        for (int64_t c : kWidths) {
            const int64_t m = layout.batch.rows(), k = 6;
            const auto indices = make_indices(layout.batch, k, layout.rows);
            const auto gradient = random_array<float, 3>({m, k, c}, 3);
            const auto indices_there = upload(indices);
            const auto gradient_there = upload(gradient);
            Guarded<float, 2> out({m, c}, device());
            ops::group_backward_centres(Neighbours(indices_there.view(), layout.batch), layout.rows,
                                        gradient_there.view(), out.view());
            const auto found = out.get();
            for (int64_t i = 0; i < m; ++i) {
                for (int64_t l = 0; l < c; ++l) {
                    double sum = 0;
                    for (int64_t e = i * k; e < (i + 1) * k; ++e)
                        if (named_row(indices, layout.batch, layout.rows, e) >= 0) sum += gradient.data()[e * c + l];
                    ASSERT_EQ(found.data()[i * c + l], static_cast<float>(-sum));
                }
            }
        }
    }
}

TEST(GroupCpu, SameOnAnyNumberOfThreads) {
    const Batch batch = Batch::dense(3, 500), rows = Batch::dense(3, 400);
    const auto features = make_features(rows.rows(), 67);
    const auto indices = make_indices(batch, 8, rows);
    expect_same_on_threads([&] {
        const Neighbours neighbours(indices.view(), batch);
        Array<float, 3> out({batch.rows(), 8, 67});
        ops::group(Clouds(features.view(), rows), neighbours, out.view());
        const Inverse inverse(neighbours, rows);
        std::vector<Array<float, 2>> results;
        results.emplace_back(std::array<int64_t, 2>{rows.rows(), 67});
        results.emplace_back(std::array<int64_t, 2>{batch.rows(), 67});
        ops::scatter_add(View<const float, 2>(out.data(), {batch.rows() * 8, 67}), inverse.view(), results[0].view());
        ops::group_backward_centres(neighbours, rows, out.view(), results[1].view());
        return results;
    });
}

TEST(GroupCpu, SaysWhatIsWrong) {
    const auto rows = make_features(5, 3);
    Array<int32_t, 2> indices({4, 2});
    Array<float, 3> out({4, 2, 3});
    const Neighbours neighbours(indices.view());
    const auto message = [&](const Neighbours& given, View<const float, 2> centres, View<float, 3> to) {
        return bad_argument_of([&] { ops::group(rows.view(), given, centres, to); });
    };
    EXPECT_EQ(message(neighbours, {}, View<float, 3>(out.data(), {4, 3, 2})),
              "group: out must be [4, 2, 3], got [4, 3, 2]");
    EXPECT_EQ(message(neighbours, rows.view(), out.view()), "group: centres must be [4, 3], got [5, 3]");
    EXPECT_EQ(message(neighbours, {}, View<float, 3>(out.data(), {4, 2, 3}, {6, 1, 2})),
              "group: out must be contiguous");
    EXPECT_EQ(message(neighbours, {}, View<float, 3>(nullptr, {4, 2, 3}, kFakeCuda)),
              "group: points on cpu, out on cuda:0");
    EXPECT_EQ(message(Neighbours(View<const int32_t, 2>(nullptr, {4, 2}, kFakeCuda)), {}, out.view()),
              "group: points on cpu, indices on cuda:0");
    EXPECT_EQ(message(Neighbours(indices.view(), Batch::dense(2, 2)), {}, out.view()), "group: 2 clouds against 1");
    const View<const float, 2> huge(nullptr, {int64_t{1} << 31, 3}, {0, 1});
    EXPECT_NE(bad_argument_of([&] { ops::group(huge, neighbours, out.view()); }).find("2147483648 points"),
              std::string::npos);
    EXPECT_EQ(
        bad_argument_of([&] {
            ops::group_backward_centres(neighbours, Batch::single(5), out.view(), View<float, 2>(nullptr, {3, 3}));
        }),
        "group_backward_centres: dL_dcentres must be [4, 3], got [3, 3]");
}

TEST(GroupCpu, SurvivesFailedAllocationsAndKeepsNone) {
    const Batch batch = Batch::single(4), rows = Batch::single(3);
    const auto features = make_features(3, 4);
    const auto indices = make_indices(batch, 2, rows);
    const Neighbours neighbours(indices.view());
    const Clouds clouds(features.view());
    const Inverse inverse(neighbours, rows);
    Array<float, 3> out({4, 2, 4});
    Array<float, 2> sums({3, 4}), centres({4, 4});
    const auto run = [&] {
        ops::group(clouds, neighbours, out.view());
        ops::scatter_add(View<const float, 2>(out.data(), {8, 4}), inverse.view(), sums.view());
        ops::group_backward_centres(neighbours, rows, out.view(), centres.view());
    };
    for_each_allocation_failure(run);
    expect_flat_memory(run);
}

}  // namespace
}  // namespace stipple::test
