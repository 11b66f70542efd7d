#include "tests/support/allocation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "stipple/core/error.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STIPPLE_KEEP_NEW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STIPPLE_KEEP_NEW 1
#endif
#endif

namespace {

std::atomic<int64_t> g_calls{0}, g_live{0};
std::atomic<int64_t> g_fail_at{0};  // value of g_calls that fails; 0: none
std::atomic<bool> g_fail_on{false};
std::atomic<int64_t> g_failed{0};

#ifndef STIPPLE_KEEP_NEW
bool shall_fail() {
    const int64_t call = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
    const int64_t at = g_fail_at.load(std::memory_order_relaxed);
    if (at == 0 || call < at || (call > at && !g_fail_on.load(std::memory_order_relaxed))) return false;
    g_failed.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void* allocate(size_t bytes, size_t alignment) noexcept {
    if (shall_fail()) return nullptr;
    if (bytes == 0) bytes = 1;
    void* memory = nullptr;
    if (alignment <= alignof(std::max_align_t))
        memory = std::malloc(bytes);
    else if (::posix_memalign(&memory, alignment, bytes) != 0)
        memory = nullptr;
    if (memory) g_live.fetch_add(1, std::memory_order_relaxed);
    return memory;
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
    void* memory = allocate(bytes, alignment);
    if (!memory) throw std::bad_alloc();
    return memory;
}

void release(void* memory) noexcept {
    if (!memory) return;
    g_live.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}
#endif

}  // namespace

#ifndef STIPPLE_KEEP_NEW
// clang-format off
void* operator new(size_t n) { return allocate_or_throw(n, 1); }
void* operator new[](size_t n) { return allocate_or_throw(n, 1); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new(size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<size_t>(a)); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return allocate(n, size_t(a)); }
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return allocate(n, size_t(a)); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { release(p); }
// clang-format on
#endif

namespace stipple::test {
namespace {

enum class Outcome { success, out_of_memory, other };

Outcome run(const std::function<void()>& f) {
    try {
        f();
        return Outcome::success;
    } catch (const std::bad_alloc&) {
        return Outcome::out_of_memory;
    } catch (const Error& error) {
        return error.code() == ErrorCode::out_of_memory ? Outcome::out_of_memory : Outcome::other;
    } catch (...) {
        return Outcome::other;
    }
}

}  // namespace

bool can_fail_allocations() {
#ifdef STIPPLE_KEEP_NEW
    return false;
#else
    return true;
#endif
}

int64_t allocation_calls() {
    return g_calls.load();
}

int64_t live_allocations() {
    return g_live.load();
}

void fail_allocation(int64_t n, FailMode mode) {
    g_fail_on.store(mode == FailMode::from_there_on);
    g_failed.store(0);
    g_fail_at.store(n == 0 ? 0 : g_calls.load() + n);
}

int64_t for_each_allocation_failure(const std::function<void()>& f) {
    f();
    if (!can_fail_allocations()) return 0;
    int64_t tried = 0;
    for (const FailMode mode : {FailMode::once, FailMode::from_there_on}) {
        for (int64_t n = 1;; ++n) {
            const int64_t live = live_allocations();
            fail_allocation(n, mode);
            const Outcome outcome = run(f);
            const bool failed = g_failed.load() > 0;
            fail_allocation(0, mode);
            if (!failed) {
                EXPECT_EQ(outcome, Outcome::success) << "no allocation failed, n = " << n;
                break;
            }
            ++tried;
            const char* const when = mode == FailMode::once ? "once" : "from there on";
            // Once is enough to be survived by a fallback (a sort without its buffer); for good is not.
            if (mode == FailMode::from_there_on || outcome != Outcome::success) {
                EXPECT_EQ(outcome, Outcome::out_of_memory) << "allocation " << n << " failed " << when;
            }
            EXPECT_EQ(live_allocations(), live) << "blocks left when allocation " << n << " failed " << when;
            if (::testing::Test::HasFailure()) return tried;
        }
    }
    return tried;
}

}  // namespace stipple::test
