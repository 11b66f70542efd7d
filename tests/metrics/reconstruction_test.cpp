#include "stipple/metrics/reconstruction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/metrics/metrics.h"

namespace stipple::test {
namespace {

TEST(MetricsReconstruction, IsTheMeanOfRatiosNotTheRatioOfMeans) {
    const double samples[] = {2, 30}, wholes[] = {1, 10};
    EXPECT_DOUBLE_EQ(metrics::normalised_reconstruction_error(samples, wholes), 2.5);  // the other would be 32 / 11
}

TEST(MetricsReconstruction, NamesWhatIsWrong) {
    const double two[] = {1, 2}, one[] = {1}, zero[] = {0}, nan[] = {NAN};
    const std::string who = "normalised_reconstruction_error: ";
    const auto message = [&](std::span<const double> a, std::span<const double> b) {
        return bad_argument_of([&] { metrics::normalised_reconstruction_error(a, b); });
    };
    EXPECT_EQ(message(two, one), who + "2 errors of samples, 1 of wholes");
    EXPECT_EQ(message({}, {}), who + "no clouds");
    EXPECT_EQ(message(one, zero), who + "error 0 of whole cloud 0");
    EXPECT_EQ(message(nan, one), who + "error nan of sample 0");
}

}  // namespace
}  // namespace stipple::test
