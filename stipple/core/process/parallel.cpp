#include "stipple/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "stipple/core/error.h"

#ifdef STIPPLE_WITH_OPENMP
#include <omp.h>
#endif

namespace stipple {
namespace {

std::atomic<int> g_threads{0};
thread_local bool t_inside = false;

void run_on_threads(int count, const std::function<void()>& work) {
#ifdef STIPPLE_WITH_OPENMP
#pragma omp parallel num_threads(count)
    {
        t_inside = true;
        work();
        t_inside = false;
    }
#else
    std::vector<std::thread> pool;
    try {
        pool.reserve(static_cast<size_t>(count));
        for (int i = 1; i < count; ++i)
            pool.emplace_back([&] {
                t_inside = true;
                work();
            });
    } catch (...) {  // no memory or no thread to be had: those that started do all of the work
    }
    t_inside = true;
    work();
    t_inside = false;
    for (std::thread& thread : pool) thread.join();
#endif
}

}  // namespace

int threads() {
    const int asked = g_threads.load(std::memory_order_relaxed);
    if (asked > 0) return asked;
#ifdef STIPPLE_WITH_OPENMP
    return std::max(1, omp_get_max_threads());
#else
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

void set_threads(int count) {
    STIPPLE_REQUIRE(count >= 0 && count <= 4096, "threads must be 0 (all) to 4096, got {}", count);
    g_threads.store(count, std::memory_order_relaxed);
}

void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    STIPPLE_REQUIRE(n >= 0 && grain >= 1, "parallel_for over {} items in chunks of {}", n, grain);
    const int64_t chunks = n / grain + (n % grain != 0);
    const int count = t_inside ? 1 : static_cast<int>(std::min<int64_t>(threads(), chunks));
    // The last chunk's end is n, not its begin + grain, which may overflow.
    const auto run_chunk = [&](int64_t chunk) {
        body(chunk * grain, chunk * grain + std::min(grain, n - chunk * grain));
    };
    if (count <= 1) {
        for (int64_t chunk = 0; chunk < chunks; ++chunk) run_chunk(chunk);
        return;
    }
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    int64_t failed_chunk = std::numeric_limits<int64_t>::max();
    const auto work = [&] {
        for (int64_t chunk; (chunk = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
            try {
                run_chunk(chunk);
            } catch (...) {
                const std::lock_guard lock(mutex);
                // Chunks are handed out in order, so every chunk below this one runs to its end: the lowest wins.
                if (chunk < failed_chunk) {
                    failed_chunk = chunk;
                    failure = std::current_exception();
                }
                next.store(chunks, std::memory_order_relaxed);
            }
        }
    };
    run_on_threads(count, std::cref(work));  // by reference: a closure of this size would be allocated
    if (failure) std::rethrow_exception(failure);
}

}  // namespace stipple
