#pragma once
// How long a piece of work takes on a device.

#include <functional>

#include "stipple/core/device.h"

namespace stipple::bench {

struct Budget {
    int repeat = 5;        // timed runs, at least ...
    double seconds = 0.5;  // ... and until this much time has passed; at 20 times it no further run begins
};

struct Timing {
    double best = 0, median = 0;  // seconds for one call
    int runs = 0;
};

/// Blocks until a device has finished what was launched on its default stream.
void synchronize(Device device);

/// Calls `work` once to warm up, then times it. On a GPU a run is many calls and one wait at the end, so that neither
/// the wait nor an idle device is timed. Throws Error{interrupted} between runs, and what `work` throws.
Timing measure(const std::function<void()>& work, Device device, const Budget& budget);

/// Bytes per second of a large copy on the device (CPU: by all threads() at once), each byte counted twice: read and
/// written. The limit of every op that only moves memory.
double copy_bandwidth(Device device);

}  // namespace stipple::bench
