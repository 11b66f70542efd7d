// What holds for every op on every device: ten thousand calls leave memory as it was.

#include <set>

#include "stipple/bench/cases.h"
#include "stipple/bench/timing.h"
#include "stipple/core/parallel.h"
#include "stipple/ops/registry.h"
#include "tests/ops/device_memory.h"
#include "tests/ops/ops.h"
#include "tests/support/allocation.h"

namespace stipple::test {
namespace {

class Endurance : public OnDevice {};
STIPPLE_ON_EVERY_DEVICE(Endurance);

TEST_P(Endurance, TenThousandCallsLeaveMemoryFlat) {
    const int threads_before = threads();
    set_threads(1);  // starting others would take most of the time
    std::set<std::string> called;
    for (const bench::Case& one : bench::op_cases(bench::Size::tiny)) {
        if (!(device().type == DeviceType::cpu ? one.on_cpu : one.on_cuda)) continue;
        SCOPED_TRACE(one.op);
        called.insert(one.op);
        const std::function<void()> call = one.prepare(device());
        for (int i = 0; i < 100; ++i) call();  // caches and pools fill up
        bench::synchronize(device());
        const int64_t blocks = live_allocations(), bytes = device_memory_used(device());
        for (int i = 0; i < 10'000; ++i) call();
        bench::synchronize(device());
        EXPECT_EQ(live_allocations(), blocks);
        EXPECT_EQ(device_memory_used(device()), bytes);
    }
    for (const ops::OpInfo& op : ops::registry()) {
        const bool here = device().type == DeviceType::cpu ? op.cpu : op.cuda;
        EXPECT_TRUE(!here || called.count(op.name)) << op.name;
    }
    set_threads(threads_before);
}

}  // namespace
}  // namespace stipple::test
