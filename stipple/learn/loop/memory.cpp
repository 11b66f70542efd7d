#include "stipple/learn/loop/memory.h"

#include <cstdio>
#include <malloc.h>
#include <string_view>

#include "stipple/io/text.h"

namespace stipple::learn {

void keep_freed_memory() {
#ifdef __GLIBC__
    ::mallopt(M_MMAP_MAX, 0);
    ::mallopt(M_TRIM_THRESHOLD, 2147483647);
    ::mallopt(M_TOP_PAD, 64 << 20);
#endif
}

MemoryUse memory_use(torch::Device device) {
    MemoryUse use;
    if (std::FILE* file = std::fopen("/proc/self/status", "re")) {
        char line[256];
        while (std::fgets(line, sizeof line, file)) {  // "VmRSS:     1234 kB"
            std::string_view text = line;
            const std::string_view name = io::next_word(text);
            int64_t kilobytes = 0;
            if (!io::parse_number(io::next_word(text), kilobytes)) continue;
            if (name == "VmRSS:") use.host_bytes = kilobytes * 1024;
            if (name == "VmHWM:") use.host_peak_bytes = kilobytes * 1024;
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
