#include "stipple/core/synchronize.h"

#include <gtest/gtest.h>

namespace stipple::test {
namespace {

TEST(Synchronize, TheCpuHasNothingToWaitFor) {
    EXPECT_NO_THROW(synchronize({}, {}));
    EXPECT_NO_THROW(synchronize({}, Stream{reinterpret_cast<void*>(1)}));
}

TEST(Synchronize, WaitsForEveryGpuThatIsThere) {
    bool has_gpu = false;
    for (const DeviceInfo& info : list_devices()) {
        has_gpu |= info.device.type == DeviceType::cuda;
        EXPECT_NO_THROW(synchronize(info.device, {}));
    }
    if (!has_gpu) {
        EXPECT_THROW(synchronize({DeviceType::cuda, 0}, {}), Error);
    }
}

}  // namespace
}  // namespace stipple::test
