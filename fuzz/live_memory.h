#pragma once
// Counts the memory that lives at one time, by the hooks of AddressSanitizer's allocator.

#include <atomic>
#include <cstddef>
#include <cstdint>

// As in <sanitizer/allocator_interface.h>, which GCC does not install.
extern "C" {
size_t __sanitizer_get_allocated_size(const volatile void* memory);
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                              void (*on_free)(const volatile void*));
}

namespace stipple::fuzz {

inline std::atomic<int64_t> g_live{0}, g_peak{0};
inline std::atomic<bool> g_counting{false};

inline void count_malloc(const volatile void*, size_t size) {
    if (!g_counting) return;
    const int64_t live = g_live += static_cast<int64_t>(size);
    int64_t peak = g_peak;
    while (live > peak && !g_peak.compare_exchange_weak(peak, live)) {
    }
}

inline void count_free(const volatile void* memory) {
    if (g_counting && memory != nullptr) g_live -= static_cast<int64_t>(__sanitizer_get_allocated_size(memory));
}

inline void install_counters() {
    __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
}

inline void start_counting() {
    g_live = g_peak = 0;
    g_counting = true;
}
inline void stop_counting() {
    g_counting = false;
}

/// A parser may take 64 times its input and 1 MiB.
inline bool took_too_much(size_t input) {
    return g_peak > static_cast<int64_t>(64 * input + (size_t{1} << 20));
}

}  // namespace stipple::fuzz
