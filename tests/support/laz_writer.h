#pragma once
// Compresses LAS files as LASzip does: what the reader of LAZ is tested with. Not for speed.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stipple::test {

struct LazOptions {
    int64_t chunk_points = 50'000;
    std::vector<int64_t> chunks = {};  // or the points of each; their sum is that of the file
    bool place_at_end = false;         // of the table: the writer could not go back
    bool table = true;                 // false: the writer was stopped before
};

/// A LAS file of point format 0 to 3 or 6 to 8, with its records and extended records. Throws std::runtime_error for
/// others.
std::vector<std::byte> to_laz(const std::vector<std::byte>& las, const LazOptions& options = {});

}  // namespace stipple::test
