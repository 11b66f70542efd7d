#include "stipple/learn/memory.h"

#include <cstdio>

namespace stipple::learn {

MemoryUse memory_use(torch::Device device) {
    MemoryUse use;
    if (std::FILE* file = std::fopen("/proc/self/status", "re")) {
        char line[256];
        long long kilobytes = 0;
        while (std::fgets(line, sizeof line, file)) {
            if (std::sscanf(line, "VmRSS: %lld", &kilobytes) == 1) use.host_bytes = kilobytes * 1024;
            if (std::sscanf(line, "VmHWM: %lld", &kilobytes) == 1) use.host_peak_bytes = kilobytes * 1024;
        }
        std::fclose(file);
    }
#ifdef STIPPLE_WITH_CUDA
    if (device.is_cuda()) cuda::pool_use(device.index(), use);
#else
    (void)device;
#endif
    return use;
}

}  // namespace stipple::learn
