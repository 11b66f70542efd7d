#pragma once
// What differs between LibTorch 1.13 and 2.11. Everything else here uses what both have.

#include <cstddef>
#include <cstdint>
#include <torch/version.h>

namespace stipple::learn {

/// Totals that c10::MemoryReportingInfoBase reports.
#if TORCH_VERSION_MAJOR >= 2
using ReportedBytes = size_t;
#else
using ReportedBytes = int64_t;
#endif

}  // namespace stipple::learn
