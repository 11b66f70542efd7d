#include "stipple/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "stipple/core/buffer.h"
#include "stipple/core/interrupt.h"
#include "stipple/core/parallel.h"

namespace stipple::bench {
namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void synchronize(Device device) {
    if (device.type == DeviceType::cpu) return;
    static std::map<int, Buffer> probes;  // a copy to the host waits for the default stream
    Buffer& probe = probes[device.index];
    if (probe.bytes() == 0) probe = Buffer(64, device);
    char byte = 0;
    copy_bytes(&byte, Device{}, probe.data(), device, 1);
}

Timing measure(const std::function<void()>& work, Device device, const Budget& budget) {
    const auto timed = [&](int calls) {
        const double begin = now();
        for (int i = 0; i < calls; ++i) work();
        synchronize(device);
        return (now() - begin) / calls;
    };
    work();
    synchronize(device);
    int calls = 1;
    if (device.type == DeviceType::cuda) {
        constexpr double kRun = 5e-3;  // long beside a wait of some 10 microseconds
        calls = static_cast<int>(std::clamp(kRun / timed(1), 1.0, 500.0));
    }
    std::vector<double> times;
    const double begin = now();
    while (times.size() < static_cast<size_t>(budget.repeat) || now() - begin < budget.seconds) {
        check_interrupted();
        times.push_back(timed(calls));
        if (now() - begin > 20 * budget.seconds) break;
    }
    std::sort(times.begin(), times.end());
    return {times[0], times[times.size() / 2], static_cast<int>(times.size())};
}

double copy_bandwidth(Device device) {
    const int64_t bytes = int64_t{1} << (device.type == DeviceType::cpu ? 28 : 30);  // far beyond every cache
    Buffer from(bytes, device), to(bytes, device);
    const auto copy = [&] {
        if (device.type == DeviceType::cuda) return copy_bytes(to.data(), device, from.data(), device, bytes);
        parallel_for(bytes, bytes / threads() + 1, [&](int64_t begin, int64_t end) {
            std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
        });
    };
    if (device.type == DeviceType::cpu) std::memset(from.data(), 1, static_cast<size_t>(bytes));
    return 2.0 * static_cast<double>(bytes) / measure(copy, device, {5, 0.1}).best;
}

}  // namespace stipple::bench
