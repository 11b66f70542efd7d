#include <cmath>

#include "stipple/ops/row_norm.h"
#include "tests/ops/ops.h"
#include "tests/support/expect_error.h"

namespace stipple::test {
namespace {

class NormColumnsOp : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(NormColumnsOp);

/// In double, by the formulas of the header; one rounding makes the difference.
TEST_P(NormColumnsOp, FollowsItsFormulas) {
    for (const int64_t c : {1, 7, 128, 1024, 1500})
        for (const bool has_offset : {false, true}) {
            SCOPED_TRACE(fmt::format("{} columns, {}", c, has_offset));
            const auto column = [&](double first, double step) {
                Array<float, 1> values({c});
                for (int64_t i = 0; i < c; ++i)
                    values.data()[i] = static_cast<float>(first + step * static_cast<double>(i % 37));
                return values;
            };
            const Array<float, 1> mean = column(-1.5, 0.3), variance = column(1e-4, 0.21), gamma = column(-0.4, 0.1),
                                  beta = column(0.7, -0.05), offset = column(0.2, 0.01),
                                  running_mean = column(0.5, 0.02), running_variance = column(0.9, 0.03);
            const auto mean_there = upload(mean), variance_there = upload(variance), gamma_there = upload(gamma),
                       beta_there = upload(beta), offset_there = upload(offset);
            auto running_mean_there = upload(running_mean), running_variance_there = upload(running_variance);
            Array<float, 1> inverse({c}, device()), scale({c}, device()), shift({c}, device());
            const double count = 1000, eps = 1e-3, momentum = 0.3;
            ops::NormParameters parameters = {.gamma = gamma_there.view(), .beta = beta_there.view()};
            if (has_offset) parameters.offset = offset_there.view();
            parameters.eps = eps, parameters.momentum = momentum;
            ops::norm_columns(mean_there.view(), variance_there.view(), count, parameters, running_mean_there.view(),
                              running_variance_there.view(), inverse.view(), scale.view(), shift.view());
            const auto found_inverse = download(inverse), found_scale = download(scale), found_shift = download(shift),
                       found_mean = download(running_mean_there), found_variance = download(running_variance_there);
            for (int64_t i = 0; i < c; ++i) {
                const double m = mean.data()[i], v = variance.data()[i], d = 1 / std::sqrt(v + eps),
                             before = running_mean.data()[i], before_v = running_variance.data()[i];
                const auto expect = [&](const Array<float, 1>& found, double value) {
                    ASSERT_NEAR(found.data()[i], value, 1.2e-7 * std::abs(value) + 1e-12) << i;
                };
                expect(found_inverse, d);
                expect(found_scale, gamma.data()[i] * d);
                expect(found_shift, beta.data()[i] - m * gamma.data()[i] * d);
                expect(found_mean, before + momentum * (m + (has_offset ? offset.data()[i] : 0) - before));
                expect(found_variance, before_v + momentum * (v * count / (count - 1) - before_v));
            }
        }
}

TEST(NormColumnsCpu, SaysWhatIsWrong) {
    Array<float, 1> four({4}), five({5});
    std::fill(four.span().begin(), four.span().end(), 1.0f);
    const View<float, 1> view = four.view();
    const ops::NormParameters parameters = {.gamma = four.view(), .beta = four.view()};
    EXPECT_ERROR(ops::norm_columns(view, view, 1, parameters, view, view, view, view, view), bad_argument,
                 "the variance of 1 rows is not known");
    EXPECT_ERROR(ops::norm_columns(view, view, 9, parameters, view, five.view(), view, view, view), bad_argument,
                 "running_variance must be [4], got [5]");
}

}  // namespace
}  // namespace stipple::test
