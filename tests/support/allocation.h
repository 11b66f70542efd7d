#pragma once
// Allocation failures on purpose: the test programs replace operator new (all of its forms) with one that can be told
// to fail at its n-th call, once or from there on. Every test target links it (tests/CMakeLists.txt, test_support).
//
//   for_each_allocation_failure([&] { parse_ply(reader(bytes)); });
//
// Not replaced under AddressSanitizer and ThreadSanitizer, which bring their own; f then runs once.

#include <cstdint>
#include <functional>

namespace stipple::test {

enum class FailMode { once, from_there_on };

/// False where operator new is not replaced.
bool can_fail_allocations();

/// Calls of operator new since the start, and blocks that are alive. 0 where it is not replaced.
int64_t allocation_calls();
int64_t live_allocations();

/// The n-th call of operator new from now on (1-based, all threads) fails; 0 switches failures off.
void fail_allocation(int64_t n, FailMode mode);

/// Runs f with a failure at call 1, 2, 3 ... until f comes through without meeting it, in both modes. Records a test
/// failure when f throws anything but std::bad_alloc or Error{out_of_memory}, when it succeeds although an allocation
/// failed for good (mode from_there_on), or when a failed run leaves blocks behind (after a first run that may fill
/// caches). Returns how many failures were tried. f starts from scratch every time.
int64_t for_each_allocation_failure(const std::function<void()>& f);

}  // namespace stipple::test
