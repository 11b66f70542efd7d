#pragma once
// Tests that run on every device, and what every op promises on each.
//
//   class Knn : public OnDevice {};
//   STIPPLE_ON_EVERY_DEVICE(Knn);
//   TEST_P(Knn, TiesGoToTheLowestIndex) { Array<float, 2> points = upload(host); ... download(indices) }

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "stipple/core/point_cloud.h"

namespace stipple::test {

/// The CPU, and the first GPU where there is one.
std::vector<Device> test_devices();

/// The first GPU where there is one.
std::vector<Device> test_gpus();

class OnDevice : public testing::TestWithParam<Device> {
protected:
    Device device() const { return GetParam(); }

    template <class T, int Rank>
    Array<T, Rank> upload(const Array<T, Rank>& host) const {
        return host.to(device());
    }
    /// Positions and triangles only.
    Mesh upload(const Mesh& host) const;
};

/// Blocks until the device has finished what was launched before.
template <class T, int Rank>
Array<T, Rank> download(const Array<T, Rank>& array) {
    return array.to(Device{});
}

inline std::string device_name(const testing::TestParamInfo<Device>& parameter) {
    return parameter.param.type == DeviceType::cpu ? "cpu" : "cuda";
}
#define STIPPLE_ON_EVERY_DEVICE(suite) \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::stipple::test::test_devices()), ::stipple::test::device_name)

/// For tests that compare a GPU with the CPU: there are none on a machine without.
#define STIPPLE_ON_EVERY_GPU(suite)                       \
    GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::stipple::test::test_gpus()), ::stipple::test::device_name)

/// The message of the Error{bad_argument} that f throws; a failure when it throws none or another.
std::string bad_argument_of(const std::function<void()>& f);

/// Runs f with 1 and 3 threads and expects the same bits.
void expect_same_on_threads(const std::function<std::vector<Array<float, 2>>()>& f);

}  // namespace stipple::test
