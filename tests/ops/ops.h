#pragma once
// What the tests of ops share: every device, and clouds of every unpleasant kind.
//
//   class Knn : public OnDevice {};
//   STIPPLE_ON_EVERY_DEVICE(Knn);
//   TEST_P(Knn, TiesGoToTheLowestIndex) { Array<float, 2> points = upload(host); ... download(indices) }

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "stipple/core/array.h"
#include "stipple/ops/clouds.h"

namespace stipple::test {

/// The CPU, and the first GPU where there is one.
std::vector<Device> test_devices();

class OnDevice : public testing::TestWithParam<Device> {
protected:
    Device device() const { return GetParam(); }

    template <class T, int Rank>
    Array<T, Rank> upload(const Array<T, Rank>& host) const {
        return host.to(device());
    }
};

/// Blocks until the device has finished what was launched before.
template <class T, int Rank>
Array<T, Rank> download(const Array<T, Rank>& array) {
    return array.to(Device{});
}

#define STIPPLE_ON_EVERY_DEVICE(suite)                                                                                \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::stipple::test::test_devices()), [](const auto& parameter) { \
        return std::string(parameter.param.type == DeviceType::cpu ? "cpu" : "cuda");                                 \
    })

/// n points of a kind, [n, 3]. Deterministic.
enum class Kind { uniform, clustered, collinear, coplanar, duplicated, all_equal, lattice, nonfinite, huge, tiny };
Array<float, 2> make_cloud(Kind kind, int64_t n, uint64_t seed = 1);
const std::vector<Kind>& all_kinds();
std::string to_string(Kind kind);

/// n rows of c uniform numbers in [0, 1).
Array<float, 2> make_features(int64_t n, int64_t c, uint64_t seed = 1);

/// Rows of several clouds one after another.
Array<float, 2> concatenate(const std::vector<const Array<float, 2>*>& clouds);

/// The message of the Error{bad_argument} that f throws; a test failure when it throws none or another.
std::string bad_argument_of(const std::function<void()>& f);

/// Runs f with 1 thread and with 3, and expects the same bytes in what it returns.
void expect_same_on_threads(const std::function<std::vector<Array<float, 2>>()>& f);

}  // namespace stipple::test
