#pragma once
// Ranks that are threads of a test: a ProcessGroup without processes.

#include <functional>

#include "stipple/learn/distributed/process_group.h"

namespace stipple::test {

/// Calls f(group) for each of `size` ranks, on threads of their own, and waits for all. f must not throw.
void run_ranks(int size, const std::function<void(learn::ProcessGroup& group)>& f);

}  // namespace stipple::test
